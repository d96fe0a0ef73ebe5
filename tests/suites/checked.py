"""What the numerics check says of every implementation of a case, and which outputs it does not see, here or on
several devices."""

from __future__ import annotations

import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import jax
import msgspec
import numpy as np

from jaxmeter.harness.declare.catalogue import DEFAULT_SUITES, find_suites
from jaxmeter.harness.declare.declaration import NoReference
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.plan.cases import name_case
from jaxmeter.harness.probes import Context, run_probes
from jaxmeter.harness.probes.numerics import check
from jaxmeter.harness.programs.arguments import make_inputs
from jaxmeter.harness.programs.traps import find_traps, watch_callbacks
from jaxmeter.harness.record import NATIVE, Outcome, Status
from jaxmeter.harness.record.outcomes import describe_trap

CPU = BACKENDS["cpu"]
CHECKOUT = Path(__file__).parents[2]
SUITES = find_suites((DEFAULT_SUITES,))
WORKLOADS = [workload for suite in SUITES for workload in suite.workloads]

DEVICES = 8
"""The most that a case uses."""

SPOILED_BY = 0.5
"""Of an output's largest entry: beyond every tolerance."""


class Found(NamedTuple):
    """Outcomes of a case's implementations by name, the outputs of the first of them that may be anything, and the
    traps of each that its suite does not declare."""

    right: dict[str, Outcome]
    unseen: list[str]
    traps: list[str]


def cases_of(workload):
    """Those of the default level, or of the full one where that has none."""
    return list(workload.list_cases("default", "cpu")) or list(workload.list_cases("full", "cpu"))


def needs_several_devices(workload):
    """Whether some case does, so that no process with one device has them all."""
    return any(
        workload.count_devices(case) > 1 or "jax_num_cpu_devices" in workload.find_config(case)
        for case in cases_of(workload)
    )


def checked(workload, params):
    """What is found of a case in this process, which must have its devices."""
    x64 = workload.find_config(params).get("jax_enable_x64", False)
    with jax.enable_x64(True) if x64 else nullcontext():
        context = context_of(workload, params)
        here = [item for item in workload.implementations if item.find_skip(params, "cpu") is None]
        first = next(item for item in here if item.raises is None and item.modes != (NATIVE,))
        looked = {item.name: look_at(context, item) for item in here}
        right = {name: outcome for name, (outcome, _) in looked.items()}
        traps = [f"{name}: {trap}" for name, (_, traps) in looked.items() for trap in traps]
        return Found(right, unseen(context, first), traps)


def checked_on_several_devices(workload):
    """What is found of every case by a process with several devices, by the case's name."""
    ended = subprocess.run(
        [sys.executable, "-m", "tests.suites.checked", workload.name], cwd=CHECKOUT, capture_output=True, check=False
    )
    assert ended.returncode == 0, ended.stderr.decode()
    return msgspec.json.decode(ended.stdout, type=dict[str, Found])


def context_of(workload, params):
    """The case with its inputs, on a CPU."""
    return Context(workload, params, CPU, make_inputs(workload, params), time.perf_counter, folder=None)


def variant_of(implementation):
    """Jitted, if it may be."""
    mode = "jit" if "jit" in implementation.modes else implementation.modes[0]
    return f"{implementation.name}:{mode}"


def numerics(context, implementation):
    """What the check says of an implementation in the place of the one of its name."""
    return look_at(context, implementation)[0]


def look_at(context, implementation):
    """What the check says of an implementation in the place of the one of its name, and its undeclared traps."""
    declared = context.workload.implementations
    tried = [implementation if item.name == implementation.name else item for item in declared]
    # A context of its own: the other one may have prepared what has this name. The reference is the same.
    own = Context(
        replace(context.workload, implementations=tried),
        context.params,
        context.platform,
        context.arguments,
        context.clock,
        folder=None,
    )
    own.reference = context.reference
    variant = variant_of(implementation)
    found, _ = run_probes({"numerics": (variant,)}, own)
    outcome = found[variant]["numerics"]
    has_program = outcome.status is Status.OK and implementation.raises is None
    return outcome, undeclared_traps(own, variant) if has_program else []


def undeclared_traps(context, variant):
    """The traps of a variant that was prepared last, which is called once: callbacks are counted when they run."""
    prepared = context.prepare(variant)
    prepared.reset()
    with watch_callbacks() as called:
        prepared.wait(prepared.call(*prepared.args))
    found = find_traps(prepared, context.wide_inputs, called)
    declared = context.declared_traps(variant)
    return [*found.unknown.values(), *(describe_trap(trap) for trap in found.traps if trap.kind not in declared)]


def unseen(context, implementation):
    """Which outputs of a call the check does not find wrong when each alone is off: their places in its result.

    The implementation is called once, and its result is spoiled: compiling it for each output would take minutes.
    """
    if isinstance(context.workload.declaration.reference, NoReference):
        return []  # which is the same as saying so of every output
    variant = variant_of(implementation)
    prepared = context.prepare(variant)
    check(variant, prepared, context)
    if context.drawn is None:
        # It is right without moved inputs: they explain nothing here, and take most of the time, as more traces would.
        context.judge = None
    prepared.reset()
    places, form = jax.tree_util.tree_flatten_with_path(prepared.wait(prepared.call(*prepared.args)))
    outputs = [leaf for _, leaf in places]

    def outcome(number):
        wrong = [*outputs[:number], off(outputs[number]), *outputs[number + 1 :]]
        returned = jax.tree.unflatten(form, wrong)
        return check(variant, replace(prepared, call=lambda *arguments: returned), context)

    return [
        jax.tree_util.keystr(place)
        for number, (place, _) in enumerate(places)
        if outcome(number).status is not Status.WRONG
    ]


def off(leaf):
    """An output of any dtype, spoiled."""
    xp = np if isinstance(leaf, np.ndarray | np.generic | int | float) else jax.numpy
    if jax.numpy.issubdtype(xp.asarray(leaf).dtype, jax.numpy.inexact):
        return (leaf + SPOILED_BY * (xp.abs(xp.asarray(leaf)).max() + 1)).astype(leaf.dtype)
    # Half of it: random bits with one more are random bits.
    return ~leaf if leaf.dtype == bool else leaf // 2 + 12_345


def main(name):
    """Prints what is found of every case of a workload on several devices, as JSON."""
    jax.config.update("jax_num_cpu_devices", DEVICES)
    workload = next(workload for workload in WORKLOADS if workload.name == name)
    found = {name_case(name, params, CPU): checked(workload, params) for params in cases_of(workload)}
    print(msgspec.json.encode(found).decode())


if __name__ == "__main__":
    main(sys.argv[1])
