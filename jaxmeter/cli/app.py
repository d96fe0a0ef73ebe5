"""The typer application: the table of verbs, each of which is loaded when it is called."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from jaxmeter.cli.arguments import ArgumentsError, expand, refuse_other_bytes
from jaxmeter.cli.ending import UNUSABLE, end_program, raise_interruptions
from jaxmeter.version import __version__

VERBS = {
    "Measure": {
        "list": "Show suites, workloads, params and variants.",
        "run": "Measure suites and write a run into a folder.",
        "self-test": "Measure how often this machine reports differences that do not exist; later runs show it.",
        "machine": "Print the name that records give to this machine.",
    },
    "Report": {
        "report": "Merge runs into one HTML file, and print a summary.",
        "export": "Write runs as a table: one row per case, variant and metric.",
        "trace": "Show where the time goes in a profiler capture.",
        "reproduce": "Write a zip for a bug report: one program, its results, and a script for jax and flatbuffers.",
        "schema": "Print the JSON Schema of the record.",
    },
    "Compare": {
        "compare": "Report what changed between two runs.",
        "diff": "Report what differs between the programs that two runs compiled.",
        "gate": "Decide whether a run measured with `run --against` has regressions.",
        "history": "Find the first run in which a number changed.",
    },
    "Store": {
        "push": "Copy a run into a store, whole or not at all.",
        "fetch": "Copy a run of a store into the cache, and print its folder.",
        "gc": "List old runs of a folder, or remove them.",
    },
    "Steps of nox sessions": {
        "night": "The steps of a scheduled run.",
        "limits": "Check that these settings are valid, before measuring.",
        "runtime": "Check that a new run would use the Python and the image of an earlier run.",
        "reach": "Check that a store can be reached.",
    },
}
"""The summary of each verb, by section of the help. Its options and what it does are in the file of its name."""

EXIT_CODES = (
    "Exit codes: 0 success; 1 a confirmed regression; 2 wrong usage or unusable input; 3 incomplete or no answer; "
    "130 interrupted, with all measurements kept. 141: the output was closed early, as by a pipe to head."
)


class Verbs(TyperGroup):
    """Loads a verb's module when the verb is called, since a report needs no harness, and a run no pandas."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """As typer does, with the verb itself in the place of its summary."""
        name, summary, rest = super().resolve_command(ctx, args)
        if name is None or summary is None:  # while a shell completes
            return name, summary, rest
        verb = load_verb(name)
        raise_interruptions()
        return name, verb, rest


app = typer.Typer(cls=Verbs, no_args_is_help=True, pretty_exceptions_enable=False, epilog=EXIT_CODES)


def load_verb(name: str) -> Any:
    """Return the command of a verb, from the file of its name."""
    module = import_module(f"jaxmeter.cli.{name.replace('-', '_')}")
    verb = getattr(module, "app", None)
    if verb is None:
        (summary,) = (verbs[name] for verbs in VERBS.values() if name in verbs)
        details = module.command.__doc__
        verb = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        verb.command(name, help=f"{summary} {details}" if details else summary)(module.command)
    return typer.main.get_command(verb)


def _summarise() -> None:
    """Stand for a verb in the help and in completions."""


for _section, _verbs in VERBS.items():
    for _name, _summary in _verbs.items():
        app.command(_name, help=_summary, rich_help_panel=_section)(_summarise)


def _print_version(asked: bool) -> None:
    if asked:
        print(__version__)
        raise typer.Exit


@app.callback()
def describe(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Profile JAX programs: a number you can trust, or a reason why there is none."""


def run_program(words: Sequence[str]) -> NoReturn:
    """Run a command line, and exit with a code that is documented, whatever happens.

    Args:
      words: Without the name of the program.
    """
    try:
        arguments = expand(words)
        if arguments[:1] and arguments[0] in VERBS["Measure"]:  # reports can name a folder of any bytes
            refuse_other_bytes(arguments)
    except ArgumentsError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(UNUSABLE)
    end_program(lambda: app(arguments, prog_name="jaxmeter"))
