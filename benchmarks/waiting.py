"""What waiting for a result takes, by jax.block_until_ready and by the way that jaxmeter chooses, in one process.

    python -m benchmarks.waiting [ROUNDS]

Both wait for the same results, which are ready, in turn. Each line has the median of the rounds' ratios.
"""

from __future__ import annotations

import statistics
import sys
import timeit

import jax
import jax.numpy as jnp

from benchmarks.here import describe_here
from jaxmeter.harness.programs.waiting import make_wait

ROUNDS = 15
ROUND_S = 0.02


def main() -> None:
    """Prints a table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS
    print(describe_here("jax"))
    print(f"{'result':38}{'jax [us]':>10}{'ours [us]':>11}{'ours / jax':>12}")
    for name, result in _make_results().items():
        theirs, ours = _compare(result, rounds)
        ratio = statistics.median(one / other for one, other in zip(ours, theirs, strict=True))
        print(f"{name:38}{1e6 * statistics.median(theirs):10.2f}{1e6 * statistics.median(ours):11.2f}{ratio:12.2f}")


def _make_results() -> dict[str, object]:
    def arrays(count: int) -> list[jax.Array]:
        return [jnp.full(3, float(index)) for index in range(count)]

    return {
        "one array": arrays(1)[0],
        "tuple of 2 arrays": tuple(arrays(2)),
        "tuple of 4 arrays": tuple(arrays(4)),
        "list of 8 arrays": arrays(8),
        "dictionary of 100 arrays": dict(enumerate(arrays(100))),
        "list of 20 Python ints": list(range(20)),
        "list of 100 Python ints": list(range(100)),
        "dictionary of 2 arrays and 20 ints": {"arrays": arrays(2), "ints": list(range(20))},
        "None": None,
    }


def _compare(result: object, rounds: int) -> tuple[list[float], list[float]]:
    """Seconds a call, by round, of both."""
    waits = (jax.block_until_ready, make_wait())
    timers = [timeit.Timer("wait(result)", globals={"wait": wait, "result": result}) for wait in waits]
    once_s = min(timers[0].repeat(repeat=5, number=100)) / 100
    calls = max(1, int(ROUND_S / once_s))
    taken: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds):
        for which in (0, 1) if number % 2 else (1, 0):
            taken[which].append(timers[which].timeit(calls) / calls)
    return taken


if __name__ == "__main__":
    main()
