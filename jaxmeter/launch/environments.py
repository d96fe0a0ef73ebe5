"""Python environments of packages that a user names, made once and kept; and what prevents a measurement."""

from __future__ import annotations

import fcntl
import hashlib
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from jaxmeter.launch.backends import BACKENDS
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.execution import say
from jaxmeter.launch.host import Host, Obstacle
from jaxmeter.launch.options import InstallationError, UsageError
from jaxmeter.launch.pip import explain, find_complaint
from jaxmeter.launch.request import Request, name_command
from jaxmeter.launch.versions import order_version

PIP = ("-m", "pip", "--disable-pip-version-check")

MARK = "complete"
"""A file in a whole environment: it holds the bytes of all files, and its time is that of the last use."""

DECIDED_BY_WORDS = ("jax", "jaxlib", "scipy")
"""Of our dependencies what the user's words decide, and what jax itself brings."""

LONGEST_KEPT_S = 24 * 3600
"""After which one of an earlier day goes, whose requirements may mean other versions today."""

OLDEST_PYTHON = "3.11"
"""The first that pyproject.toml allows; a test compares them."""

OLDEST_JAX = "0.4.31"
"""The oldest release whose programs can be measured."""

_JAX = re.compile(r"jax(?:\[[^]]*])? *===? *([0-9][^\s*;,]*).*")
_PIN = re.compile(r"[A-Za-z0-9._-]+(\[[^]]*])? *===? *[^\s*;,]+( *;.*)?|.*@[0-9a-f]{40}(#.*)?")
"""One version of a package, or one commit of a repository."""

_INCLUDED = re.compile(r"(?:-r|-c|--requirement|--constraint)[ =]*(.+)")


@dataclass(frozen=True)
class Wanted:
    """What an environment should hold.

    Args:
      words: As the user gave them.
      arguments: Of `pip install`.
      contents: What those files say now: another text is another environment.
      is_pinned: Whether each names one version: then it means the same tomorrow.
      python: The interpreter that it is made by.
    """

    words: str
    arguments: tuple[str, ...]
    contents: str = ""
    is_pinned: bool = False
    python: str = sys.executable


def read_wanted(words: str) -> Wanted:
    """Read `jax==0.12.0`, `jax==0.12.0 flax==0.12.0`, a requirements file, or the folder of a package.

    Raises:
      UsageError: Nothing, what looks like a file and is none, or a release of jax that is too old.
    """
    if not words.strip():
        raise UsageError("an environment without packages; give some (jax==0.12.0), a requirements file or a folder")
    path = Path(words).expanduser()
    if path.is_dir():
        project = next((path / name for name in ("pyproject.toml", "setup.py") if (path / name).is_file()), None)
        if project is None:
            raise UsageError(f"{words}: a folder without pyproject.toml; give one that pip can install")
        return Wanted(words, ("--editable", str(path.absolute())), project.read_text(encoding="utf8", errors="replace"))
    if path.is_file():
        files = _read_requirements(path, {})
        lines = [line for text in files.values() for line in _list_requirements(text)]
        _refuse_old(lines)
        is_pinned = all(_PIN.fullmatch(line) or _INCLUDED.fullmatch(line) for line in lines)
        return Wanted(words, ("--requirement", str(path.absolute())), "\n".join(files.values()), is_pinned)
    if path.suffix in (".txt", ".in", ".toml", ".lock"):
        raise UsageError(f"{words}: no such file; give packages (jax==0.12.0), a requirements file or a folder")
    try:
        arguments = tuple(shlex.split(words))
    except ValueError as error:
        raise UsageError(f"{words!r}: {error}") from error
    if any(word.startswith("-") for word in arguments):
        raise UsageError(f"{words!r}: give packages (jax==0.12.0), a requirements file or a folder")
    _refuse_old(arguments)
    return Wanted(words, arguments, is_pinned=all(map(_PIN.fullmatch, arguments)))


