"""Does a night survive being killed? Its steps, killed at random moments and begun again, and what is left of them.

    python -m benchmarks.night_kills [--kills 100] [--seed 0]

Each night measures two cases in three processes, pushes to a real S3 server on this machine, and is compared with the
night before. It is killed by SIGKILL, with all of its processes, at a random moment; then the same command is given
again, until it ends. After each kill every file of a record is read. At the end every process of a round that was whole
before a kill is there still; those of a case's round in progress may be measured again, and are counted. The store
holds whole runs, with one verdict on each. Needs what docker/locks/cloud.txt names.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.here import describe_here
from jaxmeter.harness.record import ProcessRecord, RecordError, RunFolder, read_json, read_manifest, read_run
from jaxmeter.harness.record.cases import CaseRecord
from jaxmeter.harness.record.processes import LEFT_OUT
from jaxmeter.reporting.nightly import stored
from jaxmeter.reporting.store.captures import is_capture
from jaxmeter.reporting.store.push import list_local
from jaxmeter.reporting.store.stores import open_store
from tests.cloud.servers import find_port, make_credentials, serve

SUITE = '''"""Two small cases."""

import jax.numpy as jnp
from jaxmeter import workload


@workload(
    inputs=lambda key, *, n: (jnp.arange(n, dtype="float32"),),
    params={"n": (100, 1000)},
    reference=lambda x: x + 1,
    modes=("jit",),
)
def increment(x):
    """Adds one, (n,) -> (n,)."""
    return x + 1
'''

NIGHT = """
set -e
python=$1 store=$2 out=$3 suite=$4
step() {{ if [ -e "$1" ]; then "$python" -m jaxmeter run "@$1" --quiet || [ $? -eq 3 ]; fi; }}
"$python" -m jaxmeter night begin "$store" --machine box --out "$out" -- --suites "$suite" --processes 3 --probe timing
step "$out/.night/measure"
"$python" -m jaxmeter night suspects --out "$out"
for file in "$out"/.night/confirm-*; do step "$file"; done
"$python" -m jaxmeter night conclude --out "$out" --page "$out/page.html"
""".replace("{{", "{").replace("}}", "}")

LONGEST_S = 600
ENDED_WELL = (0, 3)


@dataclass
class Tally:
    """What was seen.

    Args:
      phases: How many kills came before the run was measured, and after it.
      damaged: Files of records that could not be read after a kill.
      lost: Processes that were there after a kill, and are not any more, or are others.
    """

    kills: int = 0
    nights: int = 0
    restarts: int = 0
    phases: dict[str, int] = field(default_factory=dict)
    damaged: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


def main() -> None:
    """Kills, and prints what was left."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print(describe_here("jax", "moto"), flush=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        port = find_port()
        command = (sys.executable, "-m", "moto.server", "-p", str(port))
        with serve(*command, port=port, log=folder / "server.log") as address:
            os.environ.update(make_credentials(address))
            os.environ["JAXMETER_CACHE"] = str(folder / "cache")
            tally = kill_nights(folder, given.kills, random.Random(given.seed))
    print(
        f"{tally.kills} kills in {tally.nights} nights, {tally.restarts} restarts: {len(tally.damaged)} files damaged, "
        f"{len(tally.lost)} processes lost, {len(tally.wrong)} nights or runs not as they should be"
    )
    print("killed " + ", ".join(f"{count} times {phase}" for phase, count in sorted(tally.phases.items())))
    for line in (*tally.damaged, *tally.lost, *tally.wrong):
        print(line)
    raise SystemExit(1 if tally.damaged or tally.lost or tally.wrong else 0)


def kill_nights(folder: Path, kills: int, chance: random.Random) -> Tally:
    """Nights until so many kills have been made."""
    import fsspec

    fsspec.filesystem("s3").mkdir("a-bucket")
    store, out, suite = "s3://a-bucket/nights", folder / "results", folder / "small.py"
    suite.write_text(SUITE, encoding="utf8")
    start = time.monotonic()
    end_well(store, out, suite, tally := Tally())
    usual_s = time.monotonic() - start
    print(f"a night without kills: {usual_s:.1f} s", flush=True)
    while tally.kills < kills:
        processes: dict[Path, bytes] = {}
        while tally.kills < kills and was_killed(store, out, suite, chance.uniform(0, usual_s), tally):
            check_after_kill(out, processes, tally)
        end_well(store, out, suite, tally)
        tally.lost += [str(path) for path, data in processes.items() if not is_kept(path, data)]
        print(f"night {tally.nights}: {tally.kills} kills so far", flush=True)
    check_store(store, out, tally)
    return tally


