import hashlib
import math

import msgspec
import pytest

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import RunFolder
from jaxmeter.reporting.compare.programs import NothingToCompareError, find_pairs
from tests import samples
from tests.reporting.recorded_programs import OTHER, PLANNED, TEXTS, recorded


def test_every_variant_with_a_program_in_both_runs_is_compared(tmp_path):
    case = samples.planned_case(params={"n": 1}, variants=("a:jit", "b:jit", "c:jit", "d:eager"))
    a = recorded(tmp_path / "a", {"a:jit": TEXTS, "b:jit": TEXTS}, case=case)
    b = recorded(tmp_path / "b", {"b:jit": OTHER, "c:jit": TEXTS}, case=case)

    found = find_pairs(a, b, "selu[n=1]")

    assert [(pair.case, pair.variant) for pair in found.pairs] == [("selu[n=1]", "b:jit")]
    assert found.pairs[0].a.texts == TEXTS
    assert found.pairs[0].b.memory == PLANNED
    assert found.warnings == (
        f"case selu[n=1]: a:jit has a program in {tmp_path / 'a'} only",
        f"case selu[n=1]: c:jit has a program in {tmp_path / 'b'} only",
    )


@pytest.mark.parametrize("damaged", [-1, 2**63, math.nan])
def test_planned_memory_that_no_compiler_can_have_planned_is_left_out(tmp_path, damaged):
    a, b = recorded(tmp_path / "a", memory={**PLANNED, "planned_peak_bytes": damaged}), recorded(tmp_path / "b")

    (pair,) = find_pairs(a, b, "selu").pairs

    assert pair.a.memory == {name: value for name, value in PLANNED.items() if name != "planned_peak_bytes"}
    assert pair.b.memory == PLANNED


@pytest.mark.parametrize("pattern", ["selu[n=1]", "selu", "sel*", "*[n=?]"])
def test_a_case_is_named_in_full_or_by_a_pattern_in_which_brackets_are_themselves(tmp_path, pattern):
    a, b = recorded(tmp_path / "a"), recorded(tmp_path / "b")

    assert [pair.variant for pair in find_pairs(a, b, pattern).pairs] == ["selu:jit"]


@pytest.mark.parametrize(
    ("pattern", "variant", "message"),
    [
        ("selu[n=2]", None, "no case matches --case 'selu[n=2]'; nearest: 'selu[n=1]'"),
        ("sel[un]", None, "no case matches --case 'sel[un]'; nearest: 'selu"),
        ("selu", "jit", "nearest: 'selu:jit'"),
        ("selu", "selu:eager", "no program of 'selu:eager'; nearest: 'selu:jit'"),
        ("*e" * 25 + "*b", None, "no case matches --case"),
    ],
)
def test_what_is_not_there_is_an_error_that_names_the_nearest(tmp_path, pattern, variant, message):
    a, b = recorded(tmp_path / "a"), recorded(tmp_path / "b")

    with pytest.raises(NothingToCompareError) as raised:
        find_pairs(a, b, pattern, variant)

    assert message in str(raised.value)


@pytest.mark.parametrize("path", ["/etc/passwd", "../../../secret.txt", "programs/../../x/../../secret.txt"])
def test_a_path_out_of_the_case_is_not_read(tmp_path, path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    digest = hashlib.sha256(b"secret").hexdigest()

    def outside(artifact):
        return msgspec.structs.replace(artifact, path=path, sha256=digest) if artifact.kind == "jaxpr" else artifact

    found = find_pairs(recorded(tmp_path / "a", change=outside), recorded(tmp_path / "b"), "selu")

    assert set(found.pairs[0].a.texts) == {"stablehlo", "hlo"}
    assert f"its path {path!r} leads out" in found.warnings[0]


def test_a_link_out_of_the_case_and_a_case_whose_id_is_a_path_are_not_read(tmp_path):
    a, b = recorded(tmp_path / "a"), recorded(tmp_path / "b")
    path = next(a.folder.path.rglob("jaxpr.txt"))
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    case = samples.planned_case(params={"n": 1}, id="../outside")

    assert "leads out of the case's folder" in find_pairs(a, b, "selu").warnings[0]
    with pytest.raises(NothingToCompareError, match="leads out of the case's folder"):
        find_pairs(recorded(tmp_path / "c", case=case), recorded(tmp_path / "d"), "selu")


def test_a_case_that_only_one_run_has_or_that_was_lost_is_named(tmp_path):
    one, other = (samples.planned_case(params={"n": n}, variants=("selu:jit",)) for n in (1, 2))
    a, b = recorded(tmp_path / "a", case=one), recorded(tmp_path / "b", case=other)
    lost = Run(samples.run((one, None)), RunFolder(tmp_path / "b"))

    with pytest.raises(NothingToCompareError, match=r"b: no case 'selu\[n=1\]'; nearest: 'selu\[n=2\]'"):
        find_pairs(a, b, "selu")
    with pytest.raises(NothingToCompareError, match="was lost; complete it with --resume"):
        find_pairs(a, lost, "selu")


def test_runs_that_keep_programs_of_different_variants_only_have_nothing_to_compare(tmp_path):
    case = samples.planned_case(params={"n": 1}, variants=("a:jit", "b:jit"))
    a, b = (recorded(tmp_path / name, {f"{name}:jit": TEXTS}, case=case) for name in ("a", "b"))

    with pytest.raises(NothingToCompareError, match="no variant has a program in both runs"):
        find_pairs(a, b, "selu")
