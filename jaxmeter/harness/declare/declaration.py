"""What a suite may say: options, levels of params, implementations; and what a module has declared."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import partial, wraps
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, ParamSpec, Protocol, TypeVar, cast, dataclass_transform, overload

import ml_dtypes
import numpy

from jaxmeter.harness.declare.fingerprint import Origin, fingerprint
from jaxmeter.harness.machine.data import DataSource
from jaxmeter.harness.record.cases import EXECUTION, NATIVE, Answer, Cost, Param, Published, Reported

Values = Param | tuple[Param, ...] | list[Param]


class DeclarationError(Exception):
    """An invalid declaration in a suite. The message names the workload and what is allowed."""


LEVELS = ("quick", "default", "full")
"""How much is measured; each has all of those before it."""


@dataclass(frozen=True, kw_only=True)
class Levels:
    """Values of a param, sizes or dtypes, by level; each level includes the ones before it.

    Without a quick value, the first of the next level stands for it.

    Args:
      quick, default, full: Values by level.
      by_device: Kind of device -> what it adds there to the default level: `{"gpu": (1_000_000,)}`.
    """

    quick: tuple[Param, ...]
    default: tuple[Param, ...]
    full: tuple[Param, ...]
    by_device: Mapping[str, tuple[Param, ...]]

    def at(self, level: str, device: str) -> tuple[Param, ...]:
        """The values for a level on a kind of device, without repeats, numbers in order."""
        values = self.quick or self.default[:1] or self.full[:1]
        if level != "quick":
            values += self.default + self.by_device.get(device, ())
        if level == "full":
            values += self.full
        different = dict.fromkeys(values)
        numeric = all(isinstance(value, int | float) for value in different)
        return tuple(sorted(different) if numeric else different)

    @property
    def first(self) -> Param:
        """The first value of the lowest level that has one, on any device."""
        return next(values[0] for values in (self.quick, self.default, self.full, *self.by_device.values()) if values)


def levels(
    *, quick: Values = (), default: Values = (), full: Values = (), by_device: Mapping[str, Values] | None = None
) -> Levels:
    """Return a param's values by level: `levels(quick=100, default=(1_000, 10_000), by_device={"gpu": 1_000_000})`."""
    return Levels(
        quick=_make_tuple(quick),
        default=_make_tuple(default),
        full=_make_tuple(full),
        by_device={device: _make_tuple(values) for device, values in (by_device or {}).items()},
    )


def _make_tuple(values: Values) -> tuple[Param, ...]:
    several = values if isinstance(values, list | tuple | range | numpy.ndarray) else (values,)
    return tuple(_make_param(value) for value in several)


def _make_param(value: Any) -> Param:
    """A value that a record can hold and a name can show.

    Raises:
      DeclarationError: Anything else, such as a shape or a dtype object.
    """
    if isinstance(value, numpy.generic):
        value = value.item()
    if not isinstance(value, Param):
        raise DeclarationError(
            f"a param's value cannot be {value!r}; it is a text, a number or a truth value: "
            f"write a dtype as 'float32', and each dimension of a shape as a param"
        )
    return value


def itemsize(dtype: str) -> int:
    """Return the bytes of one element of a NumPy dtype, bfloat16 or another dtype of ml_dtypes."""
    return numpy.dtype(getattr(ml_dtypes, dtype, dtype)).itemsize


def call_with(function: Callable[..., Any], params: Mapping[str, Param], *args: Any) -> Any:
    """Calls a function with positional arguments and the params that it requires by name."""
    names = find_wanted_params(function, params, keyword_only=bool(args))
    return function(*args, **{name: params[name] for name in names})


def find_wanted_params(
    function: Callable[..., Any], params: Collection[str], *, keyword_only: bool = True
) -> list[str]:
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


_VARIABLE = "__jaxmeter_workloads__"


@dataclass
class _Declared:
    """Workloads by name, of one execution of a module's top."""

    code: CodeType
    workloads: dict[str, Any] = field(default_factory=dict)


