"""What is in the way of a build or a run is said in words that tell what to do; the engine's own are about layers."""

from __future__ import annotations

import os
from contextlib import nullcontext

import pytest

from jaxmeter.launch.engines import Engine
from jaxmeter.launch.images import Image
from jaxmeter.launch.index import CA_VARIABLES
from jaxmeter.launch.jobs import build_images
from jaxmeter.launch.options import UsageError
from tests.container.conftest import BASE, run_inside, write_lock
from tests.container.package_index import closed_port, locked, make_certificate, make_wheel, serving

pytestmark = pytest.mark.container

MB = 10**6
WHEEL = make_wheel(b"x" * MB)


def pip_settings(**settings: str) -> dict[str, str]:
    """Environment variables in which pip knows only these settings, and gives up soon."""
    others = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("PIP_") and name not in CA_VARIABLES and not name.lower().endswith("_proxy")
    }
    return {**others, "PIP_CONFIG_FILE": os.devnull, "PIP_RETRIES": "1", **settings}


def complaint(engine: Engine, image: Image, variables: dict[str, str]) -> str:
    """Why an image cannot be built."""
    with pytest.raises(UsageError) as failed:
        build_images(engine, (image,), variables)
    words = str(failed.value)
    assert words.startswith(f"{image.name} could not be built: ")
    return words


@pytest.mark.parametrize("base", ["localhost:1/nothing:none", "jaxmeter-test-nothing:none"])
def test_a_base_image_out_of_reach(base, each_engine, checkout):
    words = complaint(each_engine, Image("cpu", base, checkout), pip_settings())

    assert "the base image is not here and cannot be pulled. Load it from a machine that has it" in words
    assert f"{each_engine.client} load" in words


NO_ANSWER = "the package index does not answer, or lacks a locked package"
INDEXES = {
    "down": (None, {}, "1.0", NO_ANSWER),
    "breaks off in the middle of a wheel": (WHEEL, {"breaks_off": True}, "1.0", NO_ANSWER),
    "serves another file than was locked": (
        make_wheel(b"x"),
        {},
        "1.0",
        "the package index serves other files than those that were locked",
    ),
    "lacks the locked version": (
        WHEEL,
        {},
        "2.0",
        NO_ANSWER,
    ),
}


@pytest.mark.parametrize(("wheel", "options", "version", "said"), INDEXES.values(), ids=INDEXES)
def test_an_index_that_gives_no_locked_wheel(each_engine, checkout, wheel, options, version, said):
    write_lock(checkout, locked(WHEEL).replace("==1.0", f"=={version}"))
    image = Image("cpu", BASE, checkout)

    with nullcontext() if wheel is None else serving(wheel, **options) as index:
        url = f"http://127.0.0.1:{closed_port()}/simple" if index is None else index.url
        words = complaint(each_engine, image, pip_settings(PIP_INDEX_URL=url))

    assert index is None or any(path.endswith(".whl") for path in index.asked) is (version == "1.0")
    assert said in words


def test_an_index_behind_an_unknown_authority_until_pip_is_told_of_it(each_engine, checkout, tmp_path, removed):
    write_lock(checkout, locked(WHEEL))
    certificate = make_certificate(tmp_path)
    image = Image("cpu", BASE, checkout)

    with serving(WHEEL, certificate=certificate) as index:
        words = complaint(each_engine, image, pip_settings(PIP_INDEX_URL=index.url))
        assert "a certificate is not trusted, as behind a company's proxy" in words
        assert "export PIP_CERT=/path/to/ca.pem" in words
        assert index.asked == []

        trusting = pip_settings(PIP_INDEX_URL=index.url, PIP_CERT=str(certificate.certificate))
        build_images(each_engine, (image,), trusting)
        removed(each_engine, image.name)

    assert any(path.endswith(".whl") for path in index.asked)


def test_devices_that_the_engine_cannot_hand_over(engine, caller):
    done = run_inside(engine, caller, BASE, "-c", "", devices=("--device", "/dev/jaxmeter-test-nothing"))

    assert done.returncode in (125, 126, 127)
