"""The typer application: the verbs, a file each in this folder, of which each is loaded when it is called."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from jaxmeter.cli.arguments import ArgumentsError, expand, refuse_other_bytes
from jaxmeter.cli.ending import UNUSABLE, end_program, raise_interruptions
from jaxmeter.version import __version__

SECTIONS = ("Measure", "Report", "Compare", "Store", "Schedule", "Steps of other verbs")
"""Of the help. The first line of a verb's file names its section and its summary: `Compare: Report what changed ...`"""


def read_verbs() -> dict[str, dict[str, str]]:
    """Return the summary of each verb by section, from the first lines of the files next to this one."""
    verbs: dict[str, dict[str, str]] = {section: {} for section in SECTIONS}
    for path in sorted(Path(__file__).parent.glob("*.py")):
        with path.open(encoding="utf-8") as lines:
            section, colon, summary = next(lines).strip().strip('"').partition(": ")
        if colon and section in verbs:
            verbs[section][path.stem.replace("_", "-")] = summary
    return verbs


VERBS = read_verbs()

CHOOSING = frozenset(("gate", "upgrade", "nightly", "doctor", "schedule", "images", "wheels"))
"""Verbs that choose the environments of what they call."""

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
        verb = choose_verb(name, rest)
        raise_interruptions()
        return name, verb, rest


app = typer.Typer(cls=Verbs, no_args_is_help=True, pretty_exceptions_enable=False, epilog=EXIT_CODES)


def choose_verb(name: str, words: Sequence[str]) -> Any:
    """Return the command of a verb; if its words or a variable choose another environment, one that calls it there."""
    may_be_elsewhere = os.environ.get("JAXMETER_RUNTIME") or any(word.startswith("--runtime") for word in words)
    if name not in CHOOSING and may_be_elsewhere:
        from jaxmeter.cli import launching

        if launching.is_launched(name, words):
            verb = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            verb.command(name, context_settings=launching.WITHOUT_HELP)(launching.make_command(name, words))
            return typer.main.get_command(verb)
    return load_verb(name)


def load_verb(name: str) -> Any:
    """Return the command of a verb, from the file of its name."""
    module = import_module(f"jaxmeter.cli.{name.replace('-', '_')}")
    verb = getattr(module, "app", None)
    if verb is None:
        (summary,) = (verbs[name] for verbs in VERBS.values() if name in verbs)
        details = module.command.__doc__
        verb = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
        settings = getattr(module, "SETTINGS", None)
        verb.command(name, help=f"{summary} {details}" if details else summary, context_settings=settings)(
            module.command
        )
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
