import io
import math

import msgspec
import pytest
from rich.console import Console

from jaxmeter.harness.record import Figure, Outcome, Status
from jaxmeter.reporting.render import html, markdown, terminal
from jaxmeter.reporting.view import build
from jaxmeter.reporting.view.page_model import Tone
from jaxmeter.reporting.view.sections.published import HOW_TO_READ
from tests import samples
from tests.reporting.render.test_html import unpacked
from tests.reporting.views import headings, loaded, page_of, section, tables, texts

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


def only_row(run):
    page = page_of(run)
    (table,) = tables(page, "published")
    (row,) = table.rows
    return dict(zip(headings(page, "published"), texts(row), strict=True))


def counted(metric, *values):
    return {"compilation": Outcome(status=Status.OK, values={metric: values})}


def test_a_page_without_published_figures_has_no_such_section():
    assert "published" not in [one.id for one in page_of(samples.run()).sections]


def test_a_claim_stands_beside_ours_with_its_source_and_what_differs():
    figures = Figure("a:eager", 786e-6, 31.8e-6), Figure("a:jit", 132e-6, 260e-6)
    claim = samples.claim(*figures, source="Somebody 2022", device="A100", timed="%timeit", differs="JAX of 2022")

    assert only_row(run_of(claim)) == {
        "Claim": "a:eager takes 6.0 times as long as a:jit",
        "Theirs": "6.0×",
        "Ours": "10× [9.9, 10.1]",
        "Verdict": "same direction, larger 1.68× theirs",
        "What differs": "JAX of 2022",
        "Source": "Somebody 2022 786 µs ± 31.8 µs / 132 µs ± 260 µs · A100 · %timeit",
    }


def test_our_ratio_is_paired_by_process_with_the_confidence_of_the_run():
    half = 4.604094871 * math.sqrt(0.625 / 5)  # t of 4 degrees at 99 %; the steps' variance is 0.625.
    run = run_of(MADE_UP, outcomes=slower_by(6, spread=0.1))

    low, high = (6 * math.exp(sign * 0.1 * half) for sign in (-1, 1))
    assert only_row(run)["Ours"] == f"6.0× [{low:.1f}, {high:.1f}]"


def test_a_ratio_of_two_variants_that_are_not_the_baseline_is_the_difference_of_theirs_to_it():
    claim = samples.claim(Figure("a:jit", 3e-3), Figure("b:jit", 1e-3))

    assert only_row(run_of(claim))["Ours"].startswith("2.0× [")


@pytest.mark.parametrize(
    ("theirs", "ours", "spread", "verdict"),
    [
        (6, 6, 0.0, "as published 1.00× theirs"),
        (6, 2, 0.0, "same direction, smaller 0.33× theirs"),
        (6, 20, 0.0, "same direction, larger 3.3× theirs"),
        (6, 9, 0.05, "same direction 1.50× theirs; our interval reaches across a factor of 1.5 from theirs"),
        (6, 0.5, 0.0, "opposite 0.083× theirs"),
        (6, 1.2, 0.3, "cannot be told 0.20× theirs; our 99 % interval, by which verdicts go, includes 1"),
        (6, 1.001, 0.01, "not as published 0.17× theirs; ours differ by less than 10 %"),
        (1.2, 1.02, 0.001, "cannot be told 0.85× theirs; below 3 %, the least that is worth a verdict"),
        (0.5, 0.6, 0.0, "as published 1.20× theirs"),
        (0.5, 6, 0.0, "opposite 12× theirs"),
        (1.05, 0.97, 0.001, "as published 0.92× theirs; ours differ by less than 10 %, too"),
        (1.05, 1.5, 0.001, "not as published 1.43× theirs; ours differ by more than 10 %"),
        (1.05, 1.1, 0.01, "cannot be told 1.05× theirs; our interval reaches beyond a difference of 10 %"),
    ],
)
def test_the_verdict_is_by_our_whole_interval_beside_1_and_beside_theirs(theirs, ours, spread, verdict):
    claim = samples.claim(Figure("a:eager", theirs), Figure("a:jit", 1))

    assert only_row(run_of(claim, outcomes=slower_by(ours, spread=spread)))["Verdict"] == verdict


