"""The doors to jaxmeter: measure, report, and keep the code in order. Arguments follow two dashes.

nox -s cpu -- --quick                  measure, and report on the run
nox -s self-test                       how often this machine's numbers err
nox -s doctor                          what is fine here, what spoils measurements, what to do
nox -s report -- results/RUN           report on a run once more
nox -s report -- export results/*      the same as a table: --to csv, json or google-benchmark
nox -s report -- diff A B --case NAME  what changed between the programs of two runs
nox -s compare -- results/A results/B  what changed between two runs
nox -s gate -- results/RUN             measure beside a run, and judge: 0 passed, 1 slower, 3 no answer
nox -s nightly -- --store s3://bucket/team  measure, push, judge against earlier nights, report: for a schedule
nox -s upgrade -- --old "jax==0.10.0" --new "jax==0.10.2" --quick  what an upgrade changes
nox -s bisect -- --good "jax==0.9.0" --bad "jax==0.10.2" --case NAME  which release changed it
nox -s traces -- results/RUN           open a run's profiler captures in xprof
nox                                    lint, types, tests
"""

import os
import sys
import tempfile
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import nox

# Nox does not put the folder of its own file on the path, and launcher is not installed where nox is.
sys.path.insert(0, str(Path(__file__).parent))

from launcher import bisection
from launcher.backends import BACKENDS, BackendNeeds
from launcher.bisects import BisectRequest, read_bisect_request
from launcher.command_line import read_backend, read_request
from launcher.containers import caller_here
from launcher.doctor import examination
from launcher.environments import Wanted, list_needed, make_environment, make_locked_environment, read_wanted
from launcher.execution import say
from launcher.gates import read_gate_request
from launcher.host import look_at_host
from launcher.images import lock_sha256
from launcher.jobs import Job, ask_machine, measure_in_container
from launcher.judges import JudgeByCase, JudgeByCommand
from launcher.locks import SMALLEST_LOCK, STORES_LOCK, choose_lock, find_unlocked, list_exports, locate_lock
from launcher.nights import CONFIRM, MEASURE, read_night_request, read_step
from launcher.options import UsageError, take_option
from launcher.preflight import check, find_warnings
from launcher.rebuilt import find_changes, find_obstacle, read_baseline, read_installed
from launcher.releases import list_releases
from launcher.request import Request, format_command
from launcher.runs import Run, is_store, new_run_id, plan_beside, plan_run, plan_self_test, take_store
from launcher.runtime import choose_engine
from launcher.supply import build_asked_images, download_asked_wheels
from launcher.traces import copy_captures, read_trace_request
from launcher.upgrades import AFTER, BEFORE, read_upgrade_request

nox.needs_version = ">=2026.7.11"  # the first whose CommandFailed knows the exit code
# With virtualenv nox installs with pip. uv would not read pip's settings: indexes, proxies, certificates.
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]

CHECKOUT = Path(__file__).parent
USAGE_ERROR, INTERRUPTED = 2, 130
NO_ANSWER = 3
"""Of the harness, too, whose run is not complete then."""
VERBS = (["diff"], ["export"], ["gc"], ["history"], ["night"], ["push"], ["reproduce"])
"""What `nox -s report` passes on as it is."""
ENVIRONMENTS = Path(".nox", "environments")
"""Where those are that users name packages for."""
HTML_VALIDATE = "tests/reporting/html_validate"
"""Where npm installs what checks the page's HTML."""

# After Ctrl-C the harness ends the call in progress, writes the case and removes its processes.
INTERRUPT_TIMEOUT_S = 20
TERMINATE_TIMEOUT_S = 10


def add_measurement(needs: BackendNeeds) -> None:
    """Adds the session that measures on a backend."""

    @nox.session(name=needs.name)
    def measure_there(session: nox.Session) -> None:
        measure(session, needs.name, session.posargs, lambda words: plan_run(words, new_run_id(needs.name)))

    measure_there.__doc__ = f"Measure on {needs.devices.name}, then report: nox -s {needs.name} -- --quick."


for row in BACKENDS.values():
    add_measurement(row)


@nox.session(name="self-test")
def self_test(session: nox.Session) -> None:
    """How often this machine's numbers err, in 20 minutes; later runs tell it: nox -s self-test -- --backend gpu."""
    with report_usage_errors():
        backend, rest = read_backend(session.posargs)
    measure(session, backend, rest, plan_self_test)


