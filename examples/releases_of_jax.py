"""What each release of JAX changed: every one measured in lock-step with the one before it, on this machine.

    python examples/releases_of_jax.py [--good jax==0.9.0] [--bad jax==0.10.2] [--out DIR] [-- OPTIONS]

It does what `nox -s bisect` does with one case, with many: it makes an environment of each release, measures the first
one, then each next one while the processes of both take turns, and at the end the last one with the first. OPTIONS are
those of `jaxmeter run`; the default is --quick, which takes some nine minutes a release. DIR (results/releases) holds
the runs, `releases.md` with what each release changed, and `releases.html`, the page of all runs. Started again, it
goes on where it stopped. It ends with 0 where every release was measured and compared.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
sys.path.insert(0, str(CHECKOUT))

from launcher.environments import list_needed, make_environment, read_wanted  # noqa: E402  from the checkout
from launcher.options import UsageError  # noqa: E402
from launcher.releases import list_releases, read_pin  # noqa: E402
from launcher.sessions.neighbours import AGAIN, Neighbours  # noqa: E402
from launcher.walk import UnusableError, describe, walk  # noqa: E402


def main() -> int:
    """Measure all releases; 0 where each one was compared with the one before it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--good", default="jax==0.9.0", metavar="RELEASE", help="the first one")
    parser.add_argument("--bad", default="jax==0.10.2", metavar="RELEASE", help="the last one")
    parser.add_argument("--processes", type=int, default=6, metavar="N", help="of each comparison; default: 6")
    parser.add_argument("--out", type=Path, default=Path("results/releases"), metavar="DIR")
    parser.add_argument("options", nargs="*", help="of jaxmeter run, after --; default: --quick")
    given = parser.parse_args()
    out = given.out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    needed = list_needed(CHECKOUT / "pyproject.toml")
    start, texts = time.monotonic(), {}

    def say(line: str) -> None:
        print(f"{(time.monotonic() - start) / 60:3.0f} min  {line}", flush=True)

    def compare(words: Sequence[str]) -> int:
        name = Path(words[1]).name.removesuffix(AGAIN)  # a second measurement takes the place of the first one
        texts[name] = out / f"{name}.md"
        return nox("compare", *words, "--markdown", str(texts[name]))

    try:
        releases = list_releases(given.good, given.bad)
        neighbours = Neighbours(
            out / read_pin(given.good)[0],
            ("--backend", "cpu", "--out", str(out), *(given.options or ["--quick"])),
            given.processes,
            make=lambda one: make_environment(read_wanted(one), CHECKOUT / ".nox" / "environments", needed),
            run=call,
            compare=compare,
        )
        neighbours.begin(releases[0])
        result = walk(releases, neighbours, say)
    except (UsageError, UnusableError) as error:
        parser.error(str(error))
    written = [path for path in texts.values() if path.is_file()]
    (out / "releases.md").write_text("\n".join(path.read_text(encoding="utf8") for path in written), encoding="utf8")
    for path in written:
        path.unlink()
    print(*describe(result), sep="\n")
    code = nox("report", *map(str, neighbours.list_runs()), "--out", str(out / "releases.html"))
    return code or int(result.total is None or bool(result.passed_over))


def call(python: Path, words: Sequence[str], variables: Mapping[str, str]) -> int:
    """The exit code of a measurement in an environment."""
    command = [str(python), "-m", "jaxmeter", *words]
    return subprocess.run(command, cwd=CHECKOUT, env={**os.environ, **variables}, check=False).returncode


def nox(session: str, *words: str) -> int:
    """A session's exit code."""
    return subprocess.run(
        [sys.executable, "-m", "nox", "-s", session, "--", *words], cwd=CHECKOUT, check=False
    ).returncode


if __name__ == "__main__":
    sys.exit(main())
