import subprocess

import pytest

from launcher import releases
from launcher.options import UsageError
from launcher.releases import choose_between, list_releases, read_pin

KNOWN = ("0.8.3", "0.9.0", "0.9.1", "0.9.2rc1", "0.9.2", "0.10.0", "0.10.0.post1", "0.10.2")

COMPLAINT = (
    "ERROR: Could not find a version that satisfies the requirement jax==0.0.0.dev0 "
    f"(from versions: {', '.join(KNOWN)})\nERROR: No matching distribution found for jax==0.0.0.dev0\n"
)


@pytest.fixture
def pip(monkeypatch):
    """What pip complains of, and how it was called."""
    called = []

    def answer(complaint):
        def run(command, **options):
            called.append(command)
            return subprocess.CompletedProcess(command, 1, "", complaint)

        monkeypatch.setattr(releases.subprocess, "run", run)
        return called

    return answer


@pytest.mark.parametrize(
    ("words", "expected"),
    [("jax==0.10.0", ("jax", "0.10.0")), (" jax[cuda13]==0.10.0 ", ("jax[cuda13]", "0.10.0"))],
)
def test_a_release_is_a_package_with_its_version(words, expected):
    assert read_pin(words) == expected


@pytest.mark.parametrize("words", ["jax", "jax>=0.10", "jax==0.10 flax==0.12", "jax==*", "requirements.txt", ""])
def test_anything_else_is_none_and_the_error_shows_one(words):
    with pytest.raises(UsageError, match=r'is no release; write one package with its version, such as "jax==0.10.0"'):
        read_pin(words)


def test_releases_are_in_order_and_without_candidates():
    assert choose_between("jax", "0.9.0", "0.10.2", KNOWN) == (
        "jax==0.9.0",
        "jax==0.9.1",
        "jax==0.9.2",
        "jax==0.10.0",
        "jax==0.10.0.post1",
        "jax==0.10.2",
    )


@pytest.mark.parametrize(
    ("good", "bad", "between"),
    [
        ("0.9.1", "0.8.3", ("jax==0.9.1", "jax==0.9.0", "jax==0.8.3")),
        ("0.9", "0.9.1.0", ("jax==0.9.0", "jax==0.9.1")),
        ("0.9.2rc1", "0.9.1", ("jax==0.9.2rc1", "jax==0.9.1")),
    ],
    ids=["the bad one is older", "zeros at the end", "a candidate"],
)
def test_releases_between_two_are_told_whatever_these_are(good, bad, between):
    assert choose_between("jax", good, bad, KNOWN) == between


@pytest.mark.parametrize(("version", "nearest"), [("0.9.5", "0.9.2"), ("0.11.0", "0.10.2"), ("0.1", "0.8.3")])
def test_one_that_does_not_exist_is_named_with_the_nearest(version, nearest):
    with pytest.raises(UsageError, match=rf"there is no jax=={version} for this Python; nearest: {nearest}"):
        choose_between("jax", "0.9.0", version, KNOWN)


def test_pip_is_asked_for_what_cannot_be_and_names_what_there_is(pip):
    called = pip(COMPLAINT)

    assert list_releases("jax[cuda13]==0.9.1", "jax[cuda13]==0.10.0") == (
        "jax[cuda13]==0.9.1",
        "jax[cuda13]==0.9.2",
        "jax[cuda13]==0.10.0",
    )
    assert called[0][-1] == "jax==0.0.0.dev0"


NONE = "ERROR: Could not find a version that satisfies the requirement jaxx==0.0.0.dev0 (from versions: none)\n"


@pytest.mark.parametrize(
    ("printed", "package", "words"),
    [
        ("ERROR: no network\n", "jax", "no network"),
        (NONE, "jaxx", r"the package index has no jaxx for"),
    ],
)
def test_where_pip_finds_nothing_its_own_words_are_told(pip, printed, package, words):
    pip(printed)

    with pytest.raises(UsageError, match=f"no release of {package} can be found: {words}"):
        list_releases(f"{package}==0.9.0", f"{package}==0.10.0")


@pytest.mark.parametrize(
    ("good", "bad", "said"),
    [
        ("jax==0.9.0", "jaxlib==0.10.0", "--good is a release of jax, --bad one of jaxlib"),
        ("jax==0.9.0", "jax==0.9.0", "--good and --bad are both jax==0.9.0"),
    ],
)
def test_two_releases_of_one_package_are_needed(good, bad, said):
    with pytest.raises(UsageError, match=said):
        list_releases(good, bad)
