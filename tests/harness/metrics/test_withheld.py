import math

import pytest

from jaxmeter.harness.metrics.derived import compare_paired, find_withheld
from jaxmeter.harness.metrics.metric import Lack
from jaxmeter.harness.metrics.plausibility import find_objection
from jaxmeter.harness.metrics.reading import read_case
from jaxmeter.harness.record import Conditioning, Correctness, NumericsDetails, Outcome, Status, TimingDetails
from tests import samples

BEYOND = Conditioning(beyond=1, error=1e-3, allowed=1e-2, digits=2.4)
TOO_SLOW = Conditioning(beyond=1, error=1e-3, is_too_slow=True)

WITH_SPEEDUP = {
    "right": NumericsDetails(outputs=1),
    "right within conditioning": NumericsDetails(verdict=Correctness.RIGHT_WITHIN_CONDITIONING, conditioning=BEYOND),
    "cannot be checked": NumericsDetails(verdict=Correctness.CANNOT_BE_CHECKED, conditioning=BEYOND),
    "nothing compared": None,
}
WITHOUT_SPEEDUP = {
    "differs": (Status.OK, NumericsDetails(verdict=Correctness.DIFFERS)),
    "draws too slow": (Status.OK, NumericsDetails(verdict=Correctness.CANNOT_BE_CHECKED, conditioning=TOO_SLOW)),
    "wrong": (Status.WRONG, NumericsDetails(verdict=Correctness.WRONG)),
    "wrong in an older record": (Status.WRONG, None),
    "not deterministic": (Status.WRONG, NumericsDetails(verdict=Correctness.NOT_DETERMINISTIC)),
}


def timed(execution_s, log_ratio):
    values = {"execution_s": (execution_s,) * 3, "log_ratio": (log_ratio,) * 3}
    return Outcome(status=Status.OK, values=values, details=TimingDetails(processes=3))


def variants_of(numerics, *, of="f:jit", **settings):
    """A baseline variant, one twice as fast and one four times, with numerics of one of them."""
    timings = {"f:eager": timed(4.0, 0.0), "f:jit": timed(2.0, math.log(2)), "f:aot": timed(1.0, math.log(4))}
    outcomes = {name: {"timing": timing} for name, timing in timings.items()}
    outcomes[of]["numerics"] = numerics
    case = samples.planned_case(variants=tuple(outcomes))
    record, here = samples.record(case, outcomes), samples.environment()
    found = read_case(case, record, here, samples.settings(**settings)).variants
    return {variant.planned.name: variant for variant in found}


@pytest.mark.parametrize("details", WITH_SPEEDUP.values(), ids=WITH_SPEEDUP)
def test_a_result_that_nothing_speaks_against_has_a_speedup(details):
    numerics = Outcome(status=Status.OK, details=details)

    assert find_objection({"numerics": numerics}) == ""
    assert variants_of(numerics)["f:jit"].read("speedup").estimate == pytest.approx(2)


@pytest.mark.parametrize(("status", "details"), WITHOUT_SPEEDUP.values(), ids=WITHOUT_SPEEDUP)
def test_any_other_has_times_and_a_reason_instead_of_a_speedup(status, details):
    numerics = Outcome(status=status, reason="far off", details=details)

    variants = variants_of(numerics, shows_wrong=True)

    jitted, speedup = variants["f:jit"], variants["f:jit"].read("speedup")
    assert jitted.read("execution_s").estimate == pytest.approx(2)
    assert (speedup.interval, speedup.fault.lack) == (None, Lack.WITHHELD)
    assert speedup.fault.reason == f"{find_objection(jitted.outcomes)} (f:jit)"
    assert compare_paired(jitted, variants["f:aot"]) is None
    assert find_withheld(variants["f:aot"], jitted) is not None
    assert variants["f:aot"].read("speedup").estimate == pytest.approx(4)


def test_a_wrong_baseline_variant_gives_no_other_a_speedup_and_a_wrong_one_has_no_times_outside_a_notebook():
    wrong = Outcome(status=Status.WRONG, reason="far off")

    of_baseline = variants_of(wrong, of="f:eager", shows_wrong=True)

    assert of_baseline["f:jit"].read("speedup").fault.lack is Lack.WITHHELD
    assert not variants_of(wrong)["f:jit"].read("execution_s").has_number
    assert find_objection({}) == ""  # not checked
