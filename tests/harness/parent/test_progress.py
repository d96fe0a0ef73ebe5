import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from jaxmeter.harness.parent.progress import Lines, Live, printable
from jaxmeter.harness.plan.messages import Heartbeat
from jaxmeter.harness.plan.processes import PlannedProcess
from jaxmeter.harness.record import Outcome, Status
from tests import samples
from tests.golden_texts import check_golden_scenes

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


def test_what_a_run_says_reads_as_its_golden_text(lines):
    watcher, said = lines
    stream = io.StringIO()
    Lines(stream).run_started(MANIFEST, FOLDER, 40, 600.0)

    def go_on(*calls):
        """What is said anew of these calls of the watcher."""
        before = len(said())
        for name, *arguments in calls:
            getattr(watcher, name)(*arguments)
        return said()[before:]

    ended = [("process_ended", PROCESS, used_s) for used_s in (30.0, 62.9, 63.0, 64.0, 122.9, 123.0)]
    quiet = [("process_started", PROCESS), ("beat", Heartbeat("selu:jit", "timing")), ("process_ended", PROCESS, 3.0)]
    trouble = samples.record(PLANNED, {"a:jit": {"numerics": failed("no luck")}})
    scenes = {
        "a run begins": stream.getvalue(),
        "processes and heartbeats": go_on(*quiet),
        "a round begins": go_on(("round_started", 2, 8, 39)),
        "minutes without words": go_on(*ended),
        "a round whose end is known": go_on(("round_started", 3, 8, 20, 400.0)),
        "a case at work with its estimate": go_on(
            ("case_written", samples.fast_case(PLANNED)), ("process_ended", PROCESS, 190.0)
        ),
        "a case ended": go_on(("case_ended", samples.fast_case(PLANNED), 12.4)),
        "a case with a trouble": go_on(("case_ended", trouble, 12.4)),
        "a lost case": go_on(("case_lost", PLANNED, "the budget is used up")),
        "words that would steer the terminal": go_on(("said", "left out:\n\x1b[31mscan:eager")),
        "a run ended": go_on(("run_ended",)),
    }

    assert scenes["processes and heartbeats"] == scenes["a run ended"] == ()
    check_golden_scenes("progress", scenes)


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


def test_at_the_end_of_a_case_its_troubles_are_not_said_again(lines):
    watcher, said = lines
    lost = Outcome(status=Status.LOST, reason="no time")
    record = samples.record(PLANNED, {"a:jit": {"numerics": failed("no luck")}, "b:jit": {"timing": lost}})

    watcher.case_written(record)
    watcher.case_ended(record, 12.4)

    assert [line.strip() for line in said()[-1:]] == ["b:jit: lost: no time"]
    assert "\n".join(said()).count("no luck") == 1


def test_the_process_that_exceeds_the_budget_is_said_at_once_and_by_how_much(lines):
    watcher, said = lines

    watcher.round_started(1, 8, 40)
    for used_s in (10.0, 599.0, 613.0, 615.0):
        watcher.process_ended(PROCESS, used_s)

    over = "process 'timing' of selu[n=4] ended; 37 processes left; 613 s used, 13 s over the budget of 600 s"
    assert [line.strip() for line in said()[1:]] == ["38 processes left; 599 of 600 s used", over]


# The bar


def test_the_bar_moves_with_every_process_and_says_how_far_a_run_is_over_its_budget(live):
    watcher, shown = live

    assert " 0 % budget 0 %" in shown()
    watcher.process_ended(PROCESS, 60.0)
    assert " 25 % " in shown()
    assert "budget 10 %" in shown()
    watcher.process_ended(PROCESS, 613.0)
    assert "613 s used, 13 s over the budget of 600 s" in shown()


def test_it_says_round_case_process_variant_and_stage(live):
    watcher, shown = live

    watcher.round_started(1, 8, 4)
    watcher.process_started(PROCESS)
    assert "round 1 of 8 budget 0 % selu[n=4] timing 0:00" in shown()
    watcher.beat(Heartbeat("selu:jit", "warm-up"))
    assert "round 1 of 8 budget 0 % selu[n=4] timing: selu:jit warm-up 0:00" in shown()
    watcher.process_started(PROCESS)
    assert "selu[n=4] timing 0:00" in shown()
    watcher.beat(Heartbeat(None, "inputs"))
    assert "timing: inputs 0:00" in shown()
    # A suite's words are no markup, and cannot steer the terminal.
    watcher.beat(Heartbeat("[bold]x[/bold]\x1b[31m", "timing"))
    assert "[bold]x[/bold]?[31m timing" in shown()


def test_it_shows_the_time_to_go_and_the_estimate_of_the_case_at_work(live):
    watcher, shown = live

    watcher.round_started(2, 8, 4, 400.0)
    watcher.process_ended(PROCESS, 60.0)
    watcher.case_written(samples.fast_case(PLANNED))
    watcher.process_started(PROCESS)
    assert "round 2 of 8 budget 10 % 6 min to go selu[n=4] selu:jit 10× ± 0.82 % timing" in shown()

    watcher.process_ended(PROCESS, 401.0)
    assert "to go" not in shown()


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


def test_troubles_and_words_stand_above_it(live):
    watcher, _ = live
    told = watcher._console.file

    watcher.case_written(samples.record(PLANNED, {"a:jit": {"numerics": failed("no [luck]")}}))
    watcher.case_lost(PLANNED, "the budget is used up")
    watcher.said("round 1 took 120 s: 6 rounds fit into the budget")

    assert "selu[n=4]: a:jit: failed: no [luck]" in told.getvalue()
    assert "selu[n=4]: lost: the budget is used up" in told.getvalue()
    assert "round 1 took 120 s: 6 rounds fit into the budget" in told.getvalue()


# Words


INPUTS = {"numerics": failed("in stage 'inputs': TypeError: 'relu'")}


@pytest.mark.parametrize(
    ("outcomes", "troubles"),
    [
        (
            {
                "a:jit": {"numerics": failed("no luck"), "memory": failed("no luck")},
                "b:jit": {"numerics": samples.numerics(), "memory": Outcome(status=Status.UNSUPPORTED, reason="eager")},
                "c:jit": {"numerics": Outcome(status=Status.SKIPPED, reason="not today")},
            },
            ["a:jit: failed: no luck"],
        ),
        ({"a:eager": INPUTS, "a:jit": INPUTS}, ["a:eager, a:jit: failed: in stage 'inputs': TypeError: 'relu'"]),
        (
            {"a:jit": {"numerics": Outcome(status=Status.TOO_LARGE, reason="needs 3 GiB of 2 GiB")}},
            ["a:jit: does not fit: needs 3 GiB of 2 GiB"],
        ),
    ],
    ids=["of several probes", "of all variants", "too large, though nothing went wrong"],
)
def test_a_trouble_is_told_once_and_what_is_expected_is_none(outcomes, troubles, lines):
    watcher, said = lines

    watcher.case_ended(samples.record(PLANNED, outcomes), 1.0)

    assert [line.strip() for line in said()[1:]] == troubles


@given(text=st.text())
def test_a_suites_words_are_one_line_and_cannot_steer_the_terminal(text):
    shown = printable(text)

    assert len(shown) == len(text)
    assert shown.isprintable()
    assert printable("é 中 ×\n\x1b[31m") == "é 中 × ?[31m"