def register(workload: Any, origin: Origin) -> None:
    """Add a workload to those of its module.

    A module that is loaded again begins with none.

    Raises:
      DeclarationError: The module has one of that name.
    """
    declared = origin.variables.get(_VARIABLE)
    if not isinstance(declared, _Declared) or declared.code is not origin.code:
        declared = origin.variables[_VARIABLE] = _Declared(origin.code)
    if (other := declared.workloads.get(workload.name)) is not None:
        lines = (other.origin.line, origin.line)
        where = f"in lines {lines[0]} and {lines[1]}" if lines[0] != lines[1] else f"both in line {lines[0]}"
        raise DeclarationError(
            f"two workloads are named '{workload.name}', {where} of {Path(origin.code.co_filename).name}; rename one, "
            "since a case's name must say which it is: @workload(name='…', …) gives a name"
        )
    declared.workloads[workload.name] = workload


def list_declared(module: ModuleType) -> tuple[Any, ...]:
    """List the workloads that a module has declared itself, in the order of their declarations."""
    declared = vars(module).get(_VARIABLE)
    return tuple(declared.workloads.values()) if isinstance(declared, _Declared) else ()


Function = Callable[..., Any]
Compiles = int | Callable[..., int]
Changes = Mapping[str, Param] | Callable[..., Mapping[str, Param]]

Options = ParamSpec("Options")
Structure = TypeVar("Structure")
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def options(written: str) -> Callable[[type[Structure]], type[Structure]]:
    """Decorator of a class: its fields are options, given by name and never changed.

    An option that does not exist, or one that is missing, is a DeclarationError that lists those that exist.

    Args:
      written: What a suite calls the class, for errors.
    """

    def make(plain: type[Structure]) -> type[Structure]:
        made = dataclass(frozen=True, kw_only=True)(plain)
        known = {item.name: item for item in fields(made)}  # type: ignore[arg-type]
        needed = [name for name, item in known.items() if item.default is item.default_factory is MISSING]
        build: Callable[..., None] = made.__init__

        @wraps(build)
        def __init__(self: Structure, *args: Any, **given: Any) -> None:  # noqa: N807  it takes the place of one
            problems = [f"has no option '{name}'" for name in given if name not in known]
            problems += [f"needs the option '{name}'" for name in needed[len(args) :] if name not in given]
            if problems:
                raise DeclarationError(f"{written}() {problems[0]}; its options are {', '.join(known)}")
            build(self, *args, **given)

        made.__init__ = __init__  # type: ignore[method-assign, assignment]
        return made

    return make


class Decorator(Protocol[Options, Result_co]):
    """A decorator of a function: bare, with options, or called with the function itself."""

    @overload
    def __call__(self, function: Function, /, *args: Options.args, **given: Options.kwargs) -> Result_co: ...
    @overload
    def __call__(self, *args: Options.args, **given: Options.kwargs) -> Callable[[Function], Result_co]: ...


def make_decorator(
    structure: Callable[Options, Structure], use: Callable[[Structure, Function], Result]
) -> Decorator[Options, Result]:
    """A decorator whose options, and whose docstring, are those of a structure.

    Args:
      use: Gets the structure and the decorated function; what it returns takes the function's place.
    """
    build: Callable[..., Structure] = structure

    @wraps(structure, updated=())
    def decorate(*function: Function, **given: Any) -> Any:
        take = partial(use, build(**given))
        return take(*function) if function else take

    return cast("Decorator[Options, Result]", decorate)


@dataclass(frozen=True)
class Skip:
    """A declared reason not to run a variant: `Skip("needs 2 devices, found 1")`.

    Args:
      traced: Whether the variant is traced nevertheless, if it is one program, so that its equations are counted.
    """

    reason: str
    traced: bool = False


@dataclass(frozen=True)
class NoReference:
    """A stated reason why a workload's results cannot be checked.

    Args:
      comparable: Whether all variants must give what the baseline variant gives.
    """

    reason: str
    comparable: bool = True


def no_reference(reason: str, *, comparable: bool = True) -> NoReference:
    """State why a workload has no reference. The report shows the reason.

    Variants are compared with the baseline variant instead. A variant whose result differs has no speedup.

    Args:
      comparable: False if results of variants may differ, such as draws of two random number generators.
    """
    return NoReference(reason, comparable)


