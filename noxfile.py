"""The sessions to jaxmeter: measure, report, and keep the code in order. Arguments follow two dashes.

nox -s cpu -- --quick                  measure, and report on the run
nox -s self-test                       how often this machine's numbers are wrong
nox -s doctor                          what disturbs measurements on this machine, and the remedy
nox -s report -- results/RUN           report on a run once more
nox -s report -- export results/*      the same as a table: --to csv, json or google-benchmark
nox -s report -- diff A B --case NAME  what changed between the programs of two runs
nox -s compare -- results/A results/B  what changed between two runs
nox -s gate -- results/RUN             measure interleaved with a run: 0 passed, 1 slower, 3 no answer
nox -s nightly -- --store s3://bucket/team  measure, push, compare with earlier runs, report: for a schedule
nox -s upgrade -- --old "jax==0.11.2" --new "jax==0.12.0.1" --quick  what an upgrade changes
nox -s bisect -- --good "jax==0.9.0" --bad "jax==0.12.0.1" --case NAME  which releases changed it
nox -s traces -- results/RUN           open a run's profiler captures in xprof
nox -s schedule -- ENGINE --store URL --machine NAME  a schedule for kubernetes, slurm, github, systemd …
nox -s docs                            build the documentation site in docs/_build/html
nox                                    lint, types, tests
nox -s everything                      all sessions that check jaxmeter, for hours; -- --dry-run lists them
"""

import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import nox

# Nox does not put the folder of its own file on the path, and jaxmeter is not installed where nox is.
sys.path.insert(0, str(Path(__file__).parent))

from jaxmeter.launch.backends import BACKENDS, BackendNeeds
from jaxmeter.launch.command_line import read_backend
from jaxmeter.launch.doctor import examination
from jaxmeter.launch.environments import OLDEST_PYTHON
from jaxmeter.launch.execution import say
from jaxmeter.launch.locks import SMALLEST_LOCK, choose_lock, find_unlocked, locate_lock
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.prefetch import build_asked_images, download_asked_wheels
from jaxmeter.launch.runs import new_run_id, plan_run, plan_self_test
from jaxmeter.launch.sessions.bisect import bisect_releases
from jaxmeter.launch.sessions.gate import pass_gate
from jaxmeter.launch.sessions.measuring import measure
from jaxmeter.launch.sessions.nightly import pass_night
from jaxmeter.launch.sessions.schedule import look_here, write_asked_schedule
from jaxmeter.launch.sessions.shell import FINE, INTERRUPTED, NO_ANSWER, USAGE_ERROR, ProgramError, Shell, run_jaxmeter
from jaxmeter.launch.sessions.traces import SERVER, copy_captures, read_trace_request
from jaxmeter.launch.sessions.upgrade import compare_environments
from tests.tools.everything import EVERYTHING, REQUIRED
from tests.tools.marked_tests import ANY_PROCESS, SIDE_BY_SIDE, select_tests

nox.needs_version = ">=2026.7.11"  # the first whose CommandFailed knows the exit code
# With virtualenv nox installs with pip. uv would not read pip's settings: indexes, proxies, certificates.
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]

CHECKOUT = Path(__file__).parent
VERBS = (["diff"], ["export"], ["gc"], ["history"], ["night"], ["push"], ["reproduce"], ["trace"])
"""What `nox -s report` passes on as it is."""
PYTHON_OF_RELEASES = "3.12"
"""The only one for which PyPI has all releases of jax from 0.4.31 on."""
HTML_VALIDATE = "tests/reporting/html_validate"
"""Where npm installs what checks the page's HTML."""

# After Ctrl-C the harness ends the call in progress, writes the case and removes its processes.
INTERRUPT_TIMEOUT_S = 20
TERMINATE_TIMEOUT_S = 10


def add_measurement(needs: BackendNeeds) -> None:
    """Adds the session that measures on a backend."""

    @nox.session(name=needs.name)
    def measure_there(session: nox.Session) -> None:
        with report_usage_errors():
            run_id = new_run_id(needs.name)
            end(measure(NoxShell(session), needs.name, session.posargs, lambda words: plan_run(words, run_id)))

    measure_there.__doc__ = f"Measure on {needs.devices.name}, then report: nox -s {needs.name} -- --quick."


