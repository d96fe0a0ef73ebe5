"""A change in the user's own package: recorded, and named as the cause."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from jaxmeter.harness.record import RunFolder, read_run
from tests.end_to_end.conftest import run_program

pytestmark = [pytest.mark.end_to_end, pytest.mark.slow]

SUITE = '''"""Message passing on a graph."""
import jax
from jaxmeter import no_reference, workload
from wmg import layer

def inputs(key, *, nodes):
    x, s, r, w = jax.random.split(key, 4)
    return (jax.random.normal(x, (nodes, 32)), jax.random.randint(s, (4 * nodes,), 0, nodes),
            jax.random.randint(r, (4 * nodes,), 0, nodes), jax.random.normal(w, (64, 32)) / 8)

@workload(inputs=inputs, params={"nodes": (2000,)}, modes=("jit",), reference=no_reference("only times"))
def passing(x, s, r, w):
    return layer(x, s, r, w)
'''

PACKAGE = """import jax, jax.numpy as jnp
def layer(x, s, r, w):
    m = {message}
    return x + jax.ops.segment_sum(m, r, x.shape[0])
"""
PLAIN = "jnp.tanh(jnp.concatenate([x[s], x[r]], -1) @ w)"

VERSIONS = {
    "old": PACKAGE.format(message=PLAIN),
    "slow": PACKAGE.format(message=f"1.0 * jnp.sin({PLAIN} + 0.0)"),
}


def jaxmeter(folder: Path, version: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs `jaxmeter ARGUMENTS` with one version of the package on the path."""
    return run_program(folder, *arguments, path=(folder / version,))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The suite, two versions of the package that it imports, and a run with each."""
    folder = tmp_path_factory.mktemp("graph")
    (folder / "step.py").write_text(SUITE)
    for version, text in VERSIONS.items():
        (folder / version / "wmg").mkdir(parents=True)
        (folder / version / "wmg" / "__init__.py").write_text(text)
        probes = ("--probe", "compilation", "--probe", "memory", "--probe", "numerics")
        words = ("run", "--suites", "step.py", "--run-id", version, "--quick", *probes)
        ended = jaxmeter(folder, version, *words)
        assert ended.returncode == 0, ended.stderr
    return folder


def test_a_run_records_the_package_and_no_path_of_the_machine(folder):
    (found,) = read_run(RunFolder(folder / "results" / "old")).manifest.own_packages or ()

    assert (found.name, found.suites, list(found.files)) == ("wmg", ("step",), ["__init__.py"])
    assert str(folder) not in (folder / "results" / "old" / "manifest.json").read_text()


def test_compare_and_gate_name_the_changed_file_as_one_cause(folder):
    causes = {}
    for verb, *options in (("compare",), ("gate", "--exact")):
        jaxmeter(folder, "old", verb, "results/old", "results/slow", *options, "--verdict", "verdict.json")
        changes = json.loads((folder / "verdict.json").read_text())["changes"]
        causes[verb] = {(one["variant"], one["metric"]): one["cause"] for one in changes}

    assert causes["compare"] == causes["gate"]
    assert causes["gate"]["passing:jit", "program"] == "wmg: __init__.py changed"
    assert set(causes["gate"].values()) == {"wmg: __init__.py changed"}
