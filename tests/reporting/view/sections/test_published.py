import math

import msgspec
import pytest

from jaxmeter.harness.record import Figure, Outcome, Status
from jaxmeter.reporting.compare.claims import ClaimVerdict
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
    planned = msgspec.structs.replace(planned, published=claims)
    usual = {
        "a:eager": {"timing": samples.timing(1e-2)},
        "a:jit": {"timing": samples.timing(1e-3, baseline_s=1e-2)},
        "b:jit": {"timing": samples.timing(5e-4, baseline_s=1e-2)},
    }
    return samples.run((planned, samples.record(planned, {**usual, **(outcomes or {})})), **changes)


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
        planned = samples.planned_case("grow", params={"n": n}, variants=("a:jit",), published=(claim,))
        seconds = n**exponent * 1e-5 * math.exp(wobble * (-1) ** index)
        outcomes = {"a:jit": {"compilation": samples.compilation(seconds, seconds, seconds, 1e-3)}}
        pairs.append((planned, samples.record(planned, outcomes)))
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


def lost_claim():
    return samples.run((samples.planned_case(variants=("a:eager", "a:jit"), published=(MADE_UP,)), None))


def unfitted():
    claim = samples.claim(Figure("a:jit", 2, metric="compile_exponent"))
    planned = samples.planned_case("grow", params={"n": 16}, variants=("a:jit",), published=(claim,))
    return samples.run((planned, samples.record(planned, {"a:jit": {"compilation": FAILED}})))


def of_other_kinds():
    claim = samples.claim(Figure("a:jit", 9, metric="first_call_s"), Figure("b:jit", 3, metric="first_call_s"))
    first = {name: {"compilation": samples.compilation(s, processes=5)} for name, s in (("a:jit", 0.4), ("b:jit", 0.1))}
    return run_of(claim, outcomes=first)


def two_metrics_of_one_variant():
    return run_of(samples.claim(Figure("a:eager", 4.33e-3), Figure("a:eager", 0.77e-3, metric="return_s")))


RATIOS = (
    *((6, 6, 0.0), (6, 2, 0.0), (6, 20, 0.0), (6, 9, 0.05), (6, 0.5, 0.0), (6, 1.2, 0.3), (6, 1.001, 0.01)),
    *((1.2, 1.02, 0.001), (0.5, 0.6, 0.0), (0.5, 6, 0.0), (1.05, 0.97, 0.001), (1.05, 1.5, 0.001), (1.05, 1.1, 0.01)),
)
NOTHING = {"numerics": samples.numerics()}


def make_scenes():
    """What a claim may meet, by its rule."""
    figures = Figure("a:eager", 786e-6, 31.8e-6), Figure("a:jit", 132e-6, 260e-6)
    sourced = samples.claim(*figures, source="Somebody 2022", device="A100", timed="%timeit", differs="JAX of 2022")
    undecided = samples.claim(EAGER, JIT, undecided="both devices are one processor")
    unknown = Figure("a:eager", 2, metric="no such metric"), Figure("a:jit", 1, metric="no such metric")
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
        "a lost case": lost_claim(),
        "a variant that the case does not have": run_of(samples.claim(EAGER, Figure("torch:native", 1))),
        "pairs that are not to be trusted": run_of(MADE_UP, outcomes=DOUBTED),
        "a contended peer": contended("numpy:native", "execution_s"),
        "a contended time until return": contended("b:jit", "return_s"),
        "times of other kinds": of_other_kinds(),
        "one variant on both sides": two_metrics_of_one_variant(),
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
        "figures that have no ratio": run_of(samples.claim(Figure("a:eager", -1), Figure("a:jit", 0))),
        "metrics that have no ratio": run_of(samples.claim(*unknown)),
    }


def test_a_claim_beside_ours_reads_as_its_golden_text():
    rows = {
        rule: [write_row(row) for table in tables(page_of(run), "published") for row in table.rows]
        for rule, run in make_scenes().items()
    }

    check_golden_scenes("published-claims", rows)


def test_a_page_without_published_figures_has_no_such_section():
    assert "published" not in [one.id for one in page_of(samples.run()).sections]


def test_our_ratio_is_paired_by_process_with_the_confidence_of_the_run():
    half = 4.604094871 * math.sqrt(0.625 / 5)  # t of 4 degrees at 99 %; the steps' variance is 0.625.

    ours = only_one(ratio_of(6, 6, spread=0.1)).ours

    assert (ours.low, ours.high) == pytest.approx([6 * math.exp(sign * 0.1 * half) for sign in (-1, 1)])


def test_a_ratio_of_two_variants_that_are_not_the_baseline_is_the_difference_of_theirs_to_it():
    claim = samples.claim(Figure("a:jit", 3e-3), Figure("b:jit", 1e-3))

    assert only_one(run_of(claim)).ours.estimate == pytest.approx(2, rel=0.01)


@pytest.mark.parametrize(("theirs", "differs"), [("gpu", True), ("cpu", False), ("", False)])
def test_a_verdict_on_times_of_another_kind_of_device_says_so(theirs, differs):
    assert bool(only_one(run_of(samples.claim(EAGER, JIT, backend=theirs))).reason) is differs


def test_neither_a_count_nor_a_claim_that_cannot_be_told_has_a_device():
    untold = samples.claim(EAGER, Figure("torch:native", 1), backend="gpu")

    assert only_one(run_of(COMPILES, outcomes={"a:jit": counted("compiles", 2)})).reason == ""
    assert "gpu" not in only_one(run_of(untold)).reason