def was_killed(store: str, out: Path, suite: Path, after_s: float, tally: Tally) -> bool:
    """Begins or goes on with a night and kills it; false where it ended before."""
    tally.restarts += 1
    process = start_night(store, out, suite)
    try:
        code = process.wait(after_s)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        tally.kills += 1
        phase = "before its run was whole" if list(out.glob(".night/measure")) else "after its run was whole"
        tally.phases[phase] = tally.phases.get(phase, 0) + 1
        return True
    count_night(code, tally)
    return False


def end_well(store: str, out: Path, suite: Path, tally: Tally) -> None:
    """Lets the night that is under way come to its end, if there is one; else one from its beginning."""
    if tally.nights and not (out / ".night").exists():
        return
    process = start_night(store, out, suite)
    try:
        count_night(process.wait(LONGEST_S), tally)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        tally.wrong.append(f"night {tally.nights + 1}: did not end")


def start_night(store: str, out: Path, suite: Path) -> subprocess.Popen[bytes]:
    """A night, the leader of a process group of its own."""
    words = (sys.executable, store, str(out), str(suite))
    with (out.parent / "night.log").open("ab") as log:
        return subprocess.Popen(
            ["bash", "-c", NIGHT, "night", *words], stdout=log, stderr=log, stdin=subprocess.DEVNULL, process_group=0
        )


def count_night(code: int, tally: Tally) -> None:
    """One more night that has ended."""
    tally.nights += 1
    if code not in ENDED_WELL:
        tally.wrong.append(f"night {tally.nights}: ended with {code}")


def check_after_kill(out: Path, processes: dict[Path, bytes], tally: Tally) -> None:
    """Reads all records, and remembers processes; what was left out for want of time is decided anew."""
    for folder in (one for one in out.iterdir() if one.is_dir() and not one.name.startswith(".")):
        for path in (RunFolder(folder).manifest, *folder.glob("cases/*/case.json"), RunFolder(folder).mark):
            read_if_there(path, tally)
        for path in folder.glob("cases/*/processes/*.json.gz"):
            read_if_there(path, tally)
            if LEFT_OUT not in path.name:
                processes.setdefault(path, path.read_bytes())


def read_if_there(path: Path, tally: Tally) -> None:
    """Reads a file of a record as what it is."""
    if not path.exists():
        return
    try:
        if path.name == "manifest.json":
            read_manifest(RunFolder(path.parent))
        elif path.name == "run.json":
            read_run(RunFolder(path.parent))
        else:
            read_json(path, CaseRecord if path.name == "case.json" else ProcessRecord)
    except RecordError as error:
        tally.damaged.append(f"{path}: {error}")


def is_kept(path: Path, data: bytes) -> bool:
    """Whether a process is as it was, under its own name or as one that a fresh process has replaced."""
    replaced = path.with_name(path.name.replace(".json.gz", ".replaced.json.gz"))
    return any(one.exists() and one.read_bytes() == data for one in (path, replaced))


def check_store(store: str, out: Path, tally: Tally) -> None:
    """The store holds every run that is whole here, with all of its files, and one verdict on each night."""
    there = open_store(store)
    known = {one.run for one in stored.read_all(there, out.parent / "fresh").verdicts}
    local: Mapping[str, Path] = {one.parent.name: one.parent for one in out.glob("*/run.json")}
    nights = {name for name in local if "-beside-" not in name}
    tally.wrong += [f"{name}: no verdict" for name in sorted(nights - known)]
    tally.wrong += [f"{name}: a verdict on no run" for name in sorted(known - nights)]
    for name in there.list_folders():
        here = list_local(local[name]) if name in local else {}
        if there.list_files(name) != {path: size for path, size in here.items() if not is_capture(path)}:
            tally.wrong.append(f"{name}: in the store otherwise than here")
    tally.wrong += [f"{name}: not in the store" for name in sorted(set(local) - set(there.list_folders()))]
    unfinished = [one.name for one in out.iterdir() if one.is_dir() and one.name not in local and one.name != ".night"]
    tally.wrong += [f"{name}: was not finished" for name in unfinished if not name.startswith(".")]
    if (out / ".night").exists():
        tally.wrong.append("a night is still under way")
    shutil.rmtree(out.parent / "fresh")


if __name__ == "__main__":
    main()
