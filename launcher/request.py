"""What a command line asks of the launcher; all else is the harness' own business and goes on to it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from launcher.backends import CUDA_LOCKS, DEFAULT_CUDA, TORCH_LOCK
from launcher.options import UsageError, take_flag, take_option

RUNTIMES = ("auto", "local", "container")
BASE_IMAGE_VARIABLE = "JAXMETER_BASE_IMAGE"
DEFAULT_BASE_IMAGE = "python:3.13-slim-trixie"


@dataclass(frozen=True)
class Request:
    """Where and how to run.

    Args:
      runtime: One of RUNTIMES; `auto` is a container where an engine is, else the local environment.
      lock: Which environment: a key of `backends.ENVIRONMENTS`.
      image: The user's own image to measure in, instead of jaxmeter's.
      base_image: What jaxmeter's image is built on.
      privileged: Give a TPU's container all of the machine, where single devices do not do.
      profile_privileged: Run a GPU's container as root with SYS_ADMIN, for drivers that keep counters to themselves.
      arguments: What is left, for the harness.
      words: What was taken, as it has to be given again to go on with a run.
    """

    runtime: str
    lock: str
    image: str | None
    base_image: str
    privileged: bool
    profile_privileged: bool
    arguments: tuple[str, ...]
    words: tuple[str, ...] = ()


def read_request(backend: str, arguments: Sequence[str], variables: Mapping[str, str]) -> Request:
    """Takes the launcher's options out of a command line.

    Raises:
      UsageError: A value that there is not, or an option that the backend or the runtime does not have.
    """
    runtime, rest = take_option(arguments, "--runtime")
    image, rest = take_option(rest, "--image")
    base_image, rest = take_option(rest, "--base-image")
    cuda, rest = take_option(rest, "--cuda")
    privileged, rest = take_flag(rest, "--privileged")
    profile_privileged, rest = take_flag(rest, "--profile-privileged")
    torch, rest = take_flag(rest, "--torch")
    if runtime is not None and runtime not in RUNTIMES:
        raise UsageError(f"--runtime {runtime!r} is unknown; allowed: {', '.join(RUNTIMES)}")
    if cuda is not None and cuda not in CUDA_LOCKS:
        raise UsageError(f"--cuda {cuda!r} is unknown; allowed: {', '.join(CUDA_LOCKS)}")
    _check_backend_has(backend, "gpu", {"--cuda": cuda, "--profile-privileged": profile_privileged})
    _check_backend_has(backend, "tpu", {"--privileged": privileged})
    _check_backend_has(backend, "cpu", {"--torch": torch})
    options = {"--runtime": runtime, "--image": image, "--base-image": base_image, "--cuda": cuda}
    flags = {"--privileged": privileged, "--profile-privileged": profile_privileged, "--torch": torch}
    only_in_container = {"--image": image, "--base-image": base_image, "--privileged": privileged}
    given = [name for name, value in {**only_in_container, "--profile-privileged": profile_privileged}.items() if value]
    if given and runtime == "local":
        raise UsageError(f"{given[0]} is about a container; leave out --runtime local, or leave out {given[0]}")
    if image and base_image:
        raise UsageError("--image is used as it is and --base-image is built upon; give one of them")
    if image and cuda:
        raise UsageError("--image brings its own CUDA; leave out --cuda")
    if image and torch:
        raise UsageError("--image is used as it is, with PyTorch or without; leave out --torch")
    return Request(
        runtime="container" if given else runtime or "auto",
        lock=CUDA_LOCKS[cuda or DEFAULT_CUDA] if backend == "gpu" else TORCH_LOCK if torch else backend,
        image=image,
        base_image=base_image or variables.get(BASE_IMAGE_VARIABLE) or DEFAULT_BASE_IMAGE,
        privileged=privileged,
        profile_privileged=profile_privileged,
        arguments=tuple(rest),
        words=tuple(word for name, value in options.items() for word in ([name, value] if value else []))
        + tuple(name for name, is_given in flags.items() if is_given),
    )


def own_command(backend: str, request: Request) -> str:
    """The command line of a measurement without the harness' own arguments: how to go on with a run."""
    return shlex.join(["nox", "-s", backend, "--", *request.words])


def _check_backend_has(backend: str, owner: str, options: Mapping[str, object]) -> None:
    given = [name for name, value in options.items() if value]
    if given and backend != owner:
        raise UsageError(f"{given[0]} belongs to the {owner} backend: nox -s {owner} -- {given[0]} …")
