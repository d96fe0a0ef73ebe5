"""Names of rows: as short as tells them apart."""

import pytest

from jaxmeter.reporting.view.runs import name_rows, name_starts


def test_a_workload_alone_is_its_name() -> None:
    key = ("reported", "orbit", "orbit:jit")
    sized = ("reported", "arm[joints=32]", "arm:jit")

    assert name_rows([key, sized]) == {key: "orbit", sized: "arm"}


def test_variants_of_one_case_have_the_variant() -> None:
    keys = [("selu", "selu[n=10]", "selu:jit"), ("selu", "selu[n=10]", "selu:eager")]

    assert list(name_rows(keys).values()) == ["selu selu:jit", "selu selu:eager"]


def test_cases_of_one_workload_have_the_params_that_differ() -> None:
    keys = [("r", f"carry[dtype=float{bits},n=2000]", "carry:jit") for bits in (32, 64)]

    assert list(name_rows(keys).values()) == ["carry dtype=float32", "carry dtype=float64"]


@pytest.mark.parametrize(
    ("starts", "names"),
    [
        (("2026-01-01T03:00:00", "2026-01-02T03:00:00"), ["2026-01-01", "2026-01-02"]),
        (("2026-01-01T03:00:00", "2026-01-01T04:00:00"), ["03:00", "04:00"]),
        (("2026-01-01T03:00:00", "2026-01-01T03:00:20"), ["03:00:00", "03:00:20"]),
        (
            ("2026-01-01T03:00:00", "2026-01-01T04:00:00", "2026-01-02T03:00:00"),
            ["2026-01-01 03:00", "2026-01-01 04:00", "2026-01-02 03:00"],
        ),
        (("2026-01-01T03:00:00", "2026-01-01T03:00:00"), ["2026-01-01"]),
    ],
)
def test_starts_are_written_as_shortly_as_distinguishes_them(starts: tuple[str, ...], names: list[str]) -> None:
    assert sorted(name_starts(starts).values()) == names
