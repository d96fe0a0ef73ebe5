"""Does a slowdown outside the compiled program pass a gate, and does unchanged code pass? Both planted and not.

    python -m benchmarks.false_passes planted [--factors 1.5 4 100] [--processes 8]
    python -m benchmarks.false_passes unchanged [--gates 10] [--busy 5]

`planted` measures benchmarks/planted_calls.py once, then with every call's work in Python made longer by a factor, next
to the kept programs of the first run, and looks at the suspects again, as a gate does. A planted slowdown passes if the
gate neither fails because of it nor leaves it unconfirmed. It takes some 25 minutes. `unchanged` measures four quick
cases twice, and gates the same code, again and again. Half of the gates, with their baseline runs, are next to a
process that uses a core. It takes some three minutes a gate.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.false_alarms import BUSY
from benchmarks.gate import INCOMPLETE, read
from benchmarks.here import describe_here
from jaxmeter.reporting.compare.budgets import Budgets
from jaxmeter.reporting.compare.changes import find_changes
from jaxmeter.reporting.compare.gate import Judgement, judge
from jaxmeter.reporting.compare.verdicts import Change, Changes

SUITE = Path(__file__).parent / "planted_calls.py"
UNPLANTED = ("unchanged", "with_peer:jit")
QUICK = (
    "selu[dtype=float32,n=10000]",
    "matmul[dtype=float32,n=512,precision=default]",
    "cumulative_sum[n=100]",
    "operations[n=10]",
)
"""Cases of the project's own suites; of each the values of a quick run."""

PLANTED = '''"""A library of the user's, of which each version does other amounts of work in Python."""

import jax
import jax.numpy as jnp
import numpy as np

FACTOR = {factor}
SPINS = round(30_000 * FACTOR)
OPERATIONS = COPIES = TRANSFERS = round(20 * FACTOR)
COMPILED = round(2 * min(FACTOR, 10))
LINES = round(500 * FACTOR)


def spin(count):
    """Work for some time in Python."""
    for _ in range(count):
        pass


@jax.tree_util.register_pytree_node_class
class Params:
    def __init__(self, value):
        self.value = value

    def tree_flatten(self):
        spin(SPINS)
        return (self.value,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


class Static:
    def __init__(self, value):
        self.value = value

    def __hash__(self):
        spin(SPINS)
        return hash(self.value)

    def __eq__(self, other):
        return isinstance(other, Static) and self.value == other.value


SQUARE = Static(2)


class Lazy:
    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        spin(SPINS)
        return self.value


def on_host(x):
    spin(SPINS)
    return np.asarray(x) * 2


def step(x):
    spin(SPINS)
    return jnp.sin(x)


def scale(number, x):
    return x * number
'''


@dataclass(frozen=True)
class Gate:
    """A gate that has ended.

    Args:
      seconds: Of the candidate run, and of the second look.
    """

    changes: Changes
    judgement: Judgement
    again: Changes | None
    seconds: tuple[float, float]


