"""The private folder of a run that goes on."""

import stat
from contextlib import nullcontext
from pathlib import Path

import pytest

from jaxmeter.harness.parent.prepare_run import PREFIX, find_parent, make_scratch


@pytest.mark.parametrize("ending", [nullcontext(), pytest.raises(KeyboardInterrupt)], ids=["ended", "interrupted"])
def test_a_scratch_folder_is_new_private_and_gone_at_the_end(tmp_path, ending):
    with ending as interrupted, make_scratch(tmp_path) as scratch:
        (scratch / "cache").mkdir()
        assert (scratch.parent, stat.S_IMODE(scratch.stat().st_mode)) == (tmp_path, 0o700)
        if interrupted is not None:
            raise KeyboardInterrupt

    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_has_left_is_removed_and_never_used(tmp_path):
    left = tmp_path / f"{PREFIX}left"
    (left / "inputs").mkdir(parents=True)
    (left / "inputs" / "case").write_text("planted")

    with make_scratch(tmp_path) as scratch:
        assert not left.exists()
        assert list(scratch.iterdir()) == []


def test_the_folder_of_a_run_that_goes_on_is_left_alone(tmp_path):
    with make_scratch(tmp_path) as first, make_scratch(tmp_path) as second:
        assert first.is_dir()
        assert first != second


def test_a_link_that_has_such_a_name_is_not_followed(tmp_path):
    precious = tmp_path / "precious"
    precious.mkdir()
    (tmp_path / f"{PREFIX}link").symlink_to(precious)

    with make_scratch(tmp_path):
        pass

    assert precious.is_dir()


@pytest.mark.parametrize(
    ("run", "parent"), [("results/it", "results"), ("/a/b", "/a"), (".", ".."), ("it", "."), ("..", "../..")]
)
def test_the_scratch_folder_of_a_run_is_made_next_to_it(run, parent):
    assert find_parent(Path(run)) == Path(parent)
