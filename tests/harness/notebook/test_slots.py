"""What a call may change in objects with slots is put back, whatever their types are written in."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import msgspec
import pytest

import jaxmeter
from jaxmeter.harness.notebook.state import empty_slot, fill_slot, has


class Frozen(msgspec.Struct, frozen=True):
    """Its type is written in C, and refuses `object.__setattr__`."""

    values: list[float]


@dataclasses.dataclass(frozen=True, slots=True)
class Sealed:
    """Its type is written in Python."""

    values: list[float]


class Own:
    """A class with a slot of its own."""

    __slots__ = ("values",)

    def __init__(self, values: list[float]) -> None:
        self.values = values


KINDS = (Frozen, Sealed, Own)


@pytest.mark.parametrize("kind", KINDS)
def test_a_slot_is_filled_and_emptied(kind: Any) -> None:
    item = kind([1.0])

    fill_slot(item, "values", [2.0])
    assert item.values == [2.0]
    empty_slot(item, "values")
    assert not has(item, "values")


@pytest.mark.parametrize("kind", KINDS)
def test_a_function_that_uses_an_object_with_slots_is_measured(kind: Any) -> None:
    scale = kind([2.0])

    found = jaxmeter.measure.with_options(modes=("jit",))(lambda x: x * scale.values[0], jnp.ones(8))

    assert found.value("jit", "execution_s") > 0
    assert scale.values == [2.0]


def test_a_workload_is_measured_as_a_function() -> None:
    @jaxmeter.workload(
        inputs=lambda key: jnp.ones(8),
        reference=jaxmeter.no_reference("a test"),
        answer=jaxmeter.Answer("How long?", "double:jit"),
    )
    def double(x):  # type: ignore[no-untyped-def]
        """Twice the input, (n,) -> (n,)."""
        return 2 * x

    assert jaxmeter.measure.with_options(modes=("jit",))(double, jnp.ones(8)).value("jit", "execution_s") > 0
