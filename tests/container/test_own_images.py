"""`--image`: an image of the user's own measures what is theirs, with jaxmeter's harness mounted into it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from jaxmeter.harness.record import RunRecord, read_json
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.images import image_id
from jaxmeter.launch.jobs import NEEDED_MODULES, measure_in_container
from jaxmeter.launch.options import UsageError
from tests.container.conftest import BASE
from tests.container.launch import cpu_job

pytestmark = pytest.mark.container

OWN = "jaxmeter-test-own:1"

DOCKERFILE = """
FROM {image}
USER root
RUN rm -rf /opt/jaxmeter
ENV PYTHONPATH=
"""

SUITE = '''"""Reads the user's data; a container in which it could be written would fail it."""

import jax.numpy as jnp
import numpy as np

from jaxmeter import data_folder, workload


def values(key, *, name):
    folder = data_folder()
    try:
        (folder / "written").touch()
    except OSError:
        return jnp.asarray(np.load(folder / f"{name}.npy"))
    raise AssertionError("the data folder can be written")


@workload(inputs=values, params={"name": "measured"}, reference=lambda x: x + 1, modes=("jit",))
def increment(x):
    """Adds one, (n,) -> (n,)."""
    return x + 1
'''


def build_own(engine: Engine, folder: Path, dockerfile: str) -> None:
    folder.mkdir()
    (folder / "Dockerfile").write_text(dockerfile, encoding="utf8")
    subprocess.run(
        [engine.client, "build", "--tag", OWN, str(folder)],
        env={**os.environ, "DOCKER_BUILDKIT": "1"},
        capture_output=True,
        check=True,
    )


def test_an_own_image_measures_an_own_suite_with_own_data(each_engine, image, caller, tmp_path, removed):
    build_own(each_engine, tmp_path / "own", DOCKERFILE.format(image=image(each_engine, "cpu")))
    removed(each_engine, OWN)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "suite.py").write_text(SUITE, encoding="utf8")
    (tmp_path / "data").mkdir(mode=0o777)
    np.save(tmp_path / "data" / "measured.npy", np.arange(5, dtype="float32"))
    arguments = ("--quick", "--probe", "compilation", "--suites", "mine/suite.py", "--data", "data", "--run-id", "it")

    code = measure_in_container(cpu_job(each_engine, caller, "--image", OWN, *arguments))

    assert code == 0
    run = read_json(Path("results/it/run.json"), RunRecord)
    assert run.manifest.environment.image == f"{OWN} {image_id(each_engine, OWN)}"
    assert Path("reports/report-it.html").is_file()


def test_an_image_without_jax_is_refused_with_a_list_of_what_is_missing(each_engine, caller):
    with pytest.raises(UsageError) as refused:
        measure_in_container(cpu_job(each_engine, caller, "--image", BASE, "--quick", "--run-id", "it"))

    assert f"--image {BASE} lacks {', '.join(NEEDED_MODULES)}, which measuring needs" in str(refused.value)
    assert f"RUN pip install {' '.join(NEEDED_MODULES)}" in str(refused.value)


def test_an_image_that_nobody_has_is_refused(each_engine, caller):
    with pytest.raises(UsageError, match="localhost:1/nothing:none is not here and cannot be pulled"):
        measure_in_container(cpu_job(each_engine, caller, "--image", "localhost:1/nothing:none", "--run-id", "it"))
