"""A capture is read as jax reads it, and more of it."""

import os
import random
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.profiler import ProfileData

from jaxmeter.harness.traces import xplane
from jaxmeter.harness.traces.xplane import CaptureError, open_capture, read_capture
from tests.harness.traces.captured import AMD, NAMES, TPU, find_capture, with_shared
from tests.harness.traces.made_up import (
    EPOCH_NS,
    double,
    encode_host,
    encode_plane,
    encode_space,
    encode_whole,
    event,
    part,
    whole,
)

EVERY = [*NAMES, *(pytest.param(name, marks=with_shared) for name in (AMD, TPU))]


def read_as_jax(space):
    """Planes, lines and events as `ProfileData` has them: whole nanoseconds, as floating-point numbers."""

    def by_name(stats):
        return {name: value.decode() if isinstance(value, bytes) else value for name, value in stats.items() if name}

    def read_line(plane, line):
        for kind, start, duration, encoded in line.events():
            name = plane.metadata[kind].name if kind in plane.metadata else ""
            yield name, float(start // 1000), float(duration // 1000), by_name(plane.read_stats(encoded))

    return [
        (plane.name, by_name(plane.stats), [(line.name, list(read_line(plane, line))) for line in plane.lines()])
        for plane in space.planes
    ]


def read_by_jax(data):
    """The same by `ProfileData`, which lists repeated statistics twice, and those without a name as None."""

    def by_name(stats):
        return {name: value for name, value in stats if name}

    def read_line(line):
        return line.name, [(one.name, one.start_ns, one.duration_ns, by_name(one.stats)) for one in line.events]

    return [(plane.name, by_name(plane.stats), [read_line(line) for line in plane.lines]) for plane in data.planes]


def read_events(plane):
    """All events of a plane's lines, as name, start and duration in picoseconds, and statistics."""
    return [
        (plane.metadata[identifier].name, start, duration, plane.read_stats(encoded))
        for line in plane.lines()
        for identifier, start, duration, encoded in line.events()
    ]


@pytest.mark.parametrize("name", EVERY)
def test_every_event_is_read_as_jax_reads_it(name):
    data = ProfileData.from_file(str(find_capture(name)))

    with open_capture(find_capture(name)) as space:
        assert read_as_jax(space) == read_by_jax(data)


def test_a_capture_made_here_is_read_as_jax_reads_it(tmp_path):
    step = jax.jit(lambda x: jnp.sin(x) @ x)
    x = jnp.ones((64, 64))
    step(x).block_until_ready()
    with jax.profiler.trace(tmp_path):
        for number in range(3):
            with jax.profiler.StepTraceAnnotation("step", step_num=number, note="<b>"):
                step(x).block_until_ready()
    (path,) = tmp_path.rglob("*.xplane.pb")

    with open_capture(path) as space:
        assert read_as_jax(space) == read_by_jax(ProfileData.from_file(str(path)))
        host = space.find_plane("/host:CPU")
        assert host is not None
        annotated = [stats for name, _, _, stats in read_events(host) if name == "step"]

    assert [(one["step_num"], one["note"]) for one in annotated] == [(0, "<b>"), (1, "<b>"), (2, "<b>")]


TEXT = """
planes {
  id: 1 name: "/device:TPU:0"
  lines {
    id: -5 name: "XLA Ops" display_name: "operations" timestamp_ns: 1790000000000000123
    events {
      metadata_id: 1 offset_ps: 1500 duration_ps: 2700
      stats { metadata_id: 1 double_value: 2.5 }
      stats { metadata_id: 2 uint64_value: 18446744073709551615 }
      stats { metadata_id: 3 int64_value: -7 }
      stats { metadata_id: 4 str_value: "text" }
      stats { metadata_id: 5 bytes_value: "\\001\\177" }
      stats { metadata_id: 6 ref_value: 1 }
      stats { metadata_id: 99 int64_value: 3 }
      stats { metadata_id: 3 int64_value: 8 }
    }
    events { metadata_id: 77 offset_ps: -5000 duration_ps: 10 }
    events { metadata_id: 1 num_occurrences: 5 }
    events { metadata_id: -2 offset_ps: 9000000000000000 duration_ps: 1 }
  }
  lines { id: 6 name: "empty" }
  event_metadata {
    key: 1
    value { id: 1 name: "event" display_name: "shown" stats { metadata_id: 3 int64_value: 4 } metadata: "x" }
  }
  event_metadata { key: -2 value { id: -2 name: "negative" } }
  stat_metadata { key: 1 value { id: 1 name: "double" } }
  stat_metadata { key: 2 value { id: 2 name: "unsigned" description: "unused" } }
  stat_metadata { key: 3 value { id: 3 name: "signed" } }
  stat_metadata { key: 4 value { id: 4 name: "text" } }
  stat_metadata { key: 5 value { id: 5 name: "bytes" } }
  stat_metadata { key: 6 value { id: 6 name: "reference" } }
  stats { metadata_id: 3 int64_value: -1 }
}
planes { name: "/host:CPU" }
errors: "an error"
warnings: "a warning"
warnings: "another"
hostnames: "a host"
"""


def test_statistics_have_the_types_of_their_fields():
    with read_capture(ProfileData.text_proto_to_serialized_xspace(TEXT)) as space:
        plane, _ = space.planes
        line, empty = plane.lines()
        first, unknown, repeated, negative = line.events()

        assert plane.read_stats(first[3]) == {
            "double": 2.5,
            "unsigned": 2**64 - 1,
            "signed": 8,  # the last of two
            "text": "text",
            "bytes": b"\x01\x7f",
            "reference": "double",
            "": 3,  # of a name that is missing
        }
        assert plane.stats == {"signed": -1}
        assert plane.metadata[1].name == "event"
        assert (plane.metadata[1].display_name, plane.metadata[1].stats) == ("shown", {"signed": 4})
        assert (line.id, line.name, line.display_name) == (-5, "XLA Ops", "operations")
        assert first[:3] == (1, 1790000000000000123 * 1000 + 1500, 2700)
        assert unknown == (77, 1790000000000000123 * 1000 - 5000, 10, b"")
        assert (repeated[2], plane.read_stats(repeated[3])) == (0, {})
        assert (plane.metadata[negative[0]].name, negative[1] - first[1]) == ("negative", 9 * 10**15 - 1500)
        assert (empty.has_events, list(empty.events())) == (False, [])
        assert (space.errors, space.warnings) == (("an error",), ("a warning", "another"))


def test_fields_come_in_any_order_and_those_unknown_are_passed_over():
    unknown = whole(90, 1 << 63) + part(91, b"\xff") + double(92, 1.0) + encode_whole(93 << 3 | 5) + b"\0\0\0\0"
    stat = part(5, "value") + unknown + whole(1, 9)
    one = unknown + part(4, stat) + whole(3, 40) + unknown + whole(2, 1000) + part(4, whole(4, 2)) + whole(1, 3)
    line = part(4, one) + unknown + whole(3, 2) + part(4, whole(3, 1)) + part(2, "late") + whole(1, 5)
    names = part(5, unknown + part(2, part(2, "stat")) + whole(1, 9)) + part(4, part(2, part(2, "kind")) + whole(1, 3))
    encoded = part(3, "lost") + unknown + part(1, part(3, line) + names + part(2, "plane") + unknown)

    with read_capture(encoded) as space:
        (plane,) = space.planes
        (read,) = plane.lines()
        first, second = read.events()

        assert (plane.name, read.name, read.id, space.warnings) == ("plane", "late", 5, ("lost",))
        assert first[:3] == (3, 2000 + 1000, 40)
        assert plane.metadata[3].name == "kind"
        assert plane.read_stats(first[3]) == {"stat": "value", "": 2}
        assert second == (0, 2000, 1, b"")


@pytest.mark.parametrize("bytes_a_piece", [1, 7, 64, 1 << 20])
def test_pieces_of_any_size_give_the_same_events(monkeypatch, tmp_path, bytes_a_piece):
    path = tmp_path / "a.xplane.pb"
    random_ = random.Random(1)
    events = [event(f"e{i % 5}", i, 0.5, i=i, text="x" * random_.randrange(200)) for i in range(300)]
    path.write_bytes(encode_space(encode_host(*events)))
    monkeypatch.setattr(xplane, "PIECE_BYTES", bytes_a_piece)

    with open_capture(path) as space:
        (plane, _) = space.planes
        found = read_events(plane)

    assert found == [(one.name, EPOCH_NS * 1000 + round(one.start * 1e6), 500_000, one.stats) for one in events]


def test_what_was_read_is_counted_up_to_the_whole_line(tmp_path):
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(encode_space(encode_host(*(event("e", i, 1) for i in range(1000)))))

    with open_capture(path) as space:
        assert space.read_bytes == 0
        read_events(space.planes[0])

        assert space.size - 200 < space.read_bytes < space.size


VALUES = st.one_of(
    st.integers(-(2**63), 2**64 - 1), st.floats(allow_nan=False), st.text(max_size=20), st.binary(max_size=20)
)


@given(st.dictionaries(st.text(max_size=10), VALUES, max_size=8))
def test_statistics_come_back_as_they_were_written(stats):
    with read_capture(encode_space(encode_plane("plane", {"line": [event("e", 0, 1, **stats)]}, stats=stats))) as space:
        plane = space.planes[0]

        assert plane.stats == stats
        assert read_events(plane)[0][3] == stats


def test_more_statistics_than_a_plane_remembers_are_read(monkeypatch):
    monkeypatch.setattr(xplane, "MOST_REMEMBERED", 3)
    with read_capture(encode_space(encode_host(*(event("e", 0, 1, at=i % 10) for i in range(50))))) as space:
        assert [stats["at"] for _, _, _, stats in read_events(space.planes[0])] == [i % 10 for i in range(50)]


def test_files_that_are_empty_or_larger_than_any_capture_are_none(tmp_path):
    path = tmp_path / "a.xplane.pb"
    path.touch()

    with pytest.raises(CaptureError, match="empty"):
        open_capture(path)
    with pytest.raises(CaptureError, match="empty"):
        read_capture(b"")
    os.truncate(path, 20 * 2**30)
    with pytest.raises(CaptureError, match="the file has 21474836480 bytes, over 2147483648"):
        open_capture(path)
    with pytest.raises(IsADirectoryError):
        open_capture(tmp_path)


def test_a_line_that_is_damaged_is_found_when_its_events_are_read():
    events = part(4, whole(1, 1) + part(2, "not a number"))  # an offset that is a text
    with read_capture(part(1, part(3, events))) as space:
        (line,) = space.planes[0].lines()

        assert list(line.events()) == [(1, 0, 0, b"")]

    with read_capture(part(1, part(3, part(4, whole(1, 1) + encode_whole(2 << 3) + b"\x80")))) as space:
        (line,) = space.planes[0].lines()
        with pytest.raises(CaptureError):
            list(line.events())


@pytest.mark.parametrize("encoded", [b"\x22\x05\x08", b"\x22", b"\x0b\x01", b"\x22\x80"])
def test_damaged_statistics_are_an_error(encoded):
    with read_capture(encode_space(encode_host())) as space, pytest.raises(CaptureError):
        space.planes[0].read_stats(encoded)


def test_a_closed_capture_keeps_no_file_open(tmp_path):
    path = tmp_path / "a.xplane.pb"
    path.write_bytes(encode_space(encode_host(event("e", 0, 1))))
    before = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").is_dir() else 0

    for _ in range(3):
        with open_capture(path) as space:
            read_events(space.planes[0])

    after = len(list(Path("/proc/self/fd").iterdir())) if Path("/proc/self/fd").is_dir() else 0
    assert after == before
