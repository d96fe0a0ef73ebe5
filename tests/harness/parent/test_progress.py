import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from jaxmeter.harness.parent.progress import Lines, Live, Watcher, list_troubles, printable
from jaxmeter.harness.plan.messages import Heartbeat
from jaxmeter.harness.plan.processes import PlannedProcess
from jaxmeter.harness.record import Outcome, Status
from tests import samples

PLANNED = samples.planned_case("selu", params={"n": 4})
MANIFEST = samples.manifest([PLANNED], run_id="it")
FOLDER = Path("results/it")
PROCESS = PlannedProcess(case=PLANNED.id, kind="timing", assignments={"timing": ("selu:eager", "selu:jit")})


def failed(reason: str) -> Outcome:
    return Outcome(status=Status.FAILED, reason=reason)


@pytest.fixture
def lines():
    """A watcher of a run that has begun, and what it has printed since."""
    stream = io.StringIO()
    watcher = Lines(stream)
    watcher.run_started(MANIFEST, FOLDER, 40, 600.0)
    begun = stream.tell()
    return watcher, lambda: tuple(stream.getvalue()[begun:].splitlines())


@pytest.fixture
def live():
    """A watcher of a run that has begun, with 4 processes planned; what its bar shows now, on one line."""
    console = Console(file=io.StringIO(), width=200, force_terminal=True, color_system=None)
    watcher = Live(console)
    watcher.run_started(MANIFEST, FOLDER, 4, 600.0)

    def shown() -> str:
        with console.capture() as captured:
            console.print(watcher._bar.get_renderable())
        return " ".join(captured.get().split())

    yield watcher, shown
    watcher.run_ended()


# Lines


def test_a_run_is_named_with_its_cases_processes_and_folder():
    stream = io.StringIO()

    Lines(stream).run_started(MANIFEST, FOLDER, 40, 600.0)

    assert stream.getvalue() == "run it: 1 case, 40 processes on cpu (1 x cpu), into results/it\n"


def test_a_round_is_a_line(lines):
    watcher, said = lines

    watcher.process_ended(PROCESS, 59.9)
    watcher.round_started(2, 8, 39)

    assert said() == ("round 2 of 8: 39 processes left; 60 of 600 s used",)


def test_processes_and_heartbeats_are_none(lines):
    watcher, said = lines

    watcher.process_started(PROCESS)
    watcher.beat(Heartbeat("selu:jit", "timing"))
    watcher.process_ended(PROCESS, 3.0)
    watcher.run_ended()

    assert said() == ()


def test_a_minute_without_words_is_a_line(lines):
    watcher, said = lines
    watcher.round_started(1, 8, 40)

    for used_s in (30.0, 60.0, 61.0, 119.0, 121.0):
        watcher.process_ended(PROCESS, used_s)

    assert said()[1:] == (
        "    38 processes left; 60 of 600 s used",
        "    35 processes left; 121 of 600 s used",
    )


@pytest.mark.parametrize("kind", ["lines", "live"])
def test_a_trouble_is_told_once_and_as_soon_as_a_record_has_it(kind, request):
    watcher, said = request.getfixturevalue(kind)
    stream = watcher._console.file if kind == "live" else None
    outcomes = {"a:jit": {"numerics": failed("no luck")}, "b:jit": {"timing": Outcome(status=Status.LOST, reason="x")}}
    record = samples.record(PLANNED, outcomes)

    watcher.case_written(record)
    watcher.case_written(record)

    text = "\n".join(said()) if stream is None else stream.getvalue()
    assert text.count("selu[n=4]: a:jit: failed: no luck") == 1
    assert "lost" not in text


def test_a_case_is_one_line(lines):
    watcher, said = lines

    watcher.case_ended(samples.fast_case(PLANNED), 12.4)

    assert said() == ("ok        selu[n=4]  1.0 s, 5 processes; 12 of 600 s used",)


def test_a_trouble_is_a_line_below_its_case(lines):
    watcher, said = lines

    watcher.case_ended(samples.record(PLANNED, {"a:jit": {"numerics": failed("no luck")}}), 12.4)

    assert said() == (
        "failed    selu[n=4]  1.0 s, 5 processes; 12 of 600 s used",
        "    a:jit: failed: no luck",
    )


def test_a_lost_case_says_why(lines):
    watcher, said = lines

    watcher.case_lost(PLANNED, "the budget is used up")

    assert said() == ("lost      selu[n=4]: the budget is used up",)


def test_what_is_said_is_one_line_that_cannot_steer_the_terminal(lines):
    watcher, said = lines

    watcher.said("left out:\n\x1b[31mscan:eager")

    assert said() == ("left out: ?[31mscan:eager",)


# The bar