for row in BACKENDS.values():
    add_measurement(row)


@nox.session(name="self-test")
def self_test(session: nox.Session) -> None:
    """Measure how often this machine's numbers are wrong, in 20 minutes: nox -s self-test -- --backend gpu."""
    with report_usage_errors():
        backend, rest = read_backend(session.posargs)
        end(measure(NoxShell(session), backend, rest, plan_self_test))


@nox.session
def report(session: nox.Session) -> None:
    """Report on recorded runs: nox -s report -- results/RUN; or export, history, push, gc, diff A B."""
    shell = NoxShell(session)
    shell.install(choose_lock(session.posargs))
    verb = () if session.posargs[:1] in VERBS else ("report",)
    end(run_jaxmeter(shell, *verb, *session.posargs))


@nox.session
def compare(session: nox.Session) -> None:
    """Compare two runs: nox -s compare -- results/A results/B --fail-on suspected."""
    answer(lambda: compare_runs(NoxShell(session), session.posargs))


@nox.session
def gate(session: nox.Session) -> None:
    """Measure again, interleaved with a run's programs, and judge: nox -s gate -- results/RUN --budgets FILE."""
    answer(lambda: pass_gate(NoxShell(session), session.posargs))


@nox.session
def nightly(session: nox.Session) -> None:
    """Measure, push, compare with earlier runs, report; for a schedule: nox -s nightly -- --store s3://bucket/team."""
    answer(lambda: pass_night(NoxShell(session), session.posargs))


@nox.session
def upgrade(session: nox.Session) -> None:
    """Compare two environments in lock-step: nox -s upgrade -- --old "jax==0.11.2" --new "jax==0.12.0.1" --quick."""
    answer(lambda: compare_environments(NoxShell(session), session.posargs))


@nox.session
def bisect(session: nox.Session) -> None:
    """Find the releases that changed a case: nox -s bisect -- --good "jax==0.9.0" --bad "jax==0.12.0.1" --case NAME."""
    answer(lambda: bisect_releases(NoxShell(session), session.posargs))


@nox.session
def traces(session: nox.Session) -> None:
    """Open a run's profiler captures in xprof, until Ctrl-C: nox -s traces -- results/RUN --select CASE --port N."""
    with report_usage_errors(), tempfile.TemporaryDirectory() as folder:
        request = read_trace_request(session.posargs)
        count = copy_captures(request, Path(folder))
        shell = NoxShell(session)
        shell.install(SMALLEST_LOCK)
        say(f"{count} captures at http://127.0.0.1:{request.port}; the charts need a network; Ctrl-C ends the server")
        end(shell.run("python", "-m", SERVER, folder, "--port", str(request.port)))


@nox.session(venv_backend="none")
def doctor(session: nox.Session) -> None:
    """Report what disturbs measurements on this machine, and the remedy: nox -s doctor -- gpu."""
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


@nox.session(venv_backend="none")
def schedule(session: nox.Session) -> None:
    """Write a schedule of nightly runs: nox -s schedule -- systemd --store s3://team-bucket/nightly --machine NAME."""
    with report_usage_errors():
        write_asked_schedule(session.posargs, look_here(CHECKOUT))


@nox.session
def tests(session: nox.Session) -> None:
    """The specification: nox -s tests -- tests/launch; in one process with -n 0."""
    NoxShell(session).install("dev")
    session.run("python", "-m", "pytest", *SIDE_BY_SIDE, *session.posargs)


@nox.session(reuse_venv=False)  # the newest of today, without what an earlier --pre installed
def newest(session: nox.Session) -> None:
    """Run the tests that a new JAX breaks first, with the newest packages, unlocked: nox -s newest -- --pre."""
    project = nox.project.load_toml(CHECKOUT / "pyproject.toml")
    needed = (*project["project"]["dependencies"], *nox.project.dependency_groups(project, "test"))
    pre = [word for word in session.posargs if word == "--pre"]
    session.install("--upgrade", "--upgrade-strategy", "eager", "--only-binary=:all:", *pre, *needed)
    session.run("python", "-m", "tests.tools.newest", *(word for word in session.posargs if word != "--pre"))


