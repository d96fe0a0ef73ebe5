"""Where a run was made: the user's own packages, and how fast the machine's own processor is at most."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import msgspec

from jaxmeter.harness.record.files import PEAKS, RecordError, name_file, read_json, write_json
from jaxmeter.harness.record.wording import counted

MEASURED = "measured on this machine"
"""Begins the source of such peaks."""

SLOWEST, FASTEST = 1.0, 1e18
"""Beyond these a rate is a damaged file."""


class Peaks(msgspec.Struct, frozen=True, kw_only=True):
    """Rates of a processor, each measured several times.

    Args:
      at: When they were measured.
      packages: Versions of jax and jaxlib, whose products they are.
      flops: By the format that products are computed in, FLOP/s of the fastest size, repeat by repeat.
      bytes_per_s: Of `x + 2 y` over arrays that no cache holds, read and written bytes, repeat by repeat.
    """

    at: str
    packages: dict[str, str]
    flops: dict[str, tuple[float, ...]]
    bytes_per_s: tuple[float, ...]

    @property
    def is_sound(self) -> bool:
        """Whether all of it can have been measured; else a file is damaged."""
        return all(
            values and all(1.0 <= rate < 1e18 for rate in values) for values in (*self.flops.values(), self.bytes_per_s)
        )

    @property
    def peak_flops(self) -> dict[str, float]:
        """Median by format, FLOP/s."""
        return {name: median(values) for name, values in self.flops.items()}

    @property
    def peak_bytes_per_s(self) -> float:
        """Median, B/s."""
        return median(self.bytes_per_s)

    @property
    def source(self) -> str:
        """Who says so, with the spread of the repeats."""
        spreads = [*self.flops.values(), self.bytes_per_s]
        widest = max((max(values) - min(values)) / median(values) for values in spreads)
        return (
            f"{MEASURED} at {self.at}: products and x + 2 y, median of {len(self.bytes_per_s)}, "
            f"spread at most {100 * widest:.0f} %"
        )


def locate_peaks(out: Path, machine: str) -> Path:
    """Return where a machine's peaks lie, in the folder of its runs."""
    return out / PEAKS / f"{name_file(machine)}.json"


def keep_peaks(out: Path, machine: str, peaks: Peaks) -> None:
    """Write them for the runs that follow."""
    write_json(locate_peaks(out, machine), peaks)


def find_peaks(out: Path, machine: str) -> Peaks | None:
    """Return the machine's own, or None where there are none.

    Raises:
      RecordError: They are damaged.
    """
    path = locate_peaks(out, machine)
    if not path.exists():
        return None
    peaks = read_json(path, Peaks)
    if not peaks.is_sound:
        raise RecordError(f"{path}: damaged, it contains impossible rates")
    return peaks


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The environment of a run. `host` is a hash, `variables` an allow-list; no user name, home shown as `~`.

    Args:
      image: Name and id of the container image; None outside a container.
      lock_sha256: Hash of the lock that the environment was made from; None for an environment of the user's own.
      device_name: Name of the devices: JAX's name of their kind, or the processor's name if that is the device.
      device_memory_bytes: Memory of one device that programs may use: the allocator's limit; on a CPU the machine's
        memory, or the control group's limit. None if it is unknown.
      peak_flops: Peak floating-point operations per second of one device, by the format of products; empty if unknown.
      peak_bytes_per_s: Peak bandwidth of one device's memory; None if it is unknown.
      peaks_source: Source of the peaks.
      driver: Version of the devices' driver; None if there is none, or if it is unknown.
    """

    python: str
    system: str
    machine: str
    packages: dict[str, str]
    device_kind: str
    device_name: str
    device_count: int
    platform_version: str | None
    processor: str
    cores: int
    allowed_cores: int
    cpu_quota: float | None
    governor: str | None
    memory_bytes: int | None
    load_average: float | None
    threads: dict[str, int | None]
    variables: dict[str, str]
    x64: bool
    matmul_precision: str | None
    host: str
    git_revision: str | None
    git_dirty: bool | None
    image: str | None
    lock_sha256: str | None = None
    device_memory_bytes: int | None = None
    driver: str | None = None
    peak_flops: dict[str, float] = {}
    peak_bytes_per_s: float | None = None
    peaks_source: str | None = None


SHORT_REVISION = 7
"""Digits of a revision that a sentence names."""

MOST_FILES_NAMED = 3


class OwnPackage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A package that suites import, and whose code a version does not identify.

    It was installed from a path or from version control, or it lies on Python's path.

    Args:
      name: The name that it is imported by.
      version: None if it has none.
      commit: The commit that its files come from; None if that is unknown.
      dirty: Whether its Python files differ from the commit; None if that is unknown.
      files: Hash of each Python file, by the file's path below the package.
      left_out: Number of its Python files that have no hash, since they are too many or too large.
      suites: Suites that import it; empty if that is unknown.
    """

    name: str
    version: str | None = None
    commit: str | None = None
    dirty: bool | None = None
    files: dict[str, str] = {}
    left_out: int = 0
    suites: tuple[str, ...] = ()

    def describe(self) -> str:
        """Return `version 1.0, commit a1b2c3d, 12 Python files, hash 0f1e2d3c`."""
        version = f"version {self.version}" if self.version else ""
        commit = f"commit {words}" if (words := _write_commit(self)) else ""
        count = counted(len(self.files) + self.left_out, "Python file")
        digest = hashlib.sha256(repr(sorted(self.files.items())).encode()).hexdigest()[:8]
        return ", ".join(filter(None, (version, commit, count, f"hash {digest}")))


