"""How far two results are apart, and how far rounding alone moves a case's results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import starmap
from typing import Any

import jax
import numpy

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.environment import is_processor
from jaxmeter.harness.machine.jax_internals import OLDEST, find_jax_release
from jaxmeter.harness.machine.own_fault import UnknownError, analysing, is_own_fault
from jaxmeter.harness.probes.evaluation import evaluate, find_formats, list_constants
from jaxmeter.harness.programs.arguments import widest
from jaxmeter.harness.programs.modes import Carried, as_new_function
from jaxmeter.harness.programs.older_jax import find_type, is_committed, jit
from jaxmeter.harness.programs.program import walk_equations
from jaxmeter.harness.record.wording import counted

BLOCK = 1 << 20
"""Entries that are widened at a time: 8 MB of float64."""


def relative_error(got: Any, want: Any, scale: float | None = None) -> tuple[float, tuple[int, ...]]:
    """Largest absolute difference over the reference's largest finite entry, and where it is.

    Args:
      got, want: Arrays of one shape, any; of any dtype, and widened block by block.
      scale: What the difference is relative to; by default the reference's largest entry.
    Returns:
      (error, index). Equal infinities agree, and so do two NaN; any other non-finite entry is an infinite error.
    """
    scale = find_scale(want) if scale is None else scale
    worst, place = 0.0, 0
    for start, (block, other) in in_blocks(got, want):
        difference = _find_differences(block, other, scale)
        index = int(difference.argmax())
        if difference[index] > worst:
            worst, place = float(difference[index]), start + index
    if got.size == 0:
        return 0.0, ()
    return worst, tuple(int(index) for index in numpy.unravel_index(place, want.shape))


def find_scale(want: Any) -> float:
    """The largest finite entry, by its size; 1 where that is 0 or there is none."""
    # Relative to the largest entry: next to a zero, any error looks huge.
    largest = 0.0
    for _, (block,) in in_blocks(want):
        with numpy.errstate(over="ignore"):
            sizes = numpy.abs(block)
        finite = sizes[numpy.isfinite(sizes)]
        largest = max(largest, float(finite.max()) if finite.size else 0.0)
    return largest or 1.0


def is_unknown(want: Any) -> bool:
    """Whether every entry is NaN, of at least one."""
    return bool(want.size) and all(bool(numpy.isnan(block).all()) for _, (block,) in in_blocks(want))


def _find_differences(got: Any, want: Any, scale: float) -> Any:
    same = (got == want) | (numpy.isnan(got) & numpy.isnan(want))
    with numpy.errstate(invalid="ignore", over="ignore"):
        difference = numpy.where(same, 0.0, numpy.abs(got - want) / scale)
    return numpy.where(numpy.isnan(difference), numpy.inf, difference)


def in_blocks(*arrays: Any) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Blocks of all arrays in C order, widened, with the number of entries before them."""
    # A reshape of what is not contiguous would copy the whole; slices of `flat` copy a block.
    flat = [array.reshape(-1) if array.flags.c_contiguous else array.flat for array in map(numpy.asarray, arrays)]
    for start in range(0, arrays[0].size, BLOCK):
        yield start, tuple(_widen(each[start : start + BLOCK]) for each in flat)


def _widen(block: Any) -> Any:
    return block.astype(numpy.int64) if block.dtype == bool else widest(block)


def pair(result: Any, reference: Any, name: str = "reference") -> list[tuple[str, Any, Any]] | str:
    """Leaves of result and reference next to each other with their path, or what does not fit.

    A list of scalars may stand for an array. The path is as Python would index the result; empty where it is one array.

    Args:
      name: What a person calls the reference.
    """
    got = [(jax.tree_util.keystr(path), as_array(leaf)) for path, leaf in jax.tree_util.tree_leaves_with_path(result)]
    want = [as_array(leaf) for leaf in jax.tree.leaves(reference)]
    if len(want) == 1 and len(got) != 1 and _may_be_rows([leaf for _, leaf in got], want[0]):
        got = [("", numpy.stack([leaf for _, leaf in got]))]
    if len(got) != len(want):
        return f"returned {counted(len(got), 'array')}, the {name} {len(want)}"
    for (path, mine), other in zip(got, want, strict=True):
        if mine.shape != other.shape:
            where = f" at output {path}" if path else ""
            return f"returned shape {mine.shape}{where}, the {name} {other.shape}"
    return [(path, mine, other) for (path, mine), other in zip(got, want, strict=True)]


