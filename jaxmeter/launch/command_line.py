"""Reads what a command line asks of the launcher; all else is the harness' own business and goes on to it."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from jaxmeter.launch.backends import BACKENDS, DEFAULT_BACKEND, OPTIONS
from jaxmeter.launch.options import GivenOptions, UsageError, read_options
from jaxmeter.launch.request import BASE_IMAGE_VARIABLE, DEFAULT_BASE_IMAGE, HERE, LOCAL, Request, choose_runtime

SHARED = ("--runtime", "--image", "--base-image")
OWN = tuple(name for name, option in OPTIONS.items() if option.locks)
OWN_FLAGS = tuple(name for name in OPTIONS if name not in OWN)
"""Options with a value of every backend, and those that only some backends have."""

VALUED = ("--budget", "--cores", "--data", "--out", "--probe", "--processes", "--select", "--suites")
FLAGS = ("--full", "--json", "--quick", "--quiet")
"""Options of the harness' `run` for verbs of several runs; a test holds that, with REASONS, these are all."""

REASONS = {
    "--against": "this verb itself says what is compared",
    "--lock-step": "this verb itself chooses the environments",
    "--baseline-checkout": "this verb measures one checkout; a gate compares two",
    "--suspects": "this verb finds them by itself",
    "--resume": "this verb starts a new measurement; finish a run with jaxmeter run --resume RUN",
    "--run-id": "this verb makes several runs, and names them",
    "--dry-run": "a verb that measures nothing can say nothing; jaxmeter run --dry-run shows a plan",
}
"""Why verbs of several runs do not take the other options."""


def read_request(backend: str, arguments: Sequence[str], variables: Mapping[str, str]) -> Request:
    """Return what is asked of the launcher, with all other arguments.

    Raises:
      UsageError: A value that there is not, options that exclude each other, or one that the backend or the runtime
        does not have.
    """
    given = read_options(arguments, *SHARED, *OWN, flags=("--open", *OWN_FLAGS))
    named, image, base_image = map(given.get, SHARED)
    runtime = choose_runtime(named, variables)
    own = [name for name in OPTIONS if name in given]
    lock = _choose_lock(backend, given)
    about_container = [name for name in ("--image", "--base-image") if given.get(name)]
    about_container += [name for name in own if OPTIONS[name].needs_container]
    if about_container and runtime in (HERE, LOCAL):
        name = about_container[0]
        raise UsageError(f"{name} is about a container; add --runtime container, or leave out {name}")
    if own and runtime == HERE:
        raise UsageError(
            f"{own[0]} chooses among locked packages, and this environment measures with its own; add --runtime local "
            f"or --runtime container, or leave out {own[0]}"
        )
    if image and base_image:
        raise UsageError("--image is used as it is and --base-image is built upon; give one of them")
    for name in own:
        if image and OPTIONS[name].beside_image:
            raise UsageError(f"--image {OPTIONS[name].beside_image}; leave out {name}")
    return Request(
        runtime="container" if about_container else runtime,
        lock=lock,
        image=image,
        base_image=base_image or variables.get(BASE_IMAGE_VARIABLE) or DEFAULT_BASE_IMAGE,
        privileged="--privileged" in given,
        profile_privileged="--profile-privileged" in given,
        arguments=tuple(given.rest),
        words=tuple(given.list_words(*SHARED, *OPTIONS)),
        opens_page="--open" in given,
    )


