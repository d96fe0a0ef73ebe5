"""A reader of profiler captures (`*.xplane.pb`, an encoded XSpace): planes, lines, events with times and statistics.

This is a parser without jax: no package ships the schema. `jax.profiler.ProfileData` hides the metadata of events, the
programs' HLO, errors and warnings. The file is mapped into memory, and events are read one by one from pieces of it, so
a capture of any size takes little memory.
Source: https://github.com/openxla/xla/blob/main/third_party/tsl/tsl/profiler/protobuf/xplane.proto
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from jaxmeter.harness.record.files import LARGEST_CAPTURE
from jaxmeter.harness.traces.hlo_proto import sign

Value = int | float | str | bytes
"""A statistic's value. One that refers to the name of another is that name."""

EventFields = tuple[int, int, int, bytes]
"""Identifier of its metadata, start and duration in picoseconds, and its encoded statistics. The start counts from the
capture's own origin, which is near 0 or the epoch."""

PIECE_BYTES = 1 << 20
"""Of a line, read at a time; more where one event is larger."""

FORGET_BYTES = 8 << 20
"""Of a file that has been passed over; the system takes back their memory."""

AROUND_BYTES = 1 << 16
"""That the system maps around a page that is read, so that parts which were forgotten come back."""

MOST_PLANES = 10_000
"""A host has a few planes and a device one, so a pod of a thousand devices has fewer than this."""

MOST_REMEMBERED = 20_000
"""Statistics whose decoding a plane remembers: most repeat, others, such as addresses, never do."""

PS_PER_NS = 1000


class CaptureError(ValueError):
    """A file is no capture, or not a whole one; the message says why."""


@dataclass(frozen=True)
class Metadata:
    """What all events of a kind share.

    Args:
      name: Of the event: an operation, a function of the runtime, an annotation.
      display_name: Empty where it is the name.
      stats: By name.
    """

    name: str
    display_name: str = ""
    stats: Mapping[str, Value] = field(default_factory=dict)


class Space:
    """A whole capture, opened for reading. Use it in a `with` block, or close it.

    Args:
      errors: What the profiler could not do, in its own words.
      warnings: What it lost, in its own words.
      planes: In the order of the file.
    """

    def __init__(self, data: mmap.mmap | bytes, close: Callable[[], None]) -> None:
        self.size = len(data)
        self._close = close
        errors: list[str] = []
        warnings: list[str] = []
        planes: list[Plane] = []
        self.read_bytes = 0
        try:
            for number, start, end in _spans(data, 0, len(data)):
                if number == 1:
                    if len(planes) == MOST_PLANES:
                        raise CaptureError(f"it has more than {MOST_PLANES} planes, so it is damaged")
                    planes.append(Plane(data, start, end, self._count))
                elif number in (2, 3):
                    (errors if number == 2 else warnings).append(_text(data[start:end]))
        except Exception:
            close()
            raise
        self.errors, self.warnings, self.planes = tuple(errors), tuple(warnings), tuple(planes)

    def _count(self, read: int) -> None:
        self.read_bytes += read

    def find_plane(self, name: str) -> Plane | None:
        """Return the first plane of that name; None without one."""
        return next((plane for plane in self.planes if plane.name == name), None)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._close()


