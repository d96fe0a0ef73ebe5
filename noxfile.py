"""The doors to jaxmeter: measure, report, and keep the code in order. Arguments follow two dashes.

nox -s cpu -- --quick                  measure, and report on the run
nox -s report -- results/RUN           report on a run once more
nox                                    lint, types, tests
"""

import sys
from pathlib import Path

import nox

# Nox does not put the folder of its own file on the path, and launcher is not installed where nox is.
sys.path.insert(0, str(Path(__file__).parent))

from launcher.options import UsageError
from launcher.runs import new_run_id, plan_run
from launcher.runtime import local_arguments

nox.needs_version = ">=2026.7.11"  # the first whose CommandFailed knows the exit code
nox.options.default_venv_backend = "uv|virtualenv"
nox.options.reuse_venv = "yes"
nox.options.sessions = ["lint", "types", "tests"]

LOCKS = {
    "cpu": (),
    "gpu": ("--extra", "gpu"),
    "tpu": ("--extra", "tpu"),
    "dev": ("--group", "dev"),
}
UV = "uv==0.13.8"  # another version may word the locks differently

USAGE_ERROR = 2

# After Ctrl-C the harness ends the call in progress, writes the case and removes its processes.
INTERRUPT_TIMEOUT_S = 20
TERMINATE_TIMEOUT_S = 10


@nox.session
def cpu(session: nox.Session) -> None:
    """Measure on the CPU, then report: nox -s cpu -- --quick --select 'selu*'."""
    measure(session, "cpu")


@nox.session
def report(session: nox.Session) -> None:
    """Report on a run that is there already: nox -s report -- results/RUN."""
    install(session, "cpu")
    end(run_program(session, "reporting", "report", *session.posargs))


@nox.session
def tests(session: nox.Session) -> None:
    """The specification: nox -s tests -- tests/launcher."""
    install(session, "dev")
    session.run("python", "-m", "pytest", *session.posargs)


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
    """Write docker/locks/ anew; versions stay unless they must change: nox -s lock -- --upgrade."""
    session.install(UV)
    for name, extras in LOCKS.items():
        # All agree with the cpu lock, so that figures of different backends come from one jax.
        agree = () if name == "cpu" else ("--constraints", "docker/locks/cpu.txt")
        session.run(
            *("uv", "pip", "compile", "pyproject.toml", *extras, *agree, "--output-file", f"docker/locks/{name}.txt"),
            # One lock for every platform and Python version, with what the package index published and nothing local.
            *("--universal", "--python-version", "3.11", "--generate-hashes", "--only-binary", ":all:"),
            *("--no-emit-index-url", "--no-emit-find-links", "--custom-compile-command", "nox -s lock", "--quiet"),
            *session.posargs,
        )


def measure(session: nox.Session, backend: str) -> None:
    """Run the harness on `backend`, report on what it left, and end with the harness' exit code."""
    try:
        run = plan_run(local_arguments(session.posargs), new_run_id(backend))
    except UsageError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(USAGE_ERROR)
    install(session, backend)
    code = run_program(session, "harness", "run", "--backend", backend, *run.arguments)
    report_code = 0
    if run.can_be_reported(code):
        report_code = run_program(session, "reporting", "report", str(run.folder))
    end(code or report_code)


def install(session: nox.Session, lock_name: str) -> None:
    """Install exactly what is locked. The project itself runs from its checkout."""
    session.install("--require-hashes", "--only-binary=:all:", "-r", f"docker/locks/{lock_name}.txt")


def run_program(session: nox.Session, program: str, *arguments: str) -> int:
    """Exit code of `python -m program arguments`; its stderr stays apart from its stdout."""
    try:
        session.run(
            *("python", "-m", program, *arguments),
            stderr=None,
            interrupt_timeout=INTERRUPT_TIMEOUT_S,
            terminate_timeout=TERMINATE_TIMEOUT_S,
        )
    except nox.command.CommandFailed as failure:
        if failure.return_code is None:  # it could not be started
            raise
        return failure.return_code
    return 0


def end(code: int) -> None:
    """End nox with the program's own exit code: to nox itself every failure is 1, here that is a regression."""
    if code:
        sys.exit(code)