@options("Peer")
class Peer:
    """The same computation in another library. It gets the inputs as NumPy arrays.

    Args:
      function: Called with the workload's inputs and the params that its signature names.
      limit: Params by name (and `backend`) -> `Skip` if the peer cannot or should not run, else None.
      convert: (inputs as NumPy arrays) -> the function's arguments in the library's own types. It is not timed. It must
        copy what the function changes in place.
    """

    function: Function = field(kw_only=False)
    limit: Callable[..., Skip | None] | None = None
    convert: Callable[..., tuple[Any, ...]] | None = None


@options("implementation")
class ImplementationOptions:
    """Options of `@some_workload.implementation`, which declares another implementation of a workload.

    Args:
      name: Name in the report; default: the function's.
      modes: Modes in which it runs; default: the workload's.
      limit: Params by name, and `backend` -> `Skip("why")` if it should not run, else None.
      compiles: Maximum number of programs it may compile, in every mode but aot; default: the workload's.
      donate: Carried arguments that a jitted call donates: `donate=("state",)`.
      compiler_options: XLA options of its compilation, by name: `{"xla_cpu_prefer_vector_width": 512}`. All of its
        modes must be jit or aot.
      tolerance: Largest error allowed of this implementation, for example in a lower precision; default: the
        workload's.
      raises: Error that a call must raise, for an implementation that shows a documented mistake. Any other outcome is
        a failure.
      traps: Kinds of traps that it contains on purpose, in addition to those of the workload: `traps=("callbacks",)`.
        The report shows them as declared, not as warnings; docs/traps.md lists the kinds.
    Raises:
      DeclarationError: An option, a mode, an argument or a param does not exist, or a name is taken.
    """

    name: str | None = None
    modes: tuple[str, ...] | None = None
    limit: Callable[..., Skip | None] | None = None
    compiles: Compiles | None = None
    donate: tuple[str, ...] = ()
    compiler_options: Mapping[str, Param] = field(default_factory=dict)
    tolerance: float | None = None
    raises: type[Exception] | None = None
    traps: tuple[str, ...] = ()


@options("State")
class State:
    """State that one call passes to the next.

    Args:
      carry: Argument -> index of the output that replaces it in the next call: `carry={"state": 0}`. Every block of
        calls starts from the inputs. In a stream, the state passes from one tuple's call to the next, also in the
        reference.
      donate: Carried arguments that a jitted call of the workload's first implementation donates.
    """

    carry: Mapping[str, int] = field(default_factory=dict)
    donate: tuple[str, ...] = ()


@options("Caching")
class Caching:
    """Additional calls of the `caching` probe: params with other values, or a function of params that returns them.

    Args:
      new_shape: Params that change the shapes of inputs(): `lambda *, n: {"n": n + 1}`.
      new_static: Params that change a static argument of the implementations.
      default_threshold: Whether to try a persistent cache with JAX's default threshold, which keeps only programs that
        took at least one second to compile.
    """

    new_shape: Changes | None = None
    new_static: Changes | None = None
    default_threshold: bool = False


@options("Needs")
class Needs:
    """Requirements of a case's processes.

    Args:
      devices: Number of devices that a case uses, or a function of params. On the CPU, so many are simulated.
      config: Values of `jax.config`, a mapping or a function of params: `config={"jax_enable_x64": True}`.
      host: Arguments that stay NumPy arrays in host memory, as a data loader returns them. Other arguments are on the
        device before the clock starts.
    """

    devices: int | Callable[..., int] = 1
    config: Changes = field(default_factory=dict)
    host: tuple[str, ...] = ()


@options("Items")
class Items:
    """Number of items that one call processes; the report then shows throughput: `Items("tokens", 4096)`.

    Args:
      unit: Name of the items, in the plural, equal in all cases. Throughput is shown in `tokens/s`.
      count: Items of one call, or of one pass of a stream: a number, or a function of params, `lambda *, batch, length:
        batch * length`.
    """

    unit: str = field(kw_only=False)
    count: int | Callable[..., int] = field(kw_only=False)


