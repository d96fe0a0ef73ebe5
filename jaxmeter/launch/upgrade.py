"""An upgrade: an old and a new environment take turns, and are compared. They may differ in variables alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from jaxmeter.harness.record import make_run_id
from jaxmeter.launch.command_line import (
    REASONS,
    check_measuring,
    check_names,
    check_packages,
    read_backend,
    read_request,
)
from jaxmeter.launch.environments import Wanted, ask_version, read_wanted
from jaxmeter.launch.execution import say
from jaxmeter.launch.images import SMALLEST_LOCK
from jaxmeter.launch.jobs import offer_environment
from jaxmeter.launch.measuring import plan_job, run_harness
from jaxmeter.launch.options import UsageError, read_options
from jaxmeter.launch.releases import check_environment
from jaxmeter.launch.request import Request
from jaxmeter.launch.runs import DEFAULT_OUT, PROGRAMS, PlannedRun, plan_run
from jaxmeter.launch.shell import (
    FINE,
    NO_ANSWER,
    USAGE_ERROR,
    Shell,
    check_selection,
    has_environment,
    prepare_environment,
    run_elsewhere,
    run_jaxmeter,
    write_page,
)

JUDGING = ("--min-effect", "--markdown", "--verdict", "--budgets")
"""Options of the comparison; all others are of the measurement."""

REFUSED = REASONS | {
    "--lock-step": "that is the old environment: --old",
    "--image": "an upgrade is of two: --old name@sha256:… --new name@sha256:…",
    "--probe": "an upgrade looks at times, programs, compilation and memory",
}

PYTHONS = ("--old-python", "--new-python")
"""Options for the interpreter of one environment, for releases without wheels for this interpreter."""

VARIABLES = ("--old-env", "--new-env")
"""Options for variables of one environment; the harness decides which variables can be set."""

BEFORE = PROGRAMS
"""Probes that run in the old environment alone: the time of its calls is measured interleaved with the new one."""

AFTER = ("--probe", "timing", *BEFORE)

IN_IMAGE = ("--runtime", "container", "--image")
"""Options of a measurement in an image, without its name."""

_IMAGE = re.compile(r"(?:\S+@)?sha256:[0-9a-f]{64}")
"""One image: that of a registry by its digest, or one of this machine by its id."""

_VARIABLE = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)=(.*)", flags=re.DOTALL)

_LIKE_IMAGE = re.compile(r"\S*@?sha256:\S*")


@dataclass(frozen=True)
class UpgradeRequest:
    """An upgrade.

    Args:
      old, new: Packages, or names of images.
      variables: Environment variables of the old environment, and of the new one.
      measuring: Arguments of both measurements.
      judging: Arguments of the comparison.
      out: Where runs are kept.
    """

    old: Wanted | str
    new: Wanted | str
    variables: tuple[Mapping[str, str], Mapping[str, str]]
    measuring: tuple[str, ...]
    judging: tuple[str, ...]
    out: Path


def read_upgrade_request(arguments: Sequence[str]) -> UpgradeRequest:
    """Return what `--old PACKAGES --new PACKAGES`, or two images, and options of comparison and measurement ask for.

    Raises:
      UsageError: One of the two is missing, they are not of one kind, a variable has no value, or what an upgrade does
        not take.
    """
    given = read_options(arguments, "--old", "--new", *PYTHONS, *VARIABLES, *JUDGING, "--out", refused=REFUSED)
    old, new = given.get("--old"), given.get("--new")
    if old is None or new is None:
        raise UsageError(
            'name both environments: --old "jax==0.11.2" --new "jax==0.12.0.1"; packages, a '
            "requirements file, the folder of a package, or an image by its digest"
        )
    arms = tuple(_read_arm(words, given.get(option)) for words, option in zip((old, new), PYTHONS, strict=True))
    if isinstance(arms[0], str) != isinstance(arms[1], str):
        raise UsageError("one of the two is an image; give two images (name@sha256:…), or packages for both")
    measuring = (*given.rest, *given.list_words("--out"))
    old_env, new_env = (read_variables(option, given.values.get(option, ())) for option in VARIABLES)
    return UpgradeRequest(
        arms[0],
        arms[1],
        (old_env, new_env),
        measuring,
        tuple(given.list_words(*JUDGING)),
        Path(given.get("--out") or DEFAULT_OUT),
    )


def compare_environments(shell: Shell, arguments: Sequence[str]) -> int:
    """Measure in an old and a new environment, their calls in turns; compare and report; the comparison's exit code.

    Raises:
      UsageError: What was asked cannot be done.
    """
    asked = read_upgrade_request(arguments)
    backend, measuring = read_backend(asked.measuring)
    if isinstance(asked.old, Wanted):
        measuring = check_packages(measuring, "an upgrade", REFUSED)
    else:
        request = read_request(backend, (*IN_IMAGE, str(asked.old), *measuring), shell.variables)
        check_measuring(request.arguments, "an upgrade", ["--machine"], REFUSED)
    check_names(shell.checkout, measuring)
    for arm, option in zip((asked.old, asked.new), PYTHONS, strict=True):
        if isinstance(arm, Wanted) and not has_environment(shell, arm):
            check_environment(arm, option)
    shell.install(SMALLEST_LOCK)
    judging = read_options(asked.judging, "--budgets", "--min-effect")
    limits = judging.list_words("--budgets", "--min-effect")
    for option, own in zip(VARIABLES, asked.variables, strict=True):
        limits += [word for name, value in own.items() for word in (option, f"{name}={value}")]
    if code := run_jaxmeter(shell, "limits", *limits):  # before anything is measured
        return code
    if "--suites" not in read_options(measuring, "--suites"):  # suites of users may need packages of their own
        check_selection(shell, "python", backend, measuring)
    if any(asked.variables):
        say(f"old: {describe_side(asked.old, asked.variables[0])}")
        say(f"new: {describe_side(asked.new, asked.variables[1])}")
    name = make_run_id(backend)
    before, after = (asked.out / f"{name}-{arm}" for arm in ("old", "new"))
    if isinstance(asked.old, Wanted) and isinstance(asked.new, Wanted):
        arms = (asked.old, asked.new)
        codes = _measure_packages(shell, backend, measuring, arms, (before, after), asked.variables)
    else:
        images = (str(asked.old), str(asked.new))
        codes = _measure_images(shell, backend, measuring, images, (before, after), asked.variables)
    if codes[-1] not in (FINE, NO_ANSWER) or len(codes) == 1:
        return codes[-1] if codes[-1] == USAGE_ERROR else NO_ANSWER
    code = run_jaxmeter(shell, "compare", str(before), str(after), *asked.judging)
    write_page(shell, str(before), str(after), *judging.list_words("--min-effect"))
    return code or max(codes)  # what was not measured was not compared


def read_variables(option: str, words: Sequence[str]) -> dict[str, str]:
    """Return the variables that an option names, each time it is given.

    Raises:
      UsageError: One is no NAME=VALUE, or is given twice.
    """
    variables: dict[str, str] = {}
    for word in words:
        match = _VARIABLE.fullmatch(word)
        if match is None:
            example = f"{option} XLA_FLAGS=--xla_cpu_prefer_vector_width=512"
            raise UsageError(f"{option} {word!r} is not NAME=VALUE; write {example}")
        if match[1] in variables:
            raise UsageError(f"{option}: {match[1]} is given twice; write one value, with spaces between its flags")
        variables[match[1]] = match[2]
    return variables


def describe_side(arm: Wanted | str, variables: Mapping[str, str]) -> str:
    """Return `jax==0.12.0.1 with XLA_FLAGS=--xla_cpu_enable_fast_math=true`."""
    words = arm.words if isinstance(arm, Wanted) else arm
    setting = ", ".join(f"{name}={value}" for name, value in variables.items())
    return f"{words} with {setting or 'no variable of its own'}"


def _measure_packages(
    shell: Shell,
    backend: str,
    measuring: Sequence[str],
    arms: tuple[Wanted, Wanted],
    runs: tuple[Path, Path],
    variables: tuple[Mapping[str, str], Mapping[str, str]],
) -> list[int]:
    """The harness' exit codes in two environments of packages, each made here.

    Raises:
      UsageError: pip cannot install them.
      ProgramError: The old environment has no case that is selected.
    """
    old = prepare_environment(shell, arms[0])
    check_selection(shell, str(old), backend, measuring)
    new = prepare_environment(shell, arms[1])
    measured = ("run", "--backend", backend, *measuring)
    codes = [run_elsewhere(shell, old, *measured, *BEFORE, "--run-id", runs[0].name, variables=variables[0])]
    if codes[0] in (FINE, NO_ANSWER):
        beside = (*AFTER, "--against", str(runs[0]), "--lock-step", str(old), "--run-id", runs[1].name)
        codes.append(run_elsewhere(shell, new, *measured, *beside, variables=variables[1]))
    return codes


def _measure_images(
    shell: Shell,
    backend: str,
    measuring: Sequence[str],
    arms: tuple[str, str],
    runs: tuple[Path, Path],
    variables: tuple[Mapping[str, str], Mapping[str, str]],
) -> list[int]:
    """The harness' exit codes in containers of two images.

    Raises:
      UsageError: There is no engine or image, or it cannot measure.
    """

    def plan(image: str, *words: str) -> tuple[Request, PlannedRun]:
        request = read_request(backend, (*IN_IMAGE, image, *measuring, *words), shell.variables)
        return request, replace(plan_run(request.arguments, ""), is_reported=False)

    before, after = ({**shell.variables, **own} for own in variables)
    codes = [run_harness(shell, backend, *plan(arms[0], *BEFORE, "--run-id", runs[0].name), before)]
    if codes[0] in (FINE, NO_ANSWER):
        beside = (*AFTER, "--against", str(runs[0]), "--run-id", runs[1].name)
        with offer_environment(plan_job(shell, backend, *plan(arms[0], *beside))) as socket:
            codes.append(run_harness(shell, backend, *plan(arms[1], *beside, "--lock-step", str(socket)), after))
    return codes


def _read_arm(words: str, python: str | None) -> Wanted | str:
    """Packages, or the name of an image.

    Args:
      python: The interpreter that their environment is made by; None for this one.
    Raises:
      UsageError: It is neither, or an image that is given a Python.
    """
    if _IMAGE.fullmatch(words):
        if python is not None:
            raise UsageError(f"{words}: an image has its own Python; leave out {' and '.join(PYTHONS)}")
        return words
    if _LIKE_IMAGE.fullmatch(words):
        raise UsageError(f"{words}: no image; a digest is sha256: and 64 digits, as `docker images --digests` prints")
    wanted = read_wanted(words)
    if python is None:
        return wanted
    ask_version(python)
    return replace(wanted, python=python)
