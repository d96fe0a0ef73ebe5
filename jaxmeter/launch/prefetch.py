"""Images and wheels ahead of time."""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from jaxmeter.launch.containers import quote_command
from jaxmeter.launch.execution import build_command, build_image
from jaxmeter.launch.host import GB, MB
from jaxmeter.launch.images import (
    LOCKS,
    SMALLEST_LOCK,
    WHEELS,
    Image,
    check_buildable,
    image_id,
    image_size_bytes,
    locate_lock,
)
from jaxmeter.launch.jobs import prepare_build
from jaxmeter.launch.options import Parser, UsageError
from jaxmeter.launch.pip import find_pip
from jaxmeter.launch.request import BASE_IMAGE_VARIABLE, DEFAULT_BASE_IMAGE, choose_engine, name_command

DEFAULT_PYTHON = "3.13"
"""That of the default base image."""

NEWEST_GLIBC = 41
OLDEST_GLIBC = 5
"""Minor versions of glibc 2 that wheels are tagged with; 2.41 is that of the default base image."""

SELECT = r"""
import sys
from pip._vendor.packaging.requirements import Requirement
python, lock, selected = sys.argv[1:]
image = {
    "python_version": python, "python_full_version": python + ".0", "sys_platform": "linux", "os_name": "posix",
    "platform_system": "Linux", "platform_machine": "x86_64",
    "implementation_name": "cpython", "platform_python_implementation": "CPython",
}
is_wanted = True
with open(lock, encoding="utf8") as source, open(selected, "w", encoding="utf8") as target:
    for line in source:
        if line[0] not in " #\n":  # hashes and comments under a requirement go with it
            requirement = line.rstrip(" \\\n")
            marker = Requirement(requirement).marker
            is_wanted = marker is None or marker.evaluate(image)
            line = requirement.partition(";")[0] + " \\\n"
        if is_wanted:
            target.write(line)
"""
"""Program that selects the lines of a lock that an image needs. pip evaluates markers only for this machine's Python
and system, whatever its options are."""


def build_asked_images(arguments: Sequence[str], variables: Mapping[str, str], checkout: Path) -> None:
    """Build the requested images, cpu by default, and print their sizes and build times.

    Raises:
      UsageError: An image cannot be built.
    """
    parser = Parser(name_command("images"), "Builds images before they are needed.")
    _add_locks(parser)
    parser.add_argument("--offline", action="store_true", help="from docker/wheels alone, which the verb wheels fills")
    parser.add_argument("--base-image", default=variables.get(BASE_IMAGE_VARIABLE) or DEFAULT_BASE_IMAGE)
    parser.add_argument("--dry-run", action="store_true", help="print the command lines")
    given = parser.parse_args(list(arguments))
    check_buildable(checkout)
    engine, _ = choose_engine("container", variables)
    assert engine is not None
    for lock in _choose_locks(given.locks):
        image = Image(lock, given.base_image, checkout)
        with prepare_build(image, variables, offline=given.offline) as build:
            if given.dry_run:
                print(quote_command(build_command(engine, build)))
                continue
            was_there = image_id(engine, image.name) is not None
            started = time.monotonic()
            build_image(engine, build)
            took = "was there" if was_there else f"built in {time.monotonic() - started:.0f} s"
        print(f"{image.name}: {(image_size_bytes(engine, image.name) or 0) / GB:.2f} GB, {took}")


def download_asked_wheels(arguments: Sequence[str], checkout: Path) -> None:
    """Downloads the wheels of locks, cpu by default, into docker/wheels, checked against their hashes.

    Raises:
      UsageError: The index does not have them, or pip is not to be had.
    """
    parser = Parser(name_command("wheels"), "Downloads what images are made of.")
    _add_locks(parser)
    parser.add_argument("--python", default=DEFAULT_PYTHON, help="of the base image (default: %(default)s)")
    given = parser.parse_args(list(arguments))
    check_buildable(checkout)
    folder = checkout / WHEELS
    pip = find_pip()
    with tempfile.TemporaryDirectory(prefix="jaxmeter-") as place:
        for lock in _choose_locks(given.locks):
            selected = Path(place) / f"{lock}.txt"
            select_for_image(pip, checkout / locate_lock(lock), selected, given.python)
            command = download_arguments(pip, selected, folder, given.python)
            if subprocess.run(command, check=False).returncode != 0:
                raise UsageError(f"the wheels of {lock} could not be downloaded; pip's own words are above")
    size = sum(path.stat().st_size for path in folder.glob("*.whl"))
    print(
        f"{folder}: {size / MB:.0f} MB; take the checkout along and build with: {name_command('images', '--offline')}"
    )


def select_for_image(pip: Sequence[str], lock: Path, selected: Path, python: str) -> None:
    """Writes the requirements of a lock that hold for an image's Python, not for this machine's.

    Raises:
      UsageError: pip on this machine cannot read the lock.
    """
    command = [pip[0], "-c", SELECT, python, str(lock), str(selected)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise UsageError(
            f"{lock} cannot be read with {pip[0]}: {(done.stderr.splitlines() or ['no reason given'])[-1]}"
        )


def download_arguments(pip: Sequence[str], lock: Path, folder: Path, python: str) -> list[str]:
    """The command line that downloads a lock's wheels for an image, whatever this machine's own Python is.

    pip takes platform tags literally: each version of glibc that a wheel may ask for is named.
    """
    tags = [f"manylinux_2_{minor}_x86_64" for minor in range(NEWEST_GLIBC, OLDEST_GLIBC - 1, -1)]
    return [
        *(*pip, "download", "--disable-pip-version-check", "--quiet", "--require-hashes", "--no-deps"),
        *("--only-binary", ":all:", "--implementation", "cp", "--python-version", python),
        *(word for tag in (*tags, "manylinux2014_x86_64", "manylinux1_x86_64") for word in ("--platform", tag)),
        *("--dest", str(folder), "--requirement", str(lock)),
    ]


def _add_locks(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("locks", nargs="*", metavar="LOCK", help=f"of {', '.join(LOCKS)}")


def _choose_locks(locks: Sequence[str]) -> Sequence[str]:
    """The locks that are asked for, cpu by default."""
    if unknown := [lock for lock in locks if lock not in LOCKS]:
        raise UsageError(f"there is no lock {unknown[0]!r}; locks are {', '.join(LOCKS)}")
    return locks or (SMALLEST_LOCK,)
