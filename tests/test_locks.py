"""The locks agree with each other and with pyproject.toml, and hold nothing of the machine that made them."""

import os
import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from uv import find_uv_bin

from jaxmeter.launch.releases import PYTHONS
from tests.tools.exports import list_exports
from tests.tools.locks import find_unlocked

CHECKOUT = Path(__file__).parents[1]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
LOCKS = ("cpu", "cpu-torch", "gpu", "gpu-cuda12", "tpu", "dev", "docs")


def text_of(lock):
    return (CHECKOUT / "docker" / "locks" / f"{lock}.txt").read_text()


def entries(text):
    """(requirement, hashes) of every entry; an entry goes on over lines that end in a backslash."""
    lines = re.sub(r"\\\n", " ", text).splitlines()
    for line in lines:
        requirement, *hashes = line.split("--hash=")
        if requirement.strip() and not line.lstrip().startswith("#"):
            yield Requirement(requirement), [digest.strip() for digest in hashes]


@cache
def versions(lock, python):
    """What the lock installs on Linux with this Python: {name: version}."""
    environment = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    environment |= {"platform_machine": "x86_64"}
    environment |= {"platform_python_implementation": "CPython", "implementation_name": "cpython"}
    installed = {}
    for requirement, _ in entries(text_of(lock)):
        if requirement.marker is None or requirement.marker.evaluate(environment):
            (exact,) = requirement.specifier
            assert exact.operator == "=="
            installed[canonicalize_name(requirement.name)] = exact.version
    return installed


def group(name):
    """Requirements of a dependency group, with those of the groups that it includes."""
    for item in PROJECT["dependency-groups"][name]:
        if isinstance(item, dict):
            yield from group(item["include-group"])
        else:
            yield item


def direct(lock):
    """What pyproject.toml asks of a lock by name."""
    project = PROJECT["project"]
    optional = project["optional-dependencies"]
    extras = {"cpu": [], "cpu-torch": optional["torch"], "dev": group("dev"), "docs": group("docs"), **optional}
    return [Requirement(wanted) for wanted in (*project["dependencies"], *extras[lock])]


def uv(*arguments):
    # Neither this machine's settings nor its cache: both could make a stale lock look fresh, or the other way round.
    variables = {name: value for name, value in os.environ.items() if not name.startswith("UV_")}
    command = [find_uv_bin(), *arguments, "--no-config", "--no-cache"]
    return subprocess.run(command, cwd=CHECKOUT, env=variables, capture_output=True, text=True, check=False)


def answers(locked, wanted):
    name = canonicalize_name(wanted.name)
    return name in locked and wanted.specifier.contains(locked[name])


@pytest.mark.parametrize("python", PYTHONS)
def test_all_locks_name_one_jax(python):
    named = {lock: (versions(lock, python)["jax"], versions(lock, python)["jaxlib"]) for lock in LOCKS}

    assert len(set(named.values())) == 1, named
    assert len(set(named["cpu"])) == 1, named


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("lock", LOCKS)
def test_every_lock_installs_what_the_cpu_lock_installs_and_answers_every_direct_dependency(lock, python):
    """Fails after a dependency was added or raised in pyproject.toml: nox -s lock."""
    locked = versions(lock, python)

    assert versions("cpu", python).items() <= locked.items()
    assert [str(wanted) for wanted in direct(lock) if not answers(locked, wanted)] == []


@pytest.mark.parametrize("lock", LOCKS)
def test_every_requirement_has_hashes_and_a_lock_names_no_index_and_no_path(lock):
    """Where packages come from is the business of the machine that installs them."""
    assert [requirement.name for requirement, hashes in entries(text_of(lock)) if not hashes] == []
    assert re.findall(r"^--.*|https?:.*|file:.*|^.* @ .*", text_of(lock), re.MULTILINE) == []


def test_the_project_lock_names_the_public_index_only():
    """A mirror's address, which uv would write down, is of no use to others and may be nobody else's business."""
    locked = tomllib.loads((CHECKOUT / "uv.lock").read_text())

    sources = {address for package in locked["package"] for address in package["source"].values()}
    hosts = {urlsplit(wheel["url"]).hostname for package in locked["package"] for wheel in package.get("wheels", [])}

    assert sources == {"https://pypi.org/simple", "."}
    assert hosts == {"files.pythonhosted.org"}


def test_the_project_lock_is_fresh():
    """Fails after a dependency was changed in pyproject.toml: nox -s lock."""
    # Without a network: what is locked already needs none to be found sufficient.
    checked = uv("lock", "--check", "--offline")

    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize(("name", "command"), list(list_exports()))
def test_a_lock_is_what_the_project_lock_exports(name, command, tmp_path):
    """Fails after uv.lock was written and nothing exported, and after an edit by hand: nox -s lock."""
    exported = tmp_path / f"{name}.txt"

    done = uv(*command[1:-1], str(exported))

    assert done.returncode == 0, done.stderr
    assert exported.read_text() == text_of(name)


PLUGINS = {
    "gpu": {"jax-cuda13-plugin", "jax-cuda13-pjrt"},
    "gpu-cuda12": {"jax-cuda12-plugin", "jax-cuda12-pjrt"},
    "tpu": {"libtpu"},
}


@pytest.mark.parametrize("lock", PLUGINS)
def test_a_backend_lock_brings_the_backends_plugin(lock):
    assert all(PLUGINS[lock] <= versions(lock, python).keys() for python in PYTHONS)


def test_what_another_lock_has_left_behind_is_foreign_and_what_installs_is_not():
    lock = "jax==0.10.2 \\\n    --hash=sha256:0\nml_dtypes==1 ; python_version < '3'\n"
    installed = "jax==0.10.2\nML-dtypes==2\npip==24.0\nsetuptools==1\ntorch==2.15.0\nnvidia-cublas==13.4\n"

    assert find_unlocked(lock, installed) == ["torch", "nvidia-cublas"]
