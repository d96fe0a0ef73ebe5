"""Builds images and runs containers: shows what they print, explains what fails, leaves nothing running."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import FrameType

from jaxmeter.launch.containers import quote_command
from jaxmeter.launch.engines import ENGINE_FAILED, Engine, EngineAnswer, ask_client, explain_build, explain_start
from jaxmeter.launch.host import GB, free_bytes
from jaxmeter.launch.images import LOCKS, Build, build_arguments, has_image_of_lock, image_id, revision_of, version_of
from jaxmeter.launch.options import UsageError

STOP_TIMEOUT_S = 20
"""After an interrupt the harness ends the call in progress, writes the case and removes its processes."""

KEPT_LINES = 400
"""Of an engine's output, for finding the cause of a failure."""

FIRST_START_TIMEOUT_S = 300
"""Some engines copy an image when its first container starts, and images may have many GB."""

LOOK_EVERY_S = 0.05

INTERRUPTED = 130


def say(line: str) -> None:
    """Print a message to standard error; standard output is for results."""
    print(line, file=sys.stderr, flush=True)


def build_image(engine: Engine, build: Build) -> str:
    """The id of an image, which is built unless the engine has it.

    Raises:
      UsageError: It cannot be built; the message says why and what to do.
    """
    name = build.image.name
    if identity := image_id(engine, name):
        return identity
    _check_room(engine, build)
    download = LOCKS[build.image.lock].download_bytes / GB
    source = "from docker/wheels" if build.offline else f"downloads up to {download:.1f} GB"
    say(f"building {name} with {engine} ({source}; once, until code or lock change)")
    command = build_command(engine, build)
    code, output = _run_and_show(command, {**os.environ, "DOCKER_BUILDKIT": "1"})
    if code != 0 or (identity := image_id(engine, name)) is None:
        raise UsageError(f"{name} could not be built: {explain_build(output, engine.client, offline=build.offline)}")
    return identity


def pull_image(engine: Engine, name: str) -> str:
    """The id of an image that the engine fetches.

    Raises:
      UsageError: It cannot.
    """
    say(f"{name} is not here; {engine} pulls it")
    code, _ = _run_and_show([engine.client, "pull", name], os.environ)
    if code != 0 or (identity := image_id(engine, name)) is None:
        raise UsageError(
            f"--image {name} is not here and cannot be pulled (the engine's own words are above): check its name, log "
            f"in to its registry (`{engine.client} login`), or load it from a file (`{engine.client} load`)"
        )
    return identity


def build_command(engine: Engine, build: Build) -> list[str]:
    """The command line of a build, with what git knows of the checkout."""
    checkout = build.image.checkout
    return build_arguments(engine, build, revision=revision_of(checkout), version=version_of(checkout))


def run_container(engine: Engine, command: Sequence[str], name: str, *, has_terminal: bool = False) -> int:
    """Runs a container to its end and leaves none behind, however it ends.

    On a terminal the keyboard's Ctrl-C is the container's own; else the interrupt is handed on once.

    Returns:
      The program's exit code.
    Raises:
      KeyboardInterrupt: It was interrupted.
      UsageError: The engine could not start it.
    """
    with termination_as_interrupt():
        process = subprocess.Popen(
            command,
            # Out of the terminal's reach: the client would hand on an interrupt of its own, and the harness count two.
            start_new_session=not has_terminal,
            stdin=None if has_terminal else subprocess.DEVNULL,
            stderr=None if has_terminal else subprocess.PIPE,
            text=True,
            errors="replace",
        )
        kept: deque[str] = deque(maxlen=KEPT_LINES)
        reader = threading.Thread(target=_pass_on, args=(process, kept), daemon=True)
        reader.start()
        try:
            code = _wait(engine, process, name)
        finally:
            if process.poll() is None:
                process.kill()
            _quietly([engine.client, "rm", "--force", name])
            reader.join(timeout=5)
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    if code in ENGINE_FAILED:
        cause = explain_start("".join(kept))
        raise UsageError(f"{engine} could not run the container (exit code {code}): {cause}")
    return code


