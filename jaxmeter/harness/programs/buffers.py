"""Memory of a program: its largest buffers with their source lines, and arguments that calls change in place."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType, ModuleType
from typing import Any

import jax
import numpy

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.programs import program
from jaxmeter.harness.programs.equations import brief_source
from jaxmeter.harness.record import Buffer
from jaxmeter.harness.traces import hlo
from jaxmeter.harness.traces.costs import count_bytes
from jaxmeter.harness.traces.hlo import Instruction, Module
from jaxmeter.harness.traces.hlo_proto import Field, read_fields

MOST = 8
SMALLEST_BYTES = 1024
"""Smallest buffer that is listed."""

PRODUCTS = frozenset({"dot", "convolution"})

# Attributes of HLO, as XLA:CPU writes them from jaxlib 0.10 on: the library that runs a fusion (YNN), and the target of
# a call to a library (oneDNN).
_FUSION_KIND = re.compile(rf'"{internals.FUSION_KIND.name}":\s*\{{"kind":\s*"_*(\w+)"')
_PRODUCT_TARGET = re.compile(r'custom_call_target="([^"]*(?:matmul|gemm|conv)[^"]*)"', re.IGNORECASE)

SMALLEST_UNPLANNED_BYTES = 2**20
"""Smallest product that is reported: the size of its operands, results and intermediate results. Working memory is
proportional to this size. The working memory of smaller products is too small to be measured."""

MATRIX = 2
"""Fewest dimensions, other than 1, in the result of a product that a library computes."""

LONGEST_SHAPE = 80
"""A tuple of a thousand results has a shape of a thousand parts."""


def find_largest(compiled: Any) -> tuple[Buffer, ...]:
    """Return the largest buffers of the program, by size; empty if the backend reports none.

    Buffers of temporaries may overlap if their values are not needed at the same time.
    """
    assignment = internals.BUFFERS.get(compiled.memory_analysis())
    if not assignment:
        return ()
    names = _names(compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto())
    module = hlo.parse(program.read_hlo(compiled))
    known = {instruction.name: instruction for instruction in module.instructions()}
    places = sorted(_places(assignment), key=lambda place: -place.size_bytes)
    kept = [place for place in places if place.size_bytes >= SMALLEST_BYTES][:MOST]
    return tuple(
        _buffer(place, [known[names[key]] for key in place.writers if names.get(key) in known]) for place in kept
    )


@dataclass(frozen=True)
class Unplanned:
    """Operations whose working memory the plan leaves out.

    Args:
      kinds: Kinds of operations, such as `ynn_fusion` and `__onednn$matmul`. Eigen computes `dot` and `convolution`.
      inside_bytes: All intermediate results inside fusions of these kinds; the library can hold fewer at a time.
    """

    kinds: tuple[str, ...] = ()
    inside_bytes: int = 0


def find_unplanned(module: Module) -> Unplanned:
    """Return the products and convolutions of a CPU program that libraries compute in working memory of their own.

    A chain of products can be one fusion. The plan then has no buffers for the intermediate results of the chain.
    """
    fusions = (each for each in module.instructions() if each.opcode == "fusion")
    fused = {name for fusion in fusions for name in hlo.list_called(fusion)}
    kinds, total = set(), 0.0
    for computation in module.computations:
        shapes = {each.name: each.shape for each in computation.instructions}
        for instruction in computation.instructions if computation.name not in fused else ():
            kind, inside = _read_product(instruction, module)
            inside_bytes = sum(count_bytes(inner.shape) for inner in inside)
            around = [instruction.shape, *(shapes.get(name, "") for name in instruction.operands)]
            if kind and inside_bytes + sum(map(count_bytes, around)) >= SMALLEST_UNPLANNED_BYTES:
                kinds.add(kind)
                total += inside_bytes
    return Unplanned(tuple(sorted(kinds)), int(total))


def _read_product(instruction: Instruction, module: Module) -> tuple[str, Iterable[Instruction]]:
    """Return the kind of product that a library computes, and what its fusion contains; empty for other operations."""
    opcode, attributes = instruction.opcode, instruction.attributes
    if opcode in PRODUCTS:
        sides = re.findall(r"\d+", hlo.without_layout(instruction.shape).partition("[")[2])
        # XLA's own code computes a product with a vector.
        return (opcode if sum(side != "1" for side in sides) >= MATRIX else ""), ()
    if opcode == "custom-call" and (target := _PRODUCT_TARGET.search(attributes)):
        return target[1], ()
    if opcode != "fusion" or internals.CUSTOM_FUSION.name not in attributes:
        return "", ()
    inner = [each for name in hlo.list_called(instruction) for each in module.computation(name).instructions]
    if not any(each.opcode in PRODUCTS for each in inner):
        return "", ()
    kind = _FUSION_KIND.search(attributes)
    inside = [each for each in inner if not each.is_root and each.opcode not in ("parameter", "constant")]
    return kind[1] if kind else "custom fusion", inside


@dataclass(frozen=True)
class _Platform:
    """A range of memory; `writers` are ids of the instructions whose values fill it, `values` counts all its values."""

    kind: str
    size_bytes: int
    writers: tuple[int, ...]
    values: int


def _buffer(place: _Platform, writers: list[Instruction]) -> Buffer:
    writer = _most_telling(writers, of_argument=place.kind == "argument")
    return Buffer(
        kind=place.kind,
        size_bytes=place.size_bytes,
        shape="" if writer is None else _short(hlo.without_layout(writer.shape)),
        instruction="" if writer is None else writer.name,
        operation=None if writer is None else writer.operation,
        source=None if writer is None or writer.source is None else brief_source(writer.source),
        values=place.values,
    )


def _most_telling(writers: list[Instruction], *, of_argument: bool) -> Instruction | None:
    """Return the argument itself, or an instruction that computes the value, not a loop, and that has a source."""

    def rank(writer: Instruction) -> tuple[bool, bool, bool]:
        return (writer.opcode == "parameter") is not of_argument, writer.shape.startswith("("), writer.source is None

    return min(writers, key=rank, default=None)


def _short(shape: str) -> str:
    return shape if len(shape) <= LONGEST_SHAPE else f"{shape[: LONGEST_SHAPE - 1]}…"


def _places(assignment: bytes) -> Iterator[_Platform]:
    """Every allocation; those that hold values at several offsets, offset by offset."""
    sizes, writers = {}, {}
    for number, value in read_fields(assignment):
        if number == 1:
            logical = dict(read_fields(_bytes(value)))
            key = _int(logical.get(1, 0))
            sizes[key] = _int(logical.get(2, 0))
            writers[key] = _int(dict(read_fields(_bytes(logical.get(3, b"")))).get(4, 0))
    for number, value in read_fields(assignment):
        if number != 3:
            continue
        allocation = list(read_fields(_bytes(value)))
        at: dict[int, list[int]] = defaultdict(list)
        for name, content in allocation:
            if name == 9:
                assigned = dict(read_fields(_bytes(content)))
                at[_int(assigned.get(2, 0))].append(_int(assigned.get(1, 0)))
        kind = _kind({name for name, content in allocation if content})
        for held in at.values():
            size = max(sizes.get(key, 0) for key in held)
            yield _Platform(
                kind, size, tuple(writers[key] for key in held if sizes.get(key) == size and key in writers), len(held)
            )


def _kind(flags: set[int]) -> str:
    if 5 in flags:
        return "argument"
    if 12 in flags:
        return "constant"
    return "output" if 7 in flags else "temporary"


def _names(module: bytes) -> dict[int, str]:
    """Instruction names by id."""
    names = {}
    for number, computation in read_fields(module):
        for name, content in read_fields(_bytes(computation)) if number == 3 else ():
            if name == 2:
                instruction = dict(read_fields(_bytes(content)))
                names[_int(instruction.get(35, 0))] = _bytes(instruction.get(1, b"")).decode("utf8", "replace")
    return names


def _int(value: Field) -> int:
    return value if isinstance(value, int) else 0


def _bytes(value: Field) -> bytes:
    return value if isinstance(value, bytes) else b""


LARGEST_BYTES = 64 * 2**20
"""Of the host's arrays, whose numbers are copied to be compared; in larger ones a change is not noticed."""