def test_a_claim_that_ours_cannot_decide_has_ours_and_no_verdict():
    claim = samples.claim(EAGER, JIT, undecided="both devices are one processor")

    row = only_row(run_of(claim))

    assert row["Ours"].startswith("10×")
    assert row["Verdict"] == "cannot be told 1.67× theirs; both devices are one processor"
    assert only_row(run_of(claim, outcomes={"a:jit": {"timing": FAILED}}))["Verdict"].endswith("out of memory")


@pytest.mark.parametrize(
    ("theirs", "ours", "note"),
    [("gpu", "cpu", "; theirs on a gpu, ours on a cpu"), ("cpu", "cpu", ""), ("", "cpu", "")],
)
def test_a_verdict_on_times_of_another_kind_of_device_says_so(theirs, ours, note):
    run = run_of(samples.claim(EAGER, JIT, backend=theirs), backend=ours)

    assert only_row(run)["Verdict"] == f"same direction, larger 1.67× theirs{note}"


def test_neither_a_count_nor_a_claim_that_cannot_be_told_has_a_device():
    count = samples.claim(Figure("a:jit", 2, metric="compiles"), backend="gpu")
    untold = samples.claim(EAGER, Figure("torch:native", 1), backend="gpu")

    assert only_row(run_of(count, outcomes={"a:jit": counted("compiles", 2)}))["Verdict"] == "as published"
    assert only_row(run_of(untold))["Verdict"] == "cannot be told torch:native: not planned in this case"


def test_a_claim_of_no_difference_says_so():
    claim = samples.claim(Figure("a:eager", 1.04), Figure("a:jit", 1))

    assert only_row(run_of(claim))["Claim"] == "a:eager takes about as long as a:jit (1.04 times)"


WRONG = Outcome(status=Status.WRONG, reason="largest error 0.5, allowed 1e-05")
FAILED = Outcome(status=Status.FAILED, reason="out of memory")
SKIPPED = Outcome(status=Status.SKIPPED, reason="needs 2 devices, found 1")
TIMED = samples.timing(1e-3, baseline_s=1e-2)


@pytest.mark.parametrize(
    ("jit", "reason"),
    [
        ({"numerics": WRONG, "timing": TIMED}, "a:jit: numerics wrong: largest error 0.5, allowed 1e-05"),
        ({"numerics": FAILED}, "a:jit: numerics failed: out of memory"),
        ({"timing": FAILED}, "a:jit: timing failed: out of memory"),
        ({"timing": SKIPPED}, "a:jit: timing skipped: needs 2 devices, found 1"),
        ({"numerics": samples.numerics()}, "a:jit: no record of its timing"),
        ({"timing": Outcome(status=Status.OK)}, "a:jit: no execution_s recorded"),
        ({}, "a:jit: lost: no record of this variant in its case"),
    ],
)
def test_a_claim_without_ours_cannot_be_told_and_says_why(jit, reason):
    row = only_row(run_of(MADE_UP, outcomes={"a:jit": jit}))

    assert (row["Ours"], row["Verdict"]) == ("—", f"cannot be told {reason}")


def test_a_probe_that_the_run_was_not_asked_for_is_the_reason():
    outcomes = {name: {"numerics": samples.numerics()} for name in ("a:eager", "a:jit")}
    run = run_of(MADE_UP, outcomes=outcomes, settings=samples.settings(probes=("numerics",)))

    assert only_row(run)["Verdict"] == "cannot be told a:eager and a:jit: the run was not asked for timing"


def test_a_lost_case_keeps_its_claims():
    planned = samples.planned_case(variants=("a:eager", "a:jit"), published=(MADE_UP,))

    row = only_row(samples.run((planned, None)))

    assert row["Verdict"].startswith("cannot be told a:eager and a:jit: lost: no record: the run ended before")


def test_a_variant_that_the_case_does_not_have_is_named():
    claim = samples.claim(EAGER, Figure("torch:native", 1))

    assert only_row(run_of(claim))["Verdict"] == "cannot be told torch:native: not planned in this case"


