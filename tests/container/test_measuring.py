"""A measurement in a container leaves what one without it leaves: a run and a page, both the caller's own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from jaxmeter.harness.record import RunRecord, Status, read_json
from jaxmeter.launch.images import image_id, lock_sha256
from jaxmeter.launch.jobs import measure_in_container
from tests.container.conftest import containers, owners
from tests.container.launch import CHECKOUT, cpu_job

pytestmark = pytest.mark.container

QUICK = ("--quick", "--processes", "3")
SMALLEST = (*QUICK, "--select", "operations[n=10]")


def test_a_run_and_its_page_belong_to_the_caller_and_name_image_and_lock(each_engine, image, caller):
    name = image(each_engine, "cpu")

    code = measure_in_container(cpu_job(each_engine, caller, *SMALLEST, "--run-id", "it"))

    assert code == 0
    assert owners(Path("results"), Path("reports")) == {(caller.uid, caller.gid)}
    assert [path.name for path in Path("reports").iterdir()] == ["report-it.html"]
    run = read_json(Path("results/it/run.json"), RunRecord)
    assert [case.status for case in run.cases] == [Status.OK]
    environment = run.manifest.environment
    assert environment.image == f"{name} {image_id(each_engine, name)}"
    assert environment.lock_sha256 == lock_sha256(CHECKOUT, "cpu")
    assert environment.host == caller.host
    assert environment.cpu_quota is None
    manifest = Path("results/it/manifest.json").read_text(encoding="utf8")
    assert caller.name not in manifest
    assert str(caller.home) not in manifest
    assert list(Path("results/it").glob("cases/*/trace/**/*.xplane.pb"))
    assert not [found for found in containers(each_engine) if found.startswith("jaxmeter-")]


def test_what_the_container_s_root_has_written_is_given_back_to_the_caller(each_engine, image, caller):
    image(each_engine, "cpu")
    job = cpu_job(each_engine, caller, *SMALLEST, "--run-id", "it")
    as_root = replace(job, request=replace(job.request, profile_privileged=True))

    code = measure_in_container(as_root)

    assert code == 0
    assert owners(Path("results"), Path("reports")) == {(caller.uid, caller.gid)}
