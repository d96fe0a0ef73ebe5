"""How a run measured, and which of its recorded settings may be set again."""

from __future__ import annotations

import re

import msgspec


class OtherEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """The environment of an earlier run, which takes turns with that of this one.

    Args:
      python: Its interpreter, as it was given.
      version: Of that run's Python.
      packages, variables: What that run recorded of it.
      checkout: Folder that that run's code was loaded from, as it was given; None if both loaded the suites of today.
    """

    python: str
    version: str
    packages: dict[str, str]
    variables: dict[str, str]
    checkout: str | None = None


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of a run; times are seconds.

    Args:
      fewest_rounds, most_rounds: Timing processes of each case.
      fewest_kept: Timing processes with which a case counts as measured; None for `fewest_rounds`.
      shown_confidence: Confidence level of the shown intervals; None if it is the level of the verdicts.
      finishes_fewest: Whether the fewest rounds are finished after the end of the budget, if that is the default one.
      processes: Number of timing processes if it was fixed by hand; then time limits do not cut it.
      data: Folder of the user's data sets, for suites that read some.
      cold_processes: Fresh processes per variant that compile, and per cache state.
      cold_processes_otherwise: The same for a case on which neither an answer nor a claim about compiling depends;
        None for the same number.
      not_used: Names of variables that were set and left out, as they would change the meaning of the numbers.
      everywhere: Probes that look at every case, and by default only at some.
      cores: Number of cores that each process ran on, different ones in each round; None for all allowed cores.
      lock_step_cores: Number of cores that each of two environments in lock-step ran on; None if it is `cores`, and in
        a run without a second environment.
      notes: What a reader must know about the measurement, such as why every process imported the suites itself.
      shows_wrong: Whether a variant with a wrong result has times, without a speedup: in a notebook.
      settle_s: Time of the untimed calls at the start of each block, unless one call is longer: in a notebook.
      lock_step: The environment that runs an earlier run's code, interleaved with today's, or None.
      confidence: Confidence level of the verdicts' intervals.
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
    fewest_kept: int | None = None

    @property
    def process_cores(self) -> int | None:
        """On how many cores each timing process ran; None where on all that were allowed."""
        return self.cores if self.lock_step_cores is None else self.lock_step_cores


DUMPS = re.compile(r"--xla\w*_dump_\w+(=\S*)?\s*")
"""Flags that say what XLA writes down, and where: they steer no program."""

DUMP_VARIABLES = frozenset({"JAX_DUMP_IR_TO", "JAX_DUMP_IR_MODES"})

_FLAG = re.compile(r"--(?P<name>[A-Za-z][A-Za-z0-9_]*)(=(?P<value>.*))?")
_PLAIN = re.compile(r"(?!.*\.[A-Za-z])[A-Za-z0-9_.,:+= -]*")
"""No slash, home or variable of a shell, and no name with an ending: what is left can name no file elsewhere."""

_NAMES_A_FILE = re.compile(
    r"(^|_)(dir|directory|path|file|filename|prefix|library|lib|plugin|plugins|cache|address)(_|$)|_(to|from)$|dump",
    flags=re.IGNORECASE,
)

FLAGS = frozenset({"XLA_FLAGS", "LIBTPU_INIT_ARGS"})
"""Variables that hold flags; XLA takes any other first word of its variable for the name of a file with more."""


def is_plain_setting(name: str, value: object) -> bool:
    """Return whether a recorded variable, or an option of JAX, can be set again without following a path."""
    if name in FLAGS:
        return isinstance(value, str) and all(map(_is_plain_flag, value.split()))
    if isinstance(value, str):
        return _PLAIN.fullmatch(value) is not None and not _NAMES_A_FILE.search(name)
    return isinstance(value, bool | int | float) and not _NAMES_A_FILE.search(name)


def _is_plain_flag(word: str) -> bool:
    flag = _FLAG.fullmatch(word)
    if flag is None or _NAMES_A_FILE.search(flag["name"]):
        return False
    return _PLAIN.fullmatch(flag["value"] or "") is not None


def leave_out_dumps(name: str, value: str) -> str | None:
    """Return a variable's value without what is written down while compiling; None where that is all of it."""
    if name in DUMP_VARIABLES:
        return None
    if name not in FLAGS:
        return value
    left = DUMPS.sub("", value).strip()
    return left or (value if not value.strip() else None)
