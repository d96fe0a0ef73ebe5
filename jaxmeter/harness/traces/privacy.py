"""What a profiler capture says of the machine and its user, overwritten by text of equal length.

A capture is a protocol buffer, whose texts lie in it as they are. What keeps its length keeps all else in its place.
Compressed parts of it would be left as they are; those of jaxlib's own profilers are not compressed.
"""

from __future__ import annotations

import gzip
import os
import re
from collections.abc import Iterable
from pathlib import Path

from jaxmeter.harness.traces.wire import read_fields

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
    hidden = {_KEPT_FOLDER.sub("", one.rstrip("/")) for one in folders}
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