@nox.session
def report(session: nox.Session) -> None:
    """Report on runs that are there already: nox -s report -- results/RUN; or export, history, push, gc, diff A B."""
    install(session, choose_lock(session.posargs))
    verb = () if session.posargs[:1] in VERBS else ("report",)
    end(run_program(session, "reporting", *verb, *session.posargs))


@nox.session
def compare(session: nox.Session) -> None:
    """What changed between two runs: nox -s compare -- results/A results/B --fail-on suspected."""
    end(answer_or_none(lambda: compare_runs(session)))


@nox.session
def gate(session: nox.Session) -> None:
    """Measure what a run measured, beside its programs, and judge: nox -s gate -- results/RUN --budgets FILE."""
    end(answer_or_none(lambda: pass_gate(session)))


@nox.session
def nightly(session: nox.Session) -> None:
    """Measure, push, judge against earlier nights, report; for a schedule: nox -s nightly -- --store s3://bucket/team."""
    end(answer_or_none(lambda: pass_night(session)))


@nox.session
def upgrade(session: nox.Session) -> None:
    """What an upgrade changes, both in lock-step: nox -s upgrade -- --old "jax==0.10.0" --new "jax==0.10.2" --quick."""
    end(answer_or_none(lambda: compare_environments(session)))


@nox.session
def bisect(session: nox.Session) -> None:
    """Which release changed a case: nox -s bisect -- --good "jax==0.9.0" --bad "jax==0.10.2" --case NAME."""
    end(answer_or_none(lambda: find_first_bad(session)))


@nox.session
def traces(session: nox.Session) -> None:
    """Open a run's profiler captures in xprof, until Ctrl-C: nox -s traces -- results/RUN --select CASE --port N."""
    with report_usage_errors(), tempfile.TemporaryDirectory() as folder:
        request = read_trace_request(session.posargs)
        count = copy_captures(request, Path(folder))
        install(session, SMALLEST_LOCK)
        say(f"{count} captures at http://localhost:{request.port}; its charts need a network; Ctrl-C ends it")
        session.run("xprof", "--logdir", folder, "--port", str(request.port))


@nox.session(venv_backend="none")
def doctor(session: nox.Session) -> None:
    """What is fine on this machine, what spoils measurements, what to do: nox -s doctor -- gpu."""
    with report_usage_errors():
        end(examination.examine(session.posargs, os.environ, CHECKOUT))


@nox.session(venv_backend="none")
def images(session: nox.Session) -> None:
    """Build images before they are needed: nox -s images -- cpu tpu."""
    with report_usage_errors():
        build_asked_images(session.posargs, os.environ, CHECKOUT)


@nox.session(venv_backend="none")
def wheels(session: nox.Session) -> None:
    """Download what images are made of, for a machine without a network: nox -s wheels -- cpu."""
    with report_usage_errors():
        download_asked_wheels(session.posargs, CHECKOUT)


@nox.session
def tests(session: nox.Session) -> None:
    """The specification: nox -s tests -- tests/launcher."""
    install(session, "dev")
    session.run("python", "-m", "pytest", *session.posargs)


