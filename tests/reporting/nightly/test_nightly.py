import json
import os
import shutil
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.reporting.nightly import outcome, state
from jaxmeter.reporting.nightly.outcome import Acceptance, NightlyVerdict
from jaxmeter.reporting.nightly.state import NightlyError, NightlyRun, read_state, remove_state, write_state
from jaxmeter.reporting.nightly.steps import begin, conclude, list_suspects
from jaxmeter.reporting.store import stores
from jaxmeter.reporting.store.stores import BrokenOffError, StoreError, open_store
from tests import samples
from tests.reporting.compare.changed import AFTER, BEFORE, case, checked, plain, replayed, run, timed

MACHINE = "a machine"


@pytest.fixture
def out(tmp_path):
    return tmp_path / "results"


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """What a night is asked for."""
    monkeypatch.setenv("JAXMETER_CACHE", str(tmp_path / "cache"))
    store = (tmp_path / "store").as_uri()

    def make(run, **changes):
        usual = {"backend": "cpu", "machine": MACHINE, "begun": "2026-03-01T02:00:00+00:00", "measuring": ("--quick",)}
        return NightlyRun(store=store, run=run, min_effect="3%", **{**usual, **changes})

    return make


@pytest.fixture
def live(ask, out):
    """Lives a night whose run is given, and its confirmation where one is asked for; the verdict."""

    def night(run, again=None, **options):
        changes = {name: options.pop(name) for name in ("machine", "measuring", "begun") if name in options}
        begun = begin(ask(run.manifest.run_id, **changes), out, **options)
        samples.write_run(out / run.manifest.run_id, run)
        for beside in list_suspects(out):
            if again is not None:
                confirming = msgspec.structs.replace(again.manifest, run_id=beside.again, confirms=True)
                samples.write_run(out / beside.again, msgspec.structs.replace(again, manifest=confirming))
        ended = conclude(out)
        remove_state(out)
        assert begun.nightly.run == ended.verdict.run
        return ended.verdict

    return night


def arguments(out, name="measure"):
    return (out / ".night" / name).read_text().splitlines()


def test_the_first_night_has_nothing_to_compare_with_and_becomes_the_baseline(ask, live, out):
    verdict = live(plain(BEFORE))

    assert (verdict.exit_code, verdict.good, verdict.baselines) == (0, True, ())
    begun = begin(ask(AFTER), out)
    assert [(one.role, one.run) for one in begun.nightly.beside] == [("last", BEFORE)]
    folder = begun.nightly.beside[0].folder
    measured = ["--backend", "cpu", "--machine", MACHINE, "--quick", "--against", folder]
    assert arguments(out) == [*measured, "--out", str(out), "--run-id", AFTER]
    assert (Path(folder) / "run.json").is_file()


def test_a_night_that_is_slower_fails_and_does_not_become_a_baseline(ask, live, out):
    live(plain(BEFORE))

    verdict = live(replayed(1.5), again=replayed(1.5, processes=12))

    assert (verdict.exit_code, verdict.good) == (1, False)
    assert [one["variant"] for one in verdict.baselines[0]["regressions"]] == ["selu:jit"]
    assert [one.run for one in begin(ask("next"), out).nightly.beside] == [BEFORE]


def test_a_suspicion_that_nothing_confirms_is_no_answer(live):
    live(plain(BEFORE))

    verdict = live(replayed(1.5))

    assert (verdict.exit_code, verdict.good) == (3, False)
    assert [one["variant"] for one in verdict.baselines[0]["unconfirmed"]] == ["selu:jit"]


def test_a_night_as_before_passes_and_becomes_the_last_good_one(ask, live, out):
    live(plain(BEFORE))

    verdict = live(replayed(1.0))

    assert (verdict.exit_code, verdict.good) == (0, True)
    assert [one["role"] for one in verdict.baselines] == ["last"]
    beside = begin(ask("next"), out).nightly.beside
    assert [(one.role, one.run) for one in beside] == [("last", AFTER), ("pinned", BEFORE)]


def test_what_may_be_slower_than_the_pinned_run_is_timed_once_more_too(ask, live, out):
    live(plain(BEFORE))
    live(replayed(1.0))
    begin(ask("third"), out)
    samples.write_run(out / "third", plain("third", 1e-4, fingerprint="cc", source="2", started="2026-03-03T00:00:00Z"))

    suspected = list_suspects(out)

    # Its program is another than both, and only the last good one's ran beside it.
    assert [one.role for one in suspected] == ["pinned"]
    assert "--suspects" in arguments(out, "confirm-pinned")
    assert arguments(out, "confirm-pinned")[-1] == suspected[0].again
    assert not (out / ".night" / "confirm-last").exists()


