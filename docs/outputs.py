"""Writes the outputs that the documentation shows: `python docs/outputs.py [NAME...]` runs their commands again.

A page marks an output by the comment `<!-- output: NAME -->` above its block. Each function of RECIPES runs the
commands of such outputs as a reader would, with the programs of the pages, and returns the texts. Without a NAME all
are run.
`nox -s docs -- --update` runs this and then pictures.py.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
DOCS = CHECKOUT / "docs"
EXAMPLES = CHECKOUT / "examples"
OWN_STEP = EXAMPLES / "own_train_step"

OUTPUT = re.compile(
    r"(?P<before><!-- output: (?P<name>[\w-]+) -->\n+```\w*\n)(?P<text>.*?)(?P<after>```)$", re.DOTALL | re.MULTILINE
)
CUT = "…"
"""A line of an output that replaces left-out lines."""

SUMMARY_LINES = 5
"""Lines of a summary that README shows."""

REMOVED = re.compile(r"^(Running session|nox >|nox \[|\* |Creating virtual|Re-using existing)")
"""Lines of nox about itself."""

Texts = Mapping[str, str]
Recipe = Callable[["Folder"], Texts]


class Folder:
    """An empty folder in which commands run as a reader's, with the programs of this checkout."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(exist_ok=True)
        programs = {
            "jaxmeter": "-m jaxmeter",
            "python": "",
            "nox": f"-m nox --non-interactive -f {CHECKOUT / 'noxfile.py'}",
        }
        bin_folder = path / "bin"
        bin_folder.mkdir()
        for name, arguments in programs.items():
            (bin_folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {arguments} "$@"\n', encoding="utf-8")
            (bin_folder / name).chmod(0o755)
        self._variables = {
            **os.environ,
            "PATH": f"{bin_folder}:{os.environ['PATH']}",
            "PYTHONPATH": str(CHECKOUT),
            "COLUMNS": "120",
        }

    def write(self, name: str, text: str) -> None:
        """Write a file, and the folders that it needs."""
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")

    def run(self, command: str, *, exit_code: int = 0) -> str:
        """Return what a command prints.

        Raises:
          SystemExit: It ends with another exit code.
        """
        print(f"$ {command}", flush=True)
        ended = subprocess.run(
            ["bash", "-c", command], cwd=self.path, env=self._variables, capture_output=True, text=True, check=False
        )
        if ended.returncode != exit_code:
            sys.exit(f"{command}: exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}")
        return ended.stdout


CODE: Mapping[str, tuple[str, str]] = {
    "softplus": ("README.md", "### A suite in 15 lines"),
    "own step": ("docs/tutorial/your_train_step.md", "## One call in a notebook"),
    "two functions": ("docs/how_to/compare_functions.md", "## In a notebook"),
    "one step": ("docs/how_to/compare_functions.md", "## Compare with a stored program"),
    "frame": ("docs/how_to/pandas.md", "# Load results into pandas"),
    "captured step": ("docs/where-the-time-goes.md", "run by a test. -->"),
}
"""Programs that the recipes run: the page of each, and the text above it."""


def find_code(name: str) -> str:
    """Return a program of CODE: the first Python block below its text.

    Raises:
      SystemExit: The page does not have it.
    """
    page, above = CODE[name]
    _, _, below = (CHECKOUT / page).read_text(encoding="utf-8").partition(f"{above}\n")
    _, begin, code = below.partition("```python\n")
    if not begin:
        sys.exit(f"{page}: no Python program below {above!r}")
    return code.partition("```")[0]


def run_cell(folder: Folder, code: str) -> str:
    """Return what a notebook shows below a cell: the value of its last line."""
    *lines, last = code.strip().splitlines()
    folder.write("cell.py", "\n".join([*lines, f"print({last})"]))
    return folder.run("python cell.py")


def keep(text: str, *patterns: str) -> str:
    """Return the lines that match a pattern; `…` replaces each gap between them."""
    lines, kept, last = text.splitlines(), [], -1
    for number, line in enumerate(lines):
        if any(re.search(pattern, line) for pattern in patterns):
            if kept and number > last + 1:
                kept.append(CUT)
            kept.append(line)
            last = number
    return "\n".join(kept)


def shorten_summary(text: str) -> str:
    """Return the beginning of the summary of a run, and its last line."""
    lines = text.strip().splitlines()
    return "\n".join([*lines[:SUMMARY_LINES], CUT, lines[-1]])


def cut_from(text: str, start: str | tuple[str, ...], end: str = "", *, above: int = 0) -> str:
    """Return the lines from one that begins with `start`, or some above it, to before one that begins with `end`."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if line.startswith(start)) - above
    rest = lines[first:]
    last = next((number for number, line in enumerate(rest) if end and line.startswith(end)), len(rest))
    return "\n".join(rest[:last])


# Recipes, in the order of the pages


def make_summary(folder: Folder) -> Texts:
    """The end of the run whose page README shows."""
    newest = max(EXAMPLES.glob("*-cpu-*"))
    return {"summary": shorten_summary(folder.run(f"jaxmeter report {newest}"))}


def measure_softplus(folder: Folder) -> Texts:
    """The suite of README."""
    folder.write("softplus.py", find_code("softplus"))
    printed = folder.run("jaxmeter run --suites softplus.py --quick")
    return {"softplus": cut_from(printed, "softplus[", "Smallest", above=1)}


def measure_own_step(folder: Folder) -> Texts:
    """The tutorial's call and its run."""
    (folder.path / "docs").symlink_to(DOCS)
    shutil.copy(DOCS / "tutorial" / "train_step.py", folder.path)
    notebook = run_cell(folder, find_code("own step"))
    printed = folder.run("jaxmeter run --suites docs/tutorial/train_step.py --quick")
    shown = keep(printed, r"^round 1 ", r"^ok ", r"^ +time  ", r"^train_step\[", r"^  \w+:", r"^    \w", r"^1 case")
    return {"own-step-notebook": notebook, "own-step": shown}


def keep_own_step(folder: Folder) -> None:
    """Make the run of the tutorial the example of a user's own step."""
    (run,) = (record.parent for record in folder.path.glob("results/*/run.json"))
    for old in OWN_STEP.glob("*/run.json"):
        shutil.rmtree(old.parent)
    kept = OWN_STEP / run.name
    kept.mkdir(parents=True)
    for name in ("manifest.json", "run.json"):
        shutil.copy(run / name, kept)
    folder.run(f"jaxmeter report {kept} --out {OWN_STEP / 'page.html'}")


def compare_functions(folder: Folder) -> Texts:
    """Two functions in a notebook; an edited function, compared with the kept program of the run before."""
    notebook = run_cell(folder, find_code("two functions"))
    folder.write("my_suite.py", find_code("one step"))
    folder.run("jaxmeter run --suites my_suite.py --quick --run-id before")
    _add_a_product(folder, "my_suite.py")
    folder.run("jaxmeter run --suites my_suite.py --quick --against results/before --run-id after")
    printed = folder.run("jaxmeter compare results/before results/after", exit_code=1)
    return {"two-functions": notebook, "edited-function": cut_from(printed, "Regressions").partition("\n\n")[0]}


def gate_a_pull_request(folder: Folder) -> Texts:
    """The gate of a pull request that adds a matrix product."""
    own = f"--runtime local --out {folder.path / 'results'}"
    folder.write("bench/step.py", find_code("one step"))
    suite = folder.path / "bench" / "step.py"
    folder.run(f"nox -s cpu -- --suites {suite} --quick --run-id base {own}")
    _add_a_product(folder, "bench/step.py")
    base = folder.path / "results" / "base"
    printed = folder.run(f"nox -s gate -- {base} --suites {suite} {own}", exit_code=1)
    return {"gate": _without_folder(folder, cut_from(printed, "Failed", "Of "))}


def _add_a_product(folder: Folder, name: str) -> None:
    """Edit the suite of the page, as a reader would."""
    text = (folder.path / name).read_text(encoding="utf-8")
    edited = text.replace("jnp.tanh(x @ w)", "jnp.tanh(jnp.tanh(x @ w) @ w)")
    if edited == text:
        sys.exit(f"{name}: the line to edit is not there")
    folder.write(name, edited)


def run_nightly(folder: Folder) -> Texts:
    """The second nightly run of a small suite, in a folder as the store."""
    folder.write("step.py", find_code("one step"))
    options = f"--suites {folder.path / 'step.py'} --quick --runtime local --out {folder.path / 'results'}"
    command = f"nox -s nightly -- --store {(folder.path / 'store').as_uri()} --machine bench-1 {options}"
    folder.run(command)
    printed = folder.run(command)
    store = "/srv/jaxmeter"
    text = cut_from(printed, ("Passed", "Failed", "No answer"), "nox > ")
    return {"nightly": text.replace(str(folder.path / "store"), store)}


def show_frame(folder: Folder) -> Texts:
    """The largest speedups of the example, by pandas."""
    (folder.path / "examples").symlink_to(EXAMPLES)
    code = find_code("frame")
    *lines, last = code.strip().splitlines()
    return {"pandas": run_cell(folder, "\n".join([*lines, f"({last}).to_string(index=False)"]))}


def read_captures(folder: Folder) -> Texts:
    """The capture of the example program, compared with one of another activation, and as those of two hosts."""
    program = find_code("captured step")
    folder.write("train.py", program)
    folder.run("python train.py")
    shown = folder.run(f"jaxmeter trace log --peaks {max(EXAMPLES.glob('*-cpu-*'))}")
    folder.write("gelu/train.py", program.replace("jax.nn.relu", "jax.nn.gelu").replace('"log"', '"log-gelu"'))
    folder.run("python gelu/train.py")
    difference = folder.run("jaxmeter trace log log-gelu")
    folder.run("python train.py")
    older, newer = sorted((folder.path / "log" / "plugins" / "profile").iterdir())
    pod = folder.path / "pod" / "log" / "plugins" / "profile" / newer.name
    pod.mkdir(parents=True)
    for host, session in enumerate((newer, older)):  # as a pod names its files
        (capture,) = session.glob("*.xplane.pb")
        shutil.copy(capture, pod / f"t1v-n-{host}.xplane.pb")
    hosts = folder.run("cd pod && jaxmeter trace log")
    listing = "\n".join(str(path.relative_to(folder.path / "pod")) for path in sorted(pod.iterdir()))
    return {
        "capture": shown,
        "two-captures": difference,
        "pod-files": listing,
        "pod-hosts": keep(hosts, r"^Host ", r"^t1v"),
    }


def run_first(folder: Folder) -> Texts:
    """The quick run of the first tutorial, and the examination of its machine."""
    out = folder.path / "results"
    printed = folder.run(f"nox -s cpu -- --quick --runtime local --out {out}")
    lines = [line for line in printed.splitlines() if not REMOVED.match(line)]
    begin = next(number for number, line in enumerate(lines) if line.startswith("run "))
    end = next(number for number, line in enumerate(lines) if " measured on " in line)
    return {
        "first-run": _without_folder(
            folder, keep("\n".join(lines[begin:end]), r"^run ", r"^round ", r"^ok +(selu|matmul)")
        ),
        "first-summary": _without_folder(folder, shorten_summary("\n".join(lines[end:]))),
    }


def _without_folder(folder: Folder, text: str) -> str:
    return text.replace(f"{folder.path}/", "")


RECIPES: Mapping[Recipe, Sequence[str]] = {
    make_summary: ("summary",),
    measure_softplus: ("softplus",),
    run_first: ("first-run", "first-summary"),
    measure_own_step: ("own-step-notebook", "own-step"),
    compare_functions: ("two-functions", "edited-function"),
    gate_a_pull_request: ("gate",),
    run_nightly: ("nightly",),
    show_frame: ("pandas",),
    read_captures: ("capture", "two-captures", "pod-files", "pod-hosts"),
}
"""What each recipe makes."""


def list_pages() -> list[Path]:
    """Return the pages that show outputs."""
    pages = [CHECKOUT / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [page for page in pages if "_build" not in page.parts and OUTPUT.search(page.read_text(encoding="utf-8"))]


def replace_outputs(page: str, texts: Texts) -> str:
    """Return a page with new outputs; those that are not given stay."""

    def write(match: re.Match[str]) -> str:
        text = texts.get(match["name"])
        body = match["text"] if text is None else "\n".join(map(str.rstrip, text.strip("\n").splitlines())) + "\n"
        return f"{match['before']}{body}{match['after']}"

    return OUTPUT.sub(write, page)


def main(names: Sequence[str]) -> int:
    """Make the named outputs, or all, and write them into their pages; return the exit code."""
    known = {name for made in RECIPES.values() for name in made}
    if unknown := set(names) - known:
        sys.exit(f"no output {', '.join(sorted(unknown))}; there are: {', '.join(sorted(known))}")
    texts: dict[str, str] = {}
    for recipe, made in RECIPES.items():
        if not names or set(names) & set(made):
            with tempfile.TemporaryDirectory() as path:
                folder = Folder(Path(path) / "work")
                texts |= recipe(folder)
                if recipe is measure_own_step:
                    keep_own_step(folder)
    for page in list_pages():
        old = page.read_text(encoding="utf-8")
        new = replace_outputs(old, texts)
        if new != old:
            page.write_text(new, encoding="utf-8")
            print(f"changed: {page.relative_to(CHECKOUT)}; read the sentences below its outputs")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
