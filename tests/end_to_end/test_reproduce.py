"""A bug report's script in an environment with jax alone, and flatbuffers, which jax.export reads programs with."""

from __future__ import annotations

import subprocess
import venv
import zipfile
from importlib.metadata import version

import pytest

from tests.end_to_end.conftest import CHECKOUT

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

SUITE = """
'''Programs with arguments of several kinds.'''

import jax
import jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from jaxmeter import Needs, no_reference, workload


@workload(inputs=lambda key: (jnp.ones((8, 4), jnp.bfloat16), jnp.arange(8) % 4, jax.random.key(0), jnp.array(True)),
          reference=no_reference("random"), modes=("jit",))
def kinds(table, index, key, flag):
    \"\"\"Picks and adds noise.\"\"\"
    return jnp.where(flag, table[jnp.arange(8), index] + jax.random.normal(key, (8,), jnp.bfloat16), 0)


def spread(key):
    mesh = Mesh([jax.devices()[:2]], ("a", "d"))
    return jax.device_put(jnp.ones((2, 8)), NamedSharding(mesh, PartitionSpec(None, "d")))


@workload(inputs=spread, reference=lambda x: x.sum(), modes=("jit",), needs=Needs(devices=2))
def over_two(x):
    \"\"\"Adds over two devices.\"\"\"
    return x.sum()


@workload(inputs=lambda key: jnp.arange(8.0), reference=lambda x: x * 2, modes=("jit",),
          needs=Needs(config={"jax_enable_x64": True}))
def wide(x):
    \"\"\"In double precision.\"\"\"
    return x * 2.0
"""


@pytest.fixture(scope="module")
def jax_alone(tmp_path_factory):
    """An interpreter that has what the README of a zip names."""
    folder = tmp_path_factory.mktemp("alone")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    wanted = [f"{name}=={version(name)}" for name in ("jax", "jaxlib", "flatbuffers")]
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True, timeout=300)
    return python


@pytest.mark.parametrize("case", ["kinds", "over_two", "wide"])
def test_a_script_runs_its_program_where_there_is_jax_alone(harness, tmp_path, jax_alone, case):
    (tmp_path / "three.py").write_text(SUITE)
    probes = ("--probe", "memory", "--probe", "compilation")
    measured = harness("run", "--suites", "three.py", "--select", case, *probes, "--run-id", "it")
    assert measured.returncode == 0, measured.stdout + measured.stderr
    assert harness("reproduce", "results/it", "--case", case, "--out", "it.zip").returncode == 0
    with zipfile.ZipFile(tmp_path / "it.zip") as archive:
        archive.extractall(tmp_path / "unpacked")
    (folder,) = (tmp_path / "unpacked").iterdir()

    ended = subprocess.run(
        [jax_alone, "reproduce.py"], cwd=folder, env={}, capture_output=True, text=True, timeout=120, check=False
    )

    assert ended.returncode == 0, ended.stderr
    assert f"jax {version('jax')}, cpu: compiled in" in ended.stdout
    assert "a call takes" in ended.stdout
    assert str(CHECKOUT) not in "".join(path.read_text(errors="replace") for path in folder.iterdir())