def test_an_accepted_run_is_the_pinned_one_from_then_on(ask, live, out):
    live(plain(BEFORE))
    live(replayed(1.5), again=replayed(1.5, processes=12))
    store = open_store(ask("any").store)

    assert outcome.accept(store, Acceptance(run=AFTER, why="a safer algorithm", at="2026-03-03"))
    assert not outcome.accept(store, Acceptance(run=AFTER, why="again", at="2026-03-04"))

    assert [(one.role, one.run) for one in begin(ask("next"), out).nightly.beside] == [("last", AFTER)]


def test_only_whole_runs_with_a_verdict_are_accepted_and_for_a_reason(ask, live, tmp_path):
    live(plain(BEFORE))
    store = open_store(ask("any").store)
    for run_id, why, said in (("nobody", "x", "has no verdict on a run 'nobody'"), (BEFORE, " ", "--why is empty")):
        with pytest.raises(StoreError, match=said):
            outcome.accept(store, Acceptance(run=run_id, why=why, at=""))
    shutil.rmtree(tmp_path / "store" / BEFORE)

    with pytest.raises(StoreError, match="is not whole there"):
        outcome.accept(store, Acceptance(run=BEFORE, why="x", at=""))


def make_huge(path):
    path.touch()
    os.truncate(path, 300 * 2**20)


@pytest.mark.parametrize("lose", [shutil.rmtree, lambda run: make_huge(run / "run.json")], ids=["removed", "too large"])
def test_a_run_that_a_rule_of_the_bucket_has_removed_or_that_is_too_large_is_passed_over(
    ask, live, out, tmp_path, lose
):
    live(plain(BEFORE))
    live(replayed(1.0))
    lose(tmp_path / "store" / AFTER)

    begun = begin(ask("next"), out)

    assert [one.run for one in begun.nightly.beside] == [BEFORE]
    assert begun.notes == (f"{ask('any').store}/{AFTER} is not whole there any more, and is passed over",)


@pytest.mark.parametrize(
    ("is_stored", "said"), [(True, "concluded now: Passed"), (False, f"{AFTER} cannot be concluded (")]
)
def test_a_night_whose_earlier_run_is_gone_does_not_stand_in_the_way_of_the_next(
    ask, live, out, tmp_path, is_stored, said
):
    live(plain(BEFORE))
    begin(ask(AFTER), out)
    samples.write_run(out / AFTER, replayed(1.0))
    shutil.rmtree(tmp_path / "cache")
    if not is_stored:
        shutil.rmtree(tmp_path / "store" / BEFORE)

    begun = begin(ask("next", begun="2026-03-02T02:00:00+00:00"), out)

    assert begun.nightly.run == "next"
    assert said in begun.notes[0]
    assert (out / AFTER / "run.json").is_file()


def test_a_night_that_passes_on_a_busy_machine_says_why_it_is_no_baseline(live):
    live(plain(BEFORE))

    verdict = live(replayed(1.0, wobble=60))

    assert (verdict.exit_code, verdict.good) == (0, False)
    assert verdict.why_not.startswith("the machine was too busy: 1 of 1 times")


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"machine": " "}, "--machine is empty"), ({"measuring": ("--select", "a\nb")}, "a line break")],
)
def test_a_machine_without_a_name_and_an_option_with_a_line_break_are_refused(ask, out, changes, said):
    with pytest.raises(NightlyError, match=said):
        begin(ask("one", **changes), out)


def test_a_machine_that_was_too_busy_says_so_and_is_no_baseline(ask, live, out):
    verdict = live(run(BEFORE, (case(), {"selu:jit": {"numerics": checked(), "timing": timed(1e-4, scatter=60)}})))

    assert (verdict.exit_code, verdict.good) == (3, False)
    assert verdict.why_not.startswith("No answer: the machine was too busy")
    assert begin(ask("next"), out).nightly.beside == ()


def test_a_shared_machine_whose_times_are_contended_and_known_is_not_too_busy(live):
    contended = timed(1e-4, contended=5)

    assert live(run(BEFORE, (case(), {"selu:jit": {"numerics": checked(), "timing": contended}}))).good