class Plane:
    """What one device, or one host, did.

    Args:
      name: `/host:CPU`, `/device:GPU:0` …
    """

    def __init__(self, data: mmap.mmap | bytes, start: int, end: int, count: Callable[[int], None]) -> None:
        self._data = data
        self._count = count
        self._lines: list[tuple[int, int]] = []
        self._stat_names: dict[int, str] = {}
        self._remembered: dict[bytes, tuple[str, Value]] = {}
        entries: list[tuple[int, int]] = []
        stats: list[tuple[int, int]] = []
        self.name = ""
        forgotten = start
        for number, low, high in _spans(data, start, end):
            if number == 2:
                self.name = _text(data[low:high])
            elif number == 3:
                self._lines.append((low, high))
                if high - forgotten > FORGET_BYTES:
                    _forget(data, forgotten, high)
                    forgotten = high
            elif number == 4:
                entries.append((low, high))
            elif number == 5:
                identifier, name = self._read_stat_name(low, high)
                self._stat_names[identifier] = name
            elif number == 6:
                stats.append((low, high))
        self.metadata = dict(self._read_metadata(entries))
        self.stats = dict(self._read_stat(bytes(data[low:high])) for low, high in stats)

    def lines(self) -> Iterator[Line]:
        """Yield the lines, in the order of the file."""
        for start, end in self._lines:
            yield Line(self._data, start, end, self._count)

    def read_stats(self, encoded: bytes) -> dict[str, Value]:
        """Return an event's statistics by name.

        Raises:
          CaptureError: They are damaged.
        """
        stats: dict[str, Value] = {}
        remembered = self._remembered
        at, end = 0, len(encoded)
        try:
            while at < end:
                key = encoded[at]
                at += 1
                if key == 34:
                    size = encoded[at]
                    at += 1
                    if size > 127:
                        size, at = _whole(encoded, at - 1)
                    piece = encoded[at : at + size]
                    at += size
                    known = remembered.get(piece)
                    if known is None:
                        known = self._read_stat(piece)
                        if len(remembered) >= MOST_REMEMBERED:
                            remembered.clear()
                        remembered[piece] = known
                    stats[known[0]] = known[1]
                else:
                    at = _skip(encoded, at - 1)
        except (IndexError, struct.error):
            raise _cut() from None
        if at != end:
            raise _cut()
        return stats

    def _read_stat(self, piece: bytes) -> tuple[str, Value]:
        """Name and value of one encoded XStat."""
        name = ""
        value: Value = 0
        for number, wire, low, high in _values(piece):
            match number:
                case 1:
                    name = self._stat_names.get(high, "")
                case 2 if wire == 1:
                    value = struct.unpack_from("<d", piece, low)[0]
                case 3:
                    value = high
                case 4:
                    value = sign(high)
                case 5:
                    value = _text(piece[low:high])
                case 6:
                    value = piece[low:high]
                case 7:
                    value = self._stat_names.get(high, "")
        return name, value

    def _read_stat_name(self, start: int, end: int) -> tuple[int, str]:
        identifier, name = 0, ""
        entry = bytes(self._data[start:end])
        for number, wire, low, high in _values(entry):
            if number == 1 and wire == 0:
                identifier = sign(high)
            elif number == 2 and wire == 2:
                for inner, _, begin, stop in _values(entry[low:high]):
                    if inner == 2:
                        name = _text(entry[low + begin : low + stop])
        return identifier, name

    def _read_metadata(self, entries: list[tuple[int, int]]) -> Iterator[tuple[int, Metadata]]:
        for start, end in entries:
            entry = bytes(self._data[start:end])
            identifier, message = 0, b""
            for number, wire, low, high in _values(entry):
                if number == 1 and wire == 0:
                    identifier = sign(high)
                elif number == 2 and wire == 2:
                    message = entry[low:high]
            name = display = ""
            stats: dict[str, Value] = {}
            for number, wire, low, high in _values(message):
                if wire != 2:
                    continue
                if number == 2:
                    name = _text(message[low:high])
                elif number == 4:
                    display = _text(message[low:high])
                elif number == 5:
                    stat, value = self._read_stat(message[low:high])
                    stats[stat] = value
            yield identifier, Metadata(name, display, stats)


class Line:
    """A row of events: a thread of the host, a stream or a unit of a device.

    Args:
      timestamp_ns: Where the events' offsets count from.
    """

    def __init__(self, data: mmap.mmap | bytes, start: int, end: int, count: Callable[[int], None]) -> None:
        self._data, self._start, self._end, self._count = data, start, end, count
        self.id = 0
        self.name = self.display_name = ""
        self.timestamp_ns = 0
        self.has_events = False
        forgotten = start
        for number, low, high in _spans(data, start, end):
            if number == 4:
                self.has_events = True
                if high - forgotten > FORGET_BYTES:
                    _forget(data, forgotten, high)
                    forgotten = high
            elif number == 1:
                self.id = sign(low)
            elif number == 3:
                self.timestamp_ns = sign(low)
            elif number == 2:
                self.name = _text(data[low:high])
            elif number == 11:
                self.display_name = _text(data[low:high])

    def events(self) -> Iterator[EventFields]:  # noqa: C901  # one loop: a call an event would cost half of the speed
        """Yield the events in the order of the file.

        Raises:
          CaptureError: The line is damaged.
        """
        at, end, size = self._start, self._end, PIECE_BYTES
        origin_ps = self.timestamp_ns * PS_PER_NS
        while at < end:
            piece = self._data[at : min(at + size, end)]
            used = 0
            try:
                while True:
                    # Of a line all fields but its events were read before.
                    begin = used
                    key = piece[begin]
                    if key != 34:
                        stop = _skip(piece, begin)
                        if stop > len(piece):
                            break
                        used = stop
                        continue
                    length = piece[begin + 1]
                    place = begin + 2
                    if length > 127:
                        length, place = _whole(piece, begin + 1)
                    stop = place + length
                    if stop > len(piece):
                        break
                    identifier = offset = duration = 0
                    stats = stop
                    while place < stop:
                        key = piece[place]
                        place += 1
                        if key == 34:
                            if stats == stop:
                                stats = place - 1
                            length = piece[place]
                            place += 1
                            if length > 127:
                                length, place = _whole(piece, place - 1)
                            place += length
                            continue
                        if key not in _NUMBERS_OF_EVENT:
                            place = _skip(piece, place - 1)
                            continue
                        value = piece[place]
                        place += 1
                        if value > 127:
                            value &= 127
                            for shift in _SHIFTS:
                                byte = piece[place]
                                place += 1
                                if byte < 128:
                                    value |= byte << shift
                                    break
                                value |= (byte & 127) << shift
                            else:
                                raise _cut()
                        if key == 8:
                            identifier = value
                        elif key == 16:
                            offset = value
                        else:
                            duration = value
                    if place != stop:
                        raise _cut()
                    used = stop
                    if offset >= _HALF:
                        offset = sign(offset)
                    if duration >= _HALF:
                        duration = sign(duration)
                    if identifier >= _HALF:
                        identifier = sign(identifier)
                    yield identifier, origin_ps + offset, duration, piece[stats:stop]
            except IndexError:
                pass
            if used == 0:
                if at + size >= end:
                    raise _cut()
                size *= 2
                continue
            self._count(used)
            _forget(self._data, at, at + used)
            at += used


