"""A machine without a network: wheels that came along, an image made of them alone, and a run in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jaxmeter.launch.images import Image, locate_lock
from jaxmeter.launch.jobs import build_images, measure_in_container
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.prefetch import download_asked_wheels
from tests.container.conftest import BASE, write_lock
from tests.container.launch import CHECKOUT, cpu_job

pytestmark = pytest.mark.container


def test_an_image_is_built_from_downloaded_wheels_without_a_network_and_measures(engine, caller, checkout, removed):
    write_lock(checkout, (CHECKOUT / locate_lock("cpu")).read_text(encoding="utf8"))
    image = Image("cpu", BASE, checkout)
    download_asked_wheels(["cpu"], checkout)
    nowhere = {"PIP_INDEX_URL": "https://index.invalid/simple"}

    build_images(engine, (image,), nowhere, offline=True)

    removed(engine, image.name)
    job = cpu_job(engine, caller, "--quick", "--select", "operations[n=10]", "--probe", "compilation")
    assert measure_in_container(replace(job, checkout=checkout)) == 0


def test_without_wheels_an_offline_build_says_how_to_get_them(each_engine, checkout):
    write_lock(checkout, (CHECKOUT / locate_lock("cpu")).read_text(encoding="utf8"))

    with pytest.raises(UsageError, match=r"the build is offline: fill docker/wheels with `wheels`"):
        build_images(each_engine, (Image("cpu", BASE, checkout),), {}, offline=True)
