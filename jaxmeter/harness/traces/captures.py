"""Profiler captures (`*.xplane.pb`): where they are, and what they say of the machine, overwritten."""

from __future__ import annotations

import gzip
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jaxmeter.harness.record.cases import PlannedCase, explain_unknown, list_nearest, match_cases, names_of
from jaxmeter.harness.record.environment import Environment
from jaxmeter.harness.record.files import LARGEST_RECORD, RecordError, RunFolder, read_kept
from jaxmeter.harness.record.runs import Manifest, read_manifest
from jaxmeter.harness.traces.hlo_proto import read_fields

SUFFIX = ".xplane.pb"

_SESSIONS = ("*", "plugins/profile/*/*", "profile/*/*", "*/*", "*/plugins/profile/*/*")
"""Where captures lie below a session's folder, a log folder, its `plugins`, its `profile`, a folder of log folders."""

_TIMESTAMP = re.compile(r"\d{4}(_\d\d){5}")
"""The name that jax gives a session: the second in which it ended."""

HOW_TO_CAPTURE = (
    "give a *.xplane.pb, the folder that jax.profiler.trace(FOLDER) wrote, or a run of jaxmeter "
    "measured with --probe trace"
)


MOST_NAMED = 10
"""Workloads that a complaint names."""


class NoCaptureError(ValueError):
    """There is no capture of what was asked for; the message says what to do."""


@dataclass(frozen=True)
class Capture:
    """One host's capture.

    Args:
      host: As its file is named.
      session: The profiler session's folder name.
      case, variant, platform: Of a run of jaxmeter; empty elsewhere.
      program: The text of the program that a run keeps of the variant, which may not exist.
      environment: Of a run of jaxmeter, that of the platform.
      source: Id of the run, or name of the log folder; empty for a file.
    """

    path: Path
    host: str
    session: str = ""
    case: str = ""
    variant: str = ""
    platform: str = ""
    program: Path | None = None
    environment: Environment | None = None
    source: str = ""

    def read_texts(self) -> tuple[str, ...]:
        """Return the HLO that a run keeps of the program: an executable from a cache has none in the capture."""
        try:
            return () if self.program is None else (read_kept(self.program, LARGEST_RECORD).decode("utf-8", "replace"),)
        except (OSError, RecordError):
            return ()


@dataclass(frozen=True)
class Captures:
    """What a path means.

    Args:
      captures: One for each host of a session; of a run, of each case and variant.
      other_sessions: Names of sessions in the same folder that were not taken, the newest first.
    """

    captures: tuple[Capture, ...]
    other_sessions: tuple[str, ...] = ()

    @property
    def hosts(self) -> tuple[str, ...]:
        """Names of the hosts, in the order of the captures."""
        return tuple(dict.fromkeys(capture.host for capture in self.captures))

    @property
    def subjects(self) -> tuple[tuple[str, str, str], ...]:
        """Case, variant and platform of each capture, each once."""
        return tuple(dict.fromkeys((capture.case, capture.variant, capture.platform) for capture in self.captures))


def find_captures(
    path: Path, *, session: str | None = None, case: str | None = None, variant: str | None = None
) -> Captures:
    """Return the captures at a path.

    Args:
      path: A `*.xplane.pb`, a log folder of `jax.profiler`, a session's folder in it, or a run of jaxmeter.
      session: Name of a profiler session; None for the newest.
      case: Of a run: name of a case, its workload or suite; `*` is any text, `?` one character; None for all.
      variant: Of a run: name of a variant; None for all.
    Raises:
      NoCaptureError: There is none; the message says what to do.
    """
    run = RunFolder(path)
    if path.is_dir() and (run.manifest.is_file() or run.mark.is_file()):
        if session is not None:
            raise NoCaptureError("--session chooses in a log folder; in a run of jaxmeter use --case and --variant")
        return Captures(tuple(_list_of_run(run, case, variant)))
    if case is not None or variant is not None:
        raise NoCaptureError(f"{path}: no run of jaxmeter, so --case and --variant choose nothing; {HOW_TO_CAPTURE}")
    if path.is_file():
        if not path.name.endswith(SUFFIX):
            raise NoCaptureError(f"{path}: no *{SUFFIX}; {HOW_TO_CAPTURE}")
        return Captures((Capture(path, _name_host(path), path.parent.name),))
    if not path.is_dir():
        raise NoCaptureError(f"{path}: no such file or folder; {HOW_TO_CAPTURE}")
    sessions = _find_sessions(path)
    if not sessions:
        raise NoCaptureError(f"{path}: holds no *{SUFFIX}; {HOW_TO_CAPTURE}")
    names = [folder.name for folder in sessions]
    if session is not None and session not in names:
        raise NoCaptureError(f"{path}: {explain_unknown('session', session, names)}")
    chosen = sessions[0] if session is None else sessions[names.index(session)]
    source = path.absolute().name
    files = sorted(chosen.glob(f"*{SUFFIX}"))
    captures = tuple(Capture(file, _name_host(file), chosen.name, source=source) for file in files)
    return Captures(captures, tuple(folder.name for folder in sessions if folder != chosen))


def read_environment(path: Path) -> Environment:
    """Return the environment of a run, with the peaks of its device.

    Raises:
      NoCaptureError: It is no run that can be read, or knows no peaks.
    """
    try:
        environment = read_manifest(RunFolder(path)).environment
    except RecordError as error:
        raise NoCaptureError(f"no peaks: {error}") from None
    if not environment.peak_flops:
        raise NoCaptureError(
            f"{path}: this run knows no peaks; a machine's first run with times measures those of its processor"
        )
    return environment


