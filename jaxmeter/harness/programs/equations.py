"""The equations of a traced function: floating-point operations, what depends on what, and work that is dead."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import jax

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.environment import make_private
from jaxmeter.harness.traces.programs import is_of_library, pick_line

WHILE_STEPS = 10
"""How often a loop goes round that does not say so beforehand: a guess."""

CUBIC = {"cholesky": 1 / 3, "triangular_solve": 1.0, "lu": 2 / 3, "geqrf": 4 / 3, "qr": 4 / 3, "eigh": 9.0, "svd": 22.0}
"""Operations of factorisations over n^3: Golub & Van Loan, Matrix Computations, 4th edition, 2013."""

CONVOLUTION = "conv_general_dilated"

MOVING = frozenset(
    {
        "bitcast_convert_type",
        "broadcast_in_dim",
        "concatenate",
        "convert_element_type",
        "copy",
        "copy_p",
        "device_put",
        "dynamic_slice",
        "dynamic_update_slice",
        "gather",
        "iota",
        "optimization_barrier",
        "pad",
        "reshape",
        "rev",
        "scatter",
        "sharding_constraint",
        "slice",
        "split",
        "squeeze",
        "stop_gradient",
        "transpose",
    }
)
"""Primitives that move or name data and compute nothing."""

MOST_FRAMES = 200
"""That are read of one traceback."""

_VIA = " via "
_PLACE = re.compile(r"(?P<path>.+?):(?P<line>\d+)(?::\d+)?")

REDUCING = ("reduce", "arg", "cum", "sort")
"""Beginnings of primitives whose work goes by what they read, which is more than what they give."""


def is_jaxpr(value: Any) -> bool:
    """Whether a value is a jaxpr, closed or open."""
    return hasattr(value, "eqns") or hasattr(value, "jaxpr")


def open_jaxpr(value: Any) -> Any:
    """The jaxpr itself of a closed or open one."""
    return getattr(value, "jaxpr", value)


def list_jaxprs(equation: Any) -> list[Any]:
    """Return the jaxprs inside an equation, closed or open, as its parameters hold them."""
    leaves = jax.tree.leaves(tuple(equation.params.values()), is_leaf=is_jaxpr)
    return [value for value in leaves if is_jaxpr(value)]


def walk_inside(jaxpr: Any, outer: tuple[Any, ...] = ()) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """Yield the equations of a jaxpr and of those inside them, each with the equations that it is inside of.

    Those of a function that is called twice come twice.
    """
    for equation in jaxpr.eqns:
        yield equation, outer
        for inner in list_jaxprs(equation):
            yield from walk_inside(open_jaxpr(inner), (*outer, equation))


def list_inside(equation: Any) -> list[tuple[Any, float]]:
    """Return the jaxprs inside an equation, and how often each is executed; of branches the largest."""
    bodies = list(map(open_jaxpr, list_jaxprs(equation)))
    name = equation.primitive.name
    if name == "cond":
        bodies = [max(bodies, key=lambda jaxpr: len(jaxpr.eqns))]
    rounds = internals.SCAN_LENGTH.find(equation.params) if name == "scan" else WHILE_STEPS if name == "while" else 1
    return [(jaxpr, rounds) for jaxpr in bodies]


def count_product_flops(equation: Any) -> float:
    """Return the operations of a product, a convolution or a factorisation; 0 of anything else."""
    name = equation.primitive.name
    if name == "dot_general":
        (contracted, _), _ = internals.DIMENSIONS.find(equation.params)
        sides = equation.invars[0].aval.shape
        return 2.0 * count_elements(equation.outvars[0]) * float(math.prod(sides[axis] for axis in contracted))
    if name == CONVOLUTION:
        kernel = equation.invars[1].aval.shape
        outputs = kernel[internals.DIMENSIONS.find(equation.params).rhs_spec[0]]
        return 2.0 * count_elements(equation.outvars[0]) * float(math.prod(kernel) / outputs)
    if name in CUBIC:
        shape = equation.invars[0].aval.shape
        return CUBIC[name] * float(math.prod(shape) * min(shape[-2:]))
    return 0.0


def count_elementwise_flops(equation: Any) -> float:
    """Return one operation an element of what an equation computes; 0 where it only moves data."""
    name = equation.primitive.name
    if name in MOVING:
        return 0.0
    items = equation.invars if name.startswith(REDUCING) else equation.outvars
    return float(sum(map(count_elements, items)))


def count_elements(item: Any) -> int:
    """Return how many elements a value has; 1 of one without a shape."""
    return math.prod(getattr(item.aval, "shape", ()))


class SourceLines:
    """Source lines of equations; those that share a traceback are looked up once."""

    def __init__(self) -> None:
        """Begin without any."""
        self._found: dict[int, tuple[Any, tuple[str, ...]]] = {}
        self._named: dict[tuple[tuple[str, ...], str], str] = {}

    def find(self, equation: Any, outer: Sequence[Any] = ()) -> str:
        """Return the source line of an equation as `name_source` writes it.

        Args:
          outer: The equations that this one is inside of, the outermost first. JAX's traceback of an equation ends at
            the function that is traced, and theirs begin there.
        """
        stack = self.read_stack(equation, outer)
        key = stack[:1], _pick_user_line(stack)
        if key not in self._named:
            self._named[key] = name_source(stack)
        return self._named[key]

    def read_stack(self, equation: Any, outer: Sequence[Any] = ()) -> tuple[str, ...]:
        """Return `path:line` of each frame outside JAX, the innermost first."""
        return tuple(chain.from_iterable(map(self._read_own, (equation, *reversed(outer)))))

    def _read_own(self, equation: Any) -> tuple[str, ...]:
        traceback = equation.source_info.traceback
        if id(traceback) not in self._found:
            frames = internals.SOURCE_LINE.load()(equation.source_info, MOST_FRAMES).splitlines()
            places = (_PLACE.fullmatch(frame.rpartition(" ")[0]) for frame in reversed(frames))
            # The traceback is kept, so that no other takes its id.
            lines = tuple(f"{place['path']}:{place['line']}" for place in places if place)
            self._found[id(traceback)] = traceback, lines
        return self._found[id(traceback)][1]


def name_source(stack: Sequence[str]) -> str:
    """Return the innermost line; of a library's line also the user's line that calls it: `a/b.py:3 via flax/c.py:9`.

    Args:
      stack: `path:line` of each frame, the innermost first.
    """
    if not stack:
        return ""
    inner, user = brief_source(stack[0]), _pick_user_line(stack)
    return f"{brief_source(user)}{_VIA}{inner}" if user not in ("", stack[0]) else inner


def find_user_line(name: str) -> str:
    """Return the user's line of what `name_source` returns."""
    return name.partition(_VIA)[0]