def main() -> None:
    """Measure what was asked for, and print each verdict."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("planted", "unchanged"))
    parser.add_argument("--factors", type=float, nargs="+", default=(1.5, 4.0, 100.0))
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--select", nargs="+", default=(), help="planted cases; all by default")
    parser.add_argument("--gates", type=int, default=10)
    parser.add_argument("--busy", type=int, default=5, help="gates next to a process that uses a core")
    parser.add_argument("--keep", metavar="DIR", help="keep the runs in this new folder")
    given = parser.parse_args()
    print(describe_here("jax", "numpy"), flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = temporary if given.keep is None else given.keep
        if given.what == "planted":
            plant(Path(folder), given.factors, given.processes, given.select)
        else:
            leave_unchanged(Path(folder), given.gates, given.busy)


def plant(folder: Path, factors: Sequence[float], processes: int, select: Sequence[str] = ()) -> None:
    """Print, by factor, what became of each planted slowdown."""
    passed, number, false = [], 0, 0
    with plant_version(folder, 1.0) as variables:
        cases = [word for name in select for word in ("--select", name)]
        baseline = measure(folder, "before", variables, "--suites", str(SUITE), "--processes", str(processes), *cases)
    for factor in factors:
        with plant_version(folder, factor) as variables:
            gate = pass_gate(folder, baseline, f"slower-{factor:g}", variables, "--suites", str(SUITE))
        held = {regression.key: "failed" for regression in gate.judgement.regressions}
        held |= {suspect.key: "withheld" for suspect in gate.judgement.unconfirmed}
        print(f"{factor:g} times as much work in Python: exit code {gate.judgement.code}")
        for change in sort_planted(gate.changes.times):
            outcome = held.get(change.key, "passed")
            number += 1
            passed += [f"{change.case} {change.variant} at {factor:g}"] if outcome == "passed" else []
            words = f"{change.case} {change.variant}: {write_ratio(change)}, {change.verdict.value}; {change.reason}"
            print(f"  {outcome:9} {words}")
        others = [suspect for suspect in gate.judgement.unconfirmed if not is_planted(suspect)]
        false += len(others) + sum(not is_planted(regression) for regression in gate.judgement.regressions)
        for suspect in others:
            print(f"  not planted, withheld: {suspect.case} {suspect.variant}: {write_ratio(suspect)}")
        print("  obstacles:", "; ".join(gate.judgement.obstacles) or "none", flush=True)
    print(f"planted {number}, passed {len(passed)}: {', '.join(passed) or 'none'}; not planted and held: {false}")


def leave_unchanged(folder: Path, gates: int, busy: int) -> None:
    """Print the exit codes of gates of unchanged code, and how much of their time the second look took."""
    select = [word for case in QUICK for word in ("--select", case)]
    codes: list[int] = []
    for number in range(gates):
        is_busy = number >= gates - busy
        load_process = subprocess.Popen([sys.executable, "-c", BUSY]) if is_busy else None
        try:
            baseline = measure(folder, f"before-{number}", {}, "--quick", *select)
            gate = pass_gate(folder, baseline, f"gate-{number}", {}, "--quick", *select)
        finally:
            if load_process is not None:
                load_process.kill()
                load_process.wait()
        codes.append(gate.judgement.code)
        first_s, second_s = gate.seconds
        suspects = 0 if gate.again is None else len(gate.again.times)
        print(
            f"gate {number + 1} {'next to a busy core' if is_busy else 'idle'}: exit code {codes[-1]}; "
            f"{first_s:.0f} s, and {second_s:.0f} s for {suspects} times of {len(gate.changes.times)} once more"
        )
        for change in (*gate.judgement.unconfirmed, *gate.judgement.regressions):
            print(f"  {change.verdict.value}: {change.case} {change.variant} {write_ratio(change)}; {change.reason}")
        for words in gate.judgement.obstacles:
            print(f"  {words}")
        sys.stdout.flush()
    print(f"exit codes of {gates} gates of unchanged code: {', '.join(map(str, codes))}")


@contextmanager
def plant_version(folder: Path, factor: float) -> Iterator[dict[str, str]]:
    """A folder with the library's version, and the variables with which Python finds it."""
    where = folder / f"version-{factor:g}"
    where.mkdir(exist_ok=True)
    (where / "planted.py").write_text(PLANTED.replace("{factor}", f"{factor!r}"))
    yield {"PYTHONPATH": str(where), "PLANTED_CHECKS": str(round(30_000 * factor))}


def pass_gate(folder: Path, baseline: Path, run_id: str, variables: dict[str, str], *arguments: str) -> Gate:
    """Measure next to a baseline run, look at suspects again, and judge, as `nox -s gate` does."""
    start = time.monotonic()
    candidate = measure(folder, run_id, variables, "--against", str(baseline), *arguments)
    middle = time.monotonic()
    suspects, again = folder / f"{run_id}.json", None
    compare = ("compare", str(baseline), str(candidate), "--suspects", str(suspects))
    subprocess.run([sys.executable, "-m", "jaxmeter", *compare], stdout=subprocess.DEVNULL, check=False)
    if suspects.is_file():
        second = ("--against", str(baseline), "--suspects", str(suspects), *arguments)
        again = measure(folder, f"{run_id}-again", variables, *second)
    seconds = (middle - start, time.monotonic() - middle)
    before, after = read(baseline), read(candidate)
    changes = find_changes(before, after)
    confirmation = None if again is None else find_changes(before, read(again))
    return Gate(changes, judge(changes, Budgets(), confirmed_by=confirmation), confirmation, seconds)


def measure(folder: Path, run_id: str, variables: dict[str, str], *arguments: str) -> Path:
    """Make a run, and return its folder."""
    command = (sys.executable, "-m", "jaxmeter", "run", "--out", str(folder), "--run-id", run_id, "--quiet")
    ended = subprocess.run(
        [*command, *arguments], env={**os.environ, **variables}, stdout=subprocess.DEVNULL, check=False
    )
    if ended.returncode not in (0, INCOMPLETE):
        raise SystemExit(f"the run ended with {ended.returncode}")
    return folder / run_id


def is_planted(change: Change) -> bool:
    """Whether the version makes the time longer."""
    return not any(name in f"{change.case}:{change.variant}" or change.variant == name for name in UNPLANTED)


def sort_planted(times: Iterable[Change]) -> list[Change]:
    """Return the planted ones, by name."""
    return sorted(filter(is_planted, times), key=lambda change: change.key)


def write_ratio(change: Change) -> str:
    """`4.1 [3.8, 4.4]`: with the bounds that verdicts go by."""
    if change.effect is None:
        return "no ratio"
    bounds = change.effect.decisive
    known = "" if bounds.low is None or bounds.high is None else f" [{bounds.low:.3g}, {bounds.high:.3g}]"
    return f"{change.effect.estimate:.3g}{known}"


if __name__ == "__main__":
    main()