def _may_be_rows(arrays: list[Any], whole: Any) -> bool:
    """Return whether arrays stand for the rows of one array: as many as it has, or scalars for one dimension."""
    if whole.ndim == 0 or {array.shape for array in arrays} != {whole.shape[1:]}:
        return False
    return len(arrays) == len(whole) or whole.ndim == 1


def as_array(leaf: Any) -> Any:
    """A result as NumPy's array; of a random key its words."""
    if isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    return numpy.asarray(leaf)


def write_entry(array: Any, place: tuple[int, ...]) -> str:
    """One entry, in seven digits."""
    return f"{widest(array[place]).item():.7g}"


MOVED = ("float32", "float64", "complex64", "complex128")
"""A unit in the last place of a 16-bit number is 0.1 to 0.8 %: what such a move causes would hide real faults."""


def is_moved(leaf: Any) -> bool:
    """Whether a leaf is an array whose entries are moved: of such a format, and all of it in this process."""
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        return False
    # A captured constant may be of a type of JAX's own, which NumPy reads.
    return hasattr(leaf, "shape") and str(getattr(leaf, "dtype", "")) in MOVED


def move(array: Any, seed: tuple[int, ...]) -> Any:
    """A NumPy array whose entries are each moved by -1, 0 or +1 unit in the last place, drawn at random.

    Integers (0, 1, masks, one-hot, counters), infinities and NaN stay: a program may test for them. Numbers so large
    that their format has no others than integers are moved.

    Args:
      array: float32 or float64, or complex of these: real and imaginary parts are moved each by themselves.
    """
    random = numpy.random.default_rng(seed)
    moved = numpy.array(array, order="C")
    parts = moved.reshape(-1).view(moved.real.dtype)
    for start in range(0, parts.size, BLOCK):
        block = parts[start : start + BLOCK]
        directions = random.integers(-1, 2, block.size, dtype=numpy.int8)
        directions[is_kept(block)] = 0
        ends = numpy.array([0, numpy.inf, -numpy.inf], block.dtype)[directions]
        block[...] = numpy.where(directions == 0, block, numpy.nextafter(block, ends))
    return moved


def is_kept(array: Any) -> Any:
    """Which entries stay what they are: integers, unless they are too large for others, and what has no neighbours."""
    info = numpy.finfo(array.dtype)
    sizes = numpy.abs(array)
    with numpy.errstate(invalid="ignore"):
        is_integer = (array == numpy.round(array)) & (sizes < 2.0**info.nmant)
    return is_integer | ~(sizes < info.max)


def move_tree(tree: Any, seed: tuple[int, ...]) -> Any:
    """All floating arrays of a tree moved, each where it is; any other leaf as it is."""
    leaves, form = jax.tree.flatten(tree)
    moved = [_move_leaf(leaf, (*seed, place)) if is_moved(leaf) else leaf for place, leaf in enumerate(leaves)]
    return jax.tree.unflatten(form, moved)


def _move_leaf(leaf: Any, seed: tuple[int, ...]) -> Any:
    moved = move(numpy.asarray(leaf), seed)
    if not isinstance(leaf, jax.Array):
        return moved if isinstance(leaf, numpy.ndarray) else moved[()]
    return jax.device_put(moved, leaf.sharding) if is_committed(leaf) else jax.numpy.asarray(moved)


DRAWS = 3
"""An entry that is rounding alone keeps its sign in all three one time in eight; its leaf has many."""

LIMIT_S = 10.0
"""All draws together, without compiling their program: beyond it a leaf counts as one that cannot be checked."""


LARGE = 500
"""Equations from which on the program of the draws is compiled quickly. Moving makes about 15 equations of each: those
of a transformer's step took XLA:CPU of jaxlib 0.12 more than 150 s to optimise, and 11 s with QUICKLY."""

