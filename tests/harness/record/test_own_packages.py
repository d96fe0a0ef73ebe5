"""Which of the user's own packages changed between two runs, and how that reads."""

import pytest

from jaxmeter.harness.record.environment import OwnPackage, find_changed_packages

OLD, NEW = "a1b2c3d" + 33 * "0", "d4e5f6a" + 33 * "0"


def package(step="1", *, name="mypkg", **more):
    return OwnPackage(name=name, **{"files": {"__init__.py": "0", "step.py": step}, **more})


def describe(before, after):
    return [changed.describe() for changed in find_changed_packages(before, after)]


@pytest.mark.parametrize(
    ("before", "after", "told"),
    [
        (package(commit=OLD), package("2", commit=NEW), "mypkg: step.py changed; commit a1b2c3d → d4e5f6a"),
        (package(), package("2"), "mypkg: step.py changed"),
        (package(version="1.0"), package("2", version="1.1"), "mypkg: step.py changed; version 1.0 → 1.1"),
        (
            package(commit=OLD, dirty=False),
            package("2", commit=OLD, dirty=True),
            "mypkg: step.py changed; commit a1b2c3d → a1b2c3d with uncommitted changes",
        ),
        (package(files={"a.py": "1"}), package(files={"b.py": "1"}), "mypkg: a.py removed, b.py added"),
        (
            package(files={f"{name}.py": "1" for name in "abcde"}),
            package(files={f"{name}.py": "2" for name in "abcde"}),
            "mypkg: a.py, b.py, c.py changed and 2 more files",
        ),
    ],
)
def test_a_package_is_named_with_its_changed_files_and_its_commits(before, after, told):
    assert describe((before,), (after,)) == [told]


def test_a_package_of_another_commit_and_equal_files_has_not_changed():
    assert find_changed_packages((package(commit=OLD),), (package(commit=NEW, version="2"),)) == ()


@pytest.mark.parametrize("sides", [(None, (package(),)), ((package(),), None), (None, None), ((), ())])
def test_nothing_is_known_of_a_run_that_recorded_no_packages(sides):
    assert find_changed_packages(*sides) == ()


def test_a_package_that_only_one_run_imports_is_named():
    assert describe((), (package(),)) == ["mypkg: its code is recorded only in the later run"]
    assert describe((package(),), ()) == ["mypkg: its code is recorded only in the earlier run"]


@pytest.mark.parametrize(
    ("before", "after", "known"),
    [
        ({"commit": OLD, "dirty": False}, {"commit": OLD, "dirty": False}, []),
        ({"commit": OLD, "dirty": True}, {"commit": OLD, "dirty": True}, [False]),
        ({}, {}, [False]),
        ({"commit": OLD, "dirty": False}, {"commit": NEW, "dirty": False}, [True]),
    ],
    ids=["a clean commit", "a dirty commit", "no commit", "another commit"],
)
def test_files_without_a_hash_are_the_same_only_where_a_clean_commit_says_so(before, after, known):
    sides = [(package(left_out=3, **side),) for side in (before, after)]

    assert [changed.is_known for changed in find_changed_packages(*sides)] == known


def test_suites_of_either_run_count_and_unknown_ones_make_all_count():
    def suites_of(before, after):
        (changed,) = find_changed_packages((package(suites=before),), (package("2", suites=after),))
        return changed.suites

    assert suites_of(("a",), ("a", "b")) == ("a", "b")
    assert suites_of(("a",), ()) == ()


def test_a_package_reads_as_its_version_commit_and_a_hash_of_all_files():
    told = [package(digest, version="1.0", commit=OLD, dirty=True, left_out=1).describe() for digest in "12"]

    assert told[0] != told[1]
    assert {one.rpartition(" ")[0] for one in told} == {
        "version 1.0, commit a1b2c3d with uncommitted changes, 3 Python files, hash"
    }