def choose_host(captures: Captures, host: str) -> Capture:
    """Return the capture of a host.

    Raises:
      NoCaptureError: There is none of that name; the message has those that there are.
    """
    for capture in captures.captures:
        if capture.host == host:
            return capture
    raise NoCaptureError(explain_unknown("host", host, captures.hosts))


def _name_host(path: Path) -> str:
    return path.name.removesuffix(SUFFIX)


def _find_sessions(folder: Path) -> list[Path]:
    """Folders that hold captures, the newest first."""
    for pattern in _SESSIONS:
        sessions = {path.parent for path in folder.glob(f"{pattern}{SUFFIX}") if path.is_file()}
        if sessions:
            break
    else:
        return []
    # A copied folder has the times of its copy, so names that are times decide where all are.
    if all(_TIMESTAMP.fullmatch(session.name) for session in sessions):
        return sorted(sessions, key=lambda session: (session.name, str(session)), reverse=True)
    newest: dict[Path, float] = defaultdict(float)
    for session in sessions:
        newest[session] = max(path.stat().st_mtime for path in session.glob(f"*{SUFFIX}"))
    return sorted(sessions, key=lambda session: (newest[session], session.name, str(session)), reverse=True)


def _list_of_run(run: RunFolder, case: str | None, variant: str | None) -> Iterator[Capture]:
    try:
        manifest = read_manifest(run)
    except RecordError as error:
        raise NoCaptureError(str(error)) from None
    cases = manifest.cases
    chosen = cases if case is None else match_cases(cases, case)
    if not chosen:
        known = [name for planned in cases for name in names_of(planned)]
        nearest = (
            list_nearest(case or "", known) or list(dict.fromkeys(planned.workload for planned in cases))[:MOST_NAMED]
        )
        raise NoCaptureError(f"{run.path}: no case matches --case '{case}'; there are {', '.join(nearest)}")
    names = tuple(dict.fromkeys(item.name for planned in chosen for item in planned.variants))
    if variant is not None and variant not in names:
        raise NoCaptureError(f"{run.path}: {explain_unknown('variant', variant, names)}")
    captures = [capture for planned in chosen for capture in _list_of_case(run, manifest, planned, variant)]
    if not captures:
        of = "" if case is None and variant is None else f" of {' '.join(filter(None, (case, variant)))}"
        raise NoCaptureError(f"{run.path}: no capture{of}; measure with the probe trace: jaxmeter run --probe trace")
    yield from captures


def _list_of_case(run: RunFolder, manifest: Manifest, planned: PlannedCase, wanted: str | None) -> Iterator[Capture]:
    folder = run.case(planned.id)
    # A record is only a file: its ids may lead anywhere.
    if folder.path.resolve().parent != run.cases.resolve():
        return
    for name in (item.name for item in planned.variants if wanted in (None, item.name)):
        for path in _list_below(folder.trace(name)):
            program = folder.artifacts("hlo", name)
            yield Capture(
                path,
                _name_host(path),
                session=path.parent.name,
                case=planned.name,
                variant=name,
                platform=planned.platform,
                program=program[0] if program else None,
                environment=manifest.environments.get(planned.platform),
                source=manifest.run_id,
            )


def _list_below(folder: Path) -> Sequence[Path]:
    return sorted(path for path in folder.rglob(f"*{SUFFIX}") if path.is_file())


HOST_NAMES = 4
"""The field of an XSpace that names the hosts.
Source: https://github.com/openxla/xla/blob/main/third_party/tsl/tsl/profiler/protobuf/xplane.proto"""

_FIELD_OF_TEXT = 2
"""The wire type of a text."""

_KEPT_FOLDER = re.compile(r"(/python3\.\d+)?(/(site|dist)-packages)?$")
"""What stays of a library's path: it distinguishes a line of a library from one of the user."""

MASK = b"~"
SHORTEST_FOLDER = 3
"""Bytes of a folder's path, from which on it is overwritten: `/` alone is nobody's."""


def make_capture_private(path: Path, folders: Iterable[str]) -> None:
    """Overwrite the host's name and some folders in a capture: `*.xplane.pb`, or `*.trace.json.gz`.

    Args:
      folders: Absolute paths, such as the user's home: what follows them stays.
    """
    data = path.read_bytes()
    if path.name.endswith(".xplane.pb"):
        path.write_bytes(hide_folders(hide_host_names(data), folders))
    elif path.suffix == ".gz":
        path.write_bytes(gzip.compress(hide_folders(gzip.decompress(data), folders), mtime=0))


def hide_host_names(capture: bytes) -> bytes:
    """Return an encoded XSpace whose host names have other letters.

    Raises:
      ValueError: Not a protocol buffer.
    """
    names = {value for field, value in read_fields(capture) if field == HOST_NAMES and isinstance(value, bytes)}
    for name in names:
        before = bytes([HOST_NAMES << 3 | _FIELD_OF_TEXT, *_encode_size(len(name))])
        capture = capture.replace(before + name, before + MASK * len(name))
    return capture


def hide_folders(data: bytes, folders: Iterable[str]) -> bytes:
    """Return bytes in which each of the folders is overwritten where a path goes on behind it."""
    hidden = {_KEPT_FOLDER.sub("", path.rstrip("/")) for path in folders}
    for folder in sorted(hidden, key=len, reverse=True):  # one may lie in another
        written = os.fsencode(folder)
        if len(written) >= SHORTEST_FOLDER and folder.startswith("/"):
            data = data.replace(written + b"/", MASK * len(written) + b"/")
    return data


def _encode_size(size: int) -> bytes:
    """A whole number as a protocol buffer has it, seven bits a byte."""
    encoded = bytearray()
    while size > 127:
        encoded.append(size & 127 | 128)
        size >>= 7
    return bytes([*encoded, size])
