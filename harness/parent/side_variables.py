"""The variables of an earlier run's environment: what it recorded, beside what is this run's own. No jax."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from harness.machine.environment import recorded_variables
from harness.machine.places import PREALLOCATE
from harness.plan.turns import LOADED

TODAYS = ("JAX_PLATFORMS", LOADED, PREALLOCATE)
"""Variables that are never taken over from a record, beside our own: where a run is made, whose code it loads, and how
its processes share a device's memory."""


def restore_variables(variables: Mapping[str, str], recorded: Mapping[str, str]) -> dict[str, str]:
    """Today's variables, with those that steer JAX as an earlier run recorded them.

    A record is only a file: no other variable of it is set.
    """
    today, then = recorded_variables(variables), recorded_variables(recorded)
    kept = {
        name: value
        for name, value in variables.items()
        if name not in today
        or _is_todays(name)
        or today[name] == then.get(name)  # as it was before it was made private
    }
    home = str(Path.home())
    taken = {
        name: value.replace("~/", f"{home}/")
        for name, value in then.items()
        if name not in kept and not _is_todays(name) and "\0" not in value
    }
    return {**kept, **taken}


def _is_todays(name: str) -> bool:
    return name in TODAYS or name.startswith("JAXMETER_")


def choose_steering(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that another container's process takes from this one; all others are of its own environment."""
    return {name: value for name, value in variables.items() if name != LOADED and recorded_variables({name: value})}
