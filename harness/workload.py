"""Declaring what is profiled: a workload with its inputs, params, reference, cost and implementations."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from types import FunctionType
from typing import Any

import ml_dtypes
import numpy

from harness.record import Cost, Param
from harness.source import fingerprint

MODES = ("eager", "jit", "aot")
STREAM_MODES = ("eager", "jit")
NATIVE = "native"


class DeclarationError(Exception):
    """A suite declares something that cannot be; the message names the workload and what exists."""


@dataclass(frozen=True)
class Skip:
    """A declared reason not to run something, e.g. `Skip("needs 2 devices, found 1")`."""

    reason: str


@dataclass(frozen=True)
class NoReference:
    """A stated reason why a workload's results cannot be checked."""

    reason: str


def no_reference(reason: str) -> NoReference:
    """In place of a reference: why there is none. The report shows it."""
    return NoReference(reason)


@dataclass(frozen=True)
class Sizes:
    """Values of a param by level; each level includes the ones before it. `gpu` and `tpu` add to default there.

    Without a quick value, the first of the next level stands for it.
    """

    quick: tuple[Param, ...]
    default: tuple[Param, ...]
    full: tuple[Param, ...]
    gpu: tuple[Param, ...]
    tpu: tuple[Param, ...]

    def at(self, level: str, backend: str) -> tuple[Param, ...]:
        """The values for a level on a backend, without repeats, numbers in order."""
        values = self.quick or self.default[:1] or self.full[:1]
        if level != "quick":
            values += self.default + {"gpu": self.gpu, "tpu": self.tpu}.get(backend, ())
        if level == "full":
            values += self.full
        different = dict.fromkeys(values)
        numeric = all(isinstance(value, int | float) for value in different)
        return tuple(sorted(different) if numeric else different)


Compiles = int | Callable[..., int]
Alternative = Mapping[str, Param] | Callable[..., Mapping[str, Param]]
Values = Param | tuple[Param, ...] | list[Param]


def sizes(*, quick: Values = (), default: Values = (), full: Values = (), gpu: Values = (), tpu: Values = ()) -> Sizes:
    """Values of a param by level: `sizes(quick=100, default=(1_000, 10_000), gpu=1_000_000)`."""
    return Sizes(_several(quick), _several(default), _several(full), _several(gpu), _several(tpu))


def _several(values: Values) -> tuple[Param, ...]:
    several = values if isinstance(values, list | tuple | range | numpy.ndarray) else (values,)
    return tuple(_param(value) for value in several)


def _param(value: Any) -> Param:
    """A value that a record can hold and a name can show.

    Raises:
      DeclarationError: Anything else, such as a shape or a dtype object.
    """
    if isinstance(value, numpy.generic):
        value = value.item()
    if not isinstance(value, Param):
        raise DeclarationError(
            f"a param's value cannot be {value!r}; it is a text, a number or a truth value: "
            f"write a dtype as 'float32', and each side of a shape as a param"
        )
    return value


def itemsize(dtype: str) -> int:
    """Bytes of one element, for NumPy's dtypes and bfloat16 and its kin."""
    return numpy.dtype(getattr(ml_dtypes, dtype, dtype)).itemsize


@dataclass(frozen=True)
class Peer:
    """The same computation in another library; it gets the inputs as NumPy arrays.

    Args:
      function: Called with the workload's inputs and the params that it asks for.
      limit: Params by name -> `Skip` where the peer cannot or should not run, else None.
    """

    function: Callable[..., Any]
    limit: Callable[..., Skip | None] | None = None


@dataclass(frozen=True)
class Implementation:
    """One way to compute a workload; `modes` is how it may be executed (`native` for a peer)."""

    name: str
    function: Callable[..., Any]
    modes: tuple[str, ...]
    limit: Callable[..., Skip | None] | None = None
    compiles: Compiles | None = None

    @property
    def description(self) -> str:
        """The docstring's first line."""
        return first_line(self.function)

    def skip(self, params: Mapping[str, Param]) -> Skip | None:
        """The declared reason not to run with these params."""
        return None if self.limit is None else call_with(self.limit, params)