QUICKLY = {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
"""Options of XLA for a program whose results count, and not its time."""

Measure = Callable[[int, Any, Any, Any], float]


class TooLongError(Exception):
    """The draws would take longer than the limit."""


class RefusedInputsError(Exception):
    """An error that the user's code raises on the moved inputs, with the message of that code."""


@dataclass(frozen=True)
class Judge:
    """The program that a case's variants are judged by, and how it is called.

    Args:
      args: Of a stream, one tuple for each call of a pass.
      is_traced: Whether JAX can trace it as a whole; else it is called as it is.
      carry: Place of an argument -> index of the output that takes its place in the next call of a stream.
      limit_s: For all draws together, without compiling their program.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    is_traced: bool = True
    is_stream: bool = False
    carry: Mapping[int, int] | None = None
    limit_s: float = LIMIT_S

    def find_formats(self) -> tuple[str | None, ...]:
        """The coarsest format on the way to each output, of a stream's first call; empty where it cannot be traced."""
        traced = self.trace()
        return () if traced is None else find_formats(traced.jaxpr.jaxpr)

    def changes_when_traced(self) -> bool:
        """Whether two traces hold different values, as where a program takes them from outside JAX."""
        first, second = self.trace(), self.trace()
        if first is None or second is None:
            return False
        values = [list(_list_values(traced.jaxpr)) for traced in (first, second)]
        return len(values[0]) != len(values[1]) or any(starmap(_differ, zip(*values, strict=True)))

    @property
    def is_evaluated(self) -> bool:
        """Whether what its operations give can be moved, too."""
        return self.trace() is not None

    def trace(self) -> Any:
        """Its program, of a stream's first call; None where it cannot be traced."""
        if not self.is_traced or (self.is_stream and not self.args):
            return None
        leaves, tree = jax.tree.flatten(self.args[0] if self.is_stream else self.args)
        return _try_trace(self.function, tree, leaves)

    def find_spreads(
        self,
        wanted: Any,
        read: Callable[[Any, tuple[Any, ...]], Any],
        clock: Callable[[], float],
        *,
        call_s: float = 0.0,
        inside: bool = False,
        coarse: str | None = None,
        measure: Measure | None = None,
    ) -> list[float] | None:
        """The largest deviation of each leaf in three draws, relative to the largest entry of what is wanted.

        Args:
          wanted: What variants are compared with.
          read: (result, arguments) -> what of the result is compared.
          call_s: About what a call takes, where that is known beforehand.
          inside: Whether what each operation gives is moved too, as if it were rounded another way. Half of what they
            deviate by then counts: an operation rounds by half a unit at most, and is moved by a whole one.
          coarse: A format coarser than float32 in which float32 products are moved inside, as are 16-bit values by
            their own unit; None moves neither.
          measure: (index of the output, moved, unmoved, wanted) -> its deviation; by default the largest difference.
        Returns:
          None where its result has not the form of what is wanted.
        Raises:
          TooLongError: They take longer than the limit.
          RefusedInputsError: The user's code raises an error on the moved inputs.
          OwnFaultError, or any other error: Jaxmeter's own analysis failed.
        """
        if call_s * DRAWS > self.limit_s:
            raise TooLongError
        run = self._make_run(coarse)
        measure = _find_deviation if measure is None else measure
        unmoved = read(run((), self.args), self.args)
        if isinstance(pair(unmoved, wanted), str):
            return None
        if inside:
            run((), self.args, inside=0)  # compiled now, so that the draws alone are timed
        start = clock()
        spreads: list[float] = []
        for seed in range(DRAWS):
            # The first call has shown nothing of this: it has compiled the program.
            if seed > 0 and (clock() - start) / seed * DRAWS > self.limit_s:
                raise TooLongError
            moved = partial(run, inside=seed + 1 if inside else None)
            deviations = self._find_deviations(moved, (seed,), unmoved, wanted, read, measure)
            spreads = deviations if not spreads else list(map(max, spreads, deviations))
        return [spread / 2 for spread in spreads] if inside else spreads

    def _find_deviations(
        self, run: Any, seed: tuple[int, ...], unmoved: Any, wanted: Any, read: Any, measure: Measure
    ) -> list[float]:
        args = move_tree(self.args, (*seed, 0))
        result = read(run(seed, args), args)
        del args  # before the results are compared
        after, before = pair(result, wanted), pair(unmoved, wanted)
        if isinstance(after, str):
            raise RefusedInputsError(f"the result {after}")
        pairs = zip(after, before, strict=True)
        return [measure(index, moved, still, want) for index, ((_, moved, want), (_, still, _)) in enumerate(pairs)]

    @cached_property
    def _programs(self) -> _Programs:
        return _Programs(self.function)

    def _make_run(self, coarse: str | None = None) -> Callable[..., Any]:
        """(seed, arguments) -> the result of a call, of a stream of a pass, ready; an empty seed moves no constant."""
        programs = self._programs if self.is_traced else None

        def run(seed: tuple[int, ...], args: tuple[Any, ...], *, inside: int | None = None) -> Any:
            call = partial(_run, self.function) if programs is None else partial(programs.call, seed, inside, coarse)
            return _run(jax.block_until_ready, self._call(call, args))

        return run

    def _call(self, call: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        if not self.is_stream:
            return call(*args)
        if not self.carry:
            return [call(*item) for item in args]
        return Carried(call, self.carry, begin=lambda begun: begun).over(args)


def _run(call: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return the result of the user's code.

    Raises:
      RefusedInputsError: The user's code raises an error.
      UnknownError: Jaxmeter cannot analyse the traced program.
    """
    try:
        return call(*args, **options)
    except UnknownError:
        raise
    except Exception as error:
        raise RefusedInputsError(str(error)) from error


class _Programs:
    """A function's compiled programs, one for each form of arguments, which take captured constants as arguments.

    A function that JAX cannot trace is called as it is; nothing that it captures is moved then.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._made: dict[Any, Any] = {}

    def call(self, seed: tuple[int, ...], inside: int | None, coarse: str | None, *args: Any) -> Any:
        """One call, with captured constants moved if there is a seed, and what operations give if there is another."""
        leaves, tree = jax.tree.flatten(args)
        form = tree, tuple((i, find_type(leaf)) if _is_array(leaf) else (i, None) for i, leaf in enumerate(leaves))
        if form not in self._made:
            self._made[form] = self._make(tree, leaves)
        if self._made[form] is None:
            return _run(self._function, *args)
        constants, program = self._made[form]
        if seed:
            constants = move_tree(constants, (*seed, 1))
        return _run(program, constants, [leaf for leaf in leaves if _is_array(leaf)], inside, coarse=coarse)

    def _make(self, tree: Any, leaves: list[Any]) -> Any:
        traced = _try_trace(self._function, tree, leaves)
        if traced is None:
            return None
        with analysing(internals.ROUNDING):
            form, constants = jax.tree.structure(traced.out_info), list_constants(traced.jaxpr)

        def program(constants: list[Any], arrays: list[Any], seed: Any, *, coarse: str | None) -> Any:
            with analysing(internals.ROUNDING):
                return jax.tree.unflatten(form, evaluate(traced.jaxpr, iter(constants), arrays, seed, coarse))

        size = sum(1 for _ in walk_equations(traced.jaxpr.jaxpr))
        takes_options = find_jax_release() > OLDEST  # the oldest one takes no options for one program
        options = QUICKLY if size >= LARGE and takes_options and is_processor(jax.devices()[0]) else {}
        return constants, jit(program, options, static_argnames="coarse")


def _try_trace(function: Callable[..., Any], tree: Any, leaves: list[Any]) -> Any:
    """Return a function traced in its arrays, all other leaves static; None if JAX cannot trace its code.

    Raises:
      An error of jaxmeter's own, as `is_own_fault` detects it.
    """
    is_array = [_is_array(leaf) for leaf in leaves]

    def of_arrays(*arrays: Any) -> Any:
        given = iter(arrays)
        merged = [next(given) if dynamic else leaf for dynamic, leaf in zip(is_array, leaves, strict=True)]
        return function(*jax.tree.unflatten(tree, merged))

    arrays = [leaf for leaf in leaves if _is_array(leaf)]
    try:
        return jax.jit(as_new_function(of_arrays)).trace(*arrays)
    except Exception as error:
        if is_own_fault(error):
            raise
        return None  # code for eager mode can read values, which a trace does not have


def _find_deviation(index: int, moved: Any, still: Any, want: Any) -> float:
    return relative_error(moved, still, find_scale(want))[0]


def _is_array(leaf: Any) -> bool:
    return hasattr(leaf, "dtype") and hasattr(leaf, "shape")


def _list_values(closed: Any) -> Iterator[Any]:
    """Captured constants and literal values of a program."""
    yield from list_constants(closed)
    for equation in walk_equations(closed.jaxpr):
        yield equation.primitive.name
        yield from (atom.val for atom in equation.invars if hasattr(atom, "val"))


def _differ(left: Any, right: Any) -> bool:
    if isinstance(left, str) or isinstance(right, str):
        return bool(left != right)
    first, second = as_array(left), as_array(right)
    is_alike = first.shape == second.shape and first.dtype == second.dtype
    return not is_alike or bool(first.tobytes() != second.tobytes())
