"""Traps, and times that are at odds with a speedup, stand next to the number wherever it is shown."""

import json
import math

import msgspec

from jaxmeter.document.model import Tone
from jaxmeter.harness.record import CompilationDetails, Trap
from jaxmeter.harness.results import list_results
from jaxmeter.reporting.render.export import to_json
from jaxmeter.reporting.view.cells import AT_ODDS
from tests import samples
from tests.reporting.views import loaded, page_of, tables

DEAD = Trap(kind="dead_work", evidence="98 % of the traced FLOPs", sources=("jaxmeter/suites/a.py:3",), share=0.98)
CALLBACKS = Trap(kind="callbacks", evidence="debug_print", count=1)
TRAPPED = ("f:jit", "f:aot")


def run_with(*traps, sizes=(10,)):
    """A run in which the compiled variants have these traps."""
    compiled = msgspec.structs.replace(
        samples.compilation(0.01, 0.01, 0.01, 0.01), details=CompilationDetails(traps=traps)
    )
    fast = {"timing": samples.timing(1e-5, baseline_s=1e-3), "compilation": compiled}
    outcomes = {"f:eager": samples.timing(1e-3), **dict.fromkeys(TRAPPED, fast)}
    return samples.run(*(samples.pair(outcomes, params={"n": n}) for n in sizes))


def results_of(run):
    (suite,) = page_of(run).suites
    return {one.variant: one for case in suite.cases for one in case.results}


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


def test_times_at_odds_with_a_speedup_are_a_warning_and_a_reason_in_every_output():
    run = samples.inconsistent_run()
    rows = json.loads(to_json(loaded(run)))
    reasons = {row["variant"]: row["reason"] for row in rows if row["metric"] == "execution_s"}

    assert [item.label for item in page_of(run).warnings].count("times") == 1
    assert reasons["f:eager"] == reasons["f:jit"] != reasons["g:jit"]
    assert reasons["g:jit"] is None
    assert [one["disagreement"] for one in list_results(run)] == [reasons["f:eager"], reasons["f:jit"], None]


def test_a_contended_time_that_is_at_odds_too_has_both_words():
    ratios = tuple(math.log(2 * factor) for factor in samples.WOBBLE)
    busy = samples.with_values(samples.timing(2.5e-4, contended=3), log_ratio=ratios)

    time = results_of(samples.one_case({"f:eager": samples.timing(1e-3), "f:jit": busy}))["f:jit"].time

    assert time.text.endswith(f"contended, {AT_ODDS}")