def test_nights_of_other_machines_or_options_are_not_compared(ask, live, out):
    live(plain(BEFORE))

    for changes, why in (({"machine": "another"}, "other machines"), ({"measuring": ("--full",)}, "other options")):
        begun = begin(ask("next", **changes), out)
        assert begun.nightly.beside == ()
        assert why in begun.nightly.why_alone


def test_the_user_may_pin_a_run_by_its_id_a_url_or_a_folder(ask, live, out):
    live(plain(BEFORE))
    live(replayed(1.0))
    third = begin(ask("third"), out, BEFORE).nightly
    for source in (f"{third.store}/{BEFORE}", str(out / BEFORE)):
        pinned = begin(ask("next"), out, source, restart=True).nightly.beside[1]
        assert (pinned.role, pinned.run, pinned.source) == ("pinned", BEFORE, source)


def test_a_night_that_was_cut_short_goes_on_with_its_own_run(ask, out):
    first = begin(ask("one"), out)
    assert not first.goes_on

    again = begin(ask("two", begun="2026-03-01T05:00:00+00:00"), out)
    assert (again.goes_on, again.nightly.run) == (True, "one")
    assert "--run-id" in arguments(out)

    samples.write_run(out / "one", plain("one"), cut_short=True)
    begin(ask("three"), out)
    assert arguments(out) == ["--resume", str(out / "one")]

    night = read_state(out)
    paths = ("--suites", "mine.py", "--data=numbers", "--suites", "yours")
    state.write_steps(out, msgspec.structs.replace(night, measuring=("--quick", *paths, "--select", "x")))
    assert arguments(out) == ["--resume", str(out / "one"), *paths]

    samples.write_run(out / "one", plain("one"))
    begin(ask("four"), out)
    assert not (out / ".night" / "measure").exists()


@pytest.mark.parametrize("begun", ["2026-03-02T02:00:00+00:00", "2026-02-28T02:00:00+00:00"])
def test_the_night_before_is_concluded_first_if_its_run_has_ended(ask, out, begun):
    begin(ask(BEFORE), out)
    samples.write_run(out / BEFORE, plain(BEFORE))

    next_one = begin(ask(AFTER, begun=begun), out)

    assert (next_one.goes_on, next_one.nightly.run) == (False, AFTER)
    assert "concluded now: Nothing to compare" in next_one.notes[0]
    assert [one.run for one in next_one.nightly.beside] == [BEFORE]


def test_the_night_before_is_given_up_if_its_run_has_not_ended(ask, out):
    begin(ask("one"), out)
    samples.write_run(out / "one", plain("one"), cut_short=True)

    next_one = begin(ask("two", begun="2026-03-02T02:00:00+00:00"), out)

    assert next_one.nightly.run == "two"
    (note,) = next_one.notes
    assert "the nightly run of one is abandoned" in note
    assert str(out) in note
    assert (out / "one" / "manifest.json").is_file()


def test_each_step_may_be_repeated_and_the_first_verdict_stays(ask, out):
    begin(ask(BEFORE), out)
    samples.write_run(out / BEFORE, plain(BEFORE))
    for _ in range(2):
        assert list_suspects(out) == ()
    verdict = conclude(out).verdict
    store = open_store(ask("any").store)
    (out / BEFORE / "stray.txt").touch()

    assert conclude(out).verdict == verdict
    assert outcome.read_all(store).verdicts == (verdict,)
    assert "stray.txt" in store.list_files(BEFORE)


def test_a_run_that_used_up_its_budget_is_no_answer_and_the_night_is_over(ask, out):
    begin(ask("one"), out)
    samples.write_run(out / "one", plain("one"), cut_short=True)
    (out / "one" / "stopped.json").write_text('{"at": "x", "reason": "budget used", "budget_s": 60}')

    assert list_suspects(out) == ()
    ended = conclude(out)

    assert (ended.verdict.exit_code, ended.verdict.good, ended.is_over) == (3, False, True)
    assert ended.verdict.heading.startswith("No answer: the budget of 60 s is used up")
    assert outcome.find_verdict(open_store(ask("any").store), "one") == ended.verdict


def test_a_run_that_was_cut_short_has_no_verdict_yet(ask, out):
    with pytest.raises(NightlyError, match="no nightly run is in progress"):
        conclude(out)
    begin(ask("one"), out)
    samples.write_run(out / "one", plain("one"), cut_short=True)

    ended = conclude(out)

    assert (ended.verdict.exit_code, ended.is_over) == (3, False)
    assert "the same command continues it" in ended.verdict.heading
    assert outcome.find_verdict(open_store(ask("any").store), "one") is None
    assert read_state(out) is not None


