"""Is the HLO fingerprint the same for the same program, and another for another? `python -m benchmarks.fingerprints`.

One program compiled in 20 fresh processes, each with other names and other source lines; then ten real changes of it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

PROCESSES = 20

PROGRAM = """\
import jax
import jax.numpy as jnp
from jaxmeter.harness.programs import program

TABLE = jnp.asarray([0.5 + (i * 7919 % 101) / 100 for i in range(100)])


def {name}({x}, weights):
    hidden = jnp.tanh({x} @ weights) + TABLE

    def step(carry, value):
        carry = carry * 0.9 + value
        return carry, carry.sum()

    carry, sums = jax.lax.scan(step, hidden[0], hidden)
    return carry * 2.0, sums, {x} + 1


arguments = jnp.ones((32, 64)), jnp.ones((64, 100))
print(program.find_fingerprint(jax.jit({name}).lower(*arguments).compile()))
"""

CHANGES = {
    "another shape": ("jnp.ones((32, 64))", "jnp.ones((33, 64))"),
    "another dtype": ("jnp.ones((32, 64))", "jnp.ones((32, 64), 'bfloat16')"),
    "another operation": ("jnp.tanh", "jnp.sin"),
    "another scalar constant": ("* 2.0", "* 3.0"),
    "another value in a table": ("7919", "7907"),
    "operands of a subtraction swapped": ("carry * 0.9 + value", "value - carry * 0.9"),
    "an argument donated": ("jax.jit({name})", "jax.jit({name}, donate_argnums=0)"),
    "another precision of the product": ("({x} @ weights)", "(jnp.matmul({x}, weights, precision='highest'))"),
    "a result more": ("return carry * 2.0, sums", "return carry * 2.0, hidden.max(), sums"),
    "the loop backwards": ("hidden[0], hidden)", "hidden[0], hidden, reverse=True)"),
}


def main() -> None:
    """Prints how many fingerprints one program has, and which changes change it."""
    with TemporaryDirectory() as folder:
        found = [fingerprint(Path(folder), PROGRAM, number) for number in range(PROCESSES)]
        print(f"one program, {PROCESSES} processes, names and lines changed: {len(set(found))} fingerprint(s)")
        changed = {}
        for what, (before, after) in CHANGES.items():
            assert before in PROGRAM
            changed[what] = fingerprint(Path(folder), PROGRAM.replace(before, after), 0)
            print(f"{what}: {'changed' if changed[what] not in found else 'NOT CHANGED'}")
        own = len(set(changed.values()) - set(found))
        print(f"{own} of {len(CHANGES)} changes have a fingerprint of their own")
    if len(set(found)) > 1 or own < len(CHANGES):
        sys.exit(1)


def fingerprint(folder: Path, source: str, number: int) -> str:
    """Compiles the program in a fresh process, from a file, lines and names that no other has."""
    path = folder / f"program_{number}.py"
    named = source.replace("{name}", f"function_{number}").replace("{x}", f"x_{number}")
    path.write_text("\n" * number + named)
    ended = subprocess.run(
        [sys.executable, str(path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
    )
    return ended.stdout.strip()


if __name__ == "__main__":
    main()
