import pytest

from jaxmeter.launch.doctor.table import render, run_check
from jaxmeter.launch.host import Observation, ObservationState

ROWS = (
    Observation("disk", ObservationState.OK, "40.0 GB free"),
    Observation(
        "CPU governor",
        ObservationState.NOISY,
        "powersave: " + "the clock follows the load, " * 6,
        "sudo cpupower set it",
    ),
)


@pytest.mark.parametrize("width", [50, 80, 100, 300])
def test_no_line_is_wider_than_the_terminal_or_than_is_easy_to_read(width):
    table = render({"Needs": ROWS}, ["a sentence " * 20], width)

    assert max(map(len, table.splitlines())) < min(width, 111)


def test_columns_stand_below_each_other_and_a_remedy_below_what_was_found():
    lines = render({"Needs": ROWS}, [], 200).splitlines()

    column = lines[1].index("40.0 GB")
    assert lines[0] == "Needs"
    assert lines[1] == "  ok         disk          40.0 GB free"
    assert lines[2].index("powersave") == column
    assert next(line for line in lines if "cpupower" in line) == " " * column + "-> sudo cpupower set it"
    narrow = render({"Needs": ROWS}, [], 40).splitlines()
    assert narrow[1:3] == ["  ok         disk", "      40.0 GB free"]


def test_a_command_is_never_broken_so_that_it_can_be_copied():
    path = "/a/very/long/path-with-hyphens/" + "x" * 100

    assert path in render({"Needs": [Observation("disk", ObservationState.OK, f"free in {path}")]}, [], 60)


@pytest.mark.parametrize("character", ["\x1b", "\n", "\x9b", "\u202e", "\u200b", "\udc80"])
def test_control_characters_from_outside_never_reach_the_terminal(character):
    dirty = f"a{character}b"

    table = render({"Needs": [Observation(dirty, ObservationState.OK, dirty, dirty)]}, [dirty], 80)

    assert character not in table.replace("\n", "") if character == "\n" else character not in table
    assert len(table.splitlines()) == 5


def test_a_check_that_raises_is_a_row_that_says_so():
    def broken():
        raise ValueError("no number: 'x'")

    (row,) = run_check("memory", broken)

    assert row == Observation("memory", ObservationState.UNKNOWN, "could not be checked (ValueError: no number: 'x')")