@options("workload")
class Declaration:
    """Options of `@workload`, which declares a workload with the decorated function as its first implementation.

    The function's positional arguments are pytrees of arrays. Its keyword-only arguments are params, fixed before
    compilation. Every other function gets the params that its signature names.

    Args:
      inputs: `(key, *, params)` -> an array or a tuple of arguments; `key` is a `jax.random.key`. It is not timed.
      reference: The same inputs as float64 (int64) NumPy arrays -> the trusted result; or `no_reference("why")`. An
        entry that the reference cannot compute is NaN; the record then states how much was not checked.
      params: Name -> values: a value, a tuple, or `levels(...)` by level.
      cost: Params by name -> `Cost(flops=, bytes=)` of one call.
      items: Items of one call, for throughput: `Items("tokens", lambda *, batch, length: batch * length)`.
      peers: Name -> the same computation in another library, a function or a `Peer`.
      modes: Modes of implementations that declare none; default: eager, jit and aot (of a stream: eager and jit).
        `mixed` is Python code that JAX does not trace as a whole.
      implementation: Name of the function as an implementation; default: the workload's.
      limit: Params by name, and `backend` -> `Skip("why")` if this first implementation should not run, else None.
      compiler_options: XLA options of this first implementation, by name. All of its modes must be jit or aot.
      baseline: Variant that speedups refer to, `implementation:mode`; default: the first.
      tolerance: Largest error allowed, relative to the reference's largest entry. The default follows from the formats
        of the baseline variant, the precision of products and the conditioning of the problem.
      time_limit_s: Longest time in seconds for one stage of one variant (compilation, one block …) before it counts as
        hung. It is the compile budget, too.
      stream: Whether inputs are a list of argument tuples. One call is then a pass over all of them, such as batches of
        different lengths. The reference is called for each tuple; the cost is that of a pass.
      compiles: Recompile budget: maximum number of programs that a `jit` variant compiles until a second, equal call
        (of a stream: pass) has ended. A number, or a function of params. A case that exceeds it fails.
      state: State that one call passes to the next: `State(carry={"state": 0}, donate=("state",))`.
      caching: Additional calls of the `caching` probe: `Caching(new_shape=lambda *, n: {"n": n + 1})`.
      needs: Requirements of a case's processes: `Needs(devices=8, config={"jax_enable_x64": True}, host=("images",))`.
      representative: Params of the case that represents the workload where measuring every case would take too long;
        default: the first value of each param.
      compare: Result as NumPy arrays -> the part or property that the reference returns, such as the moments of random
        numbers. Its keyword-only `inputs` are the arguments as NumPy arrays. It is not timed.
      data: () -> the data that inputs() uses, in words or as a `DataSource`, which can state that the folder `--data`
        has none of the expected files.
      published: Published figures to compare with.
      reported: Reports that a release of jax changed the workload's time: `Reported(source="jax issue 40150",
        before="0.4.31", after="0.4.33", factor=60)`. A comparison of two releases states whether the change occurs
        here.
      answer: Variants and metric that answer the suite's question: `Answer("…?", "f:jit", against="f:eager")`. One
        workload of a suite has it.
      measures: `"compilation"` if compilation is what is measured. Every case then compiles in at least three cold
        processes at each level. Its calls are timed in the fewest processes that give an interval.
      queued: Number of queued calls, an integer ≥ 2. In addition to single calls, each process times so many calls that
        are issued one after the other and waited for once, as in a training loop. Slow calls are queued in smaller
        numbers.
      level: Lowest level that measures it: quick, default or full.
      name: Name of the workload; default: the function's. A `functools.partial`, and each workload of a loop, needs
        one.
      traps: Kinds of traps that every implementation contains on purpose: `traps=("callbacks",)`. The report shows them
        as declared, not as warnings; docs/traps.md lists the kinds.
    Raises:
      DeclarationError: Names that do not fit together.
    """

    inputs: Function
    reference: Function | NoReference
    params: Mapping[str, Levels | Values] = field(default_factory=dict)
    cost: Callable[..., Cost] | None = None
    items: Items | None = None
    peers: Mapping[str, Peer | Function] = field(default_factory=dict)
    modes: tuple[str, ...] | None = None
    implementation: str | None = None
    limit: Callable[..., Skip | None] | None = None
    compiler_options: Mapping[str, Param] = field(default_factory=dict)
    baseline: str | None = None
    tolerance: float | None = None
    time_limit_s: float | None = None
    stream: bool = False
    compiles: Compiles | None = None
    state: State = field(default_factory=State)
    caching: Caching = field(default_factory=Caching)
    needs: Needs = field(default_factory=Needs)
    representative: Mapping[str, Param] = field(default_factory=dict)
    compare: Function | None = None
    data: Callable[[], str | DataSource] | None = None
    published: tuple[Published, ...] = ()
    reported: tuple[Reported, ...] = ()
    answer: Answer | None = None
    measures: str = EXECUTION
    queued: int | None = None
    level: str = "quick"
    name: str | None = None
    traps: tuple[str, ...] = ()


