"""What the verbs share that run in other environments: their words, where they run, and how they end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NoReturn

import typer

from jaxmeter.cli.ending import FINE, INCOMPLETE, INTERRUPTED, UNUSABLE
from jaxmeter.harness.record import make_run_id
from jaxmeter.launch.command_line import read_backend
from jaxmeter.launch.execution import say
from jaxmeter.launch.images import choose_lock
from jaxmeter.launch.measuring import measure
from jaxmeter.launch.options import InstallationError, UsageError, read_options, write_option
from jaxmeter.launch.request import HERE, RUNTIME_VARIABLE, lacks_jax
from jaxmeter.launch.runs import plan_run, plan_self_test
from jaxmeter.launch.shell import ProgramError, Shell, run_jaxmeter

REGRESSION = 1

FORWARDS = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Settings of a verb whose other options are those of `jaxmeter run`."""

WITHOUT_HELP = {**FORWARDS, "help_option_names": []}
"""Settings of a verb whose --help is the launcher's own."""

Runtime = Annotated[
    str | None,
    typer.Option(metavar="here|auto|local|container", help="Where to measure, as of `jaxmeter run`; default: here."),
]
MinEffect = Annotated[
    str | None, typer.Option(metavar="PERCENT", help="Changes of times below this are not reported; default: 3%.")
]
Budgets = Annotated[str | None, typer.Option(metavar="FILE", help="TOML file of allowed increases, by metric.")]
Markdown = Annotated[str | None, typer.Option(metavar="FILE", help="Also write the verdict as Markdown.")]
Verdict = Annotated[str | None, typer.Option(metavar="FILE", help="Also write the verdict as JSON.")]


def list_words(context: typer.Context) -> list[str]:
    """Return the words of a command line: those of the argument first, unknown options where the parser puts them.

    It puts them into an argument that takes any number of words, as `runs` of a gate; without such an argument, last.
    """
    words: list[str] = []
    for parameter in context.command.params:
        name = parameter.name or ""
        source = context.get_parameter_source(name)
        if source is None or source.name != "COMMANDLINE":
            continue
        value: Any = context.params[name]
        if parameter.param_type_name == "argument":
            words += list(value) if parameter.nargs == -1 else [value]
        elif value is True:
            words.append(parameter.opts[0])
        else:
            for each in value if parameter.multiple else (value,):
                words += write_option(parameter.opts[0], each)
    return [*words, *context.args]


def make_shell(words: Sequence[str]) -> Shell:
    """Return the environment that the words of a verb, or the user's variables, ask for.

    Raises:
      UsageError: The runtime needs a checkout of jaxmeter, and this is an installed package.
    """
    return Shell(words, os.environ)


def end(ask: Callable[[], int]) -> NoReturn:
    """End a verb with a documented exit code: 1 only where a program has decided so."""
    raise typer.Exit(_find_code(ask))


def _find_code(ask: Callable[[], int]) -> int:
    try:
        code = ask()
    except UsageError as error:
        say(f"error: {error}")
        return INCOMPLETE if isinstance(error, InstallationError) else UNUSABLE
    except ProgramError as error:  # what it should have printed was needed
        code = INCOMPLETE if error.code == REGRESSION else error.code
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        say(f"error: {error.filename or 'a program'} cannot be used: {error.strerror or error}; there is no answer")
        return INCOMPLETE
    return code if code in (FINE, REGRESSION, UNUSABLE, INCOMPLETE, INTERRUPTED) else INCOMPLETE


MEASURING = ("run", "self-test")
"""Verbs that measure in one environment; `--runtime` chooses it."""


def is_launched(verb: str, words: Sequence[str]) -> bool:
    """Return whether a verb runs in another environment than this one."""
    given = os.environ.get(RUNTIME_VARIABLE)
    if verb in MEASURING:
        try:
            given = read_options(words, "--runtime").get("--runtime") or given
        except UsageError:  # the verb's own parser says what is wrong
            return False
    return given not in (None, "", HERE) or (verb in MEASURING and lacks_jax())


def call_elsewhere(verb: str, words: Sequence[str]) -> int:
    """Call a verb in an environment of locked packages; return its exit code.

    Raises:
      UsageError: pip cannot install them.
    """
    shell = Shell((), os.environ)
    shell.install(choose_lock(words))
    sys.stdout.flush()
    return run_jaxmeter(shell, verb, *words)


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