def _refuse_old(requirements: Iterable[str]) -> None:
    """Raises UsageError where one is a release of jax that cannot be measured, before anything is installed."""
    for requirement in requirements:
        match = _JAX.fullmatch(requirement)
        if match is not None and order_version(match[1].rstrip(".")) < order_version(OLDEST_JAX):
            raise UsageError(f"{requirement} cannot be measured; releases of jax from {OLDEST_JAX} on can")


def _read_requirements(path: Path, texts: dict[Path, str]) -> dict[Path, str]:
    """Return the text of a requirements file, and of those that it includes; pip reports missing files."""
    try:
        text = path.read_text(encoding="utf8", errors="replace")
    except OSError:
        return texts
    texts[path.resolve()] = text
    for line in _list_requirements(text):
        included = _INCLUDED.fullmatch(line)
        if included is not None and (other := path.parent / included[1].strip()).resolve() not in texts:
            _read_requirements(other, texts)
    return texts


def _list_requirements(text: str) -> list[str]:
    """What each line of a requirements file asks for, without comments and hashes."""
    lines = (re.sub(r"(^|\s)#.*", "", line) for line in text.replace("\\\n", " ").splitlines())
    return [line for line in (re.sub(r"\s--hash=\S+", "", line).strip() for line in lines) if line]


def make_environment(wanted: Wanted, folder: Path, needed: Sequence[str]) -> Path:
    """The python of an environment that holds what is wanted, and what measuring needs.

    Args:
      folder: Of all environments; one that was made before is used again; where versions are not pinned, on the
        same day, in UTC.
    Raises:
      UsageError: pip cannot install it; the message holds pip's own words, and the nearest version there is.
    """
    place, name = _locate_environment(wanted, folder, needed)
    python = place / "bin" / "python"
    with _make_once(place, wanted.words, wanted.python) as is_new:
        if is_new:
            # One after the other: a file with hashes forbids what has none. What the user named stays as it is.
            _run([str(python), *PIP, "install", *wanted.arguments])
            named = place / "named.txt"
            named.write_text(_run([str(python), *PIP, "freeze", "--exclude-editable"]), encoding="utf8")
            _run([str(python), *PIP, "install", "--constraint", str(named), *needed])
    _remove_older(folder.glob(f"{name}-*"))
    return python


def is_made(wanted: Wanted, folder: Path, needed: Sequence[str]) -> bool:
    """Return whether `make_environment` installs nothing.

    Raises:
      UsageError: The interpreter cannot be started.
    """
    return (_locate_environment(wanted, folder, needed)[0] / MARK).is_file()


def _locate_environment(wanted: Wanted, folder: Path, needed: Sequence[str]) -> tuple[Path, str]:
    """Return the folder of an environment, and the beginning of its name, which is the same every day."""
    version = sys.version if wanted.python == sys.executable else ask_version(wanted.python)
    key = "\n".join((version, *wanted.arguments, wanted.contents, *needed))
    name = hashlib.sha256(key.encode()).hexdigest()[:16]
    return folder / (name if wanted.is_pinned else f"{name}-{time.strftime('%Y-%m-%d', time.gmtime())}"), name


def describe_disk(folder: Path) -> str:
    """Return the number and size of all environments, and the command that removes unused ones."""
    sizes = [_read_size(mark) for mark in folder.glob(f"*/{MARK}")]
    return (
        f"{len(sizes)} environments take {sum(sizes) / 1e9:.1f} GB; to list those that nothing used for 30 days: "
        f"{name_command('gc', '--environments', str(folder))}"
    )


def _read_size(mark: Path) -> int:
    text = mark.read_text(encoding="utf8")
    return int(text) if text.isascii() and text.isdigit() else _measure_size(mark.parent)


def _measure_size(place: Path) -> int:
    """Return the bytes of all files below a folder, links not followed."""
    return sum(path.lstat().st_size for path in place.rglob("*"))


def _remove_older(places: Iterable[Path]) -> None:
    """Removes environments of earlier days. Younger ones stay: something may still run in them."""
    for place in places:
        with suppress(OSError):
            if time.time() - (place / MARK).stat().st_mtime > LONGEST_KEPT_S:
                shutil.rmtree(place)


