"""Sessions that run tests of one kind collect the folders of these only."""

import re
from pathlib import Path

import pytest

from tests.tools.marked_tests import BREAK_FIRST, FOLDERS, select_tests

CHECKOUT = Path(__file__).parents[2]
MARK = re.compile(r"\bmark\.(\w+)")


@pytest.mark.parametrize("mark", FOLDERS)
def test_all_tests_with_a_mark_are_in_its_folders(mark):
    marked = {
        path.relative_to(CHECKOUT).as_posix()
        for path in (CHECKOUT / "tests").rglob("test_*.py")
        if mark in MARK.findall(path.read_text(encoding="utf8"))
    }

    assert marked
    assert not [path for path in marked if not path.startswith(tuple(f"{folder}/" for folder in FOLDERS[mark]))]


def test_what_a_new_release_breaks_first_has_tests():
    places = [CHECKOUT / path for path in BREAK_FIRST]

    assert [place for place in places if not (place.is_file() or list(place.rglob("test_*.py")))] == []


@pytest.mark.parametrize(
    ("marks", "arguments", "expected"),
    [
        (["cloud"], [], ["-m", "cloud", "tests/cloud"]),
        (["page", "browser"], ["-n", "0"], ["-m", "page or browser", "-n", "0", "tests/reporting"]),
        (["cloud"], ["tests/cloud/test_s3.py::test_a"], ["-m", "cloud", "tests/cloud/test_s3.py::test_a"]),
        (["cloud"], ["tests", "-x"], ["-m", "cloud", "tests", "-x"]),
    ],
)
def test_files_that_a_user_names_are_collected_alone(marks, arguments, expected):
    assert select_tests(marks, arguments, CHECKOUT) == expected