@nox.session
def container(session: nox.Session) -> None:
    """Real images, really run. Needs an engine and up to 25 GB of disk."""
    install(session, "dev")
    session.run("python", "-m", "pytest", "-m", "container", *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """The whole runs that take longest: interrupted, without disk, out of their budget, tested against themselves."""
    install(session, "dev")
    session.run("python", "-m", "pytest", "-m", "slow", *session.posargs)


@nox.session
def page(session: nox.Session) -> None:
    """The page by html-validate, and with ten thousand results in a browser. Needs Chromium and npm."""
    install(session, "dev")
    session.run("npm", "ci", "--prefix", HTML_VALIDATE, external=True, silent=True)
    session.run("python", "-m", "pytest", "-m", "page", *session.posargs)


@nox.session
def suites(session: nox.Session) -> None:
    """Every suite, really run: each implementation in its smallest case, and a wrong one that must be caught."""
    install(session, "dev")
    session.run("python", "-m", "pytest", "-m", "suites", *session.posargs)


@nox.session
def cloud(session: nox.Session) -> None:
    """Runs in buckets, of servers that it starts: pushed, read back, broken off, fought for."""
    install(session, "cloud")
    session.run("python", "-m", "pytest", "-m", "cloud", *session.posargs)


@nox.session
def torch(session: nox.Session) -> None:
    """What needs PyTorch, which is set beside JAX in some suites. Downloads 3.3 GB; needs a C++ compiler."""
    install(session, "dev", "cpu-torch")
    session.run("python", "-m", "pytest", "-m", "torch", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Style and format."""
    install(session, "dev")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")


@nox.session
def types(session: nox.Session) -> None:
    """Types, strictly."""
    install(session, "dev")
    session.run("mypy")


@nox.session
def lock(session: nox.Session) -> None:
    """Write uv.lock and docker/locks/ anew; versions stay unless they must change: nox -s lock -- --upgrade."""
    install(session, "dev")
    session.run("uv", "lock", *session.posargs)
    for _, command in list_exports():
        session.run(*command)


def answer_or_none(ask: Callable[[], int]) -> int:
    """An exit code of those that are documented: to nox every error of its own is 1, which is a regression here."""
    try:
        code = ask()
    except UsageError as error:
        say(f"error: {error}")
        return USAGE_ERROR
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  pip, nox, the disk, or us: no regression, and no answer
        say(f"error: {type(error).__name__}: {error}; there is no answer")
        return NO_ANSWER
    return code if code in (0, 1, USAGE_ERROR, NO_ANSWER, INTERRUPTED) else NO_ANSWER


def compare_runs(session: nox.Session) -> int:
    """The exit code of the comparison."""
    install(session, choose_lock(session.posargs))
    return run_program(session, "reporting", "compare", *session.posargs)


def pass_gate(session: nox.Session) -> int:
    """Measure, confirm what is suspected, judge and report; the exit code of the judge, or of what went wrong before.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_gate_request(fetch_baseline(session, session.posargs))
    backend, measuring = read_backend(asked.measuring)
    limits = [word for name in ("--budgets", "--min-effect") for word in take_given(asked.judging, name)]
    install(session, SMALLEST_LOCK)
    if code := run_program(session, "reporting", "limits", *limits):  # before anything is measured
        return code
    other = (
        None if asked.exact else rebuild_baseline(session, read_request(backend, measuring, os.environ), asked.baseline)
    )
    with tempfile.TemporaryDirectory() as folder:
        suspects = Path(folder) / "suspects.json"
        run, code = measure_beside(session, backend, measuring, asked.baseline, other=other)
        if not run.has_measured(code):
            return code if code in (USAGE_ERROR, INTERRUPTED) else NO_ANSWER
        install(session, SMALLEST_LOCK)
        confirmed: tuple[str, ...] = ()
        if not asked.exact:
            runs = (str(asked.baseline), str(run.folder))
            run_program(session, "reporting", "compare", *runs, "--suspects", str(suspects), *limits)
            if suspects.is_file():
                again, code = measure_beside(session, backend, measuring, asked.baseline, suspects, other)
                if again.has_measured(code):
                    confirmed = ("--confirmed-by", str(again.folder))
                install(session, SMALLEST_LOCK)
        judged = (str(asked.baseline), str(run.folder), *confirmed)
        code = run_program(session, "reporting", "gate", *judged, *asked.judging)
        run_program(session, "reporting", "report", *judged, *take_given(asked.judging, "--min-effect"))
    return code


def fetch_baseline(session: nox.Session, arguments: Sequence[str]) -> list[str]:
    """The arguments of a gate, with the folder in the cache in place of the URL of a baseline run."""
    if not arguments or not is_store(arguments[0]):
        return list(arguments)
    command = (str(prepare_stores()), "-m", "reporting", "fetch", arguments[0])
    return [str(session.run(*command, external=True, silent=True, stderr=None)).strip(), *arguments[1:]]


def pass_night(session: nox.Session) -> int:
    """The steps of a night, in order; those that an earlier, cut short call has done are not done again.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_night_request(session.posargs)
    backend, measuring = read_backend(asked.measuring)
    request = read_request(backend, measuring, os.environ)
    reporter = (str(prepare_stores()), "-m", "reporting", "night")
    where = ("--out", str(asked.out))
    machine = asked.machine or name_machine(session, backend, request, asked.out)
    beginning = ("begin", asked.store, *where, "--backend", backend, "--machine", machine, *asked.beginning)
    if code := run_command(session, *reporter, *beginning, "--", *request.arguments):
        return code
    step = asked.folder / MEASURE
    is_old = step.exists() and "--resume" in read_step(step)
    code = take_step(session, backend, request, step)
    if is_old and code == USAGE_ERROR:
        say("what was begun before cannot be gone on with here; a new night begins, and its run stays where it is")
        if code := run_command(session, *reporter, *beginning, "--anew", "--", *request.arguments):
            return code
        code = take_step(session, backend, request, step)
    if code not in (0, NO_ANSWER):
        return code
    if code := run_command(session, *reporter, "suspects", *where):
        return code
    for step in sorted(asked.folder.glob(CONFIRM)):
        code = take_step(session, backend, request, step)
        if code not in (0, NO_ANSWER):
            return code
    return run_command(session, *reporter, "conclude", *where, *asked.ending)


def take_step(session: nox.Session, backend: str, request: Request, step: Path) -> int:
    """Measure what a step of a night says, if it is not done; the harness' exit code."""
    if not step.exists():
        return 0
    _, words = read_backend(read_step(step))
    engine, _ = choose_engine(request.runtime, os.environ)
    if engine is None and (against := take_option(words, "--against")[0]):
        install(session, request.lock)
        other = rebuild_baseline(session, request, Path(against))
        words += [] if other is None else ["--lock-step", str(other)]
    request = read_request(backend, (*request.words, *words), os.environ)
    run = replace(plan_run(request.arguments, new_run_id(backend)), is_reported=False)
    return run_harness(session, backend, request, run)


def name_machine(session: nox.Session, backend: str, request: Request, out: Path) -> str:
    """What the harness calls this machine.

    Raises:
      UsageError: It finds no device.
    """
    cores, _ = take_option(request.arguments, "--cores")
    run = Run(() if cores is None else ("--cores", cores), out / "machine", is_rehearsal=False, verb="machine")
    engine, _ = choose_engine(request.runtime, os.environ)
    host, caller = look_at_host(), caller_here(os.environ)
    check(backend, request, host, engine)
    if engine is not None:
        return ask_machine(Job(backend, request, run, engine, host, caller, CHECKOUT, os.environ))
    install(session, request.lock)
    command = ("python", "-m", "harness", run.verb, "--backend", backend, *run.arguments)
    return str(session.run(*command, silent=True, log=False, stderr=None)).strip()


def rebuild_baseline(session: nox.Session, request: Request, baseline: Path) -> Path | None:
    """The python of the baseline's environment where today's is another; None where it is not, or cannot be had."""
    before = read_baseline(baseline)
    listed = session.run("python", "-m", "pip", "list", "--format=freeze", silent=True, log=False)
    changes = find_changes(before, read_installed(str(listed)), os.environ)
    if not changes:
        return None
    engine, _ = choose_engine(request.runtime, os.environ)
    told = f"not as in the baseline: {', '.join(changes)}"
    if obstacle := find_obstacle(before, in_container=engine is not None):
        say(f"warning: {told}; slower times stay suspected: {obstacle}")
        return None
    say(f"{told}; its environment takes turns with today's")
    try:
        return prepare_environment(before.wanted)
    except UsageError as error:
        say(f"warning: slower times stay suspected: {error}")
        return None


def compare_environments(session: nox.Session) -> int:
    """Measure in an old and a new environment, their calls in turns; compare and report; the comparison's exit code.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_upgrade_request(session.posargs)
    backend, measuring = read_backend(asked.measuring)
    install(session, SMALLEST_LOCK)
    limits = [word for name in ("--budgets", "--min-effect") for word in take_given(asked.judging, name)]
    if code := run_program(session, "reporting", "limits", *limits):  # before anything is measured
        return code
    old, new = (prepare_environment(one) for one in (asked.old, asked.new))
    measured = ("run", "--backend", backend, *measuring)
    name = new_run_id(backend)
    before, after = (asked.out / f"{name}-{side}" for side in ("old", "new"))
    codes = [run_elsewhere(session, old, *measured, *BEFORE, "--run-id", before.name)]
    if codes[0] in (0, NO_ANSWER):
        beside = ("--against", str(before), "--lock-step", str(old))
        codes.append(run_elsewhere(session, new, *measured, *AFTER, *beside, "--run-id", after.name))
    if codes[-1] not in (0, NO_ANSWER) or len(codes) == 1:
        return codes[-1] if codes[-1] in (USAGE_ERROR, INTERRUPTED) else NO_ANSWER
    code = run_program(session, "reporting", "compare", str(before), str(after), *asked.judging)
    run_program(session, "reporting", "report", str(before), str(after), *take_given(asked.judging, "--min-effect"))
    return code or max(codes)  # what was not measured was not compared


def find_first_bad(session: nox.Session) -> int:
    """Judge releases between a good and a bad one until two neighbours are left; 0 where they are found.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_bisect_request(session.posargs)
    releases = list_releases(asked.good, asked.bad)
    say(f"{len(releases)} releases: {', '.join(releases)}")
    install(session, SMALLEST_LOCK)
    try:
        found = bisection.bisect(releases, make_judge(session, asked), say, asks_good=bool(asked.command))
    except bisection.NoDifferenceError as error:
        say(f"error: {error}; there is nothing to bisect")
        return NO_ANSWER
    for line in bisection.describe(found):
        say(line)
    return 0


def make_judge(session: nox.Session, asked: BisectRequest) -> bisection.Judge:
    """What tells a bad release; the good one is measured now, where a case does."""

    def make(packages: str) -> Path:
        return prepare_environment(read_wanted(packages))

    if asked.command:
        return JudgeByCommand(asked.command, make)
    backend, measuring = read_backend(asked.measuring)
    judge = JudgeByCase(
        asked,
        backend,
        measuring,
        new_run_id(backend),
        make,
        run=lambda python, words: run_elsewhere(session, python, *words),
        compare=lambda words: run_program(session, "reporting", "compare", *words),
    )
    judge.begin()
    return judge


def prepare_stores() -> Path:
    """The python that reads and writes stores: of an environment of its own, apart from what measures.

    Raises:
      UsageError: pip cannot install it.
    """
    return make_locked_environment(CHECKOUT / locate_lock(STORES_LOCK), CHECKOUT / ENVIRONMENTS)


def prepare_environment(wanted: Wanted) -> Path:
    """The python of an environment with these packages.

    Raises:
      UsageError: pip cannot install them.
    """
    say(f"installing {wanted.words}; the first time, that takes a minute or two")
    return make_environment(wanted, CHECKOUT / ENVIRONMENTS, list_needed(CHECKOUT / "pyproject.toml"))


def run_elsewhere(session: nox.Session, python: Path, *arguments: str) -> int:
    """Exit code of the harness in an environment that is not the session's."""
    return run_command(session, str(python), "-m", "harness", *arguments)


def take_given(arguments: Sequence[str], name: str) -> list[str]:
    """An option with its value, as it was given; empty where it was not."""
    value, _ = take_option(arguments, name)
    return [] if value is None else [name, value]


def measure_beside(
    session: nox.Session,
    backend: str,
    arguments: Sequence[str],
    baseline: Path,
    suspects: Path | None = None,
    other: Path | None = None,
) -> tuple[Run, int]:
    """A run beside an earlier one, and the harness' exit code.

    Args:
      other: The python of the earlier run's environment, where its calls and today's take turns.
    Raises:
      UsageError: What was asked cannot be done.
    """
    request = read_request(backend, arguments, os.environ)
    run = plan_beside(baseline, request.arguments, new_run_id(backend), suspects, other)
    return run, run_harness(session, backend, request, run)


def measure(session: nox.Session, backend: str, arguments: Sequence[str], plan: Callable[[Sequence[str]], Run]) -> None:
    """Run the harness on `backend`, report on the run that it left, if any, and end with the harness' exit code."""
    with report_usage_errors():
        store, arguments = take_store(arguments)
        request = read_request(backend, arguments, os.environ)
        run = plan(request.arguments)
        if store is not None and not run.is_rehearsal and (code := reach(session, run, store)):
            end(code)
        code = run_harness(session, backend, request, run)
    if code in (0, NO_ANSWER):
        show_page(request, run)
    if store is not None and not run.is_rehearsal and code in (0, NO_ANSWER):
        code = push(session, run, store) or code
    end(code)


def reach(session: nox.Session, run: Run, store: str) -> int:
    """Whether a store can be written, before anything is measured; an exit code.

    Raises:
      UsageError: What is measured is no run that a store takes.
    """
    if not run.is_reported:
        raise UsageError(f"--out {store}: a self-test stays on its machine; name a folder")
    return run_command(session, str(prepare_stores()), "-m", "reporting", "reach", store)


def push(session: nox.Session, run: Run, store: str) -> int:
    """Copy a run into a store, if it has ended; the exit code."""
    if not run.has_ended():
        say(f"not pushed to {store}: {run.folder} has not ended; finish it with --resume, then push it")
        return NO_ANSWER
    return run_command(session, str(prepare_stores()), "-m", "reporting", "push", str(run.folder), store)


def run_harness(session: nox.Session, backend: str, request: Request, run: Run) -> int:
    """Run the harness, in a container where there is an engine, and report; its exit code, else the report's.

    Raises:
      UsageError: Something is in the way, and the message says what to do.
    """
    engine, line = choose_engine(request.runtime, os.environ)
    host, caller = look_at_host(), caller_here(os.environ)
    if not run.is_rehearsal:
        check(backend, request, host, engine)
    say(line)
    for warning in find_warnings(backend, host, is_root=caller.uid == 0 and engine is None):
        say(f"warning: {warning}")
    if engine is not None:
        return measure_in_container(Job(backend, request, run, engine, host, caller, CHECKOUT, os.environ))
    say("installing what is locked; the first time, that takes a minute or two")
    install(session, request.lock)
    session.env["JAXMETER_COMMAND"] = format_command(backend, request)
    session.env["JAXMETER_LOCK_SHA256"] = lock_sha256(CHECKOUT, request.lock)
    code = run_program(session, "harness", run.verb, "--backend", backend, *run.arguments)
    report_code = 0
    if run.can_be_reported(code):
        report_code = run_program(session, "reporting", "report", str(run.folder))
    return code or report_code


def show_page(request: Request, run: Run) -> None:
    """Open the run's page in a browser, if that was asked for and there are a page, a person and a browser."""
    if request.opens_page and run.page.is_file() and not os.environ.get("CI"):
        webbrowser.open(run.page.resolve().as_uri())


def install(session: nox.Session, *lock_names: str) -> None:
    """Install exactly what is locked, and nothing else. The project itself runs from its checkout."""
    paths = [locate_lock(name) for name in lock_names]
    session.install("--require-hashes", "--only-binary=:all:", *(word for path in paths for word in ("-r", path)))
    if session.virtualenv.is_sandboxed:  # with --no-venv it is somebody's own
        installed = session.run("python", "-m", "pip", "list", "--format=freeze", silent=True, log=False)
        locks = "".join((CHECKOUT / path).read_text(encoding="utf8") for path in paths)
        if unlocked := find_unlocked(locks, str(installed)):
            session.run("python", "-m", "pip", "uninstall", "--quiet", "--yes", *unlocked, silent=True)


def run_program(session: nox.Session, program: str, *arguments: str) -> int:
    """Exit code of `python -m program arguments`."""
    return run_command(session, "python", "-m", program, *arguments)


def run_command(session: nox.Session, *command: str) -> int:
    """Exit code of a command; its stderr stays apart from its stdout."""
    try:
        session.run(
            *command,
            external=Path(command[0]).is_absolute(),
            stderr=None,
            interrupt_timeout=INTERRUPT_TIMEOUT_S,
            terminate_timeout=TERMINATE_TIMEOUT_S,
        )
    except nox.command.CommandFailed as failure:
        if failure.return_code is None:  # it could not be started
            raise
        return failure.return_code
    return 0


@contextmanager
def report_usage_errors() -> Iterator[None]:
    """What cannot be done as asked becomes its own words on stderr and exit code 2."""
    try:
        yield
    except UsageError as error:
        say(f"error: {error}")
        sys.exit(USAGE_ERROR)
    except BrokenPipeError:  # the reader has seen enough, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def end(code: int) -> None:
    """End nox with the program's own exit code: to nox itself every failure is 1, here that is a regression."""
    if code:
        sys.exit(code)
