import math

import msgspec
import pytest

from jaxmeter.harness.record import Figure, Outcome, Status
from jaxmeter.reporting.render import html
from jaxmeter.reporting.view import build
from jaxmeter.reporting.view.published import judge_claims
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.render.test_html import unpacked
from tests.reporting.view.page_text import write_row
from tests.reporting.views import loaded, page_of, section, tables, texts

EAGER, JIT = Figure("a:eager", 6e-3), Figure("a:jit", 1e-3)
MADE_UP = samples.claim(EAGER, JIT)


def run_of(*claims, outcomes=None, planned=None, **changes):
    """A case of two variants; by default the eager one takes 10 times as long."""
    planned = planned or samples.planned_case(variants=("a:eager", "a:jit", "b:jit"))
    usual = {
        "a:eager": samples.timing(1e-2),
        "a:jit": samples.timing(1e-3, baseline_s=1e-2),
        "b:jit": samples.timing(5e-4, baseline_s=1e-2),
    }
    planned = msgspec.structs.replace(planned, published=claims)
    return samples.one_case({**usual, **(outcomes or {})}, planned, **changes)


def slower_by(ratio, *, spread=0.0, processes=5):
    """Outcomes in which a:eager takes `ratio` times as long as a:jit, give or take `spread` of it, by process."""
    change_points = [0.0, 1.0, -1.0, 0.5, -0.5]
    log_ratios = tuple(math.log(ratio) + spread * change_points[index % 5] for index in range(processes))
    jit = Outcome(status=Status.OK, values={"execution_s": (1e-3,) * processes, "log_ratio": log_ratios})
    eager = Outcome(status=Status.OK, values={"execution_s": (1e-3 * ratio,) * processes})
    return {"a:eager": {"timing": eager}, "a:jit": {"timing": jit}}


def only_one(run):
    """The only claim of a run, judged."""
    (judged,) = judge_claims(page_of(run).cases)
    return judged


def counted(metric, *values):
    return {"compilation": Outcome(status=Status.OK, values={metric: values})}


def growing(theirs, exponents, *, wobble=0.0):
    """Four sizes whose compile time grows as n^exponent, give or take."""
    claim = samples.claim(Figure("a:jit", theirs, metric="compile_exponent"))
    pairs = []
    for index, (n, exponent) in enumerate(zip((16, 64, 256, 1024), exponents, strict=False)):
        seconds = n**exponent * 1e-5 * math.exp(wobble * (-1) ** index)
        outcomes = {"a:jit": {"compilation": samples.compilation(seconds, seconds, seconds, 1e-3)}}
        pairs.append(samples.pair(outcomes, workload="grow", params={"n": n}, published=(claim,)))
    return samples.run(*pairs)


WRONG = Outcome(status=Status.WRONG, reason="largest error 0.5, allowed 1e-05")
FAILED = Outcome(status=Status.FAILED, reason="out of memory")
SKIPPED = Outcome(status=Status.SKIPPED, reason="needs 2 devices, found 1")
TIMED = samples.timing(1e-3, baseline_s=1e-2)
LACKING = {
    "wrong": {"numerics": WRONG, "timing": TIMED},
    "no result": {"numerics": FAILED},
    "failed": {"timing": FAILED},
    "skipped": {"timing": SKIPPED},
    "not timed": {"numerics": samples.numerics()},
    "no time recorded": {"timing": Outcome(status=Status.OK)},
    "lost": {},
}
"""Outcomes of a variant that has no time, by what they lack."""

DOUBTED = {"a:jit": {"timing": samples.timing(1e-3, baseline_s=6e-3, doubtful_ratios=True)}}
UNASKED = samples.settings(probes=("numerics",))
COMPILES = samples.claim(Figure("a:jit", 2, metric="compiles"), backend="gpu")


def ratio_of(theirs, ours, **changes):
    return run_of(samples.claim(Figure("a:eager", theirs), Figure("a:jit", 1)), outcomes=slower_by(ours, **changes))


def counts_of(theirs, *ours, metric="compiles"):
    """A claim on counts of one variant or two, and the counts of their processes."""
    names = ("a:jit", "b:jit")[: len(ours)]
    figures = (Figure(name, count, metric=metric) for name, count in zip(names, theirs, strict=True))
    return run_of(
        samples.claim(*figures), outcomes=dict(zip(names, (counted(metric, *one) for one in ours), strict=True))
    )


