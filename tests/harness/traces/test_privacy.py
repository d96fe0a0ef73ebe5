"""What a capture says of the machine is overwritten, and all else stays in its place."""

import gzip
from pathlib import Path

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.traces.captures import hide_folders, hide_host_names, make_capture_private
from jaxmeter.harness.traces.hlo_proto import read_fields


def field(number, value):
    size, encoded = len(value), bytearray()
    while size > 127:
        encoded.append(size & 127 | 128)
        size >>= 7
    return bytes([number << 3 | 2, *encoded, size]) + value


@pytest.mark.parametrize("name", [b"vm", b"host.example.org", b"h" * 200])
def test_the_name_of_the_host_is_overwritten_and_planes_that_hold_its_letters_are_not(name):
    plane = field(1, b"plane of " + name)

    hidden = hide_host_names(plane + field(4, name))

    assert list(read_fields(hidden)) == [(1, b"plane of " + name), (4, b"~" * len(name))]


@given(st.lists(st.tuples(st.integers(1, 15), st.binary(max_size=200)), max_size=6))
def test_all_fields_but_the_host_names_stay_and_keep_their_length(fields):
    fields = [(number, b"" if number == 4 else value) for number, value in fields]
    capture = b"".join(field(number, value) for number, value in [*fields, (4, b"a host of some name")])

    found = list(read_fields(hide_host_names(capture)))

    assert found == [*fields, (4, b"~" * 19)]


def test_what_is_no_protocol_buffer_is_refused():
    with pytest.raises(ValueError, match="protocol buffer"):
        hide_host_names(b"\xff")


@pytest.mark.parametrize(
    ("data", "hidden"),
    [
        (b"at /home/anna/code/a.py:3", b"at ~~~~~~~~~~/code/a.py:3"),
        (b"at /home/anna/suites/a.py", b"at ~~~~~~~~~~~~~~~~~/a.py"),
        (b"at /home/annabel/a.py", b"at /home/annabel/a.py"),
        (b"/xla/service/a.cc", b"/xla/service/a.cc"),
    ],
)
def test_folders_are_overwritten_where_a_path_goes_on(data, hidden):
    assert hide_folders(data, ["/home/anna", "/home/anna/suites", "", "/", ".", "xla"]) == hidden


@given(st.binary(), st.lists(st.text(max_size=5)))
def test_no_byte_is_added_or_taken_away(data, folders):
    assert len(hide_folders(data, folders)) == len(data)


def test_a_capture_can_still_be_read(tmp_path):
    options = jax.profiler.ProfileOptions()
    options.session_id = "capture"
    with jax.profiler.trace(tmp_path, profiler_options=options), jax.profiler.TraceAnnotation("/home/anna/code"):
        jax.block_until_ready(jax.jit(lambda x: x + 1)(jax.numpy.ones(3)))
    (capture,) = tmp_path.rglob("*.xplane.pb")
    (trace,) = tmp_path.rglob("*.trace.json.gz")
    before = read_events(capture)
    size = capture.stat().st_size

    for path in (capture, trace):
        make_capture_private(path, ["/home/anna", str(Path(__file__).parents[3])])

    data = capture.read_bytes()
    assert len(data) == size
    assert [set(name) for number, name in read_fields(data) if number == 4] == [set(b"~")]
    for content in (data, gzip.decompress(trace.read_bytes())):
        assert b"/home/anna/" not in content
        assert str(Path(__file__).parent).encode() not in content
    assert [name.replace("/home/anna/", "~~~~~~~~~~/") for name in before] == read_events(capture)


def read_events(capture):
    planes = jax.profiler.ProfileData.from_file(str(capture)).planes
    return [event.name for plane in planes for line in plane.lines for event in line.events]