_MOST_NAMED = 3

_ADVICE = {
    "nnx": (
        "split the module in inputs(), `graphdef, state = nnx.split(model)`; begin the function with "
        "`model = nnx.merge(graphdef, state, copy=True)`; return `nnx.state(model)` with the other results"
    ),
    "numpy": "work on a copy in the function, such as `x = x.copy()`",
    "": "give the function the values that change, and return the new ones",
}


class InPlaceError(Exception):
    """A call changes its arguments in place; the message names them and says what to write instead."""


@dataclass(frozen=True)
class ArgumentBuffers:
    """Arguments in containers of their own, which a call may change, and what they held before.

    Args:
      names: Of the arguments.
      exempt: Places of those that a call may change.
    """

    args: tuple[Any, ...]
    names: Sequence[str]
    exempt: frozenset[int]
    before: dict[str, Any]
    numbers: dict[str, Any]
    attributes: dict[str, dict[str, Any]]

    def check(self) -> None:
        """Compare with what they hold now; attributes of objects that are no containers are put back.

        Raises:
          InPlaceError: A call has changed them.
        """
        after = _list_leaves(self.args, self.names, self.exempt)
        changed = [name for name, leaf in self.before.items() if name not in after or self._differs(name, leaf, after)]
        changed += [name for name in after if name not in self.before]
        for name, kept in self.attributes.items():
            now = vars(self.before[name])
            changed += [f"{name}.{each}" for each in kept | now if kept.get(each) is not now.get(each)]
            now.clear()
            now.update(kept)
        _refuse(changed, self.args, [self.before.get(name) for name in changed])

    def _differs(self, name: str, leaf: Any, after: dict[str, Any]) -> bool:
        if name in self.numbers:
            return not numpy.array_equal(self.numbers[name], after[name], equal_nan=leaf.dtype.kind in "fc")
        return after[name] is not leaf and not _is_equal(leaf, after[name])


