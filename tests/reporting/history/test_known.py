from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.reporting.history import KnownChangePoint, KnownError, read_known
from tests import samples

CASE = samples.planned_case()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "known.toml"


def test_a_file_names_run_case_variant_and_reason(file):
    file.write_text("")
    assert read_known(file) == ()
    file.write_text(
        '[[change_point]]\nrun = "a"\nwhy = "because"\n\n'
        '[[change_point]]\nrun = "b"\ncase = "selu*"\nvariant = "selu:jit"\nwhy = "it is so"\n'
    )
    assert read_known(file) == (
        KnownChangePoint("a", "because"),
        KnownChangePoint("b", "it is so", "selu*", "selu:jit"),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[change_point]]\nwhy = "x"', "1 lacks 'run'; write run = "),
        ('[[change_point]]\nrun = "x"', "1 lacks 'why'; write why = "),
        ('[[change_point]]\nrun = "x"\nwhi = "x"', "1 has no 'whi', nearest: why"),
        ('[[change_point]]\nrun = 1\nwhy = "x"', "1: run = 1 is not a text"),
        ('[[change_point]]\nrun = ""\nwhy = "x"', "1: run = '' is not a text"),
        ("change_point = [1]", "1 is not a table"),
        ("change_point = 1", "contains other entries than [[change_point]] tables"),
        ('[known]\nrun = "x"', "contains other entries than [[change_point]] tables"),
        ("[[step]", "is no TOML"),
        (None, "cannot be read: No such file"),
    ],
)
def test_what_nobody_understands_is_refused_with_what_to_write(file, text, said):
    if text is not None:
        file.write_text(text)

    with pytest.raises(KnownError) as caught:
        read_known(file)

    assert str(caught.value).startswith(str(file))
    assert said in str(caught.value)


@given(data=st.binary(max_size=60))
def test_any_bytes_are_known_steps_or_an_error_of_ours(data, tmp_path_factory):
    path = tmp_path_factory.mktemp("known") / "known.toml"
    path.write_bytes(data)

    with suppress(KnownError):
        assert isinstance(read_known(path), tuple)


@pytest.mark.parametrize(
    ("pattern", "variant", "expected"),
    [
        ("*", "", True),
        ("selu", "", True),
        ("selu[*", "selu:jit", True),
        ("selu", "selu:eager", False),
        ("mlp*", "", False),
    ],
)
def test_a_step_means_some_cases_and_variants(pattern, variant, expected):
    assert KnownChangePoint("a", "why", pattern, variant).means(CASE, "selu:jit") is expected