def contended(variant, metric):
    """A ratio over a variant that was contended, and that is not paired by the moment."""
    timing = samples.timing(1e-2, baseline_s=1e-2, contended=3)
    planned = samples.planned_case(variants=("a:eager", "a:jit", "b:jit", "numpy:native"))
    claim = samples.claim(Figure(variant, 6, metric=metric), Figure("a:jit", 1, metric=metric))
    return run_of(claim, planned=planned, outcomes={variant: {"timing": timing}})


def unfitted():
    claim = samples.claim(Figure("a:jit", 2, metric="compile_exponent"))
    case = {"workload": "grow", "params": {"n": 16}, "published": (claim,)}
    return samples.one_case({"a:jit": {"compilation": FAILED}}, case)


FIRST_CALLS = samples.claim(Figure("a:jit", 9, metric="first_call_s"), Figure("b:jit", 3, metric="first_call_s"))


def of_other_kinds():
    first = {name: {"compilation": samples.compilation(s, processes=5)} for name, s in (("a:jit", 0.4), ("b:jit", 0.1))}
    return run_of(FIRST_CALLS, outcomes=first)


RATIOS = (
    *((6, 6, 0.0), (6, 2, 0.0), (6, 20, 0.0), (6, 9, 0.05), (6, 0.5, 0.0), (6, 1.2, 0.3), (6, 1.001, 0.01)),
    *((1.2, 1.02, 0.001), (1.05, 0.97, 0.001), (1.05, 1.5, 0.001), (1.05, 1.1, 0.01)),
)
NOTHING = {"numerics": samples.numerics()}


def make_scenes():
    """What a claim may meet, by its rule."""
    figures = Figure("a:eager", 786e-6, 31.8e-6), Figure("a:jit", 132e-6, 260e-6)
    sourced = samples.claim(*figures, source="Somebody 2022", device="A100", timed="%timeit", differs="JAX of 2022")
    undecided = samples.claim(EAGER, JIT, undecided="both devices are one processor")
    return {
        "source, and what differs": run_of(sourced),
        **{
            f"theirs {theirs}, ours {ours} ± {spread}": ratio_of(theirs, ours, spread=spread)
            for theirs, ours, spread in RATIOS
        },
        "too few processes": ratio_of(6, 6, processes=2),
        "a claim of no difference": run_of(samples.claim(Figure("a:eager", 1.04), Figure("a:jit", 1))),
        "a claim that ours cannot decide": run_of(undecided),
        "a claim that ours cannot decide, and that ours lacks": run_of(
            undecided, outcomes={"a:jit": {"timing": FAILED}}
        ),
        "times of another kind of device": run_of(samples.claim(EAGER, JIT, backend="gpu")),
        "counts of another kind of device": run_of(COMPILES, outcomes={"a:jit": counted("compiles", 2)}),
        **{f"ours is {name}": run_of(MADE_UP, outcomes={"a:jit": probes}) for name, probes in LACKING.items()},
        "not asked for": run_of(MADE_UP, outcomes={"a:eager": NOTHING, "a:jit": NOTHING}, settings=UNASKED),
        "a lost case": samples.run((samples.planned_case(variants=("a:eager", "a:jit"), published=(MADE_UP,)), None)),
        "a variant that the case does not have": run_of(samples.claim(EAGER, Figure("torch:native", 1))),
        "pairs that are not to be trusted": run_of(MADE_UP, outcomes=DOUBTED),
        "a contended side that is paired by the moment": run_of(
            MADE_UP, outcomes={"a:eager": {"timing": samples.timing(1e-2, contended=3)}}
        ),
        "a contended peer": contended("numpy:native", "execution_s"),
        "a contended time until return": contended("b:jit", "return_s"),
        "times of other kinds": of_other_kinds(),
        "one variant on both sides": run_of(
            samples.claim(Figure("a:eager", 4.33e-3), Figure("a:eager", 0.77e-3, metric="return_s"))
        ),
        "a ratio of counts": counts_of((30_000, 1), (300, 300), (3,), metric="jaxpr_equations"),
        **{
            f"counts of {one[0]} and {one[1]}": counts_of((4, 2), *((n,) for n in one))
            for one in ((301, 300), (300, 300), (300, 301), (0, 3))
        },
        **{f"a count of {ours}": counts_of((2,), ours) for ours in ((2,), (2, 2), (3,), (2, 3))},
        "a time by itself": run_of(samples.claim(EAGER)),
        "an exponent": growing(2, (2, 2, 2, 2), wobble=0.01),
        "another exponent": growing(2, (1, 1, 1, 1), wobble=0.01),
        "an exponent that is not sure": growing(2, (2, 2, 2, 2), wobble=0.5),
        "an exponent without an interval": growing(2, (2, 2, 2)),
        "too few sizes": growing(2, (2, 2)),
        "too few sizes, and what became of one": unfitted(),
        **{
            f"figures {above} and {below} that have no ratio": run_of(
                samples.claim(Figure("a:eager", above), Figure("a:jit", below))
            )
            for above, below in ((-1, 0), (0, 0), (1e308, 1e-300), (1e-308, 0.0))
        },
        **{
            f"the metric {metric!r}, which has no ratio": run_of(
                samples.claim(Figure("a:eager", 2, metric=metric), Figure("a:jit", 1, metric=metric))
            )
            for metric in ("", "no such metric", "speedup", "log_ratio", "compile_exponent")
        },
    }