def keep_arguments(
    args: tuple[Any, ...], names: Sequence[str], exempt: frozenset[int] = frozenset()
) -> ArgumentBuffers:
    """Keep what arguments hold before a call, which gets `.args` of what is returned; `.check()` compares."""
    on_host = sum(leaf.nbytes for leaf in jax.tree.leaves(args) if isinstance(leaf, numpy.ndarray))
    copied = on_host <= LARGEST_BYTES

    def rebuild(leaf: Any) -> Any:
        return leaf.copy() if copied and isinstance(leaf, numpy.ndarray) else leaf

    own = jax.tree.map(rebuild, args)
    before = _list_leaves(own, names, exempt)
    arrays = {name: leaf for name, leaf in before.items() if isinstance(leaf, numpy.ndarray)}
    return ArgumentBuffers(
        args=own,
        names=names,
        exempt=exempt,
        before=before,
        numbers={name: leaf.copy() for name, leaf in arrays.items()} if copied else {},
        attributes={name: dict(vars(leaf)) for name, leaf in before.items() if _is_object(leaf)},
    )


def check_traced(function: Callable[..., Any], args: tuple[Any, ...], names: Sequence[str]) -> None:
    """Look for changes of objects within a trace that are not returned: a compiled program leaves them out.

    A dictionary or a list is another one within a trace, so that a change of it changes no argument.

    Raises:
      InPlaceError: There are some, and they change what the objects hold.
    """
    if not _has_node(args, _is_object):
        return
    changed: list[str] = []

    def watched(*traced: Any) -> list[Any]:
        before = _list_leaves(traced, names)
        returned = set(map(id, jax.tree.leaves(function(*traced))))
        after = _list_leaves(traced, names)
        changed[:] = [
            name
            for name, leaf in before.items()
            if "." in name and name in after and after[name] is not leaf and id(after[name]) not in returned
        ]
        return [after[name] for name in changed]

    jax.eval_shape(watched, *args)
    if not changed:
        return
    now = jax.jit(watched)(*args)  # some transformations put back what was there
    before = _list_leaves(args, names)
    pairs = zip(list(changed), now, strict=True)
    _refuse([name for name, leaf in pairs if not _is_equal(before[name], leaf)], args, ())


def _list_leaves(args: Any, names: Sequence[str], exempt: frozenset[int] = frozenset()) -> dict[str, Any]:
    """List leaves by their names, such as `model.layers[0].kernel.value`."""
    leaves = {}
    for place, argument in enumerate(args):
        if place in exempt:
            continue
        name = names[place] if place < len(names) else f"argument {place}"
        for path, leaf in jax.tree_util.tree_leaves_with_path(argument):
            leaves[f"{name}{jax.tree_util.keystr(path)}"] = leaf
    return leaves


def _has_node(args: Any, test: Callable[[Any], bool]) -> bool:
    """Return whether a node of a tree passes a test."""
    return any(map(test, jax.tree.leaves(args, is_leaf=test)))


def _is_object(node: Any) -> bool:
    """Return whether a function could change attributes of a node."""
    frozen = getattr(getattr(node, "__dataclass_params__", None), "frozen", False)
    known = (jax.Array, numpy.ndarray, numpy.generic, dict, list, tuple, FunctionType, ModuleType, type)
    return hasattr(node, "__dict__") and not frozen and not isinstance(node, known)


def _is_equal(left: Any, right: Any) -> bool:
    """Return whether two leaves hold the same; of an array that was donated that is not known."""
    if isinstance(left, jax.Array) and isinstance(right, jax.Array):
        if left.is_deleted() or right.is_deleted():
            return True
        if left.dtype != right.dtype or left.shape != right.shape:
            return False
        if jax.numpy.issubdtype(left.dtype, jax.dtypes.prng_key):
            left, right = jax.random.key_data(left), jax.random.key_data(right)
        return numpy.asarray(left).tobytes() == numpy.asarray(right).tobytes()
    try:
        return bool(numpy.all(left == right))
    except Exception:  # noqa: BLE001  an object may refuse to be compared
        return False


def _refuse(changed: Sequence[str], args: Any, leaves: Sequence[Any]) -> None:
    """Raise InPlaceError where anything has changed."""
    if not changed:
        return
    more = f" and {len(changed) - _MOST_NAMED} more" if len(changed) > _MOST_NAMED else ""
    on_host = any(isinstance(leaf, numpy.ndarray) for leaf in leaves)
    kind = "numpy" if on_host else "nnx" if _has_node(args, _is_module) else ""
    raise InPlaceError(
        f"changes its arguments in place: {', '.join(changed[:_MOST_NAMED])}{more}; every call must begin with the "
        f"same arguments, and a compiled program loses such a change: {_ADVICE[kind]}"
    )


def _is_module(node: Any) -> bool:
    """Return whether a node is a module of flax.nnx; flax need not be there."""
    return any(kind.__module__.startswith("flax.nnx") for kind in type(node).__mro__)