@pytest.fixture
def outage(tmp_path, monkeypatch):
    """Makes the store of the nights one that cannot be reached, as a lost mount is, for the time of a block."""
    monkeypatch.setattr(stores, "ATTEMPTS", 1)

    @contextmanager
    def lose():
        store, aside = tmp_path / "store", tmp_path / "aside"
        store.rename(aside)
        store.symlink_to(store)  # every look at it ends with an error of the system
        try:
            yield
        finally:
            store.unlink()
            aside.rename(store)

    return lose


def test_a_night_whose_store_is_down_at_its_first_step_is_measured_and_judged_later(ask, live, out, outage):
    live(plain(BEFORE))

    with outage():
        begun = begin(ask(AFTER), out)
        assert (begun.nightly.is_chosen, begun.nightly.beside) == (False, ())
        assert arguments(out)[-2:] == ["--run-id", AFTER]
        assert "--against" not in arguments(out)
        changed = plain(AFTER, 1e-4, fingerprint="cc", source="2", started="2026-01-03T00:00:00Z")
        samples.write_run(out / AFTER, changed)
        with pytest.raises(BrokenOffError, match="cannot be reached"):
            list_suspects(out)
        with pytest.raises(NightlyError, match="could not be reached yet"):
            conclude(out)
    again = begin(ask("same command"), out)
    (suspected,) = list_suspects(out)

    assert (again.goes_on, again.nightly.run, again.nightly.is_alone) == (True, AFTER, True)
    assert (suspected.role, suspected.run) == ("last", BEFORE)
    assert "--suspects" in arguments(out, "confirm-last")
    verdict = conclude(out).verdict
    assert (verdict.run, verdict.exit_code, [one["role"] for one in verdict.baselines]) == (AFTER, 0, ["last"])
    assert "run.json" in open_store(ask("any").store).list_files(AFTER)


def test_a_store_that_is_back_before_or_after_the_measurement_is_used_at_once(ask, live, out, outage):
    live(plain(BEFORE))
    with outage():
        begin(ask(AFTER), out, BEFORE)
    samples.write_run(out / AFTER, plain(AFTER, started="2026-01-03T00:00:00Z"))
    said = []
    list_suspects(out, said.append)

    assert said == []
    assert [(one.role, one.run) for one in read_state(out).beside] == [("last", BEFORE)]
    assert conclude(out).verdict.exit_code == 0
    remove_state(out)
    for is_out in (True, False):
        with outage() if is_out else nullcontext():
            begin(ask("next"), out)
        assert ("--against" in arguments(out)) is not is_out


def test_nights_that_the_store_has_not_received_are_sent_in_their_order_by_the_next_that_can(ask, live, out, outage):
    live(plain(BEFORE))
    with outage():
        for day, name in ((2, "second"), (3, "third"), (4, "fourth")):
            begin(ask(name, begun=f"2026-03-0{day}T02:00:00+00:00"), out)
            samples.write_run(out / name, plain(name, started=f"2026-03-0{day}T00:00:00Z"))

    begun = begin(ask("fifth", begun="2026-03-05T02:00:00+00:00"), out)

    known = outcome.read_all(open_store(ask("any").store))
    assert [one.run for one in known.verdicts] == [BEFORE, "second", "third", "fourth"]
    assert all(one.good for one in known.verdicts)
    assert [note.partition(" was cut short")[0] for note in begun.notes] == [
        f"the nightly run of {name}" for name in ("second", "third", "fourth")
    ]
    assert [one.run for one in begun.nightly.beside] == ["fourth", BEFORE]
    assert sorted(path.name for path in (out / ".night").iterdir()) == ["measure", "night.json"]


def test_a_night_waits_for_the_store_though_another_ends(ask, out):
    waits = ask("waits", begun="2026-02-28T02:00:00+00:00")
    write_state(out, waits)

    state.let_wait(out, waits)
    write_state(out, ask("other"))
    remove_state(out)

    assert state.list_waiting(out) == [waits]
    state.end_waiting(out, waits)
    assert not (out / ".night").exists()