def test_a_ratio_that_is_paired_by_the_moment_holds_on_a_busy_machine():
    outcomes = {"a:eager": {"timing": samples.timing(1e-2, contended=3)}}

    assert only_row(run_of(MADE_UP, outcomes=outcomes))["Verdict"] == "same direction, larger 1.67× theirs"


def test_a_ratio_of_pairs_that_are_not_to_be_trusted_decides_nothing_though_both_times_are():
    timing = samples.timing(1e-3, baseline_s=6e-3, doubtful_ratios=True)

    row = only_row(run_of(MADE_UP, outcomes={"a:jit": {"timing": timing}}))

    assert row["Verdict"].startswith("cannot be told")
    assert row["Verdict"].endswith("; too few of its processes were quiet on both sides")


@pytest.mark.parametrize(("variant", "metric"), [("numpy:native", "execution_s"), ("b:jit", "return_s")])
def test_any_other_contended_ratio_is_shown_but_decides_nothing(variant, metric):
    timing = samples.timing(1e-2, baseline_s=1e-2, contended=3)
    planned = samples.planned_case(variants=("a:eager", "a:jit", "b:jit", "numpy:native"))
    claim = samples.claim(Figure(variant, 6, metric=metric), Figure("a:jit", 1, metric=metric))

    row = only_row(run_of(claim, planned=planned, outcomes={variant: {"timing": timing}}))

    assert row["Ours"] != "–"
    assert f"{variant}: contended, too few quiet processes" in row["Verdict"]
    assert row["Verdict"].startswith("cannot be told")


def test_too_few_processes_give_a_ratio_without_a_verdict():
    row = only_row(run_of(MADE_UP, outcomes=slower_by(6, processes=2)))

    assert row["Ours"] == "6.0×"
    assert row["Verdict"] == "cannot be told 1.00× theirs; no interval: 2 processes, it takes 3"


def test_times_of_other_kinds_are_compared_over_their_processes():
    claim = samples.claim(Figure("a:jit", 9, metric="first_call_s"), Figure("b:jit", 3, metric="first_call_s"))
    first = {name: {"compilation": samples.compilation(s, processes=5)} for name, s in (("a:jit", 0.4), ("b:jit", 0.1))}

    row = only_row(run_of(claim, outcomes=first))

    assert row["Claim"] == "a:jit (first call) takes 3.0 times as long as b:jit (first call)"
    assert row["Ours"].startswith("4.0× [3.9, 4.")
    assert row["Verdict"] == "as published 1.33× theirs"


def test_one_variant_can_stand_on_both_sides_with_two_metrics():
    claim = samples.claim(Figure("a:eager", 4.33e-3), Figure("a:eager", 0.77e-3, metric="return_s"))

    row = only_row(run_of(claim))

    assert row["Claim"] == "a:eager (execution time) takes 5.6 times as long as a:eager (time until return)"
    assert row["Verdict"].startswith("same direction, larger")


def test_looks_widen_the_interval_of_processes_but_not_of_cold_processes():
    times_return = samples.claim(EAGER, Figure("a:eager", 1e-3, metric="return_s"))
    first = samples.claim(Figure("a:jit", 9, metric="first_call_s"), Figure("b:jit", 3, metric="first_call_s"))
    cold = {name: {"compilation": samples.compilation(1, processes=5)} for name in ("a:jit", "b:jit")}

    def ours(claim, looks):
        run = run_of(claim, outcomes=cold, settings=samples.settings(looks=looks))
        return only_row(run)["Ours"]

    assert ours(times_return, (5,)) == ours(times_return, (5, 8, 12)) != ours(times_return, (3, 5))
    assert ours(first, (5,)) == ours(first, (5, 8, 12))


