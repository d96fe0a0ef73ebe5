"""Names of rows: as short as tells them apart."""

from __future__ import annotations

from jaxmeter.reporting.view.names import name_rows


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
