"""Wheels ahead of time: for the image's Python and system, whatever this machine's are."""

import pytest

from jaxmeter.launch.options import UsageError
from jaxmeter.launch.prefetch import _find_pip, select_for_image

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


@pytest.fixture(scope="module")
def pip(tmp_path_factory):
    return _find_pip(tmp_path_factory.mktemp("environment"))


@pytest.mark.parametrize(
    ("python", "wanted"),
    [
        ("3.11", ["numpy==1.0", "--hash=sha256:aa", "--hash=sha256:bb", "rich==3.0", "--hash=sha256:ee"]),
        ("3.13", ["numpy==2.0", "--hash=sha256:cc", "rich==3.0", "--hash=sha256:ee"]),
    ],
)
def test_a_lock_is_read_for_the_python_of_the_image(tmp_path, pip, python, wanted):
    lock, selected = tmp_path / "cpu.txt", tmp_path / "selected.txt"
    lock.write_text(LOCK)

    select_for_image(pip, lock, selected, python)

    # Without markers, of which pip would ask the Python that runs it.
    assert [word for word in selected.read_text().split() if word not in ("\\", "#", "via", "jax")] == wanted


def test_a_lock_that_cannot_be_read_is_named(tmp_path, pip):
    with pytest.raises(UsageError, match=r"nothing\.txt cannot be read with"):
        select_for_image(pip, tmp_path / "nothing.txt", tmp_path / "selected.txt", "3.13")
