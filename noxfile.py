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
from collections.abc import Sequence
from pathlib import Path

import nox

# Nox does not put the folder of its own file on the path.
sys.path.insert(0, str(Path(__file__).parent))

from tests.tools.everything import EVERYTHING, REQUIRED
from tests.tools.locks import find_unlocked
from tests.tools.marked_tests import ANY_PROCESS, SIDE_BY_SIDE, select_tests
from tests.tools.newest import list_requirements

nox.needs_version = ">=2026.7.11"  # the first whose CommandFailed knows the exit code
# With virtualenv nox installs with pip. uv would not read pip's settings: indexes, proxies, certificates.
nox.options.default_venv_backend = "virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]

CHECKOUT = Path(__file__).parent
OLDEST_PYTHON = "3.11"
"""The first that pyproject.toml allows; a test compares them."""
PYTHON_OF_RELEASES = "3.12"
"""The only one for which PyPI has all releases of jax from 0.4.31 on."""
HTML_VALIDATE = "tests/reporting/html_validate"
"""Where npm installs what checks the page's HTML."""

INTERRUPT_TIMEOUT_S = 40
TERMINATE_TIMEOUT_S = 40
"""After Ctrl-C the harness ends the call in progress, writes the case and removes its processes. A scheduler may
interrupt nox alone; then nox ends the command after the first time, and the command has the second for the same."""

NO_ANSWER = 3
"""jaxmeter's exit code if the machine or the network is in the way. 1 would be a regression."""

VERBS = ("diff", "export", "fetch", "gc", "history", "night", "push", "reproduce", "trace")
"""What `nox -s report` passes on as it is."""

WHEELS = "docker/wheels"

DEVICES = {"cpu": "the CPU", "gpu": "NVIDIA GPUs", "tpu": "TPUs"}


def add_measurement(backend: str) -> None:
    """Add the session that measures on a backend."""

    @nox.session(name=backend)
    def measure_there(session: nox.Session) -> None:
        call(session, "run", "--backend", backend, *session.posargs)

    measure_there.__doc__ = f"Measure on {DEVICES[backend]}, then report: nox -s {backend} -- --quick."


for name in DEVICES:
    add_measurement(name)


@nox.session(name="self-test")
def self_test(session: nox.Session) -> None:
    """Measure how often this machine's numbers are wrong, in 20 minutes: nox -s self-test -- --backend gpu."""
    call(session, "self-test", *session.posargs)


@nox.session
def report(session: nox.Session) -> None:
    """Report on recorded runs: nox -s report -- results/RUN; or call another verb: export, history, push, diff A B."""
    call(session, *(() if session.posargs[:1] and session.posargs[0] in VERBS else ("report",)), *session.posargs)


@nox.session
def compare(session: nox.Session) -> None:
    """Compare two runs: nox -s compare -- results/A results/B --fail-on suspected."""
    call(session, "compare", *session.posargs)


@nox.session
def gate(session: nox.Session) -> None:
    """Measure again, interleaved with a run's programs, and judge: nox -s gate -- results/RUN --budgets FILE."""
    call(session, "gate", *session.posargs)


@nox.session
def nightly(session: nox.Session) -> None:
    """Measure, push, compare with earlier runs, report; for a schedule: nox -s nightly -- --store s3://bucket/team."""
    call(session, "nightly", *session.posargs)


@nox.session
def upgrade(session: nox.Session) -> None:
    """Compare two environments in lock-step: nox -s upgrade -- --old "jax==0.11.2" --new "jax==0.12.0.1" --quick."""
    call(session, "upgrade", *session.posargs)


@nox.session
def bisect(session: nox.Session) -> None:
    """Find the releases that changed a case: nox -s bisect -- --good "jax==0.9.0" --bad "jax==0.12.0.1" --case NAME."""
    call(session, "bisect", *session.posargs)