@pytest.mark.parametrize("jit", LACKING.values(), ids=LACKING)
def test_a_claim_without_ours_cannot_be_told_and_says_why(jit):
    judged = only_one(run_of(MADE_UP, outcomes={"a:jit": jit}))

    assert (judged.ours, judged.verdict) == (None, ClaimVerdict.UNDECIDED)
    assert judged.reason.startswith("a:jit: ")


def test_a_ratio_that_is_paired_by_the_moment_holds_on_a_busy_machine():
    outcomes = {"a:eager": {"timing": samples.timing(1e-2, contended=3)}}

    assert only_one(run_of(MADE_UP, outcomes=outcomes)).verdict is ClaimVerdict.LARGER


@pytest.mark.parametrize(
    "run",
    [
        run_of(MADE_UP, outcomes=DOUBTED),
        contended("numpy:native", "execution_s"),
        contended("b:jit", "return_s"),
        run_of(samples.claim(EAGER, JIT, undecided="both devices are one processor")),
        ratio_of(6, 6, processes=2),
    ],
    ids=["pairs not to be trusted", "contended peer", "contended return", "undecided", "two processes"],
)
def test_a_ratio_that_is_not_to_be_trusted_is_shown_but_decides_nothing(run):
    judged = only_one(run)

    assert judged.ours is not None
    assert judged.verdict is ClaimVerdict.UNDECIDED
    assert judged.reason


def test_times_of_other_kinds_are_compared_over_their_processes():
    judged = only_one(of_other_kinds())

    assert (judged.ours.estimate, judged.verdict) == (pytest.approx(4), ClaimVerdict.AS_PUBLISHED)


def test_looks_widen_the_interval_of_processes_but_not_of_cold_processes():
    times_return = samples.claim(EAGER, Figure("a:eager", 1e-3, metric="return_s"))
    first = samples.claim(Figure("a:jit", 9, metric="first_call_s"), Figure("b:jit", 3, metric="first_call_s"))
    cold = samples.compilation(1, processes=5)

    def ours(claim, looks):
        probes = {"compilation": cold, "timing": samples.timing(1e-3, baseline_s=1e-2, looks=looks)}
        return only_one(run_of(claim, outcomes=dict.fromkeys(("a:eager", "a:jit", "b:jit"), probes))).ours

    assert ours(times_return, 1) != ours(times_return, 2)
    assert ours(first, 1) == ours(first, 2)


@pytest.mark.parametrize(
    ("run", "verdict"),
    [
        (counts_of((4, 2), (301,), (300,)), "same direction, smaller"),
        (counts_of((4, 2), (300,), (300,)), "not as published"),
        (counts_of((4, 2), (300,), (301,)), "opposite"),
        (counts_of((2,), (2,)), "as published"),
        (counts_of((2,), (2, 2)), "as published"),
        (counts_of((2,), (3,)), "not as published"),
        (counts_of((2,), (2, 3)), "undecided"),
        (growing(2, (2, 2, 2, 2), wobble=0.01), "as published"),
        (growing(2, (1, 1, 1, 1), wobble=0.01), "not as published"),
        (growing(2, (2, 2, 2, 2), wobble=0.5), "undecided"),
        (growing(2, (2, 2, 2)), "undecided"),
        (growing(2, (2, 2)), "undecided"),
    ],
    ids=[
        *("counts that hardly differ", "equal counts", "opposite counts"),
        *("an equal count", "in two processes", "another count", "processes that differ"),
        *("an exponent near it", "another exponent", "a wide interval", "three sizes", "two sizes"),
    ],
)
def test_counts_differ_by_however_little_and_an_exponent_is_judged_by_its_interval_once(run, verdict):
    assert only_one(run).verdict == verdict
    assert only_one(counts_of((4, 2), (301,), (300,))).exact


def test_an_exponent_is_the_one_that_the_section_on_scaling_shows():
    page = page_of(samples.published_run())

    (grown,) = [texts(row) for row in tables(page, "sweeps")[0].rows if row.cells[0].text == "loop:jit"]
    (claimed,) = [texts(row) for row in tables(page, "published")[0].rows if "grows" in row.cells[0].text]
    assert grown[1].startswith(f"{claimed[2]} ")


def test_every_run_has_a_row_of_its_own_below_its_case_and_device():
    gpu = samples.environment(device_kind="Sample GPU", device_name="Sample GPU")
    page = page_of(run_of(MADE_UP), run_of(MADE_UP, run_id="gpu", backend="gpu", environment=gpu))

    (table,) = tables(page, "published")

    assert [len(group.rows) for group in table.groups] == [1, 1]
    assert section(page, "published").answer.startswith("Of 2 published claims (1 different")


@pytest.mark.parametrize("value", [0, -1, 1e308, 1e-308])
def test_impossible_figures_have_no_ratio(value):
    below = Figure("a:jit", 1e-300 if value > 1 else value * 0)

    assert only_one(run_of(samples.claim(Figure("a:eager", value), below))).theirs is None


@pytest.mark.parametrize("metric", ["", "no such metric", "speedup", "log_ratio", "compile_exponent"])
def test_claims_of_metrics_without_a_ratio_cannot_be_told(metric):
    judged = only_one(run_of(samples.claim(Figure("a:eager", 2, metric=metric), Figure("a:jit", 1, metric=metric))))

    assert (judged.ours, judged.verdict) == (None, ClaimVerdict.UNDECIDED)


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
