"""Two images take turns: servers of one container are asked for by a run in another."""

from __future__ import annotations

import os
import secrets
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from jaxmeter.harness.record import RunRecord, read_json
from jaxmeter.launch.containers import caller_here
from jaxmeter.launch.gate import offer_baseline
from jaxmeter.launch.images import image_id
from jaxmeter.launch.jobs import measure_in_container, offer_environment
from jaxmeter.launch.upgrade import AFTER, BEFORE
from tests.container.conftest import containers
from tests.container.launch import CHECKOUT, cpu_job

pytestmark = pytest.mark.container

DOCKERFILE = "FROM {base}\nENV JAX_ENABLE_X64=0 OF_ITS_OWN=1\nLABEL number={number}\n"


@pytest.fixture
def images(engine, image, removed):
    """Ids of an image, and of one that adds a variable."""
    base = image(engine, "cpu")
    name = f"jaxmeter-test:{secrets.token_hex(4)}"
    text = DOCKERFILE.format(base=base, number=secrets.token_hex(4))
    subprocess.run([engine.client, "build", "--quiet", "--tag", name, "-"], input=text, text=True, check=True)
    removed(engine, name)
    return image_id(engine, base), image_id(engine, name)


def test_two_images_take_turns(engine, images, suite, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    caller, before = caller_here(os.environ), containers(engine)
    measured = ("--quick", "--processes", "3", "--suites", str(suite))
    old, new = (("--image", one, *measured) for one in images)
    first = cpu_job(engine, caller, *old, *BEFORE, "--run-id", "old")
    assert measure_in_container(replace(first, run=replace(first.run, is_reported=False))) == 0
    beside = (*AFTER, "--against", "old", "--run-id", "new")

    with offer_environment(cpu_job(engine, caller, *old, *beside)) as socket:
        second = cpu_job(engine, caller, *new, *beside, "--lock-step", str(socket))
        code = measure_in_container(replace(second, run=replace(second.run, is_reported=False)))

    assert code == 0
    runs = [read_json(Path("results", name, "run.json"), RunRecord) for name in ("old", "new")]
    assert [run.manifest.environment.image for run in runs] == [f"{one} {one}" for one in images]
    timed = {
        (variant.name, len([one for one in variant.outcomes["timing"].values["execution_s"] if one]))
        for case in runs[1].cases
        for variant in case.variants
        if "timing" in variant.outcomes
    }
    assert {("increment:jit", 3), ("increment:jit before", 3)} <= timed
    assert containers(engine) == before
    assert not socket.parent.exists()


def test_the_image_of_a_baseline_is_offered_where_today_s_is_another(
    engine, images, suite, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    caller, before = caller_here(os.environ), containers(engine)
    words = ("--quick", "--processes", "3", "--suites", str(suite))
    old = cpu_job(engine, caller, "--image", images[0], *words, "--probe", "memory", "--run-id", "old")
    assert measure_in_container(replace(old, run=replace(old.run, is_reported=False))) == 0
    baseline = Path("results/old")
    session = SimpleNamespace(checkout=CHECKOUT, variables=os.environ)

    for image, is_offered in zip(images, (False, True), strict=True):
        job = cpu_job(engine, caller, "--image", image, *words, "--against", "old", "--run-id", "new")
        with offer_baseline(session, "cpu", job.request, job.run, baseline) as socket:
            assert (socket is not None and socket.is_socket()) == is_offered
            assert len(containers(engine) - before) == is_offered

    said = capsys.readouterr().err
    assert "not as in the baseline: JAX_ENABLE_X64; its environment takes turns with today's" in said
    manifest = (baseline / "manifest.json").read_text(encoding="utf8")
    (baseline / "manifest.json").write_text(manifest.replace(images[0], f"sha256:{'0' * 64}"), encoding="utf8")
    with offer_baseline(session, "cpu", job.request, job.run, baseline) as socket:
        assert socket is None
    assert "is not here; load it (docker load), or measure a new baseline" in capsys.readouterr().err
