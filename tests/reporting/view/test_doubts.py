"""Traps, and times that are at odds with a speedup, stand next to the number wherever it is shown."""

import json
import math

import msgspec

from jaxmeter.document.model import Tone
from jaxmeter.harness.record import CompilationDetails, Trap
from jaxmeter.harness.record.traps import describe_trap
from jaxmeter.harness.results import describe_results, list_results
from jaxmeter.reporting.render.export import to_json
from jaxmeter.reporting.view.doubts import AT_ODDS
from tests import samples
from tests.reporting.views import case_view, loaded, page_of, tables

DEAD = Trap(kind="dead_work", evidence="98 % of the traced FLOPs", sources=("jaxmeter/suites/a.py:3",), share=0.98)
CALLBACKS = Trap(kind="callbacks", evidence="debug_print", count=1)
TRAPPED = ("f:jit", "f:aot")


def run_with(*traps, sizes=(10,), **planned):
    """A run in which the compiled variants have these traps."""
    pairs = []
    for n in sizes:
        case = samples.planned_case(params={"n": n}, variants=("f:eager", *TRAPPED), **planned)
        compiled = samples.compilation(0.01, 0.01, 0.01, 0.01)
        compiled = msgspec.structs.replace(compiled, details=CompilationDetails(traps=traps))
        fast = {"timing": samples.timing(1e-5, baseline_s=1e-3), "compilation": compiled}
        outcomes = {"f:eager": {"timing": samples.timing(1e-3)}, **dict.fromkeys(TRAPPED, fast)}
        pairs.append((case, samples.record(case, outcomes)))
    return samples.run(*pairs)


def results_of(run):
    (suite,) = page_of(run).suites
    return {one.variant: one for case in suite.cases for one in case.results}


def test_a_trap_marks_the_time_and_the_speedup_and_is_named_after_them():
    found = results_of(run_with(DEAD))

    for name in TRAPPED:
        for value in (found[name].time, found[name].speedup):
            assert value.text.startswith("! ")
            assert value.text.endswith("trap: dead work")
            assert value.tone is Tone.WARN
    assert not found["f:eager"].time.text.startswith("!")


def test_a_declared_trap_is_no_warning_and_is_described_with_the_compilation():
    declared = msgspec.structs.replace(DEAD, declared=True)
    page = page_of(run_with(declared))
    (compilation,) = (one for one in case_view(page, "selu[n=10]").sections if one.id == "compilation")

    assert not results_of(run_with(declared))["f:jit"].time.text.startswith("!")
    assert page.attention == ()
    assert any(describe_trap(declared) in note for part in compilation.parts for note in part.notes)


def test_the_first_screen_and_so_the_terminal_name_each_trap_once_and_lead_to_its_row():
    page = page_of(run_with(DEAD, CALLBACKS, sizes=(10, 20)))
    ids = {row.id for table in tables(page, "problems") for row in table.rows}

    dead, *of_callbacks = page.attention

    assert "and 1 case more" in dead.text
    assert (dead.label, dead.tone) == ("trap", Tone.WARN)
    assert len(of_callbacks) == 2, "without source lines each case has its own"
    assert {item.target for item in page.attention} <= ids


def test_the_export_has_the_kinds_of_traps_in_every_row_of_a_variant():
    rows = json.loads(to_json(loaded(run_with(DEAD, CALLBACKS))))

    assert {json.dumps(json.loads(row["traps"])) for row in rows if row["variant"] == "f:jit"} == {
        '["dead_work", "callbacks"]'
    }
    assert {row["traps"] for row in rows if row["variant"] == "f:eager"} == {"[]"}


def test_a_run_names_each_trap_once_at_its_end():
    run = run_with(DEAD)

    numbers, doubts = describe_results(run)

    assert [item.text for item in doubts.items] == [f"! f:jit, f:aot: {describe_trap(DEAD)}"]
    assert [row.cells[1].text.startswith("!") for row in numbers.tables[0].rows] == [False, True, True]
    assert [one["traps"] for one in list_results(run)] == [[], [describe_trap(DEAD)], [describe_trap(DEAD)]]


def test_both_times_that_are_at_odds_with_a_speedup_are_marked_with_the_reason():
    found = results_of(samples.inconsistent_run())

    marked = [name for name, result in found.items() if result.time.text.endswith(AT_ODDS)]
    assert marked == ["f:eager", "f:jit"]
    assert not any(result.speedup.text.startswith("!") for result in found.values())


def test_times_at_odds_with_a_speedup_are_a_warning_and_a_reason_in_every_output():
    run = samples.inconsistent_run()
    rows = json.loads(to_json(loaded(run)))
    reasons = {row["variant"]: row["reason"] for row in rows if row["metric"] == "execution_s"}

    assert [item.label for item in page_of(run).warnings].count("times") == 1
    assert reasons["f:eager"] == reasons["f:jit"] != reasons["g:jit"]
    assert reasons["g:jit"] is None
    assert [one["disagreement"] for one in list_results(run)] == [reasons["f:eager"], reasons["f:jit"], None]
    assert describe_results(run)[1].items[-1].text == f"! f:eager, f:jit: {reasons['f:jit']}"


def test_a_contended_time_that_is_at_odds_too_has_both_words():
    case = samples.planned_case(variants=("f:eager", "f:jit"))
    busy = samples.timing(2.5e-4, contended=3)
    ratios = tuple(math.log(2 * factor) for factor in samples.WOBBLE)
    outcomes = {
        "f:eager": {"timing": samples.timing(1e-3)},
        "f:jit": {"timing": msgspec.structs.replace(busy, values={**busy.values, "log_ratio": ratios})},
    }

    time = results_of(samples.run((case, samples.record(case, outcomes))))["f:jit"].time

    assert time.text.endswith(f"contended, {AT_ODDS}")