@nox.session
def traces(session: nox.Session) -> None:
    """Open a run's profiler captures in xprof, until Ctrl-C: nox -s traces -- results/RUN --select CASE --port N."""
    call(session, "trace", "--open", *session.posargs)


@nox.session
def doctor(session: nox.Session) -> None:
    """Report what disturbs measurements on this machine, and the remedy: nox -s doctor -- gpu."""
    call(session, "doctor", *session.posargs)


@nox.session
def images(session: nox.Session) -> None:
    """Build images before they are needed: nox -s images -- cpu tpu."""
    call(session, "images", *session.posargs)


@nox.session
def wheels(session: nox.Session) -> None:
    """Download what images are made of, for a machine without a network: nox -s wheels -- cpu."""
    call(session, "wheels", *session.posargs)


@nox.session
def schedule(session: nox.Session) -> None:
    """Write a schedule of nightly runs: nox -s schedule -- systemd --store s3://team-bucket/nightly --machine NAME."""
    call(session, "schedule", *session.posargs)


@nox.session
def tests(session: nox.Session) -> None:
    """The specification: nox -s tests -- tests/launch; in one process with -n 0."""
    install(session, "dev")
    session.run("python", "-m", "pytest", *SIDE_BY_SIDE, *session.posargs)


@nox.session(reuse_venv=False)  # the newest of today, without what an earlier --pre installed
def newest(session: nox.Session) -> None:
    """Run the tests that a new JAX breaks first, with the newest packages, unlocked: nox -s newest -- --pre."""
    needed = list_requirements(CHECKOUT)
    pre = [word for word in session.posargs if word == "--pre"]
    session.install("--upgrade", "--upgrade-strategy", "eager", "--only-binary=:all:", *pre, *needed)
    session.run("python", "-m", "tests.tools.newest", *(word for word in session.posargs if word != "--pre"))


@nox.session(python=OLDEST_PYTHON)
def oldest(session: nox.Session) -> None:
    """Check the oldest Python, with the last jax for it: quick tests of the harness, and a run with its report."""
    install(session, "dev")
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
    install(session, "dev")
    run_tests(session, "container")


@nox.session
def end_to_end(session: nox.Session) -> None:
    """Whole programs in processes of their own: runs, reports, bad input, interruptions. The longest are in `slow`."""
    install(session, "dev")
    marks = "end_to_end and not slow and not releases and not suites"
    session.run("python", "-m", "pytest", "-m", marks, *SIDE_BY_SIDE, *session.posargs)


@nox.session
def slow(session: nox.Session) -> None:
    """The whole runs that take longest: interrupted, without disk, out of their budget, tested against themselves."""
    install(session, "dev")
    session.run("python", "-m", "pytest", "-m", "slow and not alone", *SIDE_BY_SIDE, *session.posargs)
    session.run("python", "-m", "pytest", "-m", "slow and alone", *session.posargs)


@nox.session
def page(session: nox.Session) -> None:
    """The page in a browser and by html-validate. Needs Chromium and npm."""
    install(session, "dev")
    session.run("npm", "ci", "--prefix", HTML_VALIDATE, external=True, silent=True)
    run_tests(session, "page", "browser", options=SIDE_BY_SIDE)


@nox.session
def suites(session: nox.Session) -> None:
    """Every suite, really run: each implementation in its smallest case, and a wrong one that must be caught."""
    install(session, "dev")
    run_tests(session, "suites", options=ANY_PROCESS)


@nox.session(python=PYTHON_OF_RELEASES)
def releases(session: nox.Session) -> None:
    """Compare older releases of jax with today's. Installs five, 2.5 GB, which stay in .nox/environments."""
    install(session, "dev")
    run_tests(session, "releases", options=ANY_PROCESS)


@nox.session
def cloud(session: nox.Session) -> None:
    """Runs in buckets, of servers that it starts: pushed, read back, broken off, fought for."""
    install(session, "cloud")
    run_tests(session, "cloud")


