"""How each comparison reads, in a terminal and in Markdown: by two runs, over many, by programs, in a nightly run."""

from pathlib import Path

from msgspec import structs

from jaxmeter.document import markdown, terminal
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import Outcome, Status
from jaxmeter.reporting.compare.budgets import Allowance, Budgets, make_defaults
from jaxmeter.reporting.compare.gate import judge, judge_alone
from jaxmeter.reporting.compare.program_diff import Difference
from jaxmeter.reporting.history import KnownChangePoint
from jaxmeter.reporting.nightly.outcome import Concluded, GateResult, describe_nightly, make_nightly_verdict
from jaxmeter.reporting.nightly.state import EarlierRun, NightlyRun
from jaxmeter.reporting.view.changes import describe_comparison
from jaxmeter.reporting.view.comparisons import describe_history, find_history
from jaxmeter.reporting.view.program_diffs import describe_diffs
from tests import samples
from tests.golden_texts import check_golden_scenes, check_golden_text
from tests.reporting.compare import changed
from tests.reporting.compare.changed import AFTER, BEFORE, compare, in_lock_step, plain, replayed
from tests.reporting.history.runs import case_of_night, environment_of, load_all, nights
from tests.reporting.recorded_programs import JAXPR, OTHER, PLANNED, TEXTS, compared, program

USUAL = Budgets(defaults=make_defaults(0.03))
SUSPECTED = plain(AFTER, 2e-4, fingerprint="bb", source="1")


def counted(name, mark, **counts):
    """A run of one program with these counts."""
    outcome = Outcome(status=Status.OK, values={metric: (value,) for metric, value in counts.items()})
    return plain(name, fingerprint=mark, source=mark, probes={"compilation": outcome})


def varied():
    """Two runs between which everything happens that may."""
    good = {"numerics": changed.checked("aa"), "timing": changed.timed(1e-4)}
    bad = {"numerics": Outcome(status=Status.WRONG, reason="largest error 0.5")}
    names = ("slow", "fast", "wrong", "gone", "edited", "lost", "cold", "busy", "large")
    before, after = {name: dict(good) for name in names if name != "new"}, {}
    for name, seconds in (("slow", 1.5e-4), ("fast", 0.5e-4), ("new", 1e-4), ("edited", 1e-4), ("cold", 1e-4)):
        after[name] = {"numerics": changed.checked("bb"), "timing": changed.timed(seconds)}
    before["cold"]["compilation"] = samples.compilation(0.1, 0.1, 0.1, 0.1, processes=3)
    after["cold"]["compilation"] = samples.compilation(0.2, 0.2, 0.2, 0.2, processes=3)
    before["large"]["memory"], after["large"] = samples.memory(0, 0, 200), {**good, "memory": samples.memory(0, 0, 100)}
    after |= {"wrong": bad, "busy": {"numerics": changed.checked("bb"), "timing": changed.timed(2e-4, contended=5)}}
    first = [(changed.case(name), {f"{name}:jit": outcomes}) for name, outcomes in before.items()]
    second = [
        (changed.case(name, source="1", definition=("1" if name == "edited" else "0") * 16), {f"{name}:jit": outcomes})
        for name, outcomes in after.items()
    ]
    newer = samples.environment(packages={"jax": "0.10.0", "jaxlib": "0.10.2", "numpy": "2.1.0"})
    return compare(
        changed.run(BEFORE, *first), changed.run(AFTER, *second, (changed.case("lost"), None), environment=newer)
    )


def of_two_runtimes():
    image = samples.environment(python="3.13.5", image="jaxmeter:cpu-1f0c9a7b3d52 sha256:1f0c9a7")
    return compare(plain(BEFORE, environment=image), plain(AFTER, source="1"))


def of_two_releases():
    """A program whose planned memory differs by less than three digits show."""
    newer = samples.environment(packages={"jax": "0.10.0", "jaxlib": "0.10.2", "numpy": "2.0.0"})
    return compare(
        plain(BEFORE, probes={"memory": samples.memory(0, 0, 17_203_200)}),
        plain(AFTER, probes={"memory": samples.memory(0, 0, 17_240_064)}, environment=newer),
    )


