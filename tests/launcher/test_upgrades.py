from pathlib import Path

import pytest

from launcher.options import UsageError
from launcher.sessions.upgrade import REFUSED, read_upgrade_request

BOTH = ("--old", "jax==0.10.0", "--new=jax==0.10.2")


def test_both_environments_and_what_to_measure_are_read():
    asked = read_upgrade_request([*BOTH, "--quick", "--min-effect", "2%", "--suites", "mine.py", "--markdown=a.md"])

    assert (asked.old.words, asked.new.words) == ("jax==0.10.0", "jax==0.10.2")
    assert asked.measuring == ("--quick", "--suites", "mine.py")
    assert asked.judging == ("--min-effect", "2%", "--markdown", "a.md")
    assert asked.out == Path("results")


def test_runs_are_kept_where_the_measurement_keeps_them():
    asked = read_upgrade_request([*BOTH, "--out", "there"])

    assert asked.out == Path("there")
    assert asked.measuring == ("--out", "there")


@pytest.mark.parametrize("given", [(), ("--old", "jax"), ("--new", "jax")])
def test_without_both_an_example_is_given(given):
    with pytest.raises(UsageError, match=r'name both environments: nox -s upgrade -- --old "jax==0\.10\.0"'):
        read_upgrade_request(given)


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("form", ["{}", "{}=a"])
def test_what_an_upgrade_does_not_take_is_said(name, form):
    with pytest.raises(UsageError, match=f"{name}: "):
        read_upgrade_request([*BOTH, form.format(name)])


IMAGES = (f"registry.example/a/b@sha256:{'0' * 64}", f"sha256:{'a1' * 32}")


def test_two_images_are_read_by_their_digests():
    asked = read_upgrade_request(["--old", IMAGES[0], "--new", IMAGES[1], "--quick"])

    assert (asked.old, asked.new) == IMAGES
    assert asked.measuring == ("--quick",)


@pytest.mark.parametrize("arms", [(IMAGES[0], "jax==0.10.2"), ("jax==0.10.2", IMAGES[1])])
def test_an_image_beside_packages_is_refused(arms):
    with pytest.raises(UsageError, match="an image on one side alone; give two images"):
        read_upgrade_request(["--old", arms[0], "--new", arms[1]])


@pytest.mark.parametrize("word", ["sha256:12", "a/b@sha256:" + "g" * 64, IMAGES[1] + "0"])
def test_what_is_no_whole_digest_is_told(word):
    with pytest.raises(UsageError, match="no image; a digest is sha256: and 64 digits"):
        read_upgrade_request(["--old", word, "--new", IMAGES[1]])
