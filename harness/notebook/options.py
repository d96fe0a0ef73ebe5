"""How something is measured in a notebook: every option, with its description."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from harness.notebook.callables import CALLABLE_MODES


@dataclass(frozen=True, kw_only=True)
class Options:
    """How something is measured.

    Args:
      modes: Some of eager, jit, aot; speedups refer to the first. A callable that is transformed is measured as given
        in any case. By default a plain function is measured in all, a transformed one as given, eager and jit.
      tolerance: Largest error against the reference, relative to its largest entry; by default by dtype.
      time_limit_s: After this nothing more is begun, and variants that were not timed are skipped. What has begun ends.
      progress: Whether to say on stderr what it does; by default where a person is likely to look.
      carry: Argument, by place or name -> the output that takes its place in the next call: an index, or "result".
      most_calls: How often a function that calls back into Python or prints is called, checks included.
    """

    modes: Sequence[str] | None = None
    tolerance: float | None = None
    time_limit_s: float = math.inf
    progress: bool | None = None
    carry: Mapping[int | str, int | str] | None = None
    most_calls: int = 200

    def __post_init__(self) -> None:
        if self.modes is not None:
            _check_modes(self.modes)
        if self.tolerance is not None and not 0 <= self.tolerance < math.inf:
            raise ValueError(f"tolerance must be a number ≥ 0; got {self.tolerance!r}")
        if self.most_calls != int(self.most_calls) or self.most_calls < 1:
            raise ValueError(f"most_calls must be an integer ≥ 1; got {self.most_calls!r}")


def _check_modes(modes: Sequence[str]) -> None:
    known = ", ".join(CALLABLE_MODES)
    if isinstance(modes, str) or not modes:
        raise ValueError(f"modes is a list of some of {known}; got {modes!r}")
    for index, mode in enumerate(modes):
        if mode not in CALLABLE_MODES:
            raise ValueError(f"no mode '{mode}'; modes are {known}")
        if mode in modes[:index]:
            raise ValueError(f"modes names '{mode}' twice")
