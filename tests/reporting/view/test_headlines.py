import math

import msgspec
import pytest

from jaxmeter.harness.record import Outcome, Status
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.views import by_variant, page_of


def processes(ratio, *log_errors, baseline_s=1e-3):
    """A time in as many processes as errors, with its paired speedup over the baseline."""
    log_ratios = tuple(math.log(ratio) + error for error in log_errors)
    values = {"execution_s": tuple(baseline_s / math.exp(one) for one in log_ratios), "log_ratio": log_ratios}
    return {"timing": Outcome(status=Status.OK, values=values)}


SURE, WILD = (-0.01, 0.0, 0.01), (-0.6, 0.0, 0.6)
WIDE, MEANINGLESS = (-0.1, 0.0, 0.1), (-0.001, 0.0, 0.001)
BASELINE = {"timing": samples.timing(1e-3, processes=3)}


def case_of(baseline="f:eager", n=1, *, base=BASELINE, doubtful=(), **speedups):
    """A case of variants by their speedups over a baseline; some are of processes that were disturbed."""
    names = [name.replace("_", ":") for name in speedups]
    planned = samples.planned_case(params={"n": n}, variants=(baseline, *names))
    outcomes = {baseline: base}
    for name, (ratio, errors) in zip(names, speedups.values(), strict=True):
        timing = processes(ratio, *errors)["timing"]
        details = samples.TimingDetails(processes=3, doubtful_ratios=name in doubtful)
        outcomes[name] = {"timing": msgspec.structs.replace(timing, details=details)}
    return planned, samples.record(planned, outcomes)


JITS = ((2, SURE), (4, SURE), (8, WILD))
SPED_UP = {
    "a sure speedup and a lucky one": [case_of("base:eager", lucky_jit=(9, WILD), sure_jit=(4, SURE))],
    "no speedup is told apart": [case_of("base:eager", lucky_jit=(9, WILD), even_jit=(1.01, MEANINGLESS))],
    "an undecided speedup": [case_of("base:eager", wide_jit=(1.1, WIDE))],
    "a baseline that nothing is surely faster than": [case_of("base:jit", lucky_jit=(9, WILD))],
    "a peer beside a contended baseline": [
        case_of("base:eager", base={"timing": samples.timing(1e-3, processes=3, contended=1)}, numpy_native=(4, SURE))
    ],
    # The wild one has the lowest low bound and the highest high one.
    "three pairs of jit and eager": [case_of(n=n, f_jit=jit) for n, jit in enumerate(JITS)],
    "a pair that is not to be trusted": [case_of(f_jit=(9, SURE), doubtful=("f:jit",))],
    "one pair of two that is not to be trusted": [
        case_of(f_jit=(2, SURE)),
        case_of(n=2, f_jit=(9, SURE), doubtful=("f:jit",)),
    ],
    "one variant of two that is not to be trusted": [
        case_of("base:eager", wild_jit=(9, SURE), sure_jit=(4, SURE), doubtful=("wild:jit",))
    ],
}


def test_what_leads_the_matrix_reads_as_its_golden_text():
    def lines(page):
        for row in page.matrix.rows:
            yield from (f"{cell.tone.name.lower()}: {cell.text} | {cell.detail}" for cell in row.cells[1:])

    check_golden_scenes("headlines", {rule: list(lines(page_of(samples.run(*made)))) for rule, made in SPED_UP.items()})


def paying(ratio, errors, *, cold_processes=3, **details):
    """Of an eager call of 1 ms, where jit's first result takes 0.1 s longer."""
    eager = Outcome(status=Status.OK, values={"execution_s": (1e-3,) * 3})
    first = (
        Outcome(status=Status.OK, values=dict.fromkeys(names, (seconds,) * cold_processes))
        for names, seconds in ((["first_call_s"], 0.1), (["trace_s", "lower_s", "compile_s", "first_call_s"], 0.05))
    )
    outcomes = {
        "f:eager": {"timing": eager, "compilation": next(first)},
        "f:jit": {**processes(ratio, *errors), "compilation": next(first)},
    }
    told = samples.TimingDetails(processes=3, **details)
    outcomes["f:jit"]["timing"] = msgspec.structs.replace(outcomes["f:jit"]["timing"], details=told)
    return by_variant(page_of(samples.one_case(outcomes)))["f:jit"]["jit pays"]


def test_a_speedup_over_eager_code_that_is_not_to_be_trusted_is_said_though_the_one_over_the_baseline_is():
    busy = samples.timing(1e-3, baseline_s=1e-3, processes=3, contended=1, parallelism=(1.9,) * 3)
    timed = samples.timing(5e-4, baseline_s=1e-3, processes=3, parallelism=(1.0,) * 3)
    outcomes = {
        "base:jit": BASELINE,
        "f:eager": {"timing": busy, "compilation": samples.compilation(0.1)},
        "f:jit": {"timing": timed, "compilation": samples.compilation(0.1, 0.1, 0.1, 0.1)},
    }

    row = by_variant(page_of(samples.one_case(outcomes)))["f:jit"]

    assert "speedup over eager code not to be trusted: " in row["Notes"]
    assert row["jit pays"].startswith("! ")
    assert not row["Speedup"].startswith("!")


@pytest.mark.parametrize(
    ("ratio", "errors", "details", "calls"),
    [
        # The speedup lies between 1.8886 and 2.1180, so 1 ms becomes less by 0.4705 to 0.5279 ms.
        (2, SURE, {}, "191 to 214 calls"),
        (2, SURE, {"doubtful_ratios": True}, "! 191 to 214 calls"),
        # At most a speedup of 1.9509, so 0.4874 ms less.
        (1.1, WIDE, {}, "at least 207 calls"),
        (2.1, SURE, {"cold_processes": 1}, "192 calls no interval"),
    ],
    ids=["a range", "not to be trusted", "maybe not faster", "no interval of the cold processes"],
)
def test_jit_pays_after_a_range_of_calls(ratio, errors, details, calls):
    assert paying(ratio, errors, **details) == calls
