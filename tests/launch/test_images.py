import re
import shutil
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from jaxmeter.launch.engines import Engine
from jaxmeter.launch.images import (
    LOCK_LABEL,
    Build,
    Image,
    build_arguments,
    check_buildable,
    has_image_of_lock,
    image_id,
    image_size_bytes,
    proxies_in,
    revision_of,
    version_of,
)
from jaxmeter.launch.index import Secrets
from jaxmeter.launch.options import UsageError
from jaxmeter.version import __version__

BASE = "python:3.13-slim-trixie"
DOCKER = Engine("/usr/bin/docker", "docker", "28.2.2")
SHA = "sha256:56f9e3bbd47a23ed03096af1bdee71e3f26d987d900cd4c6b0cb2c7126422e47"


@pytest.fixture
def checkout(tmp_path):
    files = {
        "docker/Dockerfile": "FROM scratch\n",
        "docker/locks/cpu.txt": "jax==0.10.2\n",
        "docker/locks/gpu.txt": "jax==0.10.2\njax-cuda13-plugin==0.10.2\n",
        "jaxmeter/version.py": '"""The version."""\n\n__version__ = "0.3.0"\n',
        ".dockerignore": "*\n",
    }
    others = ("harness/deep/probe.py", "suites/matmul.py", "reporting/page.html")
    files |= dict.fromkeys(("docs/containers.md", "README.md", *(f"jaxmeter/{name}" for name in others)), "")
    for name, text in files.items():
        path = tmp_path / "checkout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path / "checkout"


def name_of(checkout, lock="cpu", base=BASE):
    return Image(lock, base, checkout).name


def test_a_name_has_the_lock_and_a_short_hash_which_changes_with_the_base(checkout):
    assert re.fullmatch("jaxmeter:cpu-[0-9a-f]{12}", name_of(checkout))
    assert name_of(checkout, base="ubuntu:26.04") != name_of(checkout)


GO_IN = (
    *("docker/Dockerfile", "docker/locks/cpu.txt", ".dockerignore", "jaxmeter/harness/deep/probe.py"),
    *("jaxmeter/reporting/page.html", "jaxmeter/reporting/templates/new.html"),
)
LEFT_OUT = (
    *("docs/containers.md", "README.md", "tests/test_it.py", "docker/locks/gpu.txt"),
    *("docker/wheels/jax-0.10.2-py3-none-any.whl", "jaxmeter/__pycache__/version.cpython-313.pyc"),
    "suites/__pycache__/deep/matmul.cpython-313.pyc",
)


@pytest.mark.parametrize("file", [*GO_IN, *LEFT_OUT])
def test_what_goes_into_an_image_decides_its_name_and_nothing_else(checkout, file):
    before, path = name_of(checkout), checkout / file
    path.parent.mkdir(parents=True, exist_ok=True)

    path.write_text(f"{path.read_text()}# changed\n" if path.exists() else "")

    assert (name_of(checkout) != before) is (file in GO_IN)


def test_another_name_of_a_file_and_code_that_moves_to_another_file_make_another_name(checkout):
    suites, names = checkout / "jaxmeter/suites", [name_of(checkout)]
    for one, other in (("matmul.py", "a.py"), ("a.py", "product.py")):
        (suites / one).rename(suites / other)
        names.append(name_of(checkout))
    for first, second in (("one", "two"), ("two", "one")):
        (suites / "a.py").write_text(first)
        (suites / "b.py").write_text(second)
        names.append(name_of(checkout))

    assert len(set(names)) == 5


def test_another_lock_is_another_name_even_with_the_same_packages(checkout):
    (checkout / "docker/locks/tpu.txt").write_text((checkout / "docker/locks/cpu.txt").read_text())

    assert name_of(checkout, "tpu").startswith("jaxmeter:tpu-")
    assert name_of(checkout, "tpu").partition("-")[2] != name_of(checkout).partition("-")[2]


def test_two_checkouts_of_the_same_code_have_the_same_image_and_equal_locks_equal_hashes(checkout, tmp_path):
    another = shutil.copytree(checkout, tmp_path / "another")
    before = Image("cpu", BASE, checkout).lock_sha256

    assert name_of(another) == name_of(checkout)
    (another / "jaxmeter/suites/matmul.py").write_text("changed")
    assert Image("cpu", "another", another).lock_sha256 == before != Image("gpu", BASE, checkout).lock_sha256
    assert len(before) == 64


def test_images_are_built_from_a_checkout_and_from_nothing_else(checkout, tmp_path):
    check_buildable(checkout)
    with pytest.raises(UsageError, match=f"built from a checkout of jaxmeter, and {tmp_path} has no docker/Dockerfile"):
        check_buildable(tmp_path)


def arguments_of(checkout, engine=DOCKER, **options):
    build = Build(Image("cpu", BASE, checkout), **options)
    return build_arguments(engine, build, revision="abc", version="0.3.0")


def values(arguments, option):
    return [after for word, after in pairwise(arguments) if word == option]


def test_an_image_is_built_from_the_checkouts_dockerfile_under_its_name(checkout):
    arguments = arguments_of(checkout)

    assert arguments[:2] == [DOCKER.client, "build"]
    assert values(arguments, "--file") == [str(checkout / "docker/Dockerfile")]
    assert values(arguments, "--tag") == [name_of(checkout)]
    assert arguments[-1] == str(checkout)


