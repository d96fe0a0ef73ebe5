import pytest

from jaxmeter.harness.traces.hlo_proto import read_fields


@pytest.mark.parametrize(
    ("message", "fields"),
    [
        (
            [0x08, 0x96, 0x01, 0x12, 0x02, 0x68, 0x69, 0x1D, 1, 2, 3, 4, 0x21, *range(8)],
            [(1, 150), (2, b"hi"), (3, bytes([1, 2, 3, 4])), (4, bytes(range(8)))],
        ),
        ([0xA2, 0x06, 0x00, 0x08, 0x00], [(100, b""), (1, 0)]),
    ],
    ids=["every wire type", "a number of two bytes and a field without content"],
)
def test_fields_are_read(message, fields):
    assert list(read_fields(bytes(message))) == fields


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
