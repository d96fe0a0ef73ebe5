from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.traces.hlo_proto import read_fields


@given(st.binary(max_size=64))
def test_bytes_that_are_no_protocol_buffer_are_an_error_of_value(data):
    with suppress(ValueError):
        assert all(isinstance(value, int | bytes) for _, value in read_fields(data))


def test_fields_of_every_wire_type_are_read():
    message = bytes([0x08, 0x96, 0x01, 0x12, 0x02, 0x68, 0x69, 0x1D, 1, 2, 3, 4, 0x21, *range(8)])

    assert list(read_fields(message)) == [(1, 150), (2, b"hi"), (3, bytes([1, 2, 3, 4])), (4, bytes(range(8)))]


def test_a_number_of_two_bytes_and_a_field_without_content_are_read_as_they_stand():
    assert list(read_fields(bytes([0xA2, 0x06, 0x00, 0x08, 0x00]))) == [(100, b""), (1, 0)]


@pytest.mark.parametrize("size", [1, 4, 6])
def test_a_protocol_buffer_that_is_cut_short_says_so(size):
    whole = bytes([0x08, 0x96, 0x01, 0x12, 0x02, 0x68, 0x69])

    with pytest.raises(ValueError, match="cut short"):
        list(read_fields(whole[:size]))


@pytest.mark.parametrize("kind", [3, 4, 6, 7])
def test_a_wire_type_that_there_is_not_is_named(kind):
    with pytest.raises(ValueError, match=f"cannot hold wire type {kind}"):
        list(read_fields(bytes([1 << 3 | kind, 0, 0, 0, 0, 0, 0, 0, 0])))


def test_zeros_end_at_the_first_since_no_field_has_the_number_0():
    with pytest.raises(ValueError, match="a field of number 0"):
        next(read_fields(bytes(2)))
