"""What real processes leave: artifacts of the declared kinds, and of a target what compiling alone tells."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.metrics.summary import NOTHING_TO_COMPILE
from jaxmeter.harness.parent.execution import execute
from jaxmeter.harness.parent.prepare_run import describe_suites, make_manifest
from jaxmeter.harness.parent.progress import Watcher
from jaxmeter.harness.parent.servers import start_servers
from jaxmeter.harness.plan.cases import choose_representatives
from jaxmeter.harness.plan.probes import PROBE_NAMES, PROBES
from jaxmeter.harness.plan.settings import make_settings
from jaxmeter.harness.record import Outcome, RunFolder, Status
from tests import samples

pytestmark = pytest.mark.end_to_end

SUITE = '''"""Doubles: every mode, a peer, a new shape."""

import jax.numpy as jnp

from jaxmeter import workload


@workload(
    inputs=lambda key, *, n: jnp.arange(float(n)),
    params={"n": (1_000, 2_000)},
    reference=lambda x: x + x,
    peers={"numpy": lambda x: x + x},
)
def double(x):
    """Twice the value, (n,) -> (n,)."""
    return x + x


@double.implementation(modes=("jit",))
def unlucky(x):
    """Fails when it is traced."""
    raise ValueError("no luck")
'''

TARGET = samples.target()
EVERYWHERE = {**PLATFORMS, TARGET.name: TARGET}


@contextmanager
def a_run(folder, platform, probes):
    """A manifest of the suite's cases at a platform, the folder of the run, and servers."""
    path = folder / "doubles.py"
    path.write_text(SUITE)
    settings = make_settings("quick", probes=probes, processes=1, suites=(str(path),), run_id="a")
    run_folder = RunFolder(folder / "run")
    run_folder.path.mkdir()
    with start_servers(folder, suites=(str(path),)) as servers:
        here = describe_suites(servers.of(platform), (str(path),), platform, settings.level, devices=True)
        cases = choose_representatives(here.cases)
        yield make_manifest("it", platform.name, settings, here.environment, cases, "here"), run_folder, servers


def test_artifacts_are_of_the_kinds_that_their_probes_declare(tmp_path):
    probes = ("compilation", "trace")

    with a_run(tmp_path, PLATFORMS["cpu"], probes) as (manifest, folder, servers):
        run = execute(manifest, folder, servers, Watcher())

    declared = {kind for name in (*probes, "export") for kind in PROBES[name].artifacts}
    assert {artifact.kind for case in run.cases for artifact in case.artifacts} == declared
    assert all(
        (folder.case(case.id).path / artifact.path).stat().st_size == artifact.size_bytes
        for case in run.cases
        for artifact in case.artifacts
    )


def test_a_case_for_a_target_is_planned_compiled_and_recorded_and_never_called(tmp_path):
    with a_run(tmp_path, TARGET, PROBE_NAMES) as (manifest, folder, servers):
        run = execute(manifest, folder, servers, Watcher(), platforms=EVERYWHERE)

    assert [case.platform for case in manifest.cases] == [TARGET.name] * 2
    assert run.cases[0].name == "double[n=1000]@cpu:made-up"
    outcomes = {item.name: item.outcomes for item in run.cases[0].variants}
    assert set(outcomes["double:jit"]) == {"memory", "compilation"}
    assert outcomes["double:jit"]["memory"].values["argument_bytes"] == (4_000,)
    assert set(outcomes["double:jit"]["compilation"].values) >= {"trace_s", "lower_s", "compile_s", "hlo_instructions"}
    assert not set(outcomes["double:aot"]["compilation"].values) & {"first_call_s", "compiles", "executable_load_s"}
    assert (
        outcomes["double:eager"]
        == outcomes["numpy:native"]
        == {"numerics": Outcome(status=Status.UNSUPPORTED, reason=NOTHING_TO_COMPILE)}
    )
    assert outcomes["unlucky:jit"]["memory"].status is Status.FAILED
    assert {artifact.kind for artifact in run.cases[0].artifacts} == {"jaxpr", "stablehlo", "hlo"}