def test_the_bar_moves_with_every_process(live):
    watcher, shown = live

    assert " 0 % budget 0 %" in shown()
    watcher.process_ended(PROCESS, 60.0)
    assert " 25 % " in shown()
    assert "budget 10 %" in shown()


def test_it_says_round_case_process_variant_and_stage(live):
    watcher, shown = live

    watcher.round_started(1, 8, 4)
    watcher.process_started(PROCESS)
    assert "round 1 of 8 budget 0 % selu[n=4] timing 0:00" in shown()
    watcher.beat(Heartbeat("selu:jit", "warm-up"))
    assert "round 1 of 8 budget 0 % selu[n=4] timing: selu:jit warm-up 0:00" in shown()
    watcher.process_started(PROCESS)
    assert "selu[n=4] timing 0:00" in shown()


def test_a_process_that_is_at_no_variant_shows_its_stage(live):
    watcher, shown = live

    watcher.process_started(PROCESS)
    watcher.beat(Heartbeat(None, "inputs"))

    assert "timing: inputs 0:00" in shown()


def test_where_fewer_processes_are_left_than_were_planned_the_share_of_the_work_grows(live):
    watcher, shown = live

    watcher.process_ended(PROCESS, 1.0)
    watcher.round_started(2, 2, 1)

    assert " 50 % " in shown()


def test_a_heartbeat_draws_nothing(live, monkeypatch):
    watcher, _ = live
    drawn = []
    monkeypatch.setattr(watcher._bar, "refresh", lambda: drawn.append("refresh"))
    monkeypatch.setattr(watcher._bar, "update", lambda *task, **changes: drawn.append("update"))

    watcher.beat(Heartbeat("selu:jit", "timing"))

    assert drawn == []


def test_it_is_drawn_twice_a_second(live):
    watcher, _ = live

    assert watcher._bar.live.refresh_per_second == 2


def test_a_suites_words_are_no_markup_and_cannot_steer_the_terminal(live):
    watcher, shown = live

    watcher.beat(Heartbeat("[bold]x[/bold]\x1b[31m", "timing"))

    assert "[bold]x[/bold]?[31m timing" in shown()


def test_troubles_and_words_stand_above_it(live):
    watcher, _ = live
    told = watcher._console.file

    watcher.case_written(samples.record(PLANNED, {"a:jit": {"numerics": failed("no [luck]")}}))
    watcher.case_lost(PLANNED, "the budget is used up")
    watcher.said("round 1 took 120 s: 6 rounds fit into the budget")

    assert "selu[n=4]: a:jit: failed: no [luck]" in told.getvalue()
    assert "selu[n=4]: lost: the budget is used up" in told.getvalue()
    assert "round 1 took 120 s: 6 rounds fit into the budget" in told.getvalue()


def test_nothing_is_shown_where_nothing_is_wanted(capsys):
    watcher = Watcher()

    watcher.run_started(MANIFEST, FOLDER, 4, 600.0)
    watcher.round_started(1, 2, 4)
    watcher.process_started(PROCESS)
    watcher.beat(Heartbeat(None, "start"))
    watcher.process_ended(PROCESS, 1.0)
    watcher.said("words")
    watcher.case_ended(samples.fast_case(PLANNED), 1.0)
    watcher.run_ended()

    assert capsys.readouterr() == ("", "")


# Words


def test_a_trouble_that_several_probes_had_is_told_once_and_what_is_expected_is_none():
    record = samples.record(
        PLANNED,
        {
            "a:jit": {"numerics": failed("no luck"), "memory": failed("no luck")},
            "b:jit": {"numerics": samples.numerics(), "memory": Outcome(status=Status.UNSUPPORTED, reason="eager")},
            "c:jit": {"numerics": Outcome(status=Status.SKIPPED, reason="not today")},
        },
    )

    assert list_troubles(record) == ["a:jit: failed: no luck"]


def test_one_reason_of_all_variants_is_one_line():
    inputs = {"numerics": failed("in stage 'inputs': TypeError: 'relu'")}
    record = samples.record(PLANNED, {"a:eager": inputs, "a:jit": inputs})

    assert list_troubles(record) == ["a:eager, a:jit: failed: in stage 'inputs': TypeError: 'relu'"]


def test_what_was_too_large_to_be_run_is_told_though_nothing_went_wrong():
    too_large = Outcome(status=Status.TOO_LARGE, reason="needs 3 GiB of 2 GiB")
    record = samples.record(PLANNED, {"a:jit": {"numerics": too_large}})

    assert list_troubles(record) == ["a:jit: does not fit: needs 3 GiB of 2 GiB"]


@given(text=st.text())
def test_a_suites_words_are_one_line_and_cannot_steer_the_terminal(text):
    shown = printable(text)

    assert len(shown) == len(text)
    assert shown.isprintable()


def test_what_is_printable_stays_as_it_is():
    assert printable("é 中 ×\n\x1b[31m") == "é 中 × ?[31m"