def open_capture(path: Path) -> Space:
    """Return a capture, of which events are read as they are asked for.

    Raises:
      CaptureError: It is empty, cut short or no capture.
      OSError: It cannot be read.
    """
    with path.open("rb") as file:
        size = path.stat().st_size
        if size == 0:
            raise CaptureError("the file is empty")
        if size > LARGEST_CAPTURE:
            raise CaptureError(f"the file has {size} bytes, over {LARGEST_CAPTURE}, and a capture has less than 2 GiB")
        data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return Space(data, data.close)


def read_capture(data: bytes) -> Space:
    """Return a capture that is in memory.

    Raises:
      CaptureError: It is empty, cut short or no capture.
    """
    if not data:
        raise CaptureError("the file is empty")
    return Space(data, lambda: None)


def _forget(data: mmap.mmap | bytes, start: int, end: int) -> None:
    """Let the system take back the memory of what has been read of a file."""
    if isinstance(data, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        first = max(0, start - start % mmap.PAGESIZE - AROUND_BYTES)
        with suppress(OSError, ValueError):
            data.madvise(mmap.MADV_DONTNEED, first, end - first)


_HALF = 1 << 63
_MOST_SHIFT = 63
_SHIFTS = range(7, _MOST_SHIFT + 1, 7)
_NUMBERS_OF_EVENT = frozenset({1 << 3, 2 << 3, 3 << 3})
"""Keys of an event's whole numbers: its metadata, its offset and its duration."""

_FIXED = {1: 8, 5: 4}
_LEAST_KEY = 1 << 3
"""Fields count from 1. What a power cut leaves of a file is zeros, which would be fields of number 0."""


def _cut() -> CaptureError:
    return CaptureError("it is cut short or damaged, or no profiler capture (*.xplane.pb)")


def _text(data: bytes) -> str:
    return bytes(data).decode("utf-8", "replace")


def _whole(data: mmap.mmap | bytes, at: int) -> tuple[int, int]:
    """The whole number that begins there, and the place behind it.

    Raises:
      IndexError: The data ends before.
      CaptureError: It has more than 64 bits.
    """
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
        if shift > _MOST_SHIFT:
            raise _cut()


def _skip(data: mmap.mmap | bytes, at: int) -> int:
    """The place behind the field that begins there."""
    key, at = _whole(data, at)
    wire = key & 7
    if key < _LEAST_KEY:
        raise _cut()
    if wire == 0:
        return _whole(data, at)[1]
    if wire == 2:
        size, at = _whole(data, at)
        return at + size
    if wire in _FIXED:
        return at + _FIXED[wire]
    raise _cut()


def _spans(data: mmap.mmap | bytes, at: int, end: int) -> Iterator[tuple[int, int, int]]:
    """The fields of a message: number, and of a part of bytes its begin and end; of a whole number it and 0.

    Raises:
      CaptureError: The message is damaged.
    """
    try:
        while at < end:
            key, at = _whole(data, at)
            wire = key & 7
            if key < _LEAST_KEY:
                raise _cut()
            if wire == 0:
                value, at = _whole(data, at)
                yield key >> 3, value, 0
                continue
            size, at = _whole(data, at) if wire == 2 else (_FIXED.get(wire, end + 1), at)
            if at + size > end:
                raise _cut()
            yield key >> 3, at, at + size
            at += size
    except IndexError:
        raise _cut() from None
    if at != end:
        raise _cut()


def _values(message: bytes) -> Iterator[tuple[int, int, int, int]]:
    """The fields of a small message: number, wire type, and begin and end of its bytes; of a whole number 0 and it."""
    at, end = 0, len(message)
    try:
        while at < end:
            key, at = _whole(message, at)
            wire = key & 7
            if key < _LEAST_KEY:
                raise _cut()
            if wire == 0:
                value, at = _whole(message, at)
                yield key >> 3, wire, 0, value
                continue
            size, at = _whole(message, at) if wire == 2 else (_FIXED.get(wire, end + 1), at)
            if at + size > end:
                raise _cut()
            yield key >> 3, wire, at, at + size
            at += size
    except IndexError:
        raise _cut() from None
