"""How a run measured."""

from __future__ import annotations

import msgspec


class OtherEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The environment of an earlier run, which takes turns with that of this one.

    Args:
      python: Its interpreter, as it was given.
      version: Of that run's Python.
      packages, variables: What that run recorded of it.
    """

    python: str
    version: str
    packages: dict[str, str]
    variables: dict[str, str]


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """How a run measured; times are seconds.

    Args:
      fewest_rounds, most_rounds: Timing processes of each case.
      shown_confidence: Of the intervals that are shown; None where they are those of the verdicts.
      finishes_fewest: Whether the fewest rounds go on when the budget, which nobody gave, is used up.
      processes: Their number where it was fixed by hand; then time limits do not cut it.
      data: Folder of the user's data sets, for suites that read some.
      cold_processes: Fresh processes per variant that compile, and per cache state.
      cold_processes_otherwise: Those that compile a case on which neither an answer nor a claim of that kind rests;
        None where as many.
      not_used: Names of variables that were set and left out, as they would change what the numbers mean.
      everywhere: Probes that look at every case, though by themselves only at some.
      cores: On how many each process ran, other ones in each round; None where on all that were allowed.
      lock_step_cores: On how many cores each of two environments in lock-step ran; None where on as many as `cores`,
        and in a run without a second environment.
      notes: What a reader must know of how it measured, such as why every process imported the suites itself.
      shows_wrong: Whether a variant with a wrong result has times, without a speedup: in a notebook.
      settle_s: Untimed calls at the start of each block last as long, of calls that are no longer: in a notebook.
      lock_step: The environment that runs an earlier run's code beside today's; None of a run without.
      confidence: Of the intervals that verdicts go by.
    """

    level: str
    probes: tuple[str, ...]
    fewest_rounds: int
    most_rounds: int
    finishes_fewest: bool = False
    processes: int | None = None
    budget_s: float
    stage_limit_s: float
    block_s: float
    sample_s: float
    blocks: int
    seed: int
    confidence: float
    shown_confidence: float | None = None
    target_half_width: float
    select: tuple[str, ...]
    suites: tuple[str, ...]
    data: str | None = None
    cold_processes: int = 1
    cold_processes_otherwise: int | None = None
    everywhere: tuple[str, ...] = ()
    not_used: tuple[str, ...] = ()
    cores: int | None = None
    lock_step_cores: int | None = None
    notes: tuple[str, ...] = ()
    shows_wrong: bool = False
    settle_s: float = 0.0
    lock_step: OtherEnvironment | None = None

    @property
    def process_cores(self) -> int | None:
        """On how many cores each timing process ran; None where on all that were allowed."""
        return self.cores if self.lock_step_cores is None else self.lock_step_cores