@dataclass(frozen=True)
class ChangedPackage:
    """A package whose code is not known to be the same in two runs.

    Args:
      before, after: In the earlier run, and in the later one; None for a run that did not import it.
      files: Python files that differ, then those that only one run has.
    """

    before: OwnPackage | None
    after: OwnPackage | None
    files: tuple[str, ...] = ()

    @property
    def suites(self) -> tuple[str, ...]:
        """Suites that import it in either run; empty if that is unknown."""
        sides = [side.suites for side in (self.before, self.after) if side is not None]
        return tuple(dict.fromkeys(name for names in sides for name in names)) if all(sides) else ()

    @property
    def is_known(self) -> bool:
        """Whether something of it surely changed. Nobody knows where files have no hash and the commit is unknown."""
        return bool(self.files) or self.before is None or self.after is None or self._versions != ""

    @property
    def _versions(self) -> str:
        return "" if self.before is None or self.after is None else _write_versions(self.before, self.after)

    def describe(self) -> str:
        """Return `mypkg: step.py changed; commit a1b2c3d → d4e5f6a`."""
        if self.before is None or self.after is None:
            (side,) = filter(None, (self.before, self.after))
            return f"{side.name}: its code is recorded only in the {'later' if self.before is None else 'earlier'} run"
        left_out = max(self.before.left_out, self.after.left_out)
        what = _write_files(self.files, self.before.files, self.after.files)
        what = what or f"{counted(left_out, 'Python file')} not compared"
        return "; ".join(filter(None, (f"{self.before.name}: {what}", self._versions)))


def find_changed_packages(
    before: Iterable[OwnPackage] | None, after: Iterable[OwnPackage] | None
) -> tuple[ChangedPackage, ...]:
    """Return the packages whose code is not known to be the same in two runs; none where a run recorded no packages.

    Hashes decide where every file has one. Otherwise the commit decides.
    """
    if before is None or after is None:
        return ()
    old, new = ({package.name: package for package in side} for side in (before, after))
    pairs = (_compare(old.get(name), new.get(name)) for name in sorted(old.keys() | new.keys()))
    return tuple(pair for pair in pairs if pair is not None)


def _compare(before: OwnPackage | None, after: OwnPackage | None) -> ChangedPackage | None:
    if before is None or after is None:
        return ChangedPackage(before, after)
    old, new = before.files, after.files
    changed = [name for name in new if name in old and old[name] != new[name]]
    files = (*changed, *sorted(old.keys() ^ new.keys()))
    is_whole = not before.left_out and not after.left_out
    is_committed = before.dirty is after.dirty is False and before.commit == after.commit is not None
    return None if not files and (is_whole or is_committed) else ChangedPackage(before, after, files)


def _write_files(files: Sequence[str], old: Container[str], new: Container[str]) -> str:
    """Return `step.py, model.py changed, extra.py added`; empty without files."""
    words: dict[str, list[str]] = {}
    for name in files[:MOST_FILES_NAMED]:
        verb = "changed" if name in old and name in new else "added" if name in new else "removed"
        words.setdefault(verb, []).append(name)
    parts = [f"{', '.join(names)} {verb}" for verb, names in words.items()]
    more = len(files) - MOST_FILES_NAMED
    return ", ".join(parts) + (f" and {counted(more, 'more file')}" if more > 0 else "")


def _write_versions(before: OwnPackage, after: OwnPackage) -> str:
    """Return `commit a1b2c3d → d4e5f6a`, else the versions; empty where neither is known to differ."""
    for what, was, now_is in (
        ("commit", _write_commit(before), _write_commit(after)),
        ("version", before.version, after.version),
    ):
        if was and now_is and was != now_is:
            return f"{what} {was} → {now_is}"
    return ""


def _write_commit(package: OwnPackage) -> str:
    if package.commit is None:
        return ""
    return f"{package.commit[:SHORT_REVISION]}{' with uncommitted changes' if package.dirty else ''}"
