"""What is planned is what real processes do: as many as were counted, and only compiling where that is all."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.metrics.summary import NOTHING_TO_COMPILE
from jaxmeter.harness.parent.execution import execute
from jaxmeter.harness.parent.fork_client import ForkServer
from jaxmeter.harness.parent.prepare_run import describe_suites, make_manifest
from jaxmeter.harness.parent.progress import Watcher
from jaxmeter.harness.parent.servers import Servers, start_servers
from jaxmeter.harness.plan.cases import choose_representatives
from jaxmeter.harness.plan.estimate import estimate
from jaxmeter.harness.plan.probes import PROBE_NAMES, PROBES
from jaxmeter.harness.plan.processes import PlannedProcess, plan_processes
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


@dataclass
class Counting:
    """Servers that keep the processes which they are asked for."""

    servers: Servers
    started: list[PlannedProcess] = field(default_factory=list)

    @property
    def first_tries(self) -> list[PlannedProcess]:
        """Without those that replace a contended one, which comes right before."""
        pairs = zip([None, *self.started], self.started, strict=False)
        return [process for before, process in pairs if process != before]

    @property
    def scratch(self) -> Path:
        return self.servers.scratch

    def arms_of(self, platform, index):
        return self.servers.arms_of(platform, index)

    def list_warnings(self):
        return self.servers.list_warnings()

    def of(self, platform):
        return CountingServer(self.servers.of(platform), self.started)


@dataclass
class CountingServer:
    server: ForkServer
    started: list[PlannedProcess]

    def run(self, make, **options):
        self.started.append(make("").process)
        return self.server.run(make, **options)


@contextmanager
def a_run(folder, platform, settings):
    """A manifest of the suite's cases at a platform, and servers."""
    path = folder / "doubles.py"
    path.write_text(SUITE)
    run_folder = RunFolder(folder / "run")
    run_folder.path.mkdir()
    with start_servers(folder, suites=(str(path),)) as servers:
        here = describe_suites(servers.of(platform), (str(path),), platform, settings.level, devices=True)
        cases = choose_representatives(here.cases)
        yield (
            make_manifest("it", platform.name, settings, here.environment, cases, "here"),
            run_folder,
            Counting(servers),
        )


@pytest.mark.slow
def test_a_run_starts_the_processes_that_were_planned_and_estimated(tmp_path):
    settings = make_settings(
        "quick", probes=PROBE_NAMES, processes=1, suites=(str(tmp_path / "doubles.py"),), run_id="a"
    )

    with a_run(tmp_path, PLATFORMS["cpu"], settings) as (manifest, folder, servers):
        run = execute(manifest, folder, servers, Watcher())
        planned = plan_processes(manifest.cases, settings)

    sound = [
        one for one in planned if one.variants != ("unlucky:jit",)
    ]  # it is checked with others, and goes no further
    assert [(one.kind, one.round, one.cache_state) for one in servers.first_tries] == [
        (one.kind, one.round, one.cache_state) for one in sound
    ]
    assert estimate(planned, settings).fewest == estimate(planned, settings).most == len(planned)
    statuses = {item.name: {outcome.status for outcome in item.outcomes.values()} for item in run.cases[0].variants}
    assert statuses.pop("unlucky:jit") == {Status.FAILED}
    assert set().union(*statuses.values()) == {Status.OK}


def test_artifacts_are_of_the_kinds_that_their_probes_declare(tmp_path):
    probes = ("compilation", "trace")
    settings = make_settings("quick", probes=probes, processes=1, suites=(str(tmp_path / "doubles.py"),), run_id="a")

    with a_run(tmp_path, PLATFORMS["cpu"], settings) as (manifest, folder, servers):
        run = execute(manifest, folder, servers, Watcher())

    declared = {kind for name in (*probes, "export") for kind in PROBES[name].artifacts}
    assert {artifact.kind for case in run.cases for artifact in case.artifacts} == declared
    assert all(
        (folder.case(case.id).path / artifact.path).stat().st_size == artifact.size_bytes
        for case in run.cases
        for artifact in case.artifacts
    )


def test_a_case_for_a_target_is_planned_compiled_and_recorded_and_never_called(tmp_path):
    settings = make_settings(
        "quick", probes=PROBE_NAMES, processes=1, suites=(str(tmp_path / "doubles.py"),), run_id="a"
    )

    with a_run(tmp_path, TARGET, settings) as (manifest, folder, servers):
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
