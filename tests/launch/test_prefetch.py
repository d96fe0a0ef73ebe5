"""Wheels ahead of time: for the image's Python and system, whatever this machine's are."""

import subprocess
import sys

import pytest

from jaxmeter.launch import pip
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.pip import find_pip
from jaxmeter.launch.prefetch import select_for_image

LOCK = r"""numpy==1.0 ; python_full_version < '3.12' \
    --hash=sha256:aa \
    --hash=sha256:bb
    # via jax
numpy==2.0 ; python_full_version >= '3.12' \
    --hash=sha256:cc
colorama==1.0 ; sys_platform == 'win32' \
    --hash=sha256:dd
rich==3.0 \
    --hash=sha256:ee
"""


def test_a_python_without_pip_has_one_made_for_it(monkeypatch):
    made = []

    def run(command, **options):
        made.append(command)
        return subprocess.CompletedProcess(command, len(made) - 1, "", "ensurepip is not available\n")

    monkeypatch.setattr(pip, "find_spec", lambda name: None)
    monkeypatch.setattr(pip.subprocess, "run", run)

    command = pip.find_pip.__wrapped__()

    (*words, folder), wanted = made[0], [sys.executable, "-m", "venv"]
    assert (words, command) == (wanted, (f"{folder}/bin/python", "-m", "pip"))
    with pytest.raises(UsageError, match=r"no environment with one: ensurepip is not available$"):
        pip.find_pip.__wrapped__()


@pytest.mark.parametrize(
    ("python", "wanted"),
    [
        ("3.11", ["numpy==1.0", "--hash=sha256:aa", "--hash=sha256:bb", "rich==3.0", "--hash=sha256:ee"]),
        ("3.13", ["numpy==2.0", "--hash=sha256:cc", "rich==3.0", "--hash=sha256:ee"]),
    ],
)
def test_a_lock_is_read_for_the_python_of_the_image(tmp_path, python, wanted):
    lock, selected = tmp_path / "cpu.txt", tmp_path / "selected.txt"
    lock.write_text(LOCK)

    select_for_image(find_pip(), lock, selected, python)

    # Without markers, of which pip would ask the Python that runs it.
    assert [word for word in selected.read_text().split() if word not in ("\\", "#", "via", "jax")] == wanted


def test_a_lock_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(UsageError, match=r"nothing\.txt cannot be read with"):
        select_for_image(find_pip(), tmp_path / "nothing.txt", tmp_path / "selected.txt", "3.13")