def first_line(documented: Any) -> str:
    """First line of an object's docstring, or the empty text; a built-in's is its signature, so its name instead."""
    line = (inspect.getdoc(documented) or "").partition("\n")[0]
    name = getattr(documented, "__name__", "")
    return f"{type(documented).__module__}.{name}" if name and line.startswith(f"{name}(") else line


def call_with(function: Callable[..., Any], params: Mapping[str, Param], *args: Any) -> Any:
    """Calls a function with positional arguments and the params that it requires by name."""
    names = wanted_names(function, params, keyword_only=bool(args))
    return function(*args, **{name: params[name] for name in names})


def wanted_names(function: Callable[..., Any], params: Collection[str], *, keyword_only: bool = True) -> list[str]:
    """Names that a function takes as params: those without a default, and those with one that params lists.

    A default counts in Python functions only: NumPy's own have a `dtype` that means something else.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a built-in without a signature asks for none
        return []
    kinds = [inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD]
    named = [item for item in parameters if item.kind in (kinds[:1] if keyword_only else kinds)]
    plain = isinstance(function, FunctionType)
    return [item.name for item in named if item.default is item.empty or (plain and item.name in params)]


@dataclass(eq=False)
class Workload:
    """What is computed, and one or more implementations that must give the same answer.

    Made by the decorator `workload`; calling it calls the function that it decorates.
    """

    name: str
    module: str
    function: Callable[..., Any]
    inputs: Callable[..., Any]
    params: Mapping[str, Sizes]
    reference: Callable[..., Any] | NoReference
    cost: Callable[..., Cost] | None
    modes: tuple[str, ...]
    baseline: str | None
    tolerance: float | None
    time_limit_s: float | None
    stream: bool = False
    compiles: Compiles | None = None
    new_shape: Alternative | None = None
    new_static: Alternative | None = None
    representative: Mapping[str, Param] = field(default_factory=dict)
    implementations: list[Implementation] = field(default_factory=list)

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Calls the function that was decorated."""
        return self.function(*args, **params)

    @property
    def description(self) -> str:
        """The docstring's first line."""
        return first_line(self.function)

    def implementation(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        modes: tuple[str, ...] | None = None,
        limit: Callable[..., Skip | None] | None = None,
        compiles: Compiles | None = None,
    ) -> Any:
        """Decorator: another implementation of this workload.

        Args:
          name: Shown name, by default the function's.
          modes: How it is executed, by default as the workload says.
          limit: Params by name -> `Skip("why")` where it should not run, else None.
          compiles: How many programs it may compile at most, in every mode but aot; by default as the workload says.
        Raises:
          DeclarationError: A name that is taken, a mode or a param that does not exist.
        """
        if function is None:
            return partial(self.implementation, name=name, modes=modes, limit=limit, compiles=compiles)
        self._attach(Implementation(name or function.__name__, function, modes or self.modes, limit, compiles))
        return function

    def attach_peer(self, name: str, peer: Peer | Callable[..., Any]) -> None:
        """Adds a peer, an implementation in another library."""
        peer = peer if isinstance(peer, Peer) else Peer(peer)
        self._attach(Implementation(name, peer.function, (NATIVE,), peer.limit))

    def _attach(self, new: Implementation) -> None:
        if any(new.name == other.name for other in self.implementations):
            raise DeclarationError(f"workload '{self.name}': the implementation name '{new.name}' is taken")
        if wrong := [mode for mode in new.modes if mode not in (*MODES, NATIVE)]:
            raise DeclarationError(f"workload '{self.name}': no mode '{wrong[0]}'; modes are {', '.join(MODES)}")
        if self.stream and "aot" in new.modes:
            raise DeclarationError(
                f"workload '{self.name}': a stream cannot run in mode 'aot', whose program takes one type of "
                f"arguments; modes are {', '.join(STREAM_MODES)}"
            )
        self._check_params(f"{new.name}()", new.function, keyword_only=True)
        self._check_params(f"{new.name}()'s limit", new.limit, keyword_only=False)
        self.implementations.append(new)

    def _check_params(self, what: str, function: Callable[..., Any] | None, *, keyword_only: bool) -> None:
        for name in () if function is None else wanted_names(function, self.params, keyword_only=keyword_only):
            if name not in self.params:
                raise DeclarationError(
                    f"workload '{self.name}': {what} asks for '{name}', which params does not list; "
                    f"params has {', '.join(self.params) or 'nothing'}"
                )

    def check(self) -> None:
        """Raises DeclarationError where names do not fit together. Called when the declaration is complete."""
        self._check_params("inputs()", self.inputs, keyword_only=True)
        self._check_params("cost()", self.cost, keyword_only=False)
        if not isinstance(self.reference, NoReference):
            self._check_params("reference()", self.reference, keyword_only=True)
        users = [self.inputs, *(item.function for item in self.implementations)]
        taken = {name for function in users for name in wanted_names(function, self.params)}
        if unused := [name for name in self.params if name not in taken]:
            raise DeclarationError(
                f"workload '{self.name}': neither inputs() nor an implementation takes the param '{unused[0]}', so its "
                f"cases would differ only in name; take it as a keyword-only argument, or leave it out"
            )
        for what, declared in (("new_shape", self.new_shape), ("new_static", self.new_static)):
            if callable(declared):
                self._check_params(f"{what}()", declared, keyword_only=False)
            else:
                self._check_names(what, declared or {})
        for budget in (self.compiles, *(item.compiles for item in self.implementations)):
            if callable(budget):
                self._check_params("compiles()", budget, keyword_only=False)
        self._check_names("representative", self.representative)
        counted = [item for item in self.implementations if "jit" in item.modes and item.compiles is None]
        if self.compiles is not None and not counted:
            raise DeclarationError(
                f"workload '{self.name}': compiles= counts what its jit variants compile, and it has none; declare it "
                f"on the implementation that is meant, @{self.name}.implementation(compiles=…), or add mode 'jit'"
            )
        if self.baseline is not None and self.baseline not in self.variants():
            raise DeclarationError(
                f"workload '{self.name}': no variant '{self.baseline}' to be the baseline; "
                f"variants are {', '.join(self.variants())}"
            )

    def _check_names(self, what: str, names: Iterable[str]) -> None:
        if unknown := [name for name in names if name not in self.params]:
            raise DeclarationError(
                f"workload '{self.name}': {what} names '{unknown[0]}', which params does not list; "
                f"params has {', '.join(self.params) or 'nothing'}"
            )

    def variants(self) -> tuple[str, ...]:
        """Names of all variants, `implementation:mode`."""
        return tuple(f"{item.name}:{mode}" for item in self.implementations for mode in item.modes)

    def variant(self, name: str) -> tuple[Implementation, str]:
        """The implementation and mode of a variant's name."""
        wanted, _, mode = name.rpartition(":")
        return next(item for item in self.implementations if item.name == wanted), mode

    @property
    def baseline_variant(self) -> str:
        """The variant that speed-ups refer to: as declared, else the first."""
        return self.baseline or self.variants()[0]

    def definition(self) -> str:
        """Hash of what makes this workload itself: inputs, reference and cost; not its implementations."""
        reference = None if isinstance(self.reference, NoReference) else self.reference
        return fingerprint(self.inputs, reference, self.cost)

    def compile_budget(self, variant: str, params: Mapping[str, Param]) -> int | None:
        """How many programs a variant may compile at most; None where nothing is declared.

        What the workload declares is meant for `jit`; what an implementation declares, for all its modes but `aot`.
        """
        implementation, mode = self.variant(variant)
        declared = implementation.compiles
        if declared is None and mode == "jit":
            declared = self.compiles
        if declared is None or mode in ("aot", NATIVE):
            return None
        return call_with(declared, params) if callable(declared) else declared

    def alternative(self, declared: Alternative | None, params: Mapping[str, Param]) -> dict[str, Param] | None:
        """The params that change, with their other values; None where nothing is declared.

        Raises:
          DeclarationError: A param that does not exist.
        """
        if declared is None:
            return None
        changed = dict(call_with(declared, params) if callable(declared) else declared)
        self._check_names("what is to be tried as new", changed)
        return changed

    def is_representative(self, params: Mapping[str, Param]) -> bool:
        """Whether a case stands for the workload: as declared, else the one with the first value of each param."""
        first = {
            name: (values.quick or values.default or values.full or values.gpu or values.tpu)[0]
            for name, values in self.params.items()
        }
        return all(params[name] == value for name, value in {**first, **self.representative}.items())

    def cases(self, level: str, backend: str) -> Iterator[dict[str, Param]]:
        """One value of each param, in every combination, for a level on a backend."""
        values = [self.params[name].at(level, backend) for name in self.params]
        for combination in itertools.product(*values):
            yield dict(zip(self.params, combination, strict=True))


