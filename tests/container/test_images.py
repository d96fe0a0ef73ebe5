"""Every image builds, holds what its lock names, says what it is, and refuses a device that is not there."""

from __future__ import annotations

import re

import pytest

from jaxmeter.launch.images import LOCK_LABEL, LOCKS, image_size_bytes, locate_lock, lock_sha256, version_of
from tests.container.conftest import configuration, run_inside
from tests.container.launch import CHECKOUT

pytestmark = pytest.mark.container

# gpu-cuda12 is gpu with other versions of the same wheels: another 5 GB would show nothing new.
TESTED = ("cpu", "tpu", "gpu")

REVISION = "org.opencontainers.image.revision"
IMPORTS = "import jax, jaxmeter.cli.run, jaxmeter.cli.report; print(jax.__version__)"


@pytest.mark.parametrize("lock", TESTED)
def test_an_image_holds_the_locked_jax_and_both_programs_and_says_what_it_was_made_from(lock, engine, image, caller):
    name = image(engine, lock)

    done, found = run_inside(engine, caller, name, "-c", IMPORTS), configuration(engine, name)

    assert done.returncode == 0, done.stderr
    locked = (CHECKOUT / locate_lock(lock)).read_text(encoding="utf8")
    assert re.search(rf"^jax=={re.escape(done.stdout.strip())}\s", locked, re.MULTILINE)
    labels = found["Labels"]
    assert labels["org.opencontainers.image.title"] == f"jaxmeter-{lock}"
    assert labels["org.opencontainers.image.version"] == version_of(CHECKOUT)
    assert labels[LOCK_LABEL] == lock_sha256(CHECKOUT, lock)
    # Of the checkout that first built it: what is not part of an image may have changed since.
    assert re.fullmatch(r"[0-9a-f]{40}(-dirty)?|unknown", labels[REVISION])
    assert found["User"] not in ("", "0", "root", "0:0")  # not for root
    assert image_size_bytes(engine, name) == pytest.approx(LOCKS[lock].image_bytes, rel=0.1)  # as its table says


@pytest.mark.parametrize("backend", ["gpu", "tpu"])
def test_an_image_refuses_to_measure_on_a_device_that_is_not_there(backend, engine, image, caller):
    name = image(engine, backend)

    done = run_inside(
        engine, caller, name, "-m", "jaxmeter", "run", "--backend", backend, "--quick", "--out", "/tmp/it"
    )

    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.startswith(f"error: no device for --backend {backend}: looked for ")
    assert "Traceback" not in done.stdout + done.stderr
