"""A night: what the reporter's steps say is measured here, in their order, and nothing of it twice."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from launcher.command_line import REASONS, check_measuring, read_backend, read_request
from launcher.execution import say
from launcher.options import UsageError, read_options
from launcher.request import Request
from launcher.runs import DEFAULT_OUT, MANIFEST, WITH_CAPTURES, Run, is_store, new_run_id, plan_run
from launcher.sessions.baseline import offer_baseline
from launcher.sessions.measuring import name_machine, run_harness
from launcher.sessions.same_runtime import follow_baseline, is_other_runtime
from launcher.sessions.shell import FINE, NO_ANSWER, USAGE_ERROR, Shell, prepare_stores, run_elsewhere

FINISH = "the same night, begun again within 12 hours"
"""It finds by itself what is left to do."""

FOLDER = ".night"
LOCK = ".night.lock"
MEASURE = "measure"
CONFIRM = "confirm-*"
"""Files of arguments, as `jaxmeter.reporting.nights.night` calls them; a test holds that they are the same."""

BEGINNING = ("--baseline", "--budgets", "--min-effect")
BEGINNING_FLAGS = (WITH_CAPTURES,)
ENDING = ("--markdown", "--verdict", "--page")
"""Options of the first and of the last step; the flags have no value."""

REFUSED = REASONS | {
    "--against": "a night is compared with the last good one and with --baseline RUN",
    "--resume": "a night that was cut short goes on by itself",
}


@dataclass(frozen=True)
class NightRequest:
    """A night.

    Args:
      store: URL.
      machine: What this machine is called; None where the harness shall say.
      out: Where its runs are kept here.
      beginning, ending: Options of the first and of the last step.
      measuring: Arguments of the measurement, with those of the launcher.
    """

    store: str
    machine: str | None
    out: Path
    beginning: tuple[str, ...]
    ending: tuple[str, ...]
    measuring: tuple[str, ...]

    @property
    def folder(self) -> Path:
        """Where the steps of the night that is under way are."""
        return self.out / FOLDER


def read_night_request(arguments: Sequence[str]) -> NightRequest:
    """Return what `--store URL [--machine NAME] [--baseline RUN] [--budgets FILE] [--with-captures] …` asks for.

    Raises:
      UsageError: No store, or what a night does not take.
    """
    valued = ("--store", "--machine", "--out", *BEGINNING, *ENDING)
    given = read_options(arguments, *valued, flags=BEGINNING_FLAGS, refused=REFUSED)
    store, machine, out = map(given.get, ("--store", "--machine", "--out"))
    if store is None or not is_store(store):
        name = f" (--store {store})" if store else ""
        raise UsageError(f"name a store{name}: nox -s nightly -- --store s3://bucket/folder, or file:///folder")
    if machine is not None and not machine.strip():
        raise UsageError("--machine is empty; name this machine, or leave it out")
    if out is not None and is_store(out):
        raise UsageError(f"--out {out}: a folder of this machine; --store names the store")
    beginning, ending = (tuple(given.list_words(*names)) for names in ((*BEGINNING, *BEGINNING_FLAGS), ENDING))
    return NightRequest(store, machine, Path(out or DEFAULT_OUT), beginning, ending, tuple(given.rest))


@contextmanager
def hold(request: NightRequest) -> Iterator[None]:
    """Keeps other nights out of the folder of this one's runs.

    Raises:
      UsageError: Another night is there, or the folder cannot be written.
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
                f"another night is under way in {request.out}; wait for its end, or give this one --out DIR of its own"
            ) from None
        yield


def read_step(path: Path) -> list[str]:
    """The arguments in a file, one from each line."""
    return os.fsdecode(path.read_bytes()).removesuffix("\n").split("\n")


def pass_night(shell: Shell, arguments: Sequence[str]) -> int:
    """Measure, push, confirm, judge and report; the verdict's exit code, or that of what went wrong before.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_night_request(arguments)
    with hold(asked):
        return _pass_held(shell, asked)


def _pass_held(shell: Shell, asked: NightRequest) -> int:
    backend, measuring = read_backend(asked.measuring)
    request = read_request(backend, measuring, shell.variables)
    check_measuring(request.arguments, "a night", reasons=REFUSED)
    python, where = prepare_stores(shell), ("--out", str(asked.out))

    def report(step: str, *words: str) -> int:
        return run_elsewhere(shell, python, "night", step, *words)

    machine = asked.machine or name_machine(shell, backend, request)
    beginning = (asked.store, *where, "--backend", backend, "--machine", machine, *asked.beginning)
    if code := report("begin", *beginning, "--", *request.arguments):
        return code
    step = asked.folder / MEASURE
    goes_on = step.exists() and "--resume" in read_step(step)
    code = _take_step(shell, backend, request, step)
    if goes_on and code == USAGE_ERROR:
        say("what was begun before cannot be gone on with here; a new night begins, and its run stays where it is")
        if code := report("begin", *beginning, "--anew", "--", *request.arguments):
            return code
        code = _take_step(shell, backend, request, step)
    if code not in (FINE, NO_ANSWER):
        return code
    if code := report("suspects", *where):
        return code
    for step in sorted(asked.folder.glob(CONFIRM)):
        code = _take_step(shell, backend, request, step)
        if code not in (FINE, NO_ANSWER):
            return code
    return report("conclude", *where, *asked.ending)


def _take_step(shell: Shell, backend: str, request: Request, step: Path) -> int:
    """Measure what a step of a night says, if there is something left; the harness' exit code."""
    if not step.exists():
        return FINE
    _, words = read_backend(read_step(step))
    against = read_options(words, "--against").get("--against")
    followed = _follow_earlier(shell, backend, (*request.words, *words), against)
    name = new_run_id(backend)

    def plan(*more: str) -> tuple[Request, Run]:
        asked = read_request(backend, (*request.words, *followed, *words, *more), shell.variables)
        return asked, replace(plan_run(asked.arguments, name), is_reported=False, finish=FINISH)

    with ExitStack() as stack:
        beside: tuple[str, ...] = ()
        if against is not None:
            shell.install(request.lock)
            # Said before it is measured; the verdict says it once more. Later nights are compared with this one.
            ask_reporter = partial(run_elsewhere, shell, prepare_stores(shell))
            is_other_runtime(shell, backend, plan(), Path(against), ask_reporter, is_certain=True)
            other = stack.enter_context(offer_baseline(shell, backend, *plan(), Path(against)))
            beside = () if other is None else ("--lock-step", str(other))
        return run_harness(shell, backend, *plan(*beside))


def _follow_earlier(shell: Shell, backend: str, arguments: Sequence[str], against: str | None) -> tuple[str, ...]:
    """Options that measure in the runtime of the run that this one is compared with, or goes on with."""
    earlier = against or read_options(arguments, "--resume").get("--resume")
    if earlier is None or not Path(earlier, MANIFEST).is_file():
        return ()
    return follow_baseline(shell, backend, arguments, Path(earlier))
