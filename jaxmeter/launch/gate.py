"""A gate: a run interleaved with a baseline run in its runtime, confirmation by fresh processes, a judgement."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from jaxmeter.harness.record import make_run_id
from jaxmeter.launch.baseline import Baseline, offer_baseline, read_baseline
from jaxmeter.launch.command_line import REASONS, check_measuring, read_backend, read_request
from jaxmeter.launch.containers import CHECKOUT
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.execution import say
from jaxmeter.launch.images import OWN_IMAGES, image_id
from jaxmeter.launch.jobs import PRINT_PYTHON, ask_python, measuring_container
from jaxmeter.launch.locks import SMALLEST_LOCK
from jaxmeter.launch.measuring import plan_job, run_harness
from jaxmeter.launch.options import UsageError, read_options
from jaxmeter.launch.request import Request, choose_engine, name_command
from jaxmeter.launch.runs import DEFAULT_OUT, EXACT, PlannedRun, has_begun, is_store, plan_beside
from jaxmeter.launch.shell import (
    FINE,
    JAXMETER,
    NO_ANSWER,
    USAGE_ERROR,
    Shell,
    prepare_stores,
    run_jaxmeter,
    write_page,
)

JUDGING = ("--budgets", "--min-effect", "--markdown", "--verdict")
"""Options of the judge; all others are of the measurement."""

ARMS = ("--lock-step", CHECKOUT)
"""Options of what takes turns with today's code."""

REFUSED = {name: why for name, why in REASONS.items() if name not in ARMS} | {
    "--against": f"the baseline is named without an option: {name_command('gate', 'RUN')}"
}


@dataclass(frozen=True)
class GateRequest:
    """A gate.

    Args:
      baseline: Folder of the earlier run.
      measuring: Arguments of the measurement, with those of the launcher.
      judging: Arguments of the judge.
    """

    baseline: Path
    measuring: tuple[str, ...]
    judging: tuple[str, ...]
    exact: bool


def read_gate_request(arguments: Sequence[str]) -> GateRequest:
    """Return what `RUN [--budgets FILE] [--min-effect PERCENT] [--markdown FILE] [--verdict FILE] [--exact] …` ask.

    Raises:
      UsageError: No baseline, or what a gate does not take.
    """
    if not arguments or arguments[0].startswith("-"):
        raise UsageError(f"name the baseline run first: {name_command('gate', 'results/RUN')}")
    name, given = Path(arguments[0]), read_options(arguments[1:], *JUDGING, "--out", flags=["--exact"], refused=REFUSED)
    baseline = name if name.is_dir() else Path(given.get("--out") or DEFAULT_OUT) / name
    if not has_begun(baseline):
        raise UsageError(f"{name}: no run; give a folder that a measurement has written, such as results/RUN")
    exact = "--exact" in given
    checkout = read_options(given.rest, CHECKOUT).get(CHECKOUT)
    if checkout is not None and exact:
        raise UsageError(f"{CHECKOUT} times calls in two checkouts, and --exact times no calls; leave out one of them")
    if checkout is not None and not Path(checkout).expanduser().is_dir():
        raise UsageError(f"{CHECKOUT} {checkout}: no such folder; make it: git worktree add {checkout} COMMIT")
    measuring = (*given.rest, *given.list_words("--out"), *(EXACT if exact else ()))
    return GateRequest(baseline, measuring, tuple(given.list_words("--exact", *JUDGING)), exact)