def workload(
    *,
    inputs: Callable[..., Any],
    reference: Callable[..., Any] | NoReference,
    params: Mapping[str, Sizes | Values] | None = None,
    cost: Callable[..., Cost] | None = None,
    peers: Mapping[str, Peer | Callable[..., Any]] | None = None,
    modes: tuple[str, ...] | None = None,
    implementation: str | None = None,
    limit: Callable[..., Skip | None] | None = None,
    baseline: str | None = None,
    tolerance: float | None = None,
    time_limit_s: float | None = None,
    stream: bool = False,
    compiles: Compiles | None = None,
    new_shape: Alternative | None = None,
    new_static: Alternative | None = None,
    representative: Mapping[str, Param] | None = None,
) -> Callable[[Callable[..., Any]], Workload]:
    """Decorator: declares a workload, named after the function, which is its first implementation.

    The function's positional arguments are pytrees of arrays; its keyword-only arguments are params, fixed before
    compilation. Every other function gets the params that its signature names.

    Args:
      inputs: (key, *, params) -> an array or a tuple of arguments; `key` is a `jax.random.key`. Never timed.
      reference: The same inputs as float64 (int64) NumPy arrays -> the trusted result; or `no_reference("why")`.
      params: Name -> values: a value, a tuple, or `sizes(...)` by level.
      cost: Params by name -> `Cost(flops=, bytes=)` of one call.
      peers: Name -> the same computation in another library, a function or a `Peer`.
      modes: How implementations are executed, unless they say otherwise; by default eager, jit and aot (a stream:
        eager and jit).
      implementation: Name of the function as an implementation, by default the workload's.
      limit: Params by name -> `Skip("why")` where this first implementation should not run, else None.
      baseline: The variant that speed-ups refer to, `implementation:mode`; by default the first.
      tolerance: Largest error allowed, relative to the reference's largest entry; by default it follows from
        dtype and precision.
      time_limit_s: Longest time for one stage of one variant (compile, one block …) before it counts as hung: also
        its compile budget.
      stream: Inputs are a list of argument tuples, and one call is a pass over all of them, such as batches of
        different lengths. The reference is called for each; the cost is that of a pass.
      compiles: The recompile budget: how many programs a `jit` variant may compile at most until a second, equal call
        (of a stream, pass) has ended. A number, or a function of params. More fails the case.
      new_shape, new_static: What the `caching` probe tries as new, params with other values, or a function of params
        that gives them: `lambda *, n: {"n": n + 1}`. `new_shape` changes what inputs() gives, `new_static` what
        the implementations take.
      representative: Params of the one case that stands for the workload where every case would be too much; by
        default the first value of each.
    Raises:
      DeclarationError: Names that do not fit together.
    """

    def declare(function: Callable[..., Any]) -> Workload:
        declared = Workload(
            name=function.__name__,
            module=function.__module__,
            function=function,
            inputs=inputs,
            params={
                name: values if isinstance(values, Sizes) else sizes(quick=values)
                for name, values in (params or {}).items()
            },
            reference=reference,
            cost=cost,
            modes=modes or (STREAM_MODES if stream else MODES),
            baseline=baseline,
            tolerance=tolerance,
            time_limit_s=time_limit_s,
            stream=stream,
            compiles=compiles,
            new_shape=new_shape,
            new_static=new_static,
            representative=representative or {},
        )
        declared.implementation(function, name=implementation, limit=limit)
        for name, peer in (peers or {}).items():
            declared.attach_peer(name, peer)
        return declared

    return declare