def comparisons():
    """What each rule is of: the changes, and what is judged of them."""
    first, again = (
        compare(plain(BEFORE), replayed(1.05, scatter=8)),
        compare(plain(BEFORE), replayed(1.05, processes=12)),
    )
    counts = counted(BEFORE, "aa", hlo_fusions=1, counted_flops=100, compiles=1)
    more = compare(counts, counted(AFTER, "bb", hlo_fusions=3, counted_flops=150, compiles=2))
    few = Budgets((("*", {"hlo_fusions": Allowance(more=1)}),), defaults=make_defaults(0.03))
    planned = of_two_releases()
    alike = compare(plain(BEFORE), plain(AFTER))
    other_format = compare(plain(BEFORE), plain(AFTER, environment=samples.environment(x64=True)))
    machines = compare(*(plain(name, machine=name) for name in (BEFORE, AFTER)))
    runtimes = of_two_runtimes()
    everything = varied()
    suspected = compare(plain(BEFORE), SUSPECTED)
    beside = compare(plain(BEFORE), in_lock_step(1.5))
    return {
        "a slowdown without a judgement": (compare(plain(BEFORE), replayed(1.5)), None),
        "a slowdown on one core of two environments": (beside, None),
        "everything that may change without a judgement": (everything, None),
        "two runs that are alike pass": (alike, judge(alike, USUAL)),
        "a suspicion that counts is a regression": (suspected, judge_alone(suspected, USUAL, count_suspected=True)),
        "a suspect that nothing has confirmed": (first, judge(first, USUAL)),
        "a suspect that is confirmed": (first, judge(first, USUAL, confirmed_by=again)),
        "memory within what another release may plan": (planned, judge(planned, USUAL)),
        "counts beyond their budget": (more, judge(more, few, exact=True)),
        "numbers of another format": (other_format, judge(other_format, USUAL)),
        "another machine": (machines, judge(machines, USUAL)),
        "another runtime": (runtimes, judge(runtimes, USUAL)),
        "everything that may change, judged": (everything, judge(everything, USUAL)),
    }


def test_comparisons_in_a_terminal_read_as_their_golden_text():
    check_golden_scenes(
        "compare-terminal", {rule: terminal.write(describe_comparison(*one)) for rule, one in comparisons().items()}
    )


def test_comparisons_in_markdown_read_as_their_golden_text():
    check_golden_scenes(
        "compare-markdown",
        {rule: markdown.write(describe_comparison(*one, in_full=True)) for rule, one in comparisons().items()},
    )


def slower(number):
    return 1e-3 * (1.2 if number >= 10 else 1)


def many_counts(number):
    """A night of which more cases than are told hold more memory than before."""
    cases = [samples.planned_case(params={"n": n}, variants=("selu:jit",)) for n in range(15)]
    pairs = [case_of_night(1e-3, case=case, peak=1000 + number) for case in cases]
    return samples.run(*pairs, run_id=f"run-{number}", started=f"2026-01-0{number + 1}T00:00:00Z", machine="m")


def test_histories_in_a_terminal_read_as_their_golden_text():
    runs = nights(20, slower, environment=lambda number: environment_of(number, 10))
    contended = nights(4, slower, contended=lambda number: 5 * (number == 2))
    known = (KnownChangePoint("run-010", "a larger batch"),)
    scenes = {
        "a step with its commits": (runs, ()),
        "a step that is known": (runs, known),
        "too few runs, and a contended one": (contended, ()),
        "of many steps of one run some": ([many_counts(0), many_counts(1)], ()),
        "another program": (nights(20, slower, program=lambda number: "pq"[number >= 10]), ()),
    }

    texts = {
        rule: terminal.write(describe_history(find_history(load_all(made), steps, "*", 0.03)))
        for rule, (made, steps) in scenes.items()
    }

    check_golden_scenes("history-terminal", texts)


