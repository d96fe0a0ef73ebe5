"""How something is measured in a notebook: every option, and what is left of the time."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral, Real

import msgspec

from jaxmeter.harness.notebook.calls import CALLABLE_MODES, SHOWN, show_modes
from jaxmeter.harness.plan.processes import count_passes
from jaxmeter.harness.programs.modes import Stages
from jaxmeter.harness.record import AS_GIVEN, Settings


@dataclass(frozen=True, kw_only=True)
class Options:
    """How something is measured.

    Args:
      modes: Some of "as given", eager, jit, aot: exactly these are measured, and speedups refer to the first. By
        default a plain function is measured in eager, jit and aot. A transformed one is measured as given, and in eager
        and jit only if these cost at most 20 % of the time limit.
      tolerance: Largest error against the reference, relative to its largest entry; by default by dtype.
      time_limit_s: The measurement ends within this time, plus one compilation and one call. Variants that would take
        longer are skipped.
      comparable: Whether all variants must give the same results and changes in place. False compares none, and shows
        speedups.
      progress: Whether to say on stderr what it does; by default where a person is likely to look.
      carry: Argument, by place or name -> the output that takes its place in the next call: an index, or "result".
      trace: Whether to capture some calls with JAX's profiler and to report what bounds a step. The report lists the
        operations that take most of the time, with the lines of the user's code.
      most_calls: How often a function that calls back into Python or prints is called, checks included.
    """

    modes: Sequence[str] | None = None
    tolerance: float | None = None
    time_limit_s: float = math.inf
    progress: bool | None = None
    carry: Mapping[int | str, int | str] | None = None
    most_calls: int = 200
    trace: bool = False
    comparable: bool = True

    @property
    def named_modes(self) -> tuple[str, ...] | None:
        """The modes by their names in the record: `as_given` for "as given"; None where none are named."""
        return None if self.modes is None else tuple(AS_GIVEN if mode == SHOWN else mode for mode in self.modes)

    def __post_init__(self) -> None:
        if self.modes is not None:
            _check_modes(self.modes)
        if self.tolerance is not None and not (_is_number(self.tolerance) and 0 <= self.tolerance < math.inf):
            raise ValueError(f"tolerance must be a number ≥ 0, or None for that of the formats; got {self.tolerance!r}")
        if not (_is_number(self.time_limit_s) and self.time_limit_s >= 0):
            raise ValueError(f"time_limit_s must be a number of seconds ≥ 0; got {self.time_limit_s!r}")
        if not (self.progress is None or isinstance(self.progress, bool)):
            raise ValueError(f"progress must be True, False or None; got {self.progress!r}")
        if self.carry is not None:
            _check_carry(self.carry)
        for name, value in (("trace", self.trace), ("comparable", self.comparable)):
            if not isinstance(value, bool):
                raise ValueError(f"{name} must be True or False; got {value!r}")
        if not (_is_integer(self.most_calls) and self.most_calls >= 1):
            raise ValueError(f"most_calls must be an integer ≥ 1; got {self.most_calls!r}")


def _is_number(value: object) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_integer(value: object) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _check_carry(carry: object) -> None:
    if not isinstance(carry, Mapping):
        raise ValueError(
            "carry must map an argument, by place or name, to an output: its index, or 'result' for all, as in "
            f'{{"state": 0}}; got {carry!r}'
        )
    for argument, output in carry.items():
        for what, value in (("argument", argument), ("output", output)):
            if not isinstance(value, int | str) or isinstance(value, bool):
                raise ValueError(f"carry names an {what} by its place or name; got {value!r}")


def _check_modes(modes: object) -> None:
    known = show_modes(CALLABLE_MODES)
    if isinstance(modes, str) or not isinstance(modes, Sequence) or not modes:
        raise ValueError(f"modes must be a list of some of {known}; got {modes!r}")
    named = [AS_GIVEN if mode == SHOWN else mode for mode in modes]
    for index, mode in enumerate(named):
        if mode not in CALLABLE_MODES:
            raise ValueError(f"no mode {mode!r}; modes are {known}")
        if mode in named[:index]:
            raise ValueError(f"modes names '{show_modes([mode])}' twice")


EXTRA_SHARE = 0.2
"""Share of the time limit for modes of a transformed callable that nobody asked for, all together."""

USUAL_LIMIT_S = 10.0
"""Limit that this share refers to where no limit is given. As given, steps of five libraries took 2 to 3 s on two
cores; with this share, small functions have all modes within 5 s."""

OPERATION_S = 0.03
"""About how long the first eager call of an operation takes, which compiles it: 20 to 40 ms on a CPU."""

FEWEST_BLOCKS = 6
"""Fewest passes for which time is kept: an interval over passes needs as many."""

CALLS_AROUND = 4
"""Calls before and after the passes: the first, those that warm up, and one of time until return."""

SHORT_S = 1.0
"""Timing of this length is begun whenever any time is left: it is shorter than what a limit is rounded to."""


@dataclass
class Budget:
    """The time limit of a measurement. The first compilation is not counted.

    Args:
      limit_s: As the user gives it.
      settings: How variants are timed.
    """

    limit_s: float
    settings: Settings
    _start: float = field(init=False)
    _excused_s: float = 0.0
    _extra_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._start = time.monotonic()
        self._extra_s = EXTRA_SHARE * (self.limit_s if math.isfinite(self.limit_s) else USUAL_LIMIT_S)

    @property
    def elapsed_s(self) -> float:
        """Seconds since the measurement began."""
        return time.monotonic() - self._start

    @property
    def left_s(self) -> float:
        """Seconds that are left; negative after the limit."""
        return self.limit_s + self._excused_s - self.elapsed_s

    @property
    def extra_s(self) -> float:
        """Seconds that are left for modes that nobody asked for."""
        return min(self._extra_s, self.left_s)

    def excuse(self, stages: Stages | None) -> None:
        """Count no time for these stages, if none were excused before."""
        if stages is not None and not self._excused_s:
            self._excused_s = sum(filter(None, (stages.trace_s, stages.lower_s, stages.compile_s)))

    def spend_extra(self, seconds: float) -> None:
        """Take seconds from those for modes that nobody asked for."""
        self._extra_s -= seconds

    def estimate_timing_s(self, calls_s: Sequence[float], blocks: int | None = None) -> float:
        """Return about how long it takes to time variants whose calls take so long.

        Args:
          blocks: Largest number of passes; by default that of the settings.
        """
        settings = self.settings if blocks is None else msgspec.structs.replace(self.settings, blocks=blocks)
        turns_s = [max(settings.block_s, call_s) for call_s in calls_s]
        settle_s = sum(settings.settle_s for call_s in calls_s if call_s <= settings.settle_s)
        return count_passes(turns_s, settings) * (sum(turns_s) + settle_s) + CALLS_AROUND * sum(calls_s)

    def choose_blocks(self, calls_s: Sequence[float]) -> int | None:
        """Return how many passes the time that is left allows; None where it allows none."""
        for blocks in (self.settings.blocks, self.settings.blocks // 2, FEWEST_BLOCKS):
            if self.estimate_timing_s(calls_s, blocks) <= self.left_s:
                return blocks
        return FEWEST_BLOCKS if self.left_s > 0 and self.estimate_timing_s(calls_s, FEWEST_BLOCKS) <= SHORT_S else None
