"""What variants of a workload give on eight devices, found by a process that has so many."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).parents[2]

PROGRAM = """
import collections, json
import jax, numpy
jax.config.update("jax_num_cpu_devices", 8)
from jaxmeter.harness.traces import hlo
from jaxmeter.harness.probes.conditioning import relative_error
from suites.{suite} import {workload} as workload

for name in {without}:
    setattr(jax.lax, name, lambda x, *_, **__: x)

def widest(tree):
    return jax.tree.map(lambda leaf: numpy.asarray(leaf, float), tree)

found = []
for params in {cases}:
    arguments = workload.declaration.inputs(jax.random.key(0), **params)
    arguments = arguments if isinstance(arguments, tuple) else (arguments,)
    taken = {{name: params[name] for name in {taken}}}
    expected = workload.declaration.reference(*widest(arguments), **{{name: params[name] for name in {of_reference}}})
    for one in workload.implementations:
        jitted = jax.jit(lambda *arguments: one.function(*arguments, **taken))
        text = jitted.lower(*arguments).compile().as_text()
        result = jitted(*arguments)
        pairs = zip(jax.tree.leaves(widest(result)), jax.tree.leaves(expected), strict=True)
        opcodes = (instruction.opcode for instruction in hlo.parse(text).instructions())
        found.append({{
            "implementation": one.name,
            "params": params,
            "collectives": collections.Counter(code for code in opcodes if code in hlo.COLLECTIVES),
            "error": max(relative_error(got, want)[0] for got, want in pairs),
            "divided": [not leaf.is_fully_replicated for leaf in jax.tree.leaves(result)],
            "bytes": sum(
                shard.data.nbytes for leaf in jax.tree.leaves((arguments, result)) for shard in leaf.addressable_shards
            ),
        }})
print(json.dumps(found))
"""


def on_eight_devices(
    suite: str,
    workload: str,
    cases: list[dict[str, Any]],
    *,
    taken: tuple[str, ...] = ("devices",),
    of_reference: tuple[str, ...] = (),
    without: tuple[str, ...] = (),
) -> list[dict[str, Any]]:
    """What each implementation of each case gives, jitted: collectives in the optimised program, error and placement of
    the result, bytes of arguments and results on all devices.

    Args:
      taken: Params that implementations take.
      of_reference: Params that the reference takes.
      without: Functions of `jax.lax` that give back what they get, as if an implementation had forgotten them.
    """
    code = PROGRAM.format(
        suite=suite, workload=workload, cases=cases, taken=taken, of_reference=of_reference, without=without
    )
    ended = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    found: list[dict[str, Any]] = json.loads(ended.stdout)
    return found
