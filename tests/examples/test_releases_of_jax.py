"""The walk over releases: each against the one before it, and again where it stopped."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from examples.releases_of_jax import PROGRAMS, measure, write_command

RELEASES = ("0.4.31", "0.5.0", "0.6.0")
PYTHONS = {release: Path("/environments", release, "bin", "python") for release in RELEASES}


class Machine:
    """Stands for the command: it notes what is run, and writes a run unless the release is broken."""

    def __init__(self, broken: Sequence[str] = ()) -> None:
        self.broken = broken
        self.commands: list[Sequence[str]] = []

    def __call__(self, words: Sequence[str]) -> int:
        self.commands.append(words)
        folder = Path(words[words.index("--out") + 1], words[words.index("--run-id") + 1])
        if folder.name in self.broken:
            return 2
        folder.mkdir()
        (folder / "run.json").touch()
        return 0

    def pairs(self) -> list[tuple[str, str]]:
        """Each run that was made, and what it was measured against."""
        read = ((dict(itertools.pairwise(words))) for words in self.commands)
        return [(one["--run-id"], Path(one.get("--against", "")).name) for one in read]


def test_each_release_is_measured_once_against_the_one_before_and_the_last_against_the_first(tmp_path: Path) -> None:
    machine, again = Machine(), Machine()

    runs = measure(RELEASES, tmp_path, PYTHONS, machine)

    assert machine.pairs() == [("0.4.31", ""), ("0.5.0", "0.4.31"), ("0.6.0", "0.5.0"), ("0.4.31-to-0.6.0", "0.4.31")]
    assert [run.name for run in runs] == ["0.4.31", "0.5.0", "0.6.0", "0.4.31-to-0.6.0"]
    assert measure(RELEASES, tmp_path, PYTHONS, again) == runs
    assert again.commands == []


def test_the_last_is_compared_with_another_first_release_which_is_measured_by_itself(tmp_path: Path) -> None:
    machine = Machine()

    runs = measure(RELEASES[1:], tmp_path, PYTHONS, machine, first="0.4.31", suffix="-python-3.12")

    assert machine.pairs() == [
        ("0.5.0-python-3.12", ""),
        ("0.6.0-python-3.12", "0.5.0-python-3.12"),
        ("0.4.31-python-3.12", ""),
        ("0.4.31-to-0.6.0-python-3.12", "0.4.31-python-3.12"),
    ]
    assert [words[0] for words in machine.commands] == [
        str(PYTHONS[one]) for one in ("0.5.0", "0.6.0", "0.4.31", "0.6.0")
    ]
    assert len(runs) == 4


def test_a_release_that_cannot_be_measured_is_left_out_and_without_the_first_there_is_no_total(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    machine = Machine(broken=["0.5.0"])

    runs = measure(RELEASES, tmp_path / "a", PYTHONS, machine)
    rest = measure(RELEASES[1:], tmp_path / "b", PYTHONS, Machine(broken=["0.4.31"]), first="0.4.31")

    assert machine.pairs()[-1] == ("0.6.0", "0.4.31")
    assert [run.name for run in runs] == ["0.4.31", "0.6.0"]
    assert [run.name for run in rest] == ["0.5.0", "0.6.0"]


def test_an_interrupted_run_is_continued(tmp_path: Path) -> None:
    (tmp_path / "0.5.0").mkdir()

    words = write_command(PYTHONS["0.5.0"], tmp_path / "0.5.0", (tmp_path / "0.4.31", PYTHONS["0.4.31"]))

    lock_step = ["--against", str(tmp_path / "0.4.31"), "--lock-step", str(PYTHONS["0.4.31"])]
    assert words[-6:] == ["--resume", str(tmp_path / "0.5.0"), *lock_step]
    assert "--select" not in words


@pytest.mark.parametrize("earlier", [False, True])
def test_only_a_release_with_a_predecessor_is_timed(tmp_path: Path, *, earlier: bool) -> None:
    before = (tmp_path / "0.4.31", PYTHONS["0.4.31"]) if earlier else None

    words = write_command(PYTHONS["0.5.0"], tmp_path / "0.5.0", before)

    assert ("timing" in words) is earlier
    assert words.count("--select") == len(PROGRAMS)