@pytest.mark.parametrize("file", ["night.json", "waiting/waits.json"])
def test_a_damaged_night_says_what_to_remove(ask, out, file):
    write_state(out, ask("one"))
    state.let_wait(out, ask("waits"))
    (out / ".night" / file).write_text("{")

    with pytest.raises(NightlyError, match=r"remove .*\.night.*: the runs next to it are kept"):
        begin(ask("two"), out)


def test_a_night_goes_on_without_its_store_unless_what_it_fetched_is_gone(ask, live, out, outage, tmp_path):
    live(plain(BEFORE))
    first = begin(ask(AFTER), out)

    with outage():
        again = begin(ask(AFTER), out)
        assert (again.nightly.beside, "--against" in arguments(out)) == (first.nightly.beside, True)
        shutil.rmtree(tmp_path / "cache")
        with pytest.raises(BrokenOffError, match="cannot be reached"):
            begin(ask(AFTER), out)


def test_what_is_no_verdict_is_named_and_not_counted(ask, out, tmp_path):
    store = open_store(ask("any").store)
    for name, data in (("a.json", b"{"), ("b.accepted.json", b"[]"), ("notes.txt", b""), ("huge.json", b"")):
        store.create(data, "verdicts", name)
    make_huge(tmp_path / "store" / "verdicts" / "huge.json")

    assert set(begin(ask("one"), out).notes) == {
        f"{store.name('verdicts', 'huge.json')} has 300\u202fMiB, over 256\u202fMiB; it is not counted",
        *(
            f"{store.name('verdicts', name)} is not a verdict, and is not counted"
            for name in ("a.json", "b.accepted.json")
        ),
    }


def set_time(path, time):
    """Give a file the time at which the store has received it."""
    os.utime(path, (time.timestamp(),) * 2)


@pytest.fixture
def store_nights(ask, tmp_path):
    """Stores a good verdict for each run that began at a time, as received on days of this month; what was known."""

    def write(*nights):
        store = open_store(ask("any").store)
        now = datetime.now(UTC)
        for days, run_id, started in nights:
            verdict = NightlyVerdict(
                run=run_id,
                backend="cpu",
                machine=MACHINE,
                measuring=("--quick",),
                started=started or (now - timedelta(days=days)).isoformat(timespec="seconds"),
                exit_code=0,
                heading="Passed",
                good=True,
            )
            outcome.keep(store, verdict)
            set_time(tmp_path / "store" / "verdicts" / f"{run_id}.json", now - timedelta(days=days))
        return outcome.read_all(store)

    return write


def choose_runs(known):
    """The last good run and the pinned one."""
    return known.choose_baselines(backend="cpu", machine=MACHINE, measuring=("--quick",))[:2]


def test_nights_are_ordered_by_the_time_of_the_store_and_not_by_the_clock_of_their_machine(store_nights):
    known = store_nights((4, "first", ""), (3, "behind", "1970-01-01T00:00:10+00:00"), (2, "newer", ""))

    assert [one.run for one in known.verdicts] == ["first", "behind", "newer"]
    assert known.set_aside == {}
    assert choose_runs(known) == ("newer", "first")


@pytest.mark.parametrize("started", ["2131-01-01T02:00:00+00:00", "2131-01-01T02:00:00"])
def test_a_night_that_began_later_than_the_store_received_it_is_set_aside_and_named(ask, store_nights, out, started):
    known = store_nights((3, "first", ""), (2, "ahead", started), (1, "newer", ""))

    assert choose_runs(known) == ("newer", "first")
    (note,) = (note for note in begin(ask("next"), out).notes if "ahead.json" in note)
    assert f"{datetime.now(UTC) - timedelta(days=2):%Y-%m-%d}; it is not counted" in note
    assert note.endswith(f"correct the clock of '{MACHINE}'")


def test_a_verdict_of_a_time_that_the_store_has_not_reached_is_set_aside_unless_clocks_differ_by_minutes(store_nights):
    near = (datetime.now(UTC) + timedelta(minutes=50)).isoformat()
    known = store_nights((1, "first", ""), (-1000, "later", "2020-01-01T02:00:00+00:00"), (0, "near", near))

    assert [one.run for one in known.verdicts] == ["first", "near"]
    assert "later than the store's time" in known.set_aside["later.json"]


