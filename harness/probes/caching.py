"""What a call costs by what the caches hold: each regime in a fresh process, proven by what JAX reports, or unnamed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax

from harness.programs.jax_events import Compilations, watched
from harness.programs.modes import Clock, Stage
from harness.record import Outcome, Status, metrics


@dataclass(frozen=True)
class Call:
    """Arguments of one call: arrays, and static ones by name."""

    arguments: tuple[Any, ...]
    static: dict[str, Any]


@dataclass(frozen=True)
class Regime:
    """A state of the caches.

    Args:
      metric: What its time is called.
      before: Which calls of the same function the process has made: none, or one with the usual arguments.
      proof: Whether what JAX reported shows that the caches were in that state.
      change: Whether the measured call is to the usual one what the regime says.
    """

    metric: str
    before: bool
    proof: Callable[[Compilations], bool]
    change: Callable[[Call, Call], bool] = lambda usual, measured: True

    @property
    def words(self) -> str:
        """Its name for a person."""
        return metrics.REGIMES[self.metric]


def _compiled(seen: Compilations) -> bool:
    return seen.traces > 0 and seen.compiled > 0 and seen.hits == 0


def _read(seen: Compilations) -> bool:
    return seen.hits > 0 and seen.compiled == 0


def _reused(seen: Compilations) -> bool:
    return seen.traces == 0 and seen.compiled == 0 and seen.hits == 0


def _types(call: Call) -> list[tuple[tuple[int, ...], Any]]:
    return [(leaf.shape, leaf.dtype) for leaf in jax.tree.leaves(call.arguments)]


def _has_another_shape(usual: Call, measured: Call) -> bool:
    return [shape for shape, _ in _types(usual)] != [shape for shape, _ in _types(measured)]


def _has_another_static_argument(usual: Call, measured: Call) -> bool:
    return usual.static != measured.static and _types(usual) == _types(measured)


COLD, CACHED, WARM, NEW_SHAPE, NEW_STATIC = "cold", "cached", "warm", "new_shape", "new_static"

REGIMES = {
    COLD: Regime("cold_s", before=False, proof=_compiled),
    CACHED: Regime("cached_s", before=False, proof=_read),
    WARM: Regime("warm_s", before=True, proof=_reused),
    NEW_SHAPE: Regime("new_shape_s", before=True, proof=_compiled, change=_has_another_shape),
    NEW_STATIC: Regime("new_static_s", before=True, proof=_compiled, change=_has_another_static_argument),
}


def run(
    regime: Regime,
    function: Callable[..., Any],
    *,
    usual: Call,
    measured: Call,
    stream: bool,
    clock: Clock,
    stage: Stage,
) -> Outcome:
    """Times one call of the jitted function; of a stream, one pass.

    Args:
      function: Its keyword arguments are static.
      usual: The call before, in regimes that have one.
      measured: The call that is timed.
      stage: Told what begins.
    """
    if not regime.change(usual, measured):
        alike = f"{regime.words}: {metrics.NOT_PROVEN}, so it was not timed: the two calls do not differ in that"
        return Outcome(status=Status.OK, notes=(alike,))
    jitted = jax.jit(function, static_argnames=tuple(usual.static))

    def once(call: Call) -> None:
        items = call.arguments if stream else (call.arguments,)
        jax.block_until_ready([jitted(*item, **call.static) for item in items])

    if regime.before:
        stage("call before")
        once(usual)
    stage(regime.words)
    with watched() as seen:
        start = clock()
        once(measured)
        elapsed_s = clock() - start
    if regime.proof(seen):
        return Outcome(
            status=Status.OK, values={regime.metric: (elapsed_s,)}, notes=(f"{regime.words}: {_told(seen)}",)
        )
    nameless = f"{regime.words}: {metrics.NOT_PROVEN}, so its {elapsed_s:.2g} s have no name"
    return Outcome(status=Status.OK, notes=(f"{nameless}: JAX reported {_told(seen)}",))


def _told(seen: Compilations) -> str:
    return (
        f"{seen.traces} traced, {seen.compiled} compiled, {seen.hits} from the persistent cache, "
        f"{seen.misses} missing in it"
    )
