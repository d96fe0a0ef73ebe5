import pytest

import jaxmeter
from jaxmeter.harness.notebook.agreement import find_disagreement
from jaxmeter.harness.notebook.passes import Ratio

SPEEDUP = Ratio(1.9, 2.0, 2.1, 24)


@pytest.mark.parametrize(("variant_s", "agrees"), [(0.5, True), (0.47, False), (0.53, False)])
def test_times_agree_whose_quotient_lies_in_the_interval_of_the_speedup(variant_s, agrees):
    assert (find_disagreement("eager", "jit", 1.0, variant_s, SPEEDUP) == "") is agrees


def test_the_reason_has_both_names_the_quotient_and_the_interval():
    reason = find_disagreement("f:eager", "f:jit", 1.0, 0.25, SPEEDUP)

    assert all(word in reason for word in ("f:eager", "f:jit", "4x", "[1.9, 2.1]"))


@pytest.mark.parametrize(
    ("times", "speedup"),
    [((None, 0.5), SPEEDUP), ((1.0, None), SPEEDUP), ((1.0, 0.1), None), ((1.0, 0.1), Ratio(None, 2.0, None, 3))],
)
def test_without_a_time_or_an_interval_nothing_disagrees(times, speedup):
    assert find_disagreement("eager", "jit", *times, speedup) == ""


@pytest.fixture(scope="module")
def measured():
    return jaxmeter.measure({"a": lambda x: x + 1, "b": lambda x: x + 1.0}, 1.0)


def test_both_times_are_marked_with_the_reason(measured, monkeypatch):
    first, second, *_ = (variant.name for variant in measured.case.variants)
    ratio = {second: Ratio(1e6, 2e6, 3e6, 24)}
    monkeypatch.setattr(type(measured), "find_speedup", lambda self, name: ratio.get(name))

    assert all(len(one.blocks) == measured.settings.blocks >= 24 for one in measured.process.variants)
    found = measured.list_disagreements()
    lines = repr(measured).splitlines()

    assert set(found) == {first, second}
    assert all("*" in line for line in lines[2:4])
    assert not any("*" in line for line in lines[4 : 2 + len(measured.case.variants)])
    assert lines[2 + len(measured.case.variants)] == found[second]
    assert "*</td>" in measured._repr_html_()
