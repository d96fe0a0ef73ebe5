"""What the check says of a NumPy function in place of a workload's implementations."""

from dataclasses import replace

import jax

from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.probes import Context, run_probes
from jaxmeter.harness.programs.arguments import make_inputs, widest


def outcome_of(workload, function, **params):
    """Of a function of the workload's arguments in float64. Time stands still: no draw takes too long here."""
    tried = replace(workload, implementations=[])
    tried.implementation(lambda *arguments: function(*exact(*arguments)), name="tried", modes=("mixed",))
    context = Context(tried, params, BACKENDS["cpu"], make_inputs(tried, params), lambda: 0.0, folder=None)
    found, _ = run_probes({"numerics": ("tried:mixed",)}, context)
    return found["tried:mixed"]["numerics"]


def exact(*arrays):
    """The same in NumPy's widest types."""
    return jax.tree.map(widest, arrays)


def without_kernels(step):
    """A step that leaves every kernel as it was, and is right in all else."""

    def wrong(state, *batch, **params):
        ((variables, memory), loss), before = step(state, *batch, **params), state[0]["params"]
        after = {
            name: {kind: before[name][kind] if kind == "kernel" else value for kind, value in layer.items()}
            for name, layer in variables["params"].items()
        }
        return ({**variables, "params": after}, memory), loss

    return wrong
