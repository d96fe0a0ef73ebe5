"""Which processes are one of several ranks."""

import jax
import jax.numpy as jnp
import pytest

import jaxmeter
from jaxmeter.cli.request import check_ranks
from jaxmeter.harness.machine.platforms import refuse_ranks
from jaxmeter.harness.parent.prepare_run import UsageError

STEP = {"SLURM_STEP_ID": "0", "SLURM_NTASKS": "4", "SLURM_PROCID": "2", "SLURM_STEP_NUM_TASKS": "4"}


@pytest.mark.parametrize(
    ("variables", "launcher"),
    [
        (STEP, "srun"),
        ({"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_RANK": "1"}, "mpirun"),
        ({"PMI_SIZE": "2", "PMI_RANK": "0"}, "mpiexec"),
    ],
)
def test_more_than_one_rank_is_refused_by_run_and_in_a_notebook(variables, launcher, monkeypatch):
    called = []
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    with pytest.raises(UsageError, match=f"ranks that {launcher} started .*: jaxmeter measures one process"):
        check_ranks()
    for look in (jaxmeter.measure, jaxmeter.device_time):
        with pytest.raises(ValueError, match=f"ranks that {launcher} started"):
            look(called.append, jnp.ones(3))
    assert called == []


@pytest.mark.parametrize(
    "variables",
    [
        {},
        {"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"},
        {"SLURM_NTASKS": "4", "SLURM_PROCID": "0", "SLURM_STEP_ID": "1", "SLURM_STEP_NUM_TASKS": "1"},
        {"OMPI_COMM_WORLD_SIZE": "1"},
        {"PMI_SIZE": "²"},
    ],
    ids=["nothing", "a batch script without srun", "a step of one task", "one rank", "no number"],
)
def test_a_single_process_is_measured(variables):
    assert refuse_ranks(variables) is None


def test_several_processes_of_jax_are_refused(monkeypatch):
    monkeypatch.setattr(jax, "process_count", lambda: 2)

    with pytest.raises(ValueError, match=r"this is one of 2 processes of jax.distributed: jaxmeter measures one"):
        jaxmeter.measure(jnp.sin, jnp.ones(3))