@nox.session
def torch(session: nox.Session) -> None:
    """Tests of suites that compare JAX with PyTorch. Downloads 3.3 GB; needs a C++ compiler."""
    install(session, "dev", "cpu-torch")
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
        install(session, "dev")
        session.run("python", "docs/outputs.py")
        session.run("python", "docs/pictures.py")
    elif session.posargs:
        session.error(f"docs takes --update only, not {' '.join(session.posargs)}")
    else:
        install(session, "docs")
    session.run("python", "-m", "sphinx", "-W", "-b", "html", "docs", "docs/_build/html")


@nox.session
def lint(session: nox.Session) -> None:
    """Style and format of the code, language of the documentation."""
    install(session, "dev")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("python", "docs/check_language.py")


@nox.session
def types(session: nox.Session) -> None:
    """Types, strictly."""
    install(session, "dev")
    session.run("mypy")


@nox.session
def lock(session: nox.Session) -> None:
    """Write uv.lock and docker/locks/ again, and say what is new; versions stay where they can: -- --upgrade."""
    install(session, "dev")
    session.run("uv", "lock", *session.posargs)
    session.run("python", "-m", "tests.tools.newest", "locks")


def run_tests(session: nox.Session, *marks: str, options: Sequence[str] = ()) -> None:
    """Run the tests with one of some marks."""
    session.run("python", "-m", "pytest", *options, *select_tests(marks, session.posargs, CHECKOUT))


def call(session: nox.Session, *words: str) -> None:
    """Run `jaxmeter WORDS`, and end nox with its exit code: to nox every failure is 1, here that is a regression.

    What measures and what reports runs in containers or environments of its own, which the command makes.
    """
    try:
        if not install_offline(session, "launch"):
            install(session, "launch")
    except nox.command.CommandFailed:
        session.log("jaxmeter's command line needs a few packages, which pip could not install for the reason above.")
        session.log(f"On a machine without a network, copy {WHEELS} from one on which `nox -s wheels` has filled it.")
        sys.exit(NO_ANSWER)
    variables = {"JAXMETER_RUNTIME": os.environ.get("JAXMETER_RUNTIME") or "auto", "JAXMETER_IN_NOX": sys.executable}
    try:
        session.run(
            *("python", "-m", "jaxmeter", *words),
            env=variables,
            stderr=None,  # apart from stdout
            interrupt_timeout=INTERRUPT_TIMEOUT_S,
            terminate_timeout=TERMINATE_TIMEOUT_S,
        )
    except nox.command.CommandFailed as failure:
        code = failure.return_code
        sys.exit(NO_ANSWER if code is None or code < 0 else code)  # it could not be started, or a signal ended it


def install_offline(session: nox.Session, lock_name: str) -> bool:
    """Install a lock from docker/wheels, as on a machine without a network; return whether all of it was there."""
    if not any((CHECKOUT / WHEELS).glob("*.whl")):
        return False
    options = ("--no-index", "--find-links", WHEELS, "--require-hashes", "-r", f"docker/locks/{lock_name}.txt")
    try:
        session.install(*options, silent=True)
    except nox.command.CommandFailed:
        return False
    return True


def install(session: nox.Session, *lock_names: str) -> None:
    """Install exactly what is locked, and nothing else. The project itself runs from its checkout."""
    paths = [f"docker/locks/{name}.txt" for name in lock_names]
    session.install("--require-hashes", "--only-binary=:all:", *(word for path in paths for word in ("-r", path)))
    if session.virtualenv.is_sandboxed:  # with --no-venv it is somebody's own
        locks = "".join((CHECKOUT / path).read_text(encoding="utf8") for path in paths)
        listed = session.run("python", "-m", "pip", "list", "--format=freeze", silent=True, log=False, stderr=None)
        if unlocked := find_unlocked(locks, str(listed)):
            session.run("python", "-m", "pip", "uninstall", "--quiet", "--yes", *unlocked, silent=True)
