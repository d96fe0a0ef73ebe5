"""Any verb in another environment: a measurement in a container or with locked packages, all else with those."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

import typer

from jaxmeter.cli.launching import MEASURING, call_elsewhere, end, make_shell
from jaxmeter.harness.record import make_run_id
from jaxmeter.launch.command_line import read_backend
from jaxmeter.launch.measuring import measure
from jaxmeter.launch.runs import plan_run, plan_self_test

SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}

Parsed = Annotated[list[str] | None, typer.Argument(hidden=True)]


def make_command(verb: str, words: Sequence[str]) -> Callable[..., None]:
    """Return the command that takes a verb's place.

    Args:
      words: Of the command line as they are: a parser would take out the two dashes that end options.
    """
    given = list(words)  # the parser empties the list of the command line

    def command(parsed: Parsed = None) -> None:
        end(lambda: _measure(verb, given) if verb in MEASURING else call_elsewhere(verb, given))

    return command


def _measure(verb: str, words: list[str]) -> int:
    if "--help" in words:
        return call_elsewhere(verb, ["--help"])
    backend, rest = read_backend(words)
    shell = make_shell(rest)
    if verb == "self-test":
        return measure(shell, backend, rest, plan_self_test)
    run_id = make_run_id(backend)
    return measure(shell, backend, rest, lambda arguments: plan_run(arguments, run_id))