def test_differences_of_programs_in_a_terminal_read_as_their_golden_text():
    other = program(OTHER, memory={**PLANNED, "temp_bytes": 4096}, source="1", definition="1")
    opcodes = "".join(f"  %o{index} = f32[8,2]{{1,0}} opcode{chr(97 + index)}(%x)\n" for index in range(25))
    longer = program({**TEXTS, "hlo": TEXTS["hlo"].replace("  %n =", f"{opcodes}  %n =")})
    layout = program({**TEXTS, "hlo": TEXTS["hlo"].replace("%n = f32[8,2]{1,0}", "%n = f32[8,2]{0,1}")})
    elided = {**TEXTS, "hlo": TEXTS["hlo"].replace("negate(%x)", "constant({...})")}
    attribute, added = TEXTS["hlo"].replace("{(f32[8,2]{1,0})", "{(f32[8,2])"), OTHER["jaxpr"]
    flags = Difference("variable XLA_FLAGS", "--x " * 40 + "--last=1", "--x " * 40 + "--last=2")
    scenes = {
        "the same program": (program(), program(), ()),
        "another program, and what may explain it": (program(), other, (Difference("package jax", "0.10.0", None),)),
        "long tables and long facts": (program(), longer, (flags,)),
        "another layout": (program(), layout, ()),
        "a program that one run lacks": (program(), program({"hlo": TEXTS["hlo"]}), ()),
        "another planned peak": (program(), program(memory={**PLANNED, "planned_peak_bytes": 3 * 2**20}), ()),
        "another attribute": (program(), program({**TEXTS, "hlo": attribute}), ()),
        "other constants": (*(program(elided, fingerprints=(mark,)) for mark in "12"), ()),
        "several programs of one variant": (program(fingerprints=("1", "2")), program(), ()),
        "no optimised program": (program({"jaxpr": JAXPR, "hlo": TEXTS["hlo"]}), program({"jaxpr": added}), ()),
        "a text that is not HLO": (program(), program({**TEXTS, "hlo": "HloModule m\n\nnonsense"}), ()),
    }

    texts = {
        rule: terminal.write(describe_diffs(("a", "b"), (compared(before, after),), around))
        for rule, (before, after, around) in scenes.items()
    }

    check_golden_scenes("diff-terminal", texts)


def nightly_scenes():
    """The nightly run, its run, and what the gate says next to each earlier run."""
    nightly = NightlyRun(
        store="file:///store", run=AFTER, backend="cpu", machine="lab", begun="", measuring=(), min_effect="3%"
    )
    busy = changed.run(
        AFTER,
        (changed.case(), {"selu:jit": {"numerics": changed.checked(), "timing": changed.timed(1e-4, scatter=60)}}),
    )
    alone = {
        "a first run": (nightly, plain(AFTER), ()),
        "a busy machine": (nightly, busy, ()),
        "a first run in which something failed": (nightly, changed.run(AFTER, (changed.case(), None)), ()),
        "runs of another machine": (structs.replace(nightly, why_alone="they are of 'other'"), plain(AFTER), ()),
    }
    last = EarlierRun(role="last", run=BEFORE, source="", folder="", again="")
    pinned = structs.replace(last, role="pinned", run="first")
    judged = {rule: one for rule, one in comparisons().items() if one[1] is not None}
    beside = {}
    for rule, both in judged.items():
        earlier = (last, pinned) if "confirmed" in rule else (last,)
        beside[rule] = nightly, plain(AFTER), tuple(GateResult(one, *both, None) for one in earlier)
    as_before, failed = beside["two runs that are alike pass"][2], beside["a suspect that is confirmed"][2][1]
    return (
        alone
        | beside
        | {
            "as before on a busy machine": (nightly, busy, as_before),
            "slower than the pinned run alone": (nightly, plain(AFTER), (*as_before, failed)),
        }
    )


def conclude(nightly, run, results):
    return Concluded(nightly, Run(run), make_nightly_verdict(nightly, Run(run), results), results)


def test_the_outcomes_of_nightly_runs_read_as_their_golden_text():
    texts = {rule: conclude(*scene).verdict.heading for rule, scene in nightly_scenes().items()}

    check_golden_scenes("nightly-outcomes", texts)


def test_a_nightly_run_that_fails_reads_as_its_golden_text():
    concluded = conclude(*nightly_scenes()["a suspect that is confirmed"])

    page = Path("p")
    check_golden_text("nightly-terminal", terminal.write(describe_nightly(concluded, page)))
    check_golden_text("nightly-markdown", markdown.write(describe_nightly(concluded, page, in_full=True)))