@pytest.mark.parametrize(("offline", "more"), [(False, []), (True, ["PIP_NO_INDEX=1"])])
def test_an_image_is_told_what_it_is_made_of_and_only_an_offline_build_does_without_an_index(checkout, offline, more):
    assert values(arguments_of(checkout, offline=offline), "--build-arg") == [
        f"BASE_IMAGE={BASE}",
        "LOCK=cpu",
        "VERSION=0.3.0",
        "REVISION=abc",
        f"LOCK_SHA256={Image('cpu', BASE, checkout).lock_sha256}",
        *more,
    ]


def test_every_build_argument_secret_and_label_is_one_of_the_dockerfile(checkout):
    dockerfile = (Path(__file__).parents[2] / "docker/Dockerfile").read_text()

    names = [value.partition("=")[0] for value in values(arguments_of(checkout, offline=True), "--build-arg")]

    assert [name for name in names if f"ARG {name}" not in dockerfile] == []
    assert all(f"--mount=type=secret,id={name} " in dockerfile for name in ("pip_conf", "ca_bundle"))
    assert f"{LOCK_LABEL}=" in dockerfile


@pytest.mark.parametrize(("kind", "progress"), [("docker", ["plain"]), ("nerdctl", ["plain"]), ("podman", [])])
def test_buildkit_is_told_to_print_lines_and_podman_does_so_by_itself(checkout, kind, progress):
    assert values(arguments_of(checkout, Engine(kind, kind, "1")), "--progress") == progress


@pytest.mark.parametrize(
    ("options", "network"),
    [
        ({}, []),
        ({"on_host_network": True}, ["host"]),
        ({"offline": True, "on_host_network": True}, ["none"]),
    ],
)
def test_a_build_has_the_engines_network_the_machines_or_none(checkout, options, network):
    assert values(arguments_of(checkout, **options), "--network") == network


def test_secrets_are_handed_over_by_file(checkout):
    secrets = Secrets({"pip_conf": Path("/tmp/x/pip.conf"), "ca_bundle": Path("/etc/ca.pem")})

    assert values(arguments_of(checkout), "--secret") == []

    assert values(arguments_of(checkout, secrets=secrets), "--secret") == [
        "id=pip_conf,src=/tmp/x/pip.conf",
        "id=ca_bundle,src=/etc/ca.pem",
    ]


def test_proxies_are_named_and_their_values_stay_out_of_the_command_line(checkout):
    variables = {"HTTPS_PROXY": "http://me:hunter2@proxy:3128", "no_proxy": "x", "http_proxy": "", "PATH": "/bin"}

    arguments = arguments_of(checkout, proxies=proxies_in(variables))

    assert values(arguments, "--build-arg")[-2:] == ["no_proxy", "HTTPS_PROXY"]
    assert "hunter2" not in " ".join(arguments)


@pytest.fixture
def engine_saying(tmp_path):
    """An engine whose client prints a text, ends with a code, and writes down what it was asked."""

    def make(text, code=0):
        client = tmp_path / "client"
        client.write_text(f"#!/bin/sh\nprintf '%s\\n' \"$@\" > {tmp_path}/asked\nprintf '%s' '{text}'\nexit {code}\n")
        client.chmod(0o755)
        return Engine(str(client), "podman", "5.4.2")

    return make


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [(SHA, 0, SHA), (f"{SHA.removeprefix('sha256:')}\n{SHA}\n", 0, SHA), ("", 0, None), (f"{SHA}\n", 1, None)],
)
def test_the_id_of_an_image_is_its_digest_whichever_engine_says_it(engine_saying, tmp_path, text, code, expected):
    assert image_id(engine_saying(text, code), "jaxmeter:cpu") == expected
    assert (tmp_path / "asked").read_text().split() == ["image", "inspect", "--format", "{{.Id}}", "jaxmeter:cpu"]


@pytest.mark.parametrize(("text", "size"), [("1272345678\n", 1272345678), ("Error\n", None), ("", None)])
def test_the_size_of_an_image_is_known_where_the_image_is(engine_saying, text, size):
    assert image_size_bytes(engine_saying(text), "jaxmeter:cpu") == size


@pytest.mark.parametrize(("text", "found"), [("56f9e3bbd47a\n", True), ("\n", False)])
def test_an_environment_is_known_by_the_label_that_its_image_carries(engine_saying, tmp_path, text, found):
    assert has_image_of_lock(engine_saying(text), "0a1b") is found
    assert f"label={LOCK_LABEL}=0a1b" in (tmp_path / "asked").read_text()


def git(folder, *words):
    identity = ("-c", "user.name=me", "-c", "user.email=me@example.com", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", folder, *identity, *words], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def test_a_revision_is_gits_and_says_whether_tracked_files_differ_from_it(checkout):
    outside = revision_of(checkout)
    git(checkout, "init", "--quiet")
    assert (outside, revision_of(checkout)) == ("unknown", "unknown")
    git(checkout, "add", "README.md")
    git(checkout, "commit", "--quiet", "--message", "first")
    head = git(checkout, "rev-parse", "HEAD")
    assert revision_of(checkout) == head
    (checkout / "README.md").write_text("changed")
    assert revision_of(checkout) == f"{head}-dirty"


def test_the_version_is_the_harness_own_and_unknown_where_it_is_written_otherwise(checkout):
    assert version_of(checkout) == "0.3.0"
    assert version_of(Path(__file__).parents[2]) == __version__
    (checkout / "jaxmeter/version.py").write_text("version = 3\n")
    assert version_of(checkout) == "unknown"