MODES = ("eager", "jit", "aot")
"""How a JAX implementation is executed, unless it says otherwise."""

STREAM_MODES = ("eager", "jit")
"""An ahead-of-time program takes one type of arguments, and a stream has several."""

ONE_COMPILED = ("jit", "aot")
"""Modes with one program of their own; only a stream's `jit` has several."""

MIXED = "mixed"
"""Python code that JAX does not trace as a whole: it calls what it has jitted, or single operations."""


@dataclass(frozen=True, kw_only=True)
class Implementation(ImplementationOptions, Peer):
    """One way to compute a workload: all that is declared of a JAX implementation or of a peer, without gaps."""

    name: str
    modes: tuple[str, ...]

    @property
    def description(self) -> str:
        """The docstring's first line."""
        return read_first_line(self.function)

    def hash_source(self) -> str:
        """Hash of its code and of what it is compiled with."""
        options = (f"{name}={value!r}" for name, value in sorted(self.compiler_options.items()))
        return fingerprint(self.function, constants=tuple(options))

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of its variants, `implementation:mode`."""
        return tuple(f"{self.name}:{mode}" for mode in self.modes)

    def find_skip(self, params: Mapping[str, Param], backend: str) -> Skip | None:
        """The declared reason not to run with these params on this backend."""
        return None if self.limit is None else call_with(self.limit, {**params, "backend": backend})


def implement(function: Function, options: ImplementationOptions, modes: tuple[str, ...]) -> Implementation:
    """A function as an implementation; it has its own name, and these modes, unless the options say otherwise."""
    name = options.name or find_own_name(function, "implementation")
    named = {"name": name, "modes": options.modes or modes}
    return Implementation(function, **{**vars(options), **named})


def find_own_name(function: Function, what: str) -> str:
    """Return a function's own name.

    Args:
      what: How a suite calls the declaration, for errors.
    Raises:
      DeclarationError: It has none, as a partial or an object that can be called.
    """
    name = getattr(function, "__name__", None)
    if name is None:
        kind = f"{type(function).__module__}.{type(function).__qualname__}"
        raise DeclarationError(f"{what}: a {kind} has no name of its own; give it one: {what}(name='…', …)")
    return str(name)


def implement_peer(name: str, peer: Peer | Function) -> Implementation:
    """A function of another library as an implementation."""
    peer = peer if isinstance(peer, Peer) else Peer(peer)
    return Implementation(**vars(peer), name=name, modes=(NATIVE,))


def _find_documented(function: Any) -> Any:
    """Return the function whose docstring describes it: that of a partial is `functools`' own."""
    while isinstance(function, partial):
        function = function.func
    return function


def list_variants(implementations: Iterable[Implementation]) -> tuple[str, ...]:
    """Names of all variants, `implementation:mode`."""
    return tuple(name for item in implementations for name in item.variants)


def read_first_line(documented: Any) -> str:
    """First line of an object's docstring, or the empty text; a built-in's is its signature, so its name instead."""
    documented = _find_documented(documented)
    line = (inspect.getdoc(documented) or "").partition("\n")[0]
    name = getattr(documented, "__name__", "")
    return f"{type(documented).__module__}.{name}" if name and line.startswith(f"{name}(") else line
