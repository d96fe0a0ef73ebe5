"""A week of nightly gates: a baseline run, unchanged runs, and a run in which one program is 5 % slower.

    python examples/a_week_of_nightlies.py [--nights 5] [--busy] [--folder DIR] [--keep DIR]

Every run is `nox -s gate -- BASELINE`. It measures the programs of the baseline run again, interleaved with the kept
ones, and confirms what it suspects. It ends with 0 (passed), 1 (a confirmed regression) or 3 (no answer). The unchanged
runs have to end with 0. The last one has to end with 1, and its page has to name the slower case first. Otherwise this
script ends with 1. A run takes up to a minute.
"""

from __future__ import annotations

import argparse
import multiprocessing
import re
import shutil
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
    """A number of steps of the chain."""
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
    """Run the week; return 0 if every run ended as expected."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nights", type=int, default=5, help="number of unchanged runs; default: 5")
    parser.add_argument("--busy", action="store_true", help="another process uses a core all the time")
    parser.add_argument("--folder", type=Path, help="folder of the suite and the runs; default: a temporary one")
    parser.add_argument("--keep", type=Path, help="folder to copy the records to, with a page of all runs")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (given.folder or Path(temporary)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        other = multiprocessing.Process(target=spin, daemon=True) if given.busy else None
        if other is not None:
            other.start()
        try:
            code = live(folder, given.nights)
            if given.keep is not None:
                keep(folder / "results", given.keep.absolute())
            return code
        finally:
            if other is not None:
                other.terminate()


def spin() -> None:
    """Use a core."""
    while True:
        sum(range(1000))


def live(folder: Path, nights: int) -> int:
    """Measure the baseline and its nightly runs; return the exit code."""
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
        code, seconds, said = nox(folder, "gate", baseline, "--suites", suite, *measured)
        expected = REGRESSED if is_slower else PASSED
        verdicts = [line for line in said.splitlines() if line.startswith(("Passed", "Failed", "No answer"))]
        planted = ", 5 % slower" if is_slower else ""
        print(f"night {night}{planted}: {code} ({seconds:.0f} s)  {''.join(verdicts)}", flush=True)
        names_it = f"slower  {SLOWED} chain:jit" in said
        if code != expected or names_it != is_slower or leads_with_it(said) != is_slower:
            wrong += 1
            print(said)
    print(f"{nights + 1 - wrong} of {nights + 1} nights ended as expected")
    return 1 if wrong else 0


def keep(results: Path, folder: Path) -> None:
    """Copy the records of the runs, without captures and programs, and write a page of all runs."""
    kept = []
    for record in sorted(results.glob("*/run.json"), key=lambda record: record.stat().st_mtime):
        run = record.parent
        kept.append(folder / run.name)
        kept[-1].mkdir(parents=True, exist_ok=True)
        for name in ("manifest.json", "run.json"):
            shutil.copy(run / name, kept[-1])
    page = folder / "page.html"
    report = [sys.executable, "-m", "jaxmeter", "report", *map(str, kept), "--out", str(page)]
    subprocess.run(report, cwd=CHECKOUT, check=True, stdout=subprocess.DEVNULL)


def leads_with_it(said: str) -> bool:
    """Return whether the first card of the page of a run, about what changed, names the slower program."""
    pages = re.findall(r"^(reports/report-\S+\.html)$", said, re.MULTILINE)
    if not pages:
        return False
    page = (CHECKOUT / pages[-1]).read_text(encoding="utf8")
    card = re.search(r'<article class="card" data-card="changed">.*?</article>', page, re.DOTALL)
    return card is not None and SLOWED in card[0]


def write_suite(folder: Path, *, extra: int) -> None:
    """Write the suite; its chain has `extra` more steps."""
    (folder / "nightly.py").write_text(SUITE.format(extra=extra), encoding="utf8")


def nox(folder: Path, session: str, *arguments: str) -> tuple[int, float, str]:
    """Return a session's exit code, its seconds and its output."""
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