def test_a_ratio_of_counts_is_exact_and_has_no_interval():
    claim = samples.claim(*(Figure(name, n, metric="jaxpr_equations") for name, n in (("a:jit", 30_000), ("b:jit", 1))))
    outcomes = {"a:jit": counted("jaxpr_equations", 300, 300), "b:jit": counted("jaxpr_equations", 3)}

    row = only_row(run_of(claim, outcomes=outcomes))

    assert row["Claim"] == "a:jit has 30 000 times as many jaxpr equations as b:jit"
    assert (row["Theirs"], row["Ours"]) == ("30 000×", "100×")
    assert row["Verdict"].startswith("same direction, smaller 0.0033× theirs")


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [
        ((301, 300), "same direction, smaller 0.50× theirs"),
        ((300, 300), "not as published 0.50× theirs; equal here"),
        ((300, 301), "opposite 0.50× theirs"),
        ((0, 3), "cannot be told one of ours is 0, so there is no ratio"),
    ],
)
def test_counts_differ_by_however_little(ours, verdict):
    claim = samples.claim(*(Figure(name, n, metric="compiles") for name, n in (("a:jit", 4), ("b:jit", 2))))
    outcomes = {name: counted("compiles", n) for name, n in zip(("a:jit", "b:jit"), ours, strict=True)}

    assert only_row(run_of(claim, outcomes=outcomes))["Verdict"].startswith(verdict)


@pytest.mark.parametrize(
    ("ours", "shown", "verdict"),
    [
        ((2,), "2", "as published"),
        ((2, 2), "2", "as published"),
        ((3,), "3", "not as published"),
        ((2, 3), "2", "cannot be told ours differs between processes: 2, 3"),
    ],
)
def test_a_count_by_itself_is_as_published_where_ours_is_equal(ours, shown, verdict):
    claim = samples.claim(Figure("a:jit", 2, metric="compiles"))

    row = only_row(run_of(claim, outcomes={"a:jit": counted("compiles", *ours)}))

    assert row["Claim"] == "a:jit has 2 compiled programs"
    assert (row["Theirs"], row["Ours"], row["Verdict"]) == ("2", shown, verdict)


def test_a_time_by_itself_is_shown_and_never_compared():
    row = only_row(run_of(samples.claim(EAGER)))

    assert (row["Claim"], row["Theirs"], row["Ours"]) == ("a:eager (execution time): 6.00 ms", "6.00 ms", "—")
    assert row["Verdict"] == "cannot be told one figure of another device is no claim that can be tested here"


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


@pytest.mark.parametrize(
    ("theirs", "exponents", "wobble", "verdict"),
    [
        (2, (2, 2, 2, 2), 0.01, "as published over n = 16 to 1 024; between sizes 1.99, 2.01, 1.99"),
        (2, (1, 1, 1, 1), 0.01, "not as published over n = 16 to 1 024; between sizes 0.99, 1.01, 0.99"),
        (
            2,
            (2, 2, 2, 2),
            0.5,
            (
                "cannot be told ours lies neither wholly within 0.25 of theirs nor wholly outside; over n = 16 to "
                "1 024; between sizes 1.28, 2.72, 1.28"
            ),
        ),
        (2, (2, 2, 2), 0.0, "cannot be told no interval; over n = 16 to 256; between sizes 2.00, 2.00"),
        (2, (2, 2), 0.0, "cannot be told 2 sizes of n with a compile time, it takes 3"),
    ],
)
def test_an_exponent_is_as_published_where_our_interval_is_near_it_and_is_listed_once(
    theirs, exponents, wobble, verdict
):
    row = only_row(growing(theirs, exponents, wobble=wobble))

    assert row["Claim"] == "the compile time of a:jit grows as n^2"
    assert row["Verdict"] == verdict


def test_an_exponent_is_the_one_that_the_section_on_scaling_shows():
    run = samples.published_run()
    page = page_of(run)

    (grown,) = [texts(row) for row in tables(page, "sweeps")[0].rows if row.cells[0].text == "loop:jit"]
    (claimed,) = [texts(row) for row in tables(page, "published")[0].rows if "grows" in row.cells[0].text]
    assert (claimed[2], *grown[1:3]) == ("1.00", "1.00 1.00, 1.00", "—")


