"""The variables of an earlier run's environment: those that it recorded, and those that are this run's own. No jax."""

from __future__ import annotations

from collections.abc import Mapping

from jaxmeter.harness.machine.environment import recorded_variables
from jaxmeter.harness.machine.platforms import PREALLOCATE, list_unused_variables
from jaxmeter.harness.parent.prepare_run import UsageError
from jaxmeter.harness.plan.turns import LOADED
from jaxmeter.harness.record.plain_settings import is_plain_setting, leave_out_dumps

TODAYS = ("JAX_PLATFORMS", LOADED, PREALLOCATE)
"""Variables that, in addition to jaxmeter's own, are never taken from a record. They decide where a run is made, whose
code it loads, and how its processes share a device's memory."""


def restore_variables(variables: Mapping[str, str], recorded: Mapping[str, str]) -> dict[str, str]:
    """Today's variables, with those that steer JAX as an earlier run recorded them.

    A record is only a file: no other variable of it is set, and none that names a file.

    Raises:
      UsageError: One that steers JAX names a file, and is another today.
    """
    today, then = (_choose_steering(recorded_variables(arm)) for arm in (variables, recorded))
    kept = {
        name: value
        for name, value in variables.items()
        if name not in today
        or _is_todays(name)
        or today[name] == then.get(name)  # as it was before it was made private
    }
    taken = {name: value for name, value in then.items() if name not in kept and not _is_todays(name)}
    refused = next((name for name, value in taken.items() if not is_plain_setting(name, value)), None)
    if refused is not None:
        raise UsageError(
            f"--lock-step: the earlier run had {refused}={taken[refused]!r}, which may name a file, and no file "
            f"is followed that a record names; set {refused} to that here, if it is yours"
        )
    return {**kept, **taken}


def _choose_steering(recorded: Mapping[str, str]) -> dict[str, str]:
    """Without what is never used of them: caches, which are the run's own, and what is written down while compiling."""
    unused = list_unused_variables(recorded)
    steering = {name: leave_out_dumps(name, value) for name, value in recorded.items() if name not in unused}
    return {name: value for name, value in steering.items() if value is not None}


def _is_todays(name: str) -> bool:
    return name in TODAYS or name.startswith("JAXMETER_")


def find_refusal(name: str, value: str) -> str | None:
    """Why a variable cannot be set for one of two environments in lock-step; None where it can.

    The earlier run's processes are given what its record holds of it.
    """
    if _is_todays(name) or list_unused_variables({name: value}):
        return "jaxmeter itself decides on it"
    recorded = recorded_variables({name: value})
    if name not in recorded:
        return (
            "no run records it, so that nothing could say what differs; JAX_…, XLA_… and LIBTPU_INIT_ARGS are recorded"
        )
    if not is_plain_setting(name, recorded[name]):
        return "its value may name a file, and no file is followed that a record names"
    return None


def choose_steering(variables: Mapping[str, str]) -> dict[str, str]:
    """Those that another container's process takes from this one; all others are of its own environment."""
    return {name: value for name, value in variables.items() if name != LOADED and recorded_variables({name: value})}
