"""What each release of JAX changed: every one measured beside the one before it, on this machine.

    python examples/releases_of_jax.py [--good jax==0.9.0] [--bad jax==0.10.2] [--out DIR] [-- OPTIONS]

It does what `nox -s upgrade` does, for all neighbours from the first release to the last: it makes an environment of
each, measures the first one, and then each next one while the processes of both take turns. OPTIONS are those of
`jaxmeter run`; without any it measures the quick cases with six processes, in some nine minutes a release. In
DIR (results/releases) stand the runs, `releases.md` with what each release changed, and `releases.html`, the page of
all runs. Begun again, it goes on where it was. It ends with 0 where every release was measured and compared.
"""

from __future__ import annotations

import argparse
import itertools
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
sys.path.insert(0, str(CHECKOUT))

from launcher.environments import list_needed, make_environment, read_wanted  # noqa: E402  from the checkout
from launcher.options import UsageError  # noqa: E402
from launcher.releases import list_releases  # noqa: E402
from launcher.sessions.upgrade import AFTER, BEFORE  # noqa: E402

FINE, SLOWER, INCOMPLETE = 0, 1, 3


def main() -> int:
    """Measures all releases; 0 where each was compared with the one before it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--good", default="jax==0.9.0", metavar="RELEASE", help="the first one")
    parser.add_argument("--bad", default="jax==0.10.2", metavar="RELEASE", help="the last one")
    parser.add_argument("--out", type=Path, default=Path("results/releases"), metavar="DIR")
    parser.add_argument("options", nargs="*", help="of jaxmeter run, after --")
    given = parser.parse_args()
    options = given.options or ["--quick", "--processes", "6"]
    given.out = given.out.absolute()
    given.out.mkdir(parents=True, exist_ok=True)
    needed = list_needed(CHECKOUT / "pyproject.toml")
    try:
        releases = list_releases(given.good, given.bad)
        pythons = [make_environment(read_wanted(one), CHECKOUT / ".nox" / "environments", needed) for one in releases]
    except UsageError as error:
        parser.error(str(error))
    runs = [given.out / one.replace("==", "-") for one in releases]
    codes = measure(pythons, runs, ("run", "--backend", "cpu", "--out", str(given.out), *options))
    if codes[-1] not in (FINE, INCOMPLETE):
        return 1
    codes += compare(runs, given.out / "releases.md")
    codes.append(nox("report", *map(str, runs), "--out", str(given.out / "releases.html")))
    return 0 if all(code in (FINE, SLOWER) for code in codes) else 1


def measure(pythons: Sequence[Path], runs: Sequence[Path], words: Sequence[str]) -> list[int]:
    """The exit codes of the runs: the first by itself, each other one beside that before it, until one fails."""
    start = time.monotonic()
    codes = [measure_one(pythons[0], runs[0], (*words, *BEFORE))]
    for old, new, before, after in zip(pythons, pythons[1:], runs, runs[1:], strict=False):
        if codes[-1] not in (FINE, INCOMPLETE):
            break
        beside = ("--against", str(before), "--lock-step", str(old))
        codes.append(measure_one(new, after, (*words, *AFTER, *beside)))
        print(f"{after.name}: {codes[-1]}, {(time.monotonic() - start) / 60:.0f} minutes since the beginning")
    return codes


def measure_one(python: Path, run: Path, words: Sequence[str]) -> int:
    """The exit code of a run; one that is whole already is taken as it is, one that was interrupted goes on."""
    if (run / "run.json").exists():
        return FINE
    if (run / "manifest.json").exists():
        return call(python, "run", "--resume", str(run))
    return call(python, *words, "--run-id", run.name)


def compare(runs: Sequence[Path], told: Path) -> list[int]:
    """The exit codes of the comparisons of neighbours, which are written one after the other."""
    codes, texts = [], []
    for before, after in itertools.pairwise(runs):
        text = told.with_name(f"{after.name}.md")
        codes.append(nox("compare", str(before), str(after), "--markdown", str(text)))
        if text.is_file():
            texts.append(text.read_text(encoding="utf8"))
            text.unlink()
    told.write_text("\n".join(texts), encoding="utf8")
    return codes


def call(python: Path, *words: str) -> int:
    """The exit code of a measurement in an environment."""
    return subprocess.run([str(python), "-m", "jaxmeter", *words], cwd=CHECKOUT, check=False).returncode


def nox(session: str, *words: str) -> int:
    """A session's exit code."""
    return subprocess.run(
        [sys.executable, "-m", "nox", "-s", session, "--", *words], cwd=CHECKOUT, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