def test_a_claim_beside_ours_reads_as_its_golden_text():
    rows = {
        rule: [write_row(row) for table in tables(page_of(run), "published") for row in table.rows]
        for rule, run in make_scenes().items()
    }

    check_golden_scenes("published-claims", rows)


def test_our_ratio_is_paired_by_process_with_the_confidence_of_the_run():
    half = 4.604094871 * math.sqrt(0.625 / 5)  # t of 4 degrees at 99 %; the steps' variance is 0.625.

    ours = only_one(ratio_of(6, 6, spread=0.1)).ours

    assert (ours.low, ours.high) == pytest.approx([6 * math.exp(sign * 0.1 * half) for sign in (-1, 1)])


def test_a_ratio_of_two_variants_that_are_not_the_baseline_is_the_difference_of_theirs_to_it():
    claim = samples.claim(Figure("a:jit", 3e-3), Figure("b:jit", 1e-3))

    assert only_one(run_of(claim)).ours.estimate == pytest.approx(2, rel=0.01)


def test_looks_widen_the_interval_of_processes_but_not_of_cold_processes():
    times_return = samples.claim(EAGER, Figure("a:eager", 1e-3, metric="return_s"))
    cold = samples.compilation(1, processes=5)

    def ours(claim, looks):
        probes = {"compilation": cold, "timing": samples.timing(1e-3, baseline_s=1e-2, looks=looks)}
        return only_one(run_of(claim, outcomes=dict.fromkeys(("a:eager", "a:jit", "b:jit"), probes))).ours

    assert ours(times_return, 1) != ours(times_return, 2)
    assert ours(FIRST_CALLS, 1) == ours(FIRST_CALLS, 2)


def test_an_exponent_is_the_one_that_the_section_on_scaling_shows():
    page = page_of(growing(2, (2, 2, 2, 2), wobble=0.01))

    (grown,) = [texts(row) for row in tables(page, "sweeps")[0].rows if row.cells[0].text == "a:jit"]
    claimed, *_ = [texts(row) for row in tables(page, "published")[0].rows if "grows" in row.cells[0].text]
    assert grown[1].split()[0] == claimed[2].split()[0]


def test_every_run_has_a_row_of_its_own_below_its_case_and_device():
    gpu = samples.environment(device_kind="Sample GPU", device_name="Sample GPU")
    page = page_of(run_of(MADE_UP), run_of(MADE_UP, run_id="gpu", backend="gpu", environment=gpu))

    (table,) = tables(page, "published")

    assert [len(group.rows) for group in table.groups] == [1, 1]
    assert section(page, "published").answer.startswith("Of 2 published claims (1 different")


@pytest.mark.parametrize("text", samples.HOSTILE)
def test_hostile_claims_are_shown_as_they_are(text):
    planned = samples.planned_case(variants=("a:eager", "a:jit"))
    claim = samples.claim(
        Figure(text, 2, metric=text), JIT, source=text, device=text, timed=text, differs=text, at={text: text}
    )
    page = html.render(build(loaded(run_of(claim, planned=planned))))
    (chunk,) = unpacked(page, r"chunk-\d+")
    shown = "".join(chunk.values())

    assert not any(tag in shown for tag in ("<script", "<img src=x", "<b "))
    assert "\u202e" not in shown
    assert "\x00" not in shown
