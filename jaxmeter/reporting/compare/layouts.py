"""Which values have equal shapes in two optimised programs, in another layout."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

from jaxmeter.harness.traces import hlo
from jaxmeter.harness.traces.hlo import Module

from . import Difference


def find_layout_changes(a: Module, b: Module) -> Iterator[Difference]:
    """Values of equal shape in another layout: of the entry, then of instructions that JAX gives one name."""
    places = [_read_entry_shapes(module) for module in (a, b)]
    for what, shape in places[0].items():
        yield from _pair_shapes(what, [shape], [places[1].get(what, shape)])
    named = [_read_named_shapes(module) for module in (a, b)]
    for key, shapes in named[0].items():
        yield from _pair_shapes(f"{key[1]} {key[0]}", shapes, named[1].get(key, []))


def _read_entry_shapes(module: Module) -> dict[str, str]:
    parameters = [one for one in module.entry.instructions if one.opcode == "parameter"]
    shapes = {f"parameter {', '.join(one.operands)}": one.shape for one in parameters}
    return shapes | dict([("result", one.shape) for one in module.entry.instructions if one.is_root][:1])


def _read_named_shapes(module: Module) -> dict[tuple[str, str], list[str]]:
    """Shapes by JAX's name and opcode, without those of the entry that are told apart by their places."""
    shapes: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for computation in module.computations:
        for one in computation.instructions:
            has_place = one.opcode == "parameter" or (computation.is_entry and one.is_root)
            if one.operation is not None and not has_place:
                shapes[one.operation, one.opcode].append(one.shape)
    return shapes


def _pair_shapes(what: str, a: list[str], b: list[str]) -> Iterator[Difference]:
    only_a, only_b = list((Counter(a) - Counter(b)).elements()), list((Counter(b) - Counter(a)).elements())
    for shape in only_a:
        plain = hlo.without_layout(shape)
        other = next((one for one in only_b if hlo.without_layout(one) == plain), None)
        if other is not None:
            only_b.remove(other)
            yield Difference(what, shape, other)