def is_inside_library(stack: Sequence[str]) -> bool:
    """Return whether the innermost line is a library's, which a user cannot change; code without a file is in none."""
    return bool(stack) and not stack[0].startswith("<") and _pick_user_line(stack) != stack[0]


def _pick_user_line(stack: Sequence[str]) -> str:
    # An installed suite has no line that is written elsewhere.
    return next((line for line in stack if not is_of_library(line)), "") or pick_line(stack)


def brief_source(source: str) -> str:
    """Return folder, file and line of `path:line` or `path:line:column`.

    A record is shared, and whole paths say more of a machine than a reader needs.
    """
    match = _PLACE.fullmatch(make_private(source))
    return f"{'/'.join(match['path'].split('/')[-2:])}:{match['line']}" if match else ""


_DIFFERENTIATED = re.compile(r"\b(jvp|transpose)\(")


@dataclass(frozen=True)
class DeadWork:
    """Work that JAX removes before it lowers.

    Args:
      share: Of the FLOPs.
      by_line: FLOPs by source line.
    """

    share: float
    by_line: Counter[str]


def measure_dead_work(jaxpr: Any, lines: SourceLines) -> tuple[DeadWork, DeadWork]:
    """Return the dead work that the user's lines do for nothing, and that inside calls whose other work is live.

    The second is in a library, and a user cannot change it. What differentiation leaves over of a forward pass, since
    only the derivative is used, is not dead.
    """
    live, _ = internals.DEAD_CODE.load()(jaxpr, [True] * len(jaxpr.outvars))
    before, after = _count_flops(jaxpr, lines), _count_flops(live, lines)
    used = {find_user_line(line) for (line, _), flops in after.items() if flops}
    own: Counter[str] = Counter()
    inside: Counter[str] = Counter()
    for (line, left_over), flops in before.items():
        removed = flops - after[line, left_over]
        user = find_user_line(line)
        if not left_over and removed > 0:
            (inside if user != line and user in used else own)[line] += removed
    whole = before.total() or 1
    return DeadWork(own.total() / whole, own), DeadWork(inside.total() / whole, inside)


def has_work(jaxpr: Any) -> bool:
    """Return whether anything is computed at all."""
    return bool(_count_flops(jaxpr, SourceLines()))


