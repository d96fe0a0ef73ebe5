"""Sphinx extension: writes the reference pages from the code that they describe.

Each function returns one page as Markdown. Every build writes the pages in docs/reference/. They are kept in git, so
that links to them also work on a code host; tests/test_docs.py checks that they are those of the code.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import jaxmeter
from jaxmeter.cli.app import VERBS, load_verb
from jaxmeter.harness.metrics.metric import Metric
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record import json_schema
from jaxmeter.reporting.view.sections.method import GLOSSARY

FOLDER = "reference"

EXIT_CODES = (
    ("0", "Success. For a comparison: no regression. For `nox -s bisect`: a change was found."),
    ("1", "Regression: a confirmed slowdown beyond its budget, or more memory or counts than a budget allows."),
    ("2", "Wrong usage, or input that cannot be used. Nothing was measured."),
    (
        "3",
        (
            "Incomplete, or no answer: see below. Also each unexpected error, a store that cannot be reached, and a "
            "machine that stops, kills or delays a process or has no room. The same command can succeed later."
        ),
    ),
    ("130", "Interrupted. What was measured is kept; `--resume` continues."),
    ("141", "The output was cut short, as by a pipe to `head`. A verdict may be lost with it."),
)

EXIT_CODES_OF_COMMANDS = (
    (
        "`jaxmeter run`, `nox -s cpu`, `gpu`, `tpu`",
        "–",
        "",
        "A case failed, is wrong or unknown, timed out or was lost.",
    ),
    (
        "`jaxmeter self-test`, `nox -s self-test`",
        "–",
        "",
        "Something was not measured, or fewer than two runs are whole.",
    ),
    (
        "[`compare`](../comparing.md#two-runs)",
        "A regression. With `--fail-on suspected` also a suspected slowdown.",
        "",
        "Nothing can be compared, or something failed or is gone.",
    ),
    (
        "[`gate`](../comparing.md#gate)",
        "A regression.",
        "",
        "No answer: something failed or is gone, a suspect is undecided, or too few times have a verdict.",
    ),
    (
        "[`nox -s nightly`](../operations.md#what-a-nightly-run-does)",
        "A regression.",
        "",
        "No answer, or a store that cannot be reached. The same command continues.",
    ),
    (
        "[`nox -s upgrade`](../upgrading.md)",
        "A regression.",
        "An environment cannot be made, such as of a release that this Python cannot have.",
        "Something was not measured or not compared.",
    ),
    (
        "[`nox -s bisect`](../upgrading.md#which-release)",
        "–",
        "A release does not exist for this Python, or the good one cannot be measured.",
        "No change point is confirmed, or the bad release does not differ from the good one.",
    ),
    (
        "[`jaxmeter trace`](../how_to/read_a_capture.md)",
        "–",
        "No capture can be read.",
        "A [fatal finding](../where-the-time-goes.md#findings).",
    ),
    ("`nox -s doctor`", "–", "The backend cannot be measured here.", ""),
    ("`jaxmeter runtime`", "–", "", "The new run would use another Python or image."),
    (
        "[`push`, `fetch`](../stores.md#limits)",
        "–",
        "The run cannot be read, or the store refuses.",
        "A file is too large, or no file here can have its name. The others were copied.",
    ),
    (
        "`report`, `export`, `diff`, `reproduce`, `history`, `gc`",
        "–",
        "Nothing can be read, or a file cannot be written.",
        "",
    ),
)
"""Command, and what its codes 1, 2 and 3 mean where EXIT_CODES does not say it."""


TERMS_OF_GUIDES = (
    ("baseline", "in a run: the variant that speedups refer to. In a comparison: the earlier run"),
    (
        "bound",
        "the part of a traced step that takes at least half of the step, such as dispatch, Python or transfers",
    ),
    (
        "budget",
        "`--budget`: the time limit of a measurement. `--budgets`: a file with the allowed increases of metrics",
    ),
    ("gate", "`nox -s gate`: checks a change, interleaved with an earlier run. The exit code is the verdict"),
    (
        "inconclusive",
        (
            "a comparison that shows neither a difference nor equality. [More processes]"
            "(../explanation/what_is_measured.md#reduce-the-smallest-detectable-difference) can decide"
        ),
    ),
    (
        "interleaved",
        "run alternately, block by block in one process or in lock-step: interference affects all programs alike",
    ),
    (
        "lock-step",
        "the interleaving of two environments, such as two releases of JAX: a process of each runs in turns of 20 ms",
    ),
    ("nightly run", "a scheduled run that is stored and judged against earlier runs of the same machine"),
    ("store", "a bucket or shared folder to which runs are pushed, and from which they are read"),
    (
        "tolerance",
        (
            "the largest error of an output that is right without further checks. The lowest-precision dtype of the "
            "baseline program sets it ([table](../method.md#correctness))"
        ),
    ),
    ("trap", "a reason why a program does not do the work that its source suggests, such as dead work"),
)
"""Terms of the guides, which the report does not explain, with their meanings."""


def setup(app: Any) -> dict[str, Any]:
    """Register the extension with Sphinx."""
    app.connect("builder-inited", lambda app: write_pages(Path(app.srcdir) / FOLDER))
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_pages(folder: Path) -> None:
    """Write all reference pages into a folder. An unchanged page keeps its time, so Sphinx does not read it again."""
    (folder / "suites").mkdir(parents=True, exist_ok=True)
    pages = {name: make() for name, make in PAGES.items()}
    suites = describe_suites()
    pages |= {f"suites/{suite['name']}": write_suite(suite) for suite in suites}
    pages["suites"] = write_suites(suites)
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def write_commands() -> str:
    """Return every verb of the command line with its arguments and options."""
    lines = [
        "# Command line",
        "",
        "`jaxmeter VERB --help` prints the same. See also the [exit codes](exit_codes.md).",
        "",
    ]
    for section, verbs in VERBS.items():
        lines += [f"## {section}", ""]
        for name in verbs:
            lines += _write_verb(f"jaxmeter {name}", load_verb(name))
    return _join(lines)


def _write_verb(name: str, command: Any) -> list[str]:
    lines = [f"### {name}", "", _clean(command.help or ""), ""]
    if hasattr(command, "commands"):
        for word, subcommand in command.commands.items():
            lines += [f"#### {name} {word}", "", _clean(subcommand.help or ""), "", *_list_params(subcommand)]
        return lines
    return [*lines, *_list_params(command)]


def _list_params(command: Any) -> list[str]:
    rows = [(_write_param(param), _write_help(param)) for param in command.params if getattr(param, "help", "")]
    return [*_write_table(("Argument or option", "Meaning"), rows), ""] if rows else []


def _write_help(param: Any) -> str:
    """Return the help of an option, with its default as the terminal shows it."""
    text = _clean(param.help)
    if param.required:
        return f"{text} Required." if param.param_type_name == "option" else text
    has_value = param.default not in (None, "", ()) and not getattr(param, "is_flag", False)
    return f"{text} Default: {getattr(param.default, 'value', param.default)}." if has_value else text


def _write_param(param: Any) -> str:
    """Return `--backend TEXT`, or the name of an argument."""
    if param.param_type_name != "option":
        return f"`{param.metavar or param.name.upper()}`"
    words = ", ".join(f"`{word}`" for word in (*param.opts, *param.secondary_opts))
    if param.is_flag:
        return words
    return f"{words} `{param.metavar or param.name.upper()}`"


def write_metrics() -> str:
    """Return a table of every metric: its name in exports and budgets, its unit, and its definition."""
    lines = ["# Metrics", "", "Names are those of `jaxmeter export`, of budgets and of the record.", ""]
    groups: dict[str, list[Metric]] = {}
    for metric in METRICS.values():
        groups.setdefault(metric.probe or "derived", []).append(metric)
    for probe, metrics in groups.items():
        lines += [f"## {probe[:1].upper()}{probe[1:].replace('_', ' ')}", ""]
        rows = [
            (f"`{own.name}`", own.title, own.unit.value, own.direction.value, f"{own.definition} {_say_how(own)}")
            for own in metrics
        ]
        lines += [*_write_table(("Name", "Title", "Unit", "Better", "Definition"), rows), ""]
    return _join(lines)


def _say_how(metric: Metric) -> str:
    return "Exact: equal programs have equal values." if metric.exact else f"Summary: {metric.summary.value}."


def write_glossary() -> str:
    """Return the terms that the report explains, in the words of the report, and those of the guides."""
    before = "The terms of the report and of the guides. [Words of the code](../words.md) defines the others."
    rows = [(term, _clean(text)) for term, text in sorted((*GLOSSARY, *TERMS_OF_GUIDES))]
    return _join(["# Glossary", "", before, "", *_write_table(("Term", "Meaning"), rows)])


def write_exit_codes() -> str:
    """Return what each exit code means, for all commands and for each."""
    lines = ["# Exit codes", "", *_write_table(("Code", "Meaning"), EXIT_CODES), "", "## By command", ""]
    lines += ["An empty cell adds nothing to the table above. A dash: the command never ends with this code.", ""]
    lines += _write_table(("Command", "1", "2", "3"), EXIT_CODES_OF_COMMANDS)
    after = (
        "A confirmed slowdown within its [budget](../comparing.md#budgets) ends with 0. A run is complete although it "
        "skips a case for a declared reason, because it does not fit into memory, or because the backend does not "
        "support it."
    )
    return _join([*lines, "", after])


def write_record() -> str:
    """Return the fields of every file of a run, from the JSON Schema of the record."""
    schema = json_schema()
    lines = ["# Record", "", "`jaxmeter schema` prints the JSON Schema that this page is made from.", ""]
    for name, struct in _list_structs(schema):
        rows = [
            (f"`{field}`", _name_type(kind), "yes" if field in struct.get("required", ()) else "")
            for field, kind in struct["properties"].items()
        ]
        lines += [f"## {name}", "", _clean(struct.get("description", "").partition("\n\n")[0]), ""]
        lines += [*_write_table(("Field", "Type", "Required"), rows), ""]
    return _join(lines)


def _list_structs(schema: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, struct in sorted(schema.get("$defs", {}).items()):
        if "properties" in struct:
            yield name, struct


def _name_type(kind: Mapping[str, Any]) -> str:
    if "$ref" in kind:
        return kind["$ref"].rpartition("/")[2]
    if "anyOf" in kind:
        return " or ".join(dict.fromkeys(map(_name_type, kind["anyOf"])))
    if kind.get("type") == "array":
        return f"list of {_name_type(kind.get('items') or {})}"
    if "enum" in kind:
        return "one of " + ", ".join(f"`{value}`" for value in kind["enum"])
    return str(kind.get("type", "any"))


def write_api() -> str:
    """Return the public names of the package, which autodoc describes."""
    lines = ["# Python API", "", "```{eval-rst}"]
    for name in jaxmeter.__all__:
        value = getattr(jaxmeter, name)
        if isinstance(value, type):
            lines += [f".. autoclass:: jaxmeter.{name}", "   :members:", ""]
        elif callable(value):
            lines += [f".. autofunction:: jaxmeter.{name}", ""]
    return _join([*lines, "```"])


def describe_suites() -> Sequence[Mapping[str, Any]]:
    """Return what `jaxmeter list --full --json` prints."""
    ended = subprocess.run(
        (sys.executable, "-m", "jaxmeter", "list", "--full", "--json"), capture_output=True, text=True, check=True
    )
    return json.loads(ended.stdout)


def write_suites(suites: Sequence[Mapping[str, Any]]) -> str:
    """Return the list of suites with the question that each answers."""
    lines = [
        "# Suites of jaxmeter",
        "",
        "[What the suites show](../../jaxmeter/suites/README.md) has the findings.",
        "",
    ]
    lines += ["```{toctree}", ":hidden:", "", *(f"suites/{suite['name']}" for suite in suites), "```", ""]
    rows = [(f"[{suite['name']}](suites/{suite['name']}.md)", _clean(suite["description"])) for suite in suites]
    return _join([*lines, *_write_table(("Suite", "What it measures"), rows)])


def write_suite(suite: Mapping[str, Any]) -> str:
    """Return the workloads, params and variants of a suite."""
    lines = [f"# {suite['name']}", "", _clean(suite["description"]), ""]
    for workload in suite["workloads"]:
        lines += [f"## {workload['name']}", "", _clean(workload["description"]), ""]
        params = [
            (f"`{name}`", ", ".join(f"`{value}`" for value in values)) for name, values in workload["params"].items()
        ]
        lines += [*_write_table(("Param", "Values"), params), ""] if params else []
        variants = [(f"`{name}`", _clean(description)) for name, description in workload["variants"]]
        lines += [*_write_table(("Variant", "What it does"), variants), ""]
    return _join(lines)


def _write_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines]


def _clean(text: str) -> str:
    """Return a text in one line, without what Markdown would read as HTML."""
    return " ".join(text.split()).replace("<", "&lt;")


def _join(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


PAGES: Mapping[str, Callable[[], str]] = {
    "command": write_commands,
    "metrics": write_metrics,
    "glossary": write_glossary,
    "exit_codes": write_exit_codes,
    "record": write_record,
    "api": write_api,
}
"""Each page and what writes it; suites come in addition."""