@nox.session(python=OLDEST_PYTHON)
def oldest(session: nox.Session) -> None:
    """Check the oldest Python, with the last jax for it: quick tests of the harness, and a run with its report."""
    NoxShell(session).install("dev")
    options = ("-m", "not end_to_end and not slow", *SIDE_BY_SIDE)
    session.run("python", "-m", "pytest", *options, "tests/harness", *session.posargs)
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder, "oldest")
        words = ("run", "--quick", "--select", "selu", "--out", folder, "--run-id", run.name)
        session.run("python", "-m", "jaxmeter", *words)
        session.run("python", "-m", "jaxmeter", "report", f"{run}", "--out", f"{run}.html")


@nox.session
def container(session: nox.Session) -> None:
    """Real images, really run. Needs an engine and up to 25 GB of disk."""
    NoxShell(session).install("dev")
    run_tests(session, "container")


@nox.session
def slow(session: nox.Session) -> None:
    """The whole runs that take longest: interrupted, without disk, out of their budget, tested against themselves."""
    NoxShell(session).install("dev")
    session.run("python", "-m", "pytest", "-m", "slow and not alone", *SIDE_BY_SIDE, *session.posargs)
    session.run("python", "-m", "pytest", "-m", "slow and alone", *session.posargs)


@nox.session
def page(session: nox.Session) -> None:
    """The page in a browser and by html-validate. Needs Chromium and npm."""
    NoxShell(session).install("dev")
    session.run("npm", "ci", "--prefix", HTML_VALIDATE, external=True, silent=True)
    run_tests(session, "page", "browser", options=SIDE_BY_SIDE)


@nox.session
def suites(session: nox.Session) -> None:
    """Every suite, really run: each implementation in its smallest case, and a wrong one that must be caught."""
    NoxShell(session).install("dev")
    run_tests(session, "suites", options=ANY_PROCESS)


@nox.session(python=PYTHON_OF_RELEASES)
def releases(session: nox.Session) -> None:
    """Compare older releases of jax with today's. Installs five, 2.5 GB, which stay in .nox/environments."""
    NoxShell(session).install("dev")
    run_tests(session, "releases", options=ANY_PROCESS)


@nox.session
def cloud(session: nox.Session) -> None:
    """Runs in buckets, of servers that it starts: pushed, read back, broken off, fought for."""
    NoxShell(session).install("cloud")
    run_tests(session, "cloud")


@nox.session
def torch(session: nox.Session) -> None:
    """Tests of suites that compare JAX with PyTorch. Downloads 3.3 GB; needs a C++ compiler."""
    NoxShell(session).install("dev", "cpu-torch")
    run_tests(session, "torch")


@nox.session(venv_backend="none")
def everything(session: nox.Session) -> None:
    """Run all sessions that check jaxmeter, one after the other; nothing may be skipped; -- --dry-run lists them."""
    if session.posargs not in ([], ["--dry-run"]):
        session.error(f"everything takes --dry-run only, not {' '.join(session.posargs)}")
    os.environ.update(dict.fromkeys(REQUIRED, "1"))
    for name in EVERYTHING:
        if session.posargs:
            print(name)
        else:
            session.notify(name, ())


@nox.session
def docs(session: nox.Session) -> None:
    """Build the site in docs/_build/html; -- --update first makes all shown outputs and pictures, in 20 minutes."""
    if session.posargs == ["--update"]:
        NoxShell(session).install("dev")
        session.run("python", "docs/outputs.py")
        session.run("python", "docs/pictures.py")
    elif session.posargs:
        session.error(f"docs takes --update only, not {' '.join(session.posargs)}")
    else:
        NoxShell(session).install("docs")
    session.run("python", "-m", "sphinx", "-W", "-b", "html", "docs", "docs/_build/html")