def _count_flops(jaxpr: Any, lines: SourceLines) -> Counter[tuple[str, bool]]:
    """FLOPs by source line, and by whether differentiation leaves such work over."""
    counted: Counter[tuple[str, bool]] = Counter()

    def count(inner: Any, times: float, outside: str, outer: tuple[Any, ...]) -> None:
        for equation in inner.eqns:
            stack = f"{outside}/{equation.source_info.name_stack}"
            if inside := list_inside(equation):
                for deeper, rounds in inside:
                    count(deeper, times * rounds, stack, (*outer, equation))
                continue
            products = count_product_flops(equation)
            if flops := math.ceil(times * (products or count_elementwise_flops(equation))):
                counted[lines.find(equation, outer), _is_left_over(stack, is_product=products > 0)] += flops

    count(jaxpr, 1.0, "", ())
    return counted


def _is_left_over(stack: str, *, is_product: bool) -> bool:
    """Whether an equation without use is what differentiation leaves over, by the transformations that made it.

    Of every forward pass elementwise work is: `jax.grad` drops the value. Products are where the function is itself a
    derivative, as in a Hessian times a vector; else a dead one was written by somebody.
    """
    outermost, *others = _DIFFERENTIATED.findall(stack) or [""]
    return outermost == "jvp" and (not is_product or "jvp" in others)


FROM_OUTSIDE = ("callback", "outside_call", "axis_index", "infeed", "recv")
"""Parts of the names of primitives whose results come from elsewhere than their operands."""


def find_dependent(jaxpr: Any, known: Sequence[bool]) -> list[bool]:
    """Return for each output whether it depends on an input.

    Where that cannot be seen, as inside a primitive of an unknown form, an output depends on all that goes in.

    Args:
      known: For each input whether it counts as one.
    """
    dependent = {var for var, counts in zip(jaxpr.invars, known, strict=True) if counts}
    for equation in jaxpr.eqns:
        inputs = [not _is_literal(var) and var in dependent for var in equation.invars]
        outputs = _follow(equation, inputs)
        dependent |= {var for var, depends in zip(equation.outvars, outputs, strict=True) if depends}
    return [not _is_literal(var) and var in dependent for var in jaxpr.outvars]


def _follow(equation: Any, inputs: list[bool]) -> list[bool]:
    """Whether each output of an equation depends on an input of the program."""
    name, params, many = equation.primitive.name, equation.params, len(equation.outvars)
    if any(part in name for part in FROM_OUTSIDE):
        return [True] * many
    if name == "scan":
        fixed, state = internals.count_scan(params, inputs)
        return _follow_loop(
            open_jaxpr(internals.SCAN_BODY.find(params)),
            inputs[:fixed],
            inputs[fixed : fixed + state],
            inputs[fixed + state :],
        )
    if name == "while":
        return _follow_while(params, inputs)
    if name == "cond":
        if inputs[0]:  # which branch is taken
            return [True] * many
        branches = [find_dependent(open_jaxpr(branch), inputs[1:]) for branch in internals.BRANCHES.find(params)]
        return [any(outputs) for outputs in zip(*branches, strict=True)]
    inner = list(map(open_jaxpr, list_jaxprs(equation)))
    fits = len(inner) == 1 and (len(inner[0].invars), len(inner[0].outvars)) == (len(inputs), many)
    if fits and name in internals.CALLS | {"shard_map", "xla_pmap"}:
        return find_dependent(inner[0], inputs)
    # What an effect does, such as reading a mutable array, is not seen here.
    return [any(inputs) or bool(equation.effects)] * many


def _follow_loop(body: Any, fixed: list[bool], state: list[bool], sliced: list[bool]) -> list[bool]:
    """Follow a scan until its state depends on no more than before; then what it stacks is known too."""
    while True:
        outputs = find_dependent(body, [*fixed, *state, *sliced])
        grown = [before or after for before, after in zip(state, outputs, strict=False)]
        if grown == state:
            return [*state, *outputs[len(state) :]]
        state = grown


def _follow_while(params: Any, inputs: list[bool]) -> list[bool]:
    """Follow a while loop; where its end depends on an input, all that it gives does."""
    of_end, of_body = internals.WHILE_CONDITION_COUNT.find(params), internals.WHILE_BODY_COUNT.find(params)
    end, fixed, state = inputs[:of_end], inputs[of_end : of_end + of_body], inputs[of_end + of_body :]
    state = _follow_loop(open_jaxpr(internals.WHILE_BODY.find(params)), fixed, state, [])
    ends = find_dependent(open_jaxpr(internals.WHILE_CONDITION.find(params)), [*end, *state])
    return [True] * len(state) if any(ends) else state


def _is_literal(var: Any) -> bool:
    return hasattr(var, "val")