def pass_gate(shell: Shell, arguments: Sequence[str]) -> int:
    """Measure, confirm what is suspected, judge and report; the exit code of the judge, or of what went wrong before.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_gate_request(_fetch_baseline(shell, arguments))
    backend, measuring = read_backend(asked.measuring)
    request = read_request(backend, measuring, shell.variables)
    check_measuring(request.arguments, "a gate", ("--machine", *ARMS), REFUSED)
    judging = read_options(asked.judging, "--budgets", "--min-effect")
    limits = judging.list_words("--budgets", "--min-effect")
    shell.install(SMALLEST_LOCK)
    if code := run_jaxmeter(shell, "limits", *limits):  # before anything is measured
        return code
    chosen = is_chosen(request)
    followed = follow_baseline(shell, backend, measuring, asked.baseline)
    measuring = [*followed, *measuring]
    with ExitStack() as stack:
        other = None
        if not asked.exact:
            # Where the baseline's runtime is not here, no image is built only to say so.
            here = measuring if chosen or followed else ["--runtime", "local", *measuring]
            planned = _plan_beside(shell, backend, here, asked.baseline)
            ask = partial(run_jaxmeter, shell)
            is_other = is_other_runtime(shell, backend, planned, asked.baseline, ask, is_certain=chosen)
            if is_other and not chosen:
                return NO_ANSWER
            request, run = _plan_beside(shell, backend, measuring, asked.baseline)
            other = stack.enter_context(offer_baseline(shell, backend, request, run, asked.baseline))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        suspects = Path(folder) / "suspects.json"
        run, code = _measure_beside(shell, backend, measuring, asked.baseline, other=other)
        if not run.has_measured(code):
            return code if code == USAGE_ERROR else NO_ANSWER
        shell.install(SMALLEST_LOCK)
        confirmed: tuple[str, ...] = ()
        if not asked.exact:
            runs = (str(asked.baseline), str(run.folder))
            run_jaxmeter(shell, "compare", *runs, "--suspects", str(suspects), *limits)
            if suspects.is_file():
                again, code = _measure_beside(shell, backend, measuring, asked.baseline, suspects, other)
                if again.has_measured(code):
                    confirmed = ("--confirmed-by", str(again.folder))
                shell.install(SMALLEST_LOCK)
        judged = (str(asked.baseline), str(run.folder), *confirmed)
        code = run_jaxmeter(shell, "gate", *judged, *asked.judging)
        write_page(shell, *judged, *judging.list_words("--min-effect"))
    return code


def _fetch_baseline(shell: Shell, arguments: Sequence[str]) -> list[str]:
    """Return the arguments of a gate, with the folder in the cache in place of the URL of a baseline run."""
    if not arguments or not is_store(arguments[0]):
        return list(arguments)
    folder = shell.ask(str(prepare_stores(shell)), *JAXMETER, "fetch", arguments[0])
    return [folder.strip(), *arguments[1:]]


def _measure_beside(
    shell: Shell,
    backend: str,
    arguments: Sequence[str],
    baseline: Path,
    suspects: Path | None = None,
    other: Path | None = None,
) -> tuple[PlannedRun, int]:
    """Make a run that is interleaved with an earlier one; return it and the harness's exit code.

    Args:
      other: The earlier run's environment, if its calls take turns with today's: its python, or a socket.
    """
    request, run = _plan_beside(shell, backend, arguments, baseline, suspects, other)
    return run, run_harness(shell, backend, request, run)


def _plan_beside(
    shell: Shell,
    backend: str,
    arguments: Sequence[str],
    baseline: Path,
    suspects: Path | None = None,
    other: Path | None = None,
) -> tuple[Request, PlannedRun]:
    request = read_request(backend, arguments, shell.variables)
    return request, plan_beside(baseline, request.arguments, make_run_id(backend), suspects, other)


AskReporter = Callable[..., int]
"""Exit code of `jaxmeter` with these words."""


def is_chosen(request: Request) -> bool:
    """Whether somebody has said in what to measure."""
    return request.runtime != "auto"


def follow_baseline(shell: Shell, backend: str, arguments: Sequence[str], folder: Path) -> tuple[str, ...]:
    """Return the options that measure in the runtime of a baseline; none where one was chosen or it cannot be had.

    An image of jaxmeter's own is built from today's code: the baseline's holds the code of then.

    Args:
      arguments: Of the measurement, with those of the launcher.
      folder: Of the baseline run.
    Raises:
      UsageError: The baseline's manifest cannot be read, or an option cannot be followed.
    """
    if is_chosen(read_request(backend, arguments, shell.variables)):
        return ()
    options = _list_options(shell, read_baseline(folder))
    if options:
        say(f"measuring in the runtime of the baseline: {' '.join(options)}")
    return options


def is_other_runtime(
    shell: Shell,
    backend: str,
    planned: tuple[Request, PlannedRun],
    folder: Path,
    ask_reporter: AskReporter,
    *,
    is_certain: bool,
) -> bool:
    """Whether a measurement would be of another runtime than its baseline; the reporter says so in one sentence.

    Args:
      planned: The measurement.
      folder: Of the baseline run.
      is_certain: Whether it takes place whatever is said; else the local environment stands for what cannot be had.
    Raises:
      UsageError: What is certain cannot be had.
    """
    try:
        python, image = _look_inside(shell, backend, *planned)
    except UsageError:
        if is_certain:
            raise
        python, image = _ask_locally(shell), ""
    named = ("--image", image) if image else ()
    return ask_reporter("runtime", str(folder), "--python", python, *named) != FINE


def _list_options(shell: Shell, before: Baseline) -> tuple[str, ...]:
    if not before.image:
        return ("--runtime", "local")
    engine, _ = choose_engine("auto", shell.variables)
    if engine is None:
        return ()
    if before.image.startswith(OWN_IMAGES):
        return ("--runtime", "container")
    image = _find_image(engine, before)
    return () if image is None else ("--image", image)


def _find_image(engine: Engine, before: Baseline) -> str | None:
    """A name by which the engine has the very image of the baseline; None where it has none.

    It is not pulled: a record may come from anywhere, and a person names what is run (--image).
    """
    name, wanted = before.image.partition(" ")[0], before.image_id
    if image_id(engine, name) == wanted:
        return name
    return None if image_id(engine, wanted) is None else wanted


def _look_inside(shell: Shell, backend: str, request: Request, run: PlannedRun) -> tuple[str, str]:
    """The Python of what would measure, and the image's name and id; empty of a local environment."""
    engine, _ = choose_engine(request.runtime, shell.variables)
    if engine is None:
        return _ask_locally(shell), ""
    job = plan_job(shell, backend, request, run)
    python, image = ask_python(job), measuring_container(job).image
    return python, f"{image} {image_id(engine, image) or ''}".rstrip()


def _ask_locally(shell: Shell) -> str:
    return shell.ask("python", "-c", PRINT_PYTHON).strip()
