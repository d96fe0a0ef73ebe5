"""Versions of locks, by Python, and what changed from one lock to the next."""

import re
from pathlib import Path

import pytest

from jaxmeter.launch.images import locate_lock
from tests.tools.exports import list_exports
from tests.tools.lock_versions import Change, choose_version, list_changes, read_locked

CHECKOUT = Path(__file__).parents[2]
OLD = """
jax==0.10.2 ; python_full_version < '3.12' \\
    --hash=sha256:0
jax==0.12.0.1 ; python_full_version >= '3.12' \\
    --hash=sha256:1
    # via jaxmeter
ml_dtypes==1.0 \\
    --hash=sha256:2
cuda==13.1 ; python_full_version >= '3.12' and sys_platform == 'linux'
"""


@pytest.mark.parametrize(
    ("name", "python", "version"),
    [
        ("jax", "3.11.9", "0.10.2"),
        ("jax", "3.12.0", "0.12.0.1"),
        ("ml-dtypes", "3.11.9", "1.0"),
        ("cuda", "3.11.9", ""),
        ("cuda", "3.13.0", "13.1"),
        ("torch", "3.13.0", ""),
        ("scipy", "3.11.9", ""),
        ("scipy", "3.12.7", "1"),
        ("scipy", "3.13.0", ""),
        ("two", "3.13.0", "1.9 or 1.10"),
    ],
)
def test_the_locked_version_is_that_of_the_python_and_of_several_platforms_all_are_named(name, python, version):
    two = "two==1.10 ; sys_platform == 'linux'\ntwo==1.9 ; sys_platform != 'linux'\n"
    locked = read_locked(f"{OLD}scipy==1 ; python_full_version == '3.12.*'\n{two}")

    assert choose_version(locked, name, python) == version


@pytest.mark.parametrize(
    ("replaced", "by", "changes"),
    [
        ("0.12.0.1", "0.13.0", [Change("jax", "0.12.0.1", "0.13.0", "Python ≥ 3.12")]),
        ("0.10.2", "0.10.3", [Change("jax", "0.10.2", "0.10.3", "Python < 3.12")]),
        ("1.0", "1.1", [Change("ml-dtypes", "1.0", "1.1")]),
        ("ml_dtypes==1.0", "ml-dtypes==1.0", []),
        ("sha256:0", "sha256:5", []),
        ("'3.12' \\\n    --hash=sha256:1", "'3.13' \\\n", [Change("jax", "0.12.0.1", "", "Python ≥ 3.12, < 3.13")]),
        ("ml_dtypes==1.0", "numpy==2", [Change("ml-dtypes", "1.0", ""), Change("numpy", "", "2")]),
    ],
)
def test_a_change_names_both_versions_and_the_pythons_where_they_differ(replaced, by, changes):
    assert list(list_changes(read_locked(OLD), read_locked(OLD.replace(replaced, by)))) == changes


def test_a_package_that_is_split_by_python_changed_differently_for_each():
    new = "ml_dtypes==1.0 ; python_full_version < '3.13'\nml_dtypes==2.0 ; python_full_version >= '3.13'\n"

    changes = list(list_changes(read_locked("ml_dtypes==0.9\n"), read_locked(new)))

    assert [str(change) for change in changes] == [
        "ml-dtypes 0.9 → 1.0 (Python < 3.13)",
        "ml-dtypes 0.9 → 2.0 (Python ≥ 3.13)",
    ]


def test_a_version_that_an_upgrade_takes_back_is_marked():
    old, new = read_locked("cublas==13.10.0\n"), read_locked("cublas==13.4.1\n")

    assert [str(change) for change in list_changes(old, new)] == ["cublas 13.10.0 → 13.4.1, older"]
    assert [str(change) for change in list_changes(new, old)] == ["cublas 13.4.1 → 13.10.0"]


@pytest.mark.parametrize("name", [name for name, _ in list_exports()])
def test_every_version_and_every_marker_of_python_in_our_locks_is_read(name):
    text = (CHECKOUT / locate_lock(name)).read_text(encoding="utf8")

    locked = read_locked(text)

    assert sum(map(len, locked.values())) == len(re.findall("^[^ #]+==", text, re.MULTILINE))
    assert all(choose_version(locked, "jax", python) for python in ("3.11.9", "3.13.0")) or name in ("docs", "launch")
    markers = {marker for versions in locked.values() for _, marker in versions}
    assert not [
        marker for marker in markers if re.sub(r"python_full_version (<|>=|==) '[\d.*]+'", "", marker).count("python_f")
    ]