def make_locked_environment(lock: Path, folder: Path) -> Path:
    """The python of an environment that holds what a lock names, and nothing else.

    Args:
      folder: Of all environments; one that was made of the same lock is used again.
    Raises:
      InstallationError: pip cannot install it now.
    """
    place = locate_locked(lock, folder)
    python = place / "bin" / "python"
    try:
        with _make_once(place, str(lock)) as is_new:
            if is_new:
                say(f"installing {lock.name}; this takes a minute or two, once")
                options = ("--require-hashes", "--only-binary=:all:", "--requirement", str(lock))
                _run([str(python), *PIP, "install", *options])
    except UsageError as error:
        raise InstallationError(str(error)) from error
    return python


def locate_locked(lock: Path, folder: Path) -> Path:
    """Return the folder of the environment of a lock."""
    key = "\n".join((sys.version, lock.read_text(encoding="utf8")))
    return folder / f"{lock.stem}-{hashlib.sha256(key.encode()).hexdigest()[:16]}"


def ask_version(python: str) -> str:
    """What an interpreter says of itself.

    Raises:
      UsageError: It is none, or an older one than jaxmeter runs on.
    """
    try:
        version = _run([python, "-c", "import sys; print(sys.version)"]).strip()
    except (OSError, _FailedError) as error:
        raise UsageError(f"{python}: no Python that can be started: {error}") from error
    if order_version(version.split()[0]) < order_version(OLDEST_PYTHON):
        raise UsageError(f"{python} is Python {version.split()[0]}; jaxmeter runs on {OLDEST_PYTHON} and newer ones")
    return version


@contextmanager
def _make_once(place: Path, words: str, interpreter: str = sys.executable) -> Iterator[bool]:
    """Yield whether an environment is new and has to be filled; mark it as whole afterwards, remove it on failure.

    Waits for another process that makes the same one: two that fill one folder lose packages.
    """
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        lock = place.with_name(f"{place.name}.lock").open("w", encoding="utf8")
        fcntl.flock(lock, fcntl.LOCK_EX)
    except OSError as error:
        why = f"{error.strerror}; check its permissions and the free disk"
        raise UsageError(f"{place.parent}: cannot be written: {why}") from error
    with lock:
        if (place / MARK).is_file():
            (place / MARK).touch()
            yield False
            return
        shutil.rmtree(place, ignore_errors=True)
        try:
            _run([interpreter, "-m", "venv", str(place)])
            yield True
        except _FailedError as error:
            shutil.rmtree(place, ignore_errors=True)
            raise UsageError(f"{words}: an environment cannot be made of it: {error}") from error
        (place / MARK).write_text(str(_measure_size(place)), encoding="utf8")


class _FailedError(Exception):
    """A program that did not end well; the message is what it complained of."""


def _run(command: Sequence[str]) -> str:
    """What a program prints.

    Raises:
      _FailedError: It did not end well.
    """
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if ended.returncode != 0:
        raise _FailedError(explain(find_complaint(ended.stdout, ended.stderr)))
    return ended.stdout


def check(backend: str, request: Request, host: Host, engine: Engine | None) -> None:
    """Raises UsageError with one line a problem, where the backend's devices cannot be used here."""
    if problems := find_problems(backend, request, host, engine):
        lines = "".join(f"\n  {problem}" for problem in problems)
        raise UsageError(f"{backend} cannot be measured on this machine; nothing was downloaded or built{lines}")


def find_problems(backend: str, request: Request, host: Host, engine: Engine | None) -> list[Obstacle]:
    """Return the problems that prevent the use of a backend, most fundamental first; empty if there are none."""
    return BACKENDS[backend].devices.find_problems(request, host, engine)


def find_warnings(backend: str, host: Host, *, is_root: bool) -> list[Obstacle]:
    """What will be missing from the results, though times are right."""
    return BACKENDS[backend].devices.find_warnings(host, is_root)
