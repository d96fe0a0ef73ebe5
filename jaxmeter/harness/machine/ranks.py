"""Whether this process is one of several ranks of a program: of srun, of mpirun, or of `jax.distributed`. No jax."""

from __future__ import annotations

from collections.abc import Mapping

LAUNCHERS = {
    "SLURM_STEP_NUM_TASKS": "srun",
    "OMPI_COMM_WORLD_SIZE": "mpirun",
    "MV2_COMM_WORLD_SIZE": "mpirun",
    "PMI_SIZE": "mpiexec",
}
"""Variable with the number of ranks -> launcher. SLURM sets its variable in steps only; a batch script that no srun
started has SLURM_NTASKS and SLURM_PROCID, and is one process."""

ADVICE = "jaxmeter measures one process on one host; start it once, without other ranks"


def refuse_ranks(variables: Mapping[str, str], processes: int = 1) -> str | None:
    """Describe why several ranks are not measured; None for a single process.

    Args:
      variables: Of the process's environment.
      processes: Number of processes of `jax.distributed`, as `jax.process_count()` returns it.
    """
    if processes > 1:
        return f"this is one of {processes} processes of jax.distributed: {ADVICE}"
    for name, launcher in LAUNCHERS.items():
        size = variables.get(name, "")
        if size.isascii() and size.isdigit() and int(size) > 1:
            return f"this is one of {size} ranks that {launcher} started ({name}={size}): {ADVICE}"
    return None
