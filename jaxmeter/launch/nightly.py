"""A nightly run: the steps that the reporter writes are measured here, in order, and each only once."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from jaxmeter.harness.record import make_run_id
from jaxmeter.launch.command_line import REASONS, check_measuring, read_backend, read_request
from jaxmeter.launch.execution import say
from jaxmeter.launch.gate import follow_baseline, is_other_runtime, offer_baseline
from jaxmeter.launch.measuring import name_machine, run_harness
from jaxmeter.launch.options import UsageError, read_options
from jaxmeter.launch.request import Request
from jaxmeter.launch.runs import DEFAULT_OUT, WITH_CAPTURES, PlannedRun, has_begun, is_store, plan_run
from jaxmeter.launch.shell import FINE, NO_ANSWER, USAGE_ERROR, Shell, prepare_stores, run_elsewhere

FINISH = "the same nightly run, started again within 12 hours"
"""The command that finishes an interrupted nightly run: it finds the remaining steps itself."""

FOLDER = ".night"
LOCK = ".night.lock"
MEASURE = "measure"
CONFIRM = "confirm-*"
"""Files of arguments, as `jaxmeter.reporting.nightly.state` calls them; a test holds that they are the same."""

STEPS = ("begin", "measure", "suspects", "confirm", "conclude")
"""Of a nightly run, in order. Each can be repeated."""

BEGINNING = ("--baseline", "--budgets", "--min-effect")
BEGINNING_FLAGS = (WITH_CAPTURES,)
ENDING = ("--markdown", "--verdict", "--page")
"""Options of the first and of the last step; the flags have no value."""

REFUSED = REASONS | {
    "--against": "a nightly run is compared with the last good one and with --baseline RUN",
    "--resume": "an interrupted nightly run continues when it is started again",
}


@dataclass(frozen=True)
class NightlyRequest:
    """A nightly run.

    Args:
      store: URL of the store.
      machine: Name of this machine; None if the harness must find it.
      out: Folder of its runs on this machine.
      beginning, ending: Options of the first and of the last step.
      measuring: Arguments of the measurement, with those of the launcher.
      start: The first of STEPS that is taken.
    """

    store: str
    machine: str | None
    out: Path
    beginning: tuple[str, ...]
    ending: tuple[str, ...]
    measuring: tuple[str, ...]
    start: str = STEPS[0]

    @property
    def folder(self) -> Path:
        """The folder of the steps of the nightly run in progress."""
        return self.out / FOLDER


def read_nightly_request(arguments: Sequence[str]) -> NightlyRequest:
    """Return what `--store URL [--machine NAME] [--baseline RUN] [--budgets FILE] [--with-captures] …` asks for.

    Raises:
      UsageError: No store, or an option that a nightly run does not have.
    """
    valued = ("--store", "--machine", "--out", "--from", *BEGINNING, *ENDING)
    given = read_options(arguments, *valued, flags=BEGINNING_FLAGS, refused=REFUSED)
    store, machine, out = map(given.get, ("--store", "--machine", "--out"))
    if store is None or not is_store(store):
        name = f" (--store {store})" if store else ""
        raise UsageError(f"name a store{name}: --store s3://bucket/folder, or file:///folder")
    if machine is not None and not machine.strip():
        raise UsageError("--machine is empty; name this machine, or leave it out")
    if out is not None and is_store(out):
        raise UsageError(f"--out {out}: a folder of this machine; --store names the store")
    start = given.get("--from") or STEPS[0]
    if start not in STEPS:
        raise UsageError(f"--from {start!r} is no step; steps: {', '.join(STEPS)}")
    early = next((name for name in (*BEGINNING, *BEGINNING_FLAGS) if name in given), None)
    if early is not None and start != STEPS[0]:
        raise UsageError(f"{early} has an effect in the step begin only; leave it out, or leave out --from {start}")
    beginning, ending = (tuple(given.list_words(*names)) for names in ((*BEGINNING, *BEGINNING_FLAGS), ENDING))
    return NightlyRequest(store, machine, Path(out or DEFAULT_OUT), beginning, ending, tuple(given.rest), start)


@contextmanager
def hold(request: NightlyRequest) -> Iterator[None]:
    """Lock the folder of this nightly run against other nightly runs.

    Raises:
      UsageError: Another nightly run uses it, or the folder cannot be written.
    """
    try:
        request.out.mkdir(parents=True, exist_ok=True)
        file = (request.out / LOCK).open("w")
    except OSError as error:
        raise UsageError(f"{request.out}: cannot be written: {error.strerror}; give --out DIR") from error
    with file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(
                f"another nightly run is in progress in {request.out}; wait for its end, or give this one --out DIR of "
                "its own"
            ) from None
        yield


def read_step(path: Path) -> list[str]:
    """Return the arguments in a file, one per line."""
    return os.fsdecode(path.read_bytes()).removesuffix("\n").split("\n")


def run_nightly(shell: Shell, arguments: Sequence[str]) -> int:
    """Measure, push, confirm, judge and report; return the verdict's exit code, or that of the step that failed.

    Raises:
      UsageError: An option is invalid.
    """
    asked = read_nightly_request(arguments)
    with hold(asked):
        return _pass_held(shell, asked)


def _pass_held(shell: Shell, asked: NightlyRequest) -> int:
    backend, measuring = read_backend(asked.measuring)
    request = read_request(backend, measuring, shell.variables)
    check_measuring(request.arguments, "a nightly run", reasons=REFUSED)
    python, where = prepare_stores(shell), ("--out", str(asked.out))
    steps = STEPS[STEPS.index(asked.start) :]
    if asked.start != STEPS[0] and not asked.folder.is_dir():
        raise UsageError(f"--from {asked.start}: no nightly run is in progress in {asked.out}; leave it out")

    def report(step: str, *words: str) -> int:
        return run_elsewhere(shell, python, "night", step, *words)

    def begin(*options: str) -> int:
        machine = asked.machine or name_machine(shell, backend, request)
        words = (asked.store, *where, "--backend", backend, "--machine", machine, *asked.beginning, *options)
        return report("begin", *words, "--", *request.arguments)

    if "begin" in steps and (code := begin()):
        return code
    if "measure" in steps:
        step = asked.folder / MEASURE
        goes_on = step.exists() and "--resume" in read_step(step)
        code = _take_step(shell, backend, request, step)
        if goes_on and code == USAGE_ERROR:
            say("the interrupted nightly run cannot continue here; a new one starts, and the old run stays where it is")
            if code := begin("--restart"):
                return code
            code = _take_step(shell, backend, request, step)
        if code not in (FINE, NO_ANSWER):
            return code
    if "suspects" in steps and (code := report("suspects", *where)):
        return code
    for step in sorted(asked.folder.glob(CONFIRM)) if "confirm" in steps else ():
        code = _take_step(shell, backend, request, step)
        if code not in (FINE, NO_ANSWER):
            return code
    return report("conclude", *where, *asked.ending)


def _take_step(shell: Shell, backend: str, request: Request, step: Path) -> int:
    """Measure a step of a nightly run, if it is not finished; return the harness's exit code."""
    if not step.exists():
        return FINE
    _, words = read_backend(read_step(step))
    against = read_options(words, "--against").get("--against")
    followed = _follow_earlier(shell, backend, (*request.words, *words), against)
    name = make_run_id(backend)

    def plan(*more: str) -> tuple[Request, PlannedRun]:
        asked = read_request(backend, (*request.words, *followed, *words, *more), shell.variables)
        return asked, replace(plan_run(asked.arguments, name), is_reported=False, finish=FINISH)

    with ExitStack() as stack:
        beside: tuple[str, ...] = ()
        if against is not None:
            shell.install(request.lock)
            # Printed before the measurement; the verdict repeats it. Later nightly runs are compared with this one.
            ask_reporter = partial(run_elsewhere, shell, prepare_stores(shell))
            is_other_runtime(shell, backend, plan(), Path(against), ask_reporter, is_certain=True)
            other = stack.enter_context(offer_baseline(shell, backend, *plan(), Path(against)))
            beside = () if other is None else ("--lock-step", str(other))
        return run_harness(shell, backend, *plan(*beside))


def _follow_earlier(shell: Shell, backend: str, arguments: Sequence[str], against: str | None) -> tuple[str, ...]:
    """Return the options that measure in the runtime of the run that this one is compared with, or continues."""
    earlier = against or read_options(arguments, "--resume").get("--resume")
    if earlier is None or not has_begun(Path(earlier)):
        return ()
    return follow_baseline(shell, backend, arguments, Path(earlier))
