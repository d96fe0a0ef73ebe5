"""Reads what a command line asks of the launcher; all else is the harness' own business and goes on to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from launcher.backends import BACKENDS, DEFAULT_BACKEND, OPTIONS
from launcher.options import UsageError, take_flag, take_option
from launcher.request import BASE_IMAGE_VARIABLE, DEFAULT_BASE_IMAGE, RUNTIMES, Request


def read_request(backend: str, arguments: Sequence[str], variables: Mapping[str, str]) -> Request:
    """Takes the launcher's options out of a command line.

    Raises:
      UsageError: A value that there is not, options that exclude each other, or one that the backend does not have.
    """
    runtime, rest = take_option(arguments, "--runtime")
    image, rest = take_option(rest, "--image")
    base_image, rest = take_option(rest, "--base-image")
    opens_page, rest = take_flag(rest, "--open")
    given, rest = _take_own_options(rest)
    if runtime is not None and runtime not in RUNTIMES:
        raise UsageError(f"--runtime {runtime!r} is unknown; allowed: {', '.join(RUNTIMES)}")
    _check_own_options(backend, given)
    shared = {"--runtime": runtime, "--image": image, "--base-image": base_image}
    about_container = [name for name in ("--image", "--base-image") if shared[name]]
    about_container += [name for name in given if OPTIONS[name].needs_container]
    if about_container and runtime == "local":
        name = about_container[0]
        raise UsageError(f"{name} is about a container; leave out --runtime local, or leave out {name}")
    if image and base_image:
        raise UsageError("--image is used as it is and --base-image is built upon; give one of them")
    for name in given:
        if image and OPTIONS[name].beside_image:
            raise UsageError(f"--image {OPTIONS[name].beside_image}; leave out {name}")
    words = [word for name, value in shared.items() if value for word in (name, value)]
    words += [word for name, value in given.items() for word in ((name, value) if value else (name,))]
    return Request(
        runtime="container" if about_container else runtime or "auto",
        lock=_choose_lock(backend, given),
        image=image,
        base_image=base_image or variables.get(BASE_IMAGE_VARIABLE) or DEFAULT_BASE_IMAGE,
        privileged="--privileged" in given,
        profile_privileged="--profile-privileged" in given,
        arguments=tuple(rest),
        words=tuple(words),
        opens_page=opens_page,
    )


def read_backend(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """The backend that a command line names, for a session that has none of its own, and the arguments without it.

    Raises:
      UsageError: There is no such backend.
    """
    backend, rest = take_option(arguments, "--backend")
    if backend is not None and backend not in BACKENDS:
        raise UsageError(f"--backend {backend!r} is unknown; allowed: {', '.join(BACKENDS)}")
    return backend or DEFAULT_BACKEND, rest


def _take_own_options(arguments: Sequence[str]) -> tuple[dict[str, str | None], list[str]]:
    """Options that only some backends have, {name: value or None}, and the arguments without them."""
    given: dict[str, str | None] = {}
    rest = list(arguments)
    for name, option in OPTIONS.items():
        if option.locks:
            value, rest = take_option(rest, name)
            is_given = value is not None
        else:
            value = None
            is_given, rest = take_flag(rest, name)
        if is_given:
            given[name] = value
    return given, rest


def _check_own_options(backend: str, given: Mapping[str, str | None]) -> None:
    """Raises UsageError for a value that there is not, and for an option of another backend."""
    for name, value in given.items():
        allowed = OPTIONS[name].locks
        if allowed and value not in allowed:
            raise UsageError(f"{name} {value!r} is unknown; allowed: {', '.join(allowed)}")
    for name in given:
        owners = [needs.name for needs in BACKENDS.values() if OPTIONS[name] in needs.options]
        if backend not in owners:
            raise UsageError(f"{name} belongs to the {owners[0]} backend: nox -s {owners[0]} -- {name} …")


def _choose_lock(backend: str, given: Mapping[str, str | None]) -> str:
    """The lock of the backend, or the one that an option chooses."""
    chosen = [OPTIONS[name].locks[value] if value else OPTIONS[name].lock for name, value in given.items()]
    return next(filter(None, chosen), BACKENDS[backend].lock)
