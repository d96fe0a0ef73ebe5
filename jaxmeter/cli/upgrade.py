"""Compare: Compare two environments in lock-step, such as two releases of JAX."""

from __future__ import annotations

from typing import Annotated

import typer

from jaxmeter.cli.launching import (
    FORWARDS,
    Budgets,
    Markdown,
    MinEffect,
    Verdict,
    end,
    list_words,
    make_shell,
)
from jaxmeter.launch.upgrade import compare_environments

SETTINGS = FORWARDS

Packages = Annotated[
    str | None,
    typer.Option(
        metavar="PACKAGES",
        help="Packages (jax==0.12.0), a requirements file, a package's folder, or an image.",
    ),
]
Python = Annotated[str | None, typer.Option(metavar="PATH", help="Its interpreter; default: that of this command.")]
Variable = Annotated[
    list[str] | None, typer.Option(metavar="NAME=VALUE", help="An environment variable of this one alone; repeatable.")
]


def command(
    context: typer.Context,
    old: Packages = None,
    new: Packages = None,
    old_python: Python = None,
    new_python: Python = None,
    old_env: Variable = None,
    new_env: Variable = None,
    min_effect: MinEffect = None,
    budgets: Budgets = None,
    markdown: Markdown = None,
    verdict: Verdict = None,
) -> None:
    """Other options are those of `jaxmeter run`.

    Exit code 1: a regression; 3: something was not measured or not compared.
    """
    words = list_words(context)
    end(lambda: compare_environments(make_shell(words), words))
