"""How far rounding alone moves a case's results: its judge runs again on inputs moved by one unit in the last place.

The judge is the program that decides what rounding may do: a suite's baseline variant, in a notebook the function as
passed. Source: Higham, Accuracy and Stability of Numerical Algorithms, 2nd edition, chapter 1 (the forward error is at
most about the condition number times the backward error).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import starmap
from typing import Any

import jax

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.environment import is_processor
from jaxmeter.harness.machine.jax_internals import OLDEST, find_jax_release
from jaxmeter.harness.machine.own_fault import UnknownError, analysing, is_own_fault
from jaxmeter.harness.probes.errors import as_array, find_scale, pair, relative_error
from jaxmeter.harness.probes.evaluation import evaluate, list_constants
from jaxmeter.harness.probes.formats import find_formats
from jaxmeter.harness.probes.moving import move_tree
from jaxmeter.harness.programs.modes import Carried, as_new_function
from jaxmeter.harness.programs.older_jax import find_type, jit
from jaxmeter.harness.programs.program import walk_equations

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