def test_the_run_that_the_store_saw_accepted_last_is_pinned(ask, store_nights, tmp_path):
    store_nights((5, "first", ""), (4, "second", ""), (3, "third", ""))
    for days, run_id, at in ((2, "first", "2131-01-01"), (1, "second", "2026-01-02")):
        store = open_store(ask("any").store)
        store.create(b"{}", run_id, "run.json")
        outcome.accept(store, Acceptance(run=run_id, why="as it is", at=at))
        path = tmp_path / "store" / "verdicts" / f"{run_id}.accepted.json"
        set_time(path, datetime.now(UTC) - timedelta(days=days))

    assert choose_runs(outcome.read_all(store)) == ("third", "second")


def test_verdicts_are_read_from_the_cache_once_they_are_there(ask, live, monkeypatch):
    live(plain(BEFORE))
    store = open_store(ask("any").store)
    first = outcome.read_all(store)
    monkeypatch.setattr(type(store), "read_all", None)

    assert outcome.read_all(store) == first


@pytest.fixture
def call(tmp_path, monkeypatch):
    """Calls a step; exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)

    def run(*words):
        ended = CliRunner().invoke(app, ["night", *map(str, words)])
        return ended.exit_code, ended.stdout, ended.stderr

    return run


def test_a_night_by_its_commands_ends_with_its_verdict_and_its_page(ask, call, out, tmp_path):
    store = ask("any").store
    code, said, _ = call("begin", store, "--machine", MACHINE, "--out", out, "--", "--quick")
    run_id = read_state(out).run
    assert (code, said.count("\n"), f"run of {run_id} begins" in said) == (0, 1, True)
    samples.write_run(out / run_id, plain(run_id))

    assert call("suspects", "--out", out) == (0, "", "")
    files = tmp_path / "a.md", tmp_path / "a.json"
    code, said, complained = call("conclude", "--out", out, "--markdown", files[0], "--verdict", files[1])

    told = json.loads(files[1].read_text())
    assert (code, complained, told["good"]) == (0, "", True)
    assert told["heading"] in " ".join(said.split())
    assert told["heading"] in files[0].read_text()
    assert run_id in (tmp_path / "reports" / f"report-{run_id}.html").read_text()
    assert not (out / ".night").exists()
    assert call("accept", store, run_id, "--why", "as it is")[0] == 0


def test_the_commands_of_a_night_without_a_store_say_where_the_run_is(ask, live, call, out, outage):
    live(plain(BEFORE))
    store = ask("any").store
    with outage():
        code, _, complained = call("begin", store, "--machine", MACHINE, "--out", out, "--", "--quick")
        run_id = read_state(out).run
        assert (code, complained.startswith(f"warning: {store}: cannot be reached")) == (0, True)
        samples.write_run(out / run_id, plain(run_id, started="2026-01-03T00:00:00Z"))
        code, said, complained = call("suspects", "--out", out)

    assert (code, said) == (3, "")
    assert f"the run is kept in {out}" in complained
    assert call("suspects", "--out", out)[0] == call("conclude", "--out", out)[0] == 0


@pytest.mark.parametrize("options", [[], ["--with-captures"]])
def test_a_night_pushes_captures_only_where_its_beginning_asks_for_them(ask, call, out, tmp_path, options):
    call("begin", ask("any").store, "--machine", MACHINE, "--out", out, *options, "--", "--quick")
    run_id = read_state(out).run
    samples.write_run(out / run_id, plain(run_id))
    capture = out / run_id / "cases" / "00" / "trace" / "selu-jit" / "host.xplane.pb"
    capture.parent.mkdir(parents=True)
    capture.write_bytes(b"12345")
    call("suspects", "--out", out)

    code, said, _ = call("conclude", "--out", out)

    assert code == 0
    assert any((tmp_path / "store" / run_id).rglob("host.xplane.pb")) == bool(options)
    assert (" left out; --with-captures sends them" in " ".join(said.split())) == (not options)


def test_a_night_that_goes_on_pushes_captures_as_it_is_asked_now(ask, out):
    begin(ask(AFTER), out)

    begun = begin(ask(AFTER, with_captures=True), out)

    assert begun.goes_on
    assert read_state(out).with_captures


@pytest.mark.parametrize(
    ("store", "budgets", "said"),
    [("s4://a/b", [], "nearest: s3://"), ("", ["--budgets", "none.toml"], "cannot be read")],
)
def test_what_cannot_be_used_is_a_usage_error_before_anything_is_written(ask, call, out, store, budgets, said):
    code, _, complained = call("begin", store or ask("any").store, "--machine", MACHINE, "--out", out, *budgets)

    assert (code, said in complained) == (2, True)
    assert not out.exists()