@contextmanager
def keep_container(
    engine: Engine, command: Sequence[str], name: str, *, is_ready: Callable[[], bool]
) -> Iterator[None]:
    """Run a container during a `with` block, which starts when it is ready; remove the container afterwards.

    Its standard input stays open meanwhile, so that its program can notice when the caller has ended.

    Raises:
      UsageError: It has ended before it was ready, or is not ready in FIRST_START_TIMEOUT_S.
    """
    process = subprocess.Popen(
        command,
        start_new_session=True,  # an interrupt of the keyboard is for whoever measures
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    kept: deque[str] = deque(maxlen=KEPT_LINES)
    reader = threading.Thread(target=_pass_on, args=(process, kept), daemon=True)
    reader.start()
    try:
        until = time.monotonic() + FIRST_START_TIMEOUT_S
        while not is_ready() and process.poll() is None and time.monotonic() < until:
            time.sleep(LOOK_EVERY_S)
        if not is_ready():
            reader.join(timeout=5)
            raise UsageError(f"{engine} could not run the container: {explain_start(''.join(kept))}")
        yield
    finally:
        if process.stdin is not None:
            process.stdin.close()
        process.kill()
        _quietly([engine.client, "rm", "--force", name])
        process.wait()
        reader.join(timeout=5)


def ask_container(engine: Engine, command: Sequence[str], name: str) -> EngineAnswer:
    """Return the output of a short program in a container; remove the container afterwards."""
    try:
        return ask_client(list(command), timeout_s=FIRST_START_TIMEOUT_S)
    finally:
        _quietly([engine.client, "rm", "--force", name])


def _wait(engine: Engine, process: subprocess.Popen[str], name: str) -> int:
    try:
        return process.wait()
    except KeyboardInterrupt:
        say("interrupted: what was measured is being kept …")
        _quietly([engine.client, "kill", "--signal", "INT", name])
    try:
        return process.wait(timeout=STOP_TIMEOUT_S)
    except (KeyboardInterrupt, subprocess.TimeoutExpired):
        return INTERRUPTED


def _pass_on(process: subprocess.Popen[str], kept: deque[str]) -> None:
    """Shows a program's stderr as it comes, and keeps its end."""
    if process.stderr is None:
        return
    with process.stderr as lines:
        for line in lines:
            sys.stderr.write(line)
            sys.stderr.flush()
            kept.append(line)


def _run_and_show(command: Sequence[str], variables: Mapping[str, str]) -> tuple[int, str]:
    """Exit code and the end of what a command printed, which is shown on stderr as it comes."""
    say(f"+ {quote_command(command)}")
    try:
        process = subprocess.Popen(
            command, env=dict(variables), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
    except OSError as error:
        return ENGINE_FAILED[-1], str(error)
    kept: deque[str] = deque(maxlen=KEPT_LINES)
    assert process.stdout is not None
    try:
        with process.stdout as lines:
            for line in lines:
                sys.stderr.write(line)
                kept.append(line)
        return process.wait(), "".join(kept)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()


def _check_room(engine: Engine, build: Build) -> None:
    """Raises UsageError where a build would surely fill the disk."""
    if has_image_of_lock(engine, build.image.lock_sha256):
        return
    needed = LOCKS[build.image.lock].disk_bytes
    free = free_bytes(engine.storage)
    if free is not None and free < needed:
        raise UsageError(
            f"{engine.storage} has {free / GB:.1f} GB free, and building the {build.image.lock} image takes up to "
            f"{needed / GB:.0f} GB: free some room (`{engine.client} system df` shows what takes it), "
            "or measure without an image: --runtime local"
        )


def _quietly(command: Sequence[str]) -> None:
    try:
        subprocess.run(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=STOP_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return


@contextmanager
def termination_as_interrupt() -> Iterator[None]:
    """A scheduler's first SIGTERM ends a run as Ctrl-C does, instead of leaving its container behind."""

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
