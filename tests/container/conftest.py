"""Real engines, real images, and somebody who runs them. Without an engine these tests fail; podman is a second one."""

from __future__ import annotations

import functools
import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jaxmeter.launch.containers import Caller, Container, caller_here, run_arguments
from jaxmeter.launch.engines import ENGINE_VARIABLE, Engine, find_engine
from jaxmeter.launch.host import GB, free_bytes
from jaxmeter.launch.images import CODE, DOCKERFILE, LOCKS, Image, image_id, locate_lock
from jaxmeter.launch.jobs import build_images
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.request import BASE_IMAGE_VARIABLE, DEFAULT_BASE_IMAGE
from tests.container.launch import CHECKOUT
from tests.end_to_end.conftest import write_small_suite

BASE = os.environ.get(BASE_IMAGE_VARIABLE) or DEFAULT_BASE_IMAGE
REQUIRE_PODMAN = "JAXMETER_REQUIRE_PODMAN"

SOMEBODY = 12345
"""A user id that no image has a name for."""

BuiltImage = Callable[[Engine, str], str]


def pytest_itemcollected(item: pytest.Function) -> None:
    """Mark what needs the second engine."""
    params = item.callspec.params.values() if hasattr(item, "callspec") else ()
    if "podman" in [*item.fixturenames, *params]:
        item.add_marker("podman")


@pytest.fixture(scope="session")
def engine():
    """The engine that a run would use."""
    search = find_engine(os.environ)
    if search.engine is None:
        pytest.fail(f"these tests run real containers, and {search.why_none()}", pytrace=False)
    return search.engine


@pytest.fixture(scope="session")
def podman():
    try:
        found = find_engine({**os.environ, ENGINE_VARIABLE: "podman"}).engine
    except UsageError as error:
        if os.environ.get(REQUIRE_PODMAN) == "1":
            pytest.fail(f"{REQUIRE_PODMAN}=1, and {error}", pytrace=False)
        pytest.skip(str(error))
    assert found is not None
    return found


@pytest.fixture(scope="session", params=["engine", "podman"])
def each_engine(request):
    found: Engine = request.getfixturevalue(request.param)
    return found


@pytest.fixture(scope="session")
def image():
    """Builds the image of a lock unless the engine has it; its name."""

    @functools.cache
    def build(engine: Engine, lock: str) -> str:
        wanted = Image(lock, BASE, CHECKOUT)
        free, needed = free_bytes(engine.storage), LOCKS[lock].disk_bytes
        if lock == "gpu" and image_id(engine, wanted.name) is None and free is not None and free < needed:
            pytest.skip(f"{engine.storage} has {free / GB:.0f} GB free; the gpu image takes up to {needed / GB:.0f} GB")
        build_images(engine, (wanted,), os.environ)
        return wanted.name

    return build


@pytest.fixture
def caller(tmp_path, monkeypatch):
    """Who runs it: not root, in a working folder of their own."""
    monkeypatch.chdir(tmp_path)
    here = caller_here(os.environ)
    if here.uid != 0:
        return here
    for folder in (tmp_path, tmp_path / "results", tmp_path / "reports"):
        folder.mkdir(exist_ok=True)
        os.chown(folder, SOMEBODY, SOMEBODY)
    return replace(here, uid=SOMEBODY, gid=SOMEBODY, name="somebody", home=Path("/home/somebody"))


@pytest.fixture
def suite(tmp_path):
    """A user's suite, in the working folder: one workload with three small cases."""
    return write_small_suite(tmp_path)


@pytest.fixture
def checkout(tmp_path):
    """A copy of what images are built from. Its cpu lock is empty and like no other, so no layer of it is there yet."""
    folder = tmp_path / "checkout"
    shutil.copytree(CHECKOUT / CODE, folder / CODE, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(CHECKOUT / DOCKERFILE.parent, folder / DOCKERFILE.parent, ignore=shutil.ignore_patterns("*.whl"))
    shutil.copy(CHECKOUT / ".dockerignore", folder)
    write_lock(folder, "")
    return folder


def write_lock(checkout: Path, text: str) -> None:
    """Makes `text` the cpu lock, with a comment that keeps an engine from knowing it already."""
    (checkout / locate_lock("cpu")).write_text(f"{text}\n# {secrets.token_hex()}\n", encoding="utf8")


@pytest.fixture
def removed():
    """Images to remove when a test is over."""
    images: list[tuple[Engine, str]] = []
    yield lambda engine, name: images.append((engine, name))
    for engine, name in images:
        subprocess.run([engine.client, "rmi", "--force", name], capture_output=True, check=False)


def run_inside(
    engine: Engine, caller: Caller, image: str, *arguments: str, **settings: Any
) -> subprocess.CompletedProcess[str]:
    """Runs python3 in a hardened container as the launcher does, and keeps what it prints."""
    container = Container(image, arguments, **settings)
    command = run_arguments(engine, container, caller)
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def configuration(engine: Engine, image: str) -> dict[str, Any]:
    """What an image says of itself: labels, user, environment."""
    command = [engine.client, "image", "inspect", "--format", "{{json .Config}}", image]
    found: dict[str, Any] = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return found


def containers(engine: Engine) -> set[str]:
    """Names of all containers, running or not."""
    command = [engine.client, "ps", "--all", "--format", "{{.Names}}"]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def owners(*folders: Path) -> set[tuple[int, int]]:
    """Who owns what is in these folders."""
    found = [path.lstat() for folder in folders for path in folder.rglob("*")]
    assert found
    return {(one.st_uid, one.st_gid) for one in found}