def read_backend(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Return the backend that a command line names, for a session that has none of its own, and all other arguments.

    Raises:
      UsageError: There is no such backend.
    """
    given = read_options(arguments, "--backend")
    backend = given.get("--backend")
    if backend is not None and backend not in BACKENDS:
        raise UsageError(f"--backend {backend!r} is unknown; allowed: {', '.join(BACKENDS)}")
    return backend or DEFAULT_BACKEND, given.rest


def check_measuring(
    words: Sequence[str], what: str, also: Sequence[str] = (), reasons: Mapping[str, str] = REASONS
) -> None:
    """Check the names of a measurement's options before it starts, since it may take hours.

    Args:
      words: Words for the harness, which checks their values.
      what: Name of the measurement: "an upgrade".
      also: Other options with a value.
      reasons: Why an option is not taken, by name.
    Raises:
      UsageError: There is no such option, its value is missing, or a word belongs to none.
    """
    names = (*VALUED, *also)
    for word in read_options(words, *names, flags=FLAGS, refused=reasons).rest:
        if not word.startswith("-"):
            raise UsageError(f"{word!r} belongs to no option; write --option VALUE")
        name, known = word.partition("=")[0], sorted((*names, *FLAGS))
        nearest = difflib.get_close_matches(name, known, n=1)
        hint = f"nearest: {nearest[0]}" if nearest else f"options: {', '.join(known)}"
        raise UsageError(f"{name}: {what} has no such option; {hint}")


def check_packages(words: Sequence[str], what: str, reasons: Mapping[str, str]) -> list[str]:
    """Return the options of a measurement in environments of packages, once their names are checked.

    Raises:
      UsageError: As `check_measuring`; or containers are asked for.
    """
    given = read_options(words, "--runtime")
    if (runtime := given.get("--runtime")) not in (None, "local"):
        raise UsageError(f"--runtime {runtime}: packages are measured in virtual environments; leave it out")
    check_measuring(given.rest, what, ["--machine"], reasons)
    return given.rest


def _choose_lock(backend: str, given: GivenOptions) -> str:
    """Return the lock of the backend, or the one that an option of its own chooses."""
    for name in OWN:
        if name in given and given.get(name) not in OPTIONS[name].locks:
            allowed = ", ".join(OPTIONS[name].locks)
            raise UsageError(f"{name} {given.get(name)!r} is unknown; allowed: {allowed}")
    chosen = BACKENDS[backend].lock
    for name, option in OPTIONS.items():
        if name not in given:
            continue
        if option not in BACKENDS[backend].options:
            owner = next(needs.name for needs in BACKENDS.values() if option in needs.options)
            raise UsageError(f"{name} belongs to the {owner} backend")
        chosen = option.locks.get(given.get(name) or "") or option.lock or chosen
    return chosen


OWN_SUITES = Path("jaxmeter", "suites")

_WILDCARD = re.compile(r"[*?]")


def check_names(checkout: Path, words: Sequence[str], option: str = "--select") -> None:
    """Check files of suites, and what is selected of jaxmeter's own suites, without an environment.

    Sizes of a case, levels and suites of users are checked by the harness, in an environment that can import them.

    Args:
      words: Options of a measurement.
      option: The name by which the user gave the selection.
    Raises:
      UsageError: A file of suites does not exist, or no suite and no workload has a selected name.
    """
    given = read_options(words, "--select", "--suites")
    for suites in given.values.get("--suites", ()):
        if suites.endswith(".py") and not Path(suites).expanduser().is_file():
            raise UsageError(
                f"no suite module or file '{suites}'; --suites takes a module name, a .py file or a folder"
            )
    if "--suites" in given:
        return
    names = list_own_names(checkout)
    for pattern in given.values.get("--select", ()):
        if not any(_may_match(pattern, name) for name in names):
            like = difflib.get_close_matches(pattern.strip("*?"), names, n=1, cutoff=0.4)
            hint = f"; nearest: '{like[0]}'" if like else ""
            raise UsageError(
                f"no case of this level matches {option} '{pattern}'{hint}; list all: jaxmeter list --full"
            )


def list_own_names(checkout: Path) -> list[str]:
    """Return the names of jaxmeter's own suites and workloads, read from their files without an import."""
    names = []
    for path in sorted((checkout / OWN_SUITES).glob("[!_]*.py")):
        functions = [node for node in ast.parse(path.read_bytes()).body if isinstance(node, ast.FunctionDef)]
        if workloads := [node.name for node in functions if any(map(_declares_workload, node.decorator_list))]:
            names += [path.stem, *workloads]
    return list(dict.fromkeys(names))


def _declares_workload(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Name) and decorator.func.id == "workload"


def _may_match(pattern: str, name: str) -> bool:
    """Return whether a pattern matches a name, or may match it with the sizes of a case in brackets."""
    literal, *rest = _WILDCARD.split(pattern, maxsplit=1)
    if "[" in literal:
        return literal.partition("[")[0] == name
    return name.startswith(literal) if rest else name == literal
