"""A week of nightly gates: a baseline, unchanged nights, and one on which somebody has made a program 5 % slower.

    python examples/a_week_of_nightlies.py [--nights 5] [--busy] [--folder DIR]

Every night is `nox -s gate -- BASELINE`: it measures what the baseline run measured beside the programs that it kept,
confirms what it suspects, and ends with 0 (passed), 1 (a confirmed regression) or 3 (no answer). The nights have to end
with 0, the last one with 1, naming the case, first of all on its page; else this script ends with 1 itself. It takes
up to a minute a night.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
PASSED, REGRESSED = 0, 1
SLOWED = "chain[n=192]"
PLANTED_STEPS = 2
"""More than the chain's forty: 5 % more work."""

SUITE = '''"""Three small programs, one of which grows by {extra} steps of forty."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxmeter import workload

STEPS, EXTRA = 40, {extra}


def square(key, *, n):
    """A matrix, (n, n)."""
    return (jax.random.normal(key, (n, n)) / n,)


def steps(y, x, count):
    """So many steps of the chain."""
    return jax.lax.fori_loop(0, count, lambda _, y: jnp.tanh(y @ x) + x, y)


def chain_in_numpy(x):
    """The same by hand."""
    y = x
    for _ in range(STEPS):
        y = np.tanh(y @ x) + x
    return y


@workload(inputs=square, params={{"n": 192}}, reference=chain_in_numpy, modes=("jit",))
def chain(x):
    """A chain of products, (n, n) -> (n, n)."""
    y = steps(x, x, STEPS)
    return y + 0.0 * steps(y, x, EXTRA) if EXTRA else y


@workload(
    inputs=lambda key, *, n: (jax.random.normal(key, (n,)),),
    params={{"n": 1_000_000}},
    reference=lambda x: np.tanh(x) * x,
    modes=("jit",),
)
def gated(x):
    """tanh(x) x, (n,) -> (n,)."""
    return jnp.tanh(x) * x


@workload(inputs=square, params={{"n": 512}}, reference=lambda x: x @ x.T, modes=("jit",))
def gram(x):
    """x xᵀ, (n, n) -> (n, n)."""
    return x @ x.T
'''


def main() -> int:
    """Lives the week; 0 where every night ended as it should."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=5, help="unchanged ones; 5 by default")
    parser.add_argument("--busy", action="store_true", help="another process uses a core all the time")
    parser.add_argument("--folder", type=Path, help="where to keep suite, runs and pages; by default a temporary one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        other = multiprocessing.Process(target=spin, daemon=True) if given.busy else None
        if other is not None:
            other.start()
        try:
            return live(folder, given.nights)
        finally:
            if other is not None:
                other.terminate()


def spin() -> None:
    """Uses a core."""
    while True:
        sum(range(1000))


def live(folder: Path, nights: int) -> int:
    """A baseline and its nights."""
    write_suite(folder, extra=0)
    measured = ("--runtime", "local", "--out", str(folder / "results"))
    suite = str(folder / "nightly.py")
    code, seconds, said = nox(folder, "cpu", "--suites", suite, "--quick", "--run-id", "baseline", *measured)
    print(f"baseline: {code} ({seconds:.0f} s)")
    if code != PASSED:
        print(said)
        return 1
    wrong = 0
    baseline = str(folder / "results" / "baseline")
    for night in range(1, nights + 2):
        is_slower = night > nights
        write_suite(folder, extra=PLANTED_STEPS if is_slower else 0)
        code, seconds, said = nox(folder, "gate", baseline, *measured)
        expected = REGRESSED if is_slower else PASSED
        told = [line for line in said.splitlines() if line.startswith(("Passed", "Failed", "No answer"))]
        planted = ", 5 % slower" if is_slower else ""
        print(f"night {night}{planted}: {code} ({seconds:.0f} s)  {''.join(told)}", flush=True)
        names_it = f"slower  {SLOWED} chain:jit" in said
        if code != expected or names_it != is_slower or leads_with_it(said) != is_slower:
            wrong += 1
            print(said)
    print(f"{nights + 1 - wrong} of {nights + 1} nights ended as they should")
    return 1 if wrong else 0


def leads_with_it(said: str) -> bool:
    """Whether the heading of the page that a night has made says that something is slower."""
    pages = re.findall(r"^(reports/report-\S+\.html)$", said, re.MULTILINE)
    if not pages:
        return False
    heading = re.search(r"<h1>(.*?)</h1>", (CHECKOUT / pages[-1]).read_text(encoding="utf8"))
    return heading is not None and "slower (confirmed)" in heading[1]


def write_suite(folder: Path, *, extra: int) -> None:
    """The suite of the night."""
    (folder / "nightly.py").write_text(SUITE.format(extra=extra), encoding="utf8")


def nox(folder: Path, session: str, *arguments: str) -> tuple[int, float, str]:
    """A session's exit code, how long it took, and what it said."""
    start = time.monotonic()
    ended = subprocess.run(
        [sys.executable, "-m", "nox", "-f", str(CHECKOUT / "noxfile.py"), "-s", session, "--", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, time.monotonic() - start, ended.stdout + ended.stderr


if __name__ == "__main__":
    sys.exit(main())