def test_an_exponent_without_enough_sizes_tells_what_became_of_one():
    claim = samples.claim(Figure("a:jit", 2, metric="compile_exponent"))
    planned = samples.planned_case("grow", params={"n": 16}, variants=("a:jit",), published=(claim,))

    row = only_row(samples.run((planned, samples.record(planned, {"a:jit": {"compilation": FAILED}}))))

    assert row["Verdict"] == (
        "cannot be told 0 sizes of n with a compile time, it takes 3 (a:jit: compilation failed: out of memory)"
    )


def test_every_run_has_a_row_of_its_own_below_its_case_and_device():
    gpu = samples.environment(device_kind="Sample GPU", device_name="Sample GPU")
    runs = run_of(MADE_UP), run_of(MADE_UP, run_id="gpu", backend="gpu", environment=gpu)

    (table,) = tables(page_of(*runs), "published")

    assert [(group.title, group.detail) for group in table.groups] == [
        ("selu[dtype=float32,n=10000] · ● cpu", "here: Sample Processor 1"),
        ("selu[dtype=float32,n=10000] · ■ gpu", "here: Sample GPU"),
    ]
    assert section(page_of(*runs), "published").answer == (
        "Of 2 published claims (1 different, each counted in every case and run that has it): "
        "0 as published, 2 same direction (2 larger), 0 opposite, 0 not as published, 0 cannot be told."
    )


def test_the_summary_counts_the_verdicts_and_every_renderer_tells_it():
    page = page_of(samples.published_run())

    answer = section(page, "published").answer
    told = io.StringIO()
    terminal.show(page, Console(file=told, width=100))

    assert answer == (
        "Of 6 published claims (5 different, each counted in every case and run that has it): "
        "1 as published, 1 same direction (1 larger), 1 opposite, 0 not as published, 3 cannot be told."
    )
    assert answer in html.render(page)
    assert markdown.escape(answer) in markdown.render(page)
    assert answer in " ".join(told.getvalue().split())


def test_verdicts_have_the_tones_of_their_words():
    (table,) = tables(page_of(samples.published_run()), "published")
    index = [column.title for column in table.columns].index("Verdict")

    tones = {row.cells[index].text: row.cells[index].tone for row in table.rows}

    assert tones == {
        "as published": Tone.GOOD,
        "same direction, larger": Tone.PLAIN,
        "opposite": Tone.WARN,
        "cannot be told": Tone.MUTED,
    }


def test_how_to_read_it_stands_below_the_table():
    parts = section(page_of(samples.published_run()), "published").parts

    assert parts[-1].notes == HOW_TO_READ


@pytest.mark.parametrize("value", [0, -1, 1e308, 1e-308])
def test_impossible_figures_have_no_ratio(value):
    row = only_row(run_of(samples.claim(Figure("a:eager", value), Figure("a:jit", 1e-300 if value > 1 else value * 0))))

    assert (row["Claim"], row["Theirs"]) == ("a:eager against a:jit", "—")
    assert row["Verdict"] == "cannot be told their figures have no ratio"


@pytest.mark.parametrize("metric", ["", "no such metric", "speedup", "log_ratio", "compile_exponent"])
def test_claims_of_metrics_without_a_ratio_cannot_be_told(metric):
    row = only_row(run_of(samples.claim(Figure("a:eager", 2, metric=metric), Figure("a:jit", 1, metric=metric))))

    assert row["Verdict"] == "cannot be told these metrics have no ratio here"


@pytest.mark.parametrize("text", samples.HOSTILE)
def test_hostile_claims_are_shown_as_they_are(text):
    planned = samples.planned_case(variants=("a:eager", "a:jit"))
    claim = samples.claim(
        Figure(text, 2, metric=text), JIT, source=text, device=text, timed=text, differs=text, at={text: text}
    )
    page = html.render(build(loaded(run_of(claim, planned=planned))))
    (chunk,) = unpacked(page, r"chunk-\d+")
    shown = "".join(text for texts in chunk["kinds"].values() for text in texts)

    assert not any(tag in shown for tag in ("<script", "<img src=x", "<b "))
    assert "\u202e" not in shown
    assert "\x00" not in shown