@nox.session
def lint(session: nox.Session) -> None:
    """Style and format of the code, language of the documentation."""
    NoxShell(session).install("dev")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("python", "docs/check_language.py")


@nox.session
def types(session: nox.Session) -> None:
    """Types, strictly."""
    NoxShell(session).install("dev")
    session.run("mypy")


@nox.session
def lock(session: nox.Session) -> None:
    """Write uv.lock and docker/locks/ again, and say what is new; versions stay where they can: -- --upgrade."""
    NoxShell(session).install("dev")
    session.run("uv", "lock", *session.posargs)
    session.run("python", "-m", "tests.tools.newest", "locks")


def run_tests(session: nox.Session, *marks: str, options: Sequence[str] = ()) -> None:
    """Run the tests with one of some marks."""
    session.run("python", "-m", "pytest", *options, *select_tests(marks, session.posargs, CHECKOUT))


class NoxShell:
    """A session's environment, as `jaxmeter.launch.sessions` asks for it."""

    def __init__(self, session: nox.Session) -> None:
        self.session = session
        self.checkout = CHECKOUT
        self.variables = os.environ
        self.installed: tuple[str, ...] | None = None

    def install(self, *lock_names: str) -> None:
        """Install exactly what is locked, and nothing else. The project itself runs from its checkout."""
        if lock_names == self.installed:  # pip takes seconds to find that nothing is to be done
            return
        self.installed = None
        session, paths = self.session, [locate_lock(name) for name in lock_names]
        session.install("--require-hashes", "--only-binary=:all:", *(word for path in paths for word in ("-r", path)))
        if session.virtualenv.is_sandboxed:  # with --no-venv it is somebody's own
            locks = "".join((CHECKOUT / path).read_text(encoding="utf8") for path in paths)
            if unlocked := find_unlocked(locks, self.ask("python", "-m", "pip", "list", "--format=freeze")):
                session.run("python", "-m", "pip", "uninstall", "--quiet", "--yes", *unlocked, silent=True)
        self.installed = lock_names

    def set_variable(self, name: str, value: str) -> None:
        """Set a variable of the programs that follow."""
        self.session.env[name] = value

    def run(self, *command: str) -> int:
        """Exit code of a command; its stderr stays apart from its stdout."""
        try:
            self.session.run(
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

    def ask(self, *command: str) -> str:
        """What a command prints on its stdout."""
        external = Path(command[0]).is_absolute()
        try:
            return str(self.session.run(*command, external=external, silent=True, log=False, stderr=None))
        except nox.command.CommandFailed as failure:
            raise ProgramError(failure.return_code or NO_ANSWER) from failure


def answer(ask: Callable[[], int]) -> None:
    """End with an exit code of those that are documented: to nox every error of its own is 1, here a regression."""
    try:
        code = ask()
    except UsageError as error:
        say(f"error: {error}")
        code = USAGE_ERROR
    except ProgramError as error:
        code = error.code
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:  # noqa: BLE001  pip, nox, the disk, or us: no regression, and no answer
        say(f"error: {type(error).__name__}: {error}; there is no answer")
        code = NO_ANSWER
    end(code if code in (FINE, 1, USAGE_ERROR, NO_ANSWER, INTERRUPTED) else NO_ANSWER)


def compare_runs(shell: Shell, arguments: Sequence[str]) -> int:
    """The exit code of a comparison."""
    shell.install(choose_lock(arguments))
    return run_jaxmeter(shell, "compare", *arguments)


@contextmanager
def report_usage_errors() -> Iterator[None]:
    """What cannot be done as asked becomes its own words on stderr and exit code 2."""
    try:
        yield
    except UsageError as error:
        say(f"error: {error}")
        sys.exit(USAGE_ERROR)
    except ProgramError as error:
        sys.exit(error.code)
    except BrokenPipeError:  # the reader has seen enough, as `| head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def end(code: int) -> None:
    """End nox with the program's own exit code: to nox itself every failure is 1, here that is a regression."""
    if code:
        sys.exit(code)
