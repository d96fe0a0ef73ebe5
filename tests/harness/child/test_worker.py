"""How a process begins."""

import os
from pathlib import Path

import pytest

from jaxmeter.harness.child import worker
from jaxmeter.harness.child.worker import take_memory_ahead
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.plan.messages import Measure
from jaxmeter.harness.plan.processes import PlannedProcess
from tests import samples


@pytest.mark.parametrize(
    ("backend", "probe", "expected"),
    [("gpu", "measured_memory", "true"), ("gpu", "timing", "false"), ("cpu", "measured_memory", "false")],
)
def test_where_what_calls_hold_is_read_a_gpus_memory_is_taken_ahead(monkeypatch, backend, probe, expected):
    monkeypatch.setenv("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

    take_memory_ahead(PlannedProcess(case="c", kind=probe, assignments={probe: ("f:jit",)}), BACKENDS[backend])

    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == expected


def measure(tmp_path, kind, *, process, **more):
    """A message that asks for a process of this kind."""
    planned = PlannedProcess(case="c", kind=kind, assignments={kind: ("f:jit",)}, **process)
    usual = {"case": samples.planned_case(), "platform": BACKENDS["cpu"], "settings": samples.settings(), "seed": 0}
    places = {name: str(tmp_path / name) for name in ("cache", "inputs", "folder", "result")}
    return Measure(process=planned, **usual, **places, **{"cores": None, **more})


@pytest.mark.parametrize(
    ("cache_state", "found"), [("cached", [("run's", 0)]), ("default_threshold", [("own", 0), ("own", 1)])]
)
def test_by_jaxs_own_threshold_a_process_finds_what_one_before_it_has_left_in_a_cache_of_their_own(
    monkeypatch, tmp_path, cache_state, found
):
    looks = []

    def look(message, beat):
        cache = Path(message.cache)
        cache.mkdir(exist_ok=True)
        looks.append(("run's" if cache == tmp_path / "cache" else "own", len(list(cache.iterdir()))))
        (cache / str(len(looks))).touch()

    monkeypatch.setattr(worker, "_run_probes", look)
    monkeypatch.setattr(worker, "run_before", lambda work: work())
    message = measure(tmp_path, "caching", process={"cache_state": cache_state})

    worker._measure(message, lambda variant, stage: None)

    assert looks == found
    assert {path.name for path in tmp_path.iterdir()} <= {"cache"}


def test_an_environment_in_lock_step_loads_nothing_that_other_processes_have_compiled(tmp_path):
    """Today's environment would load what a check has compiled, and the earlier one would compile."""
    message = measure(tmp_path, "timing", process={"round": 1}, cores=1, arms=("before", "now"))

    begins = [address.begin for address in worker._find_arms(message).values()]

    assert len({one.cache for one in begins} | {message.cache}) == 3
    assert len({one.inputs for one in begins} | {message.inputs}) == 3
    assert [(one.cores, one.core) for one in begins] == [(1, 1), (1, 1)]
