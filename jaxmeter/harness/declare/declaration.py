"""What a suite may say: every option is one field here, with its description."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from functools import partial, wraps
from typing import Any, ParamSpec, Protocol, TypeVar, cast, dataclass_transform, overload

from jaxmeter.harness.declare.levels import DeclarationError, Levels, Values
from jaxmeter.harness.machine.data import DataSource
from jaxmeter.harness.record.cases import EXECUTION, Answer, Cost, Param, Published, Reported

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
    """A declared reason not to run something, e.g. `Skip("needs 2 devices, found 1")`.

    Args:
      traced: Whether it is traced all the same, where it would be one program, so that its equations are counted.
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
    """In place of a reference: why there is none. The report shows it.

    Variants are compared with the baseline variant instead; one that differs has no speedup.

    Args:
      comparable: False where variants may differ, such as draws of two generators of random numbers.
    """
    return NoReference(reason, comparable)


@options("Peer")
class Peer:
    """The same computation in another library; it gets the inputs as NumPy arrays.

    Args:
      function: Called with the workload's inputs and the params that it asks for.
      limit: Params by name (and `backend`) -> `Skip` where the peer cannot or should not run, else None.
      convert: (inputs as NumPy arrays) -> the function's arguments, in the library's own types; never timed. It copies
        what the function changes in place.
    """

    function: Function = field(kw_only=False)
    limit: Callable[..., Skip | None] | None = None
    convert: Callable[..., tuple[Any, ...]] | None = None


@options("implementation")
class ImplementationOptions:
    """What `@some_workload.implementation` declares: another implementation of that workload, the decorated function.

    Args:
      name: Shown name, by default the function's.
      modes: How it is executed, by default as the workload says.
      limit: Params by name, and `backend` -> `Skip("why")` where it should not run, else None.
      compiles: How many programs it may compile at most, in every mode but aot; by default as the workload says.
      donate: Arguments, among those carried, whose memory a jitted call may take: `donate=("state",)`.
      compiler_options: XLA's options that it is compiled with, by name: `{"xla_cpu_prefer_vector_width": 512}`. All of
        its modes must be jit or aot.
      tolerance: Largest error allowed of this implementation, such as one in a lower format; by default as the workload
        says.
      raises: The error that calling it must raise, as the documentation of what it does wrong has it. It is
        recorded and shown; anything else is a failure.
      traps: Kinds of traps that it has on purpose, in addition to those of the workload: `traps=("callbacks",)`. They
        are shown as declared, not as warnings; docs/traps.md lists the kinds.
    Raises:
      DeclarationError: An option, a mode, an argument or a param that does not exist; a name that is taken.
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
    """What goes from one call to the next.

    Args:
      carry: Argument -> index of the output that takes its place in the next call: `carry={"state": 0}`. Every block
        of calls begins with the inputs. In a stream the state goes from one tuple's call to the next, and the
        reference does the same.
      donate: Carried arguments whose memory a jitted call of the workload's first implementation may take.
    """

    carry: Mapping[str, int] = field(default_factory=dict)
    donate: tuple[str, ...] = ()


@options("Caching")
class Caching:
    """What else the `caching` probe tries; as new, params with other values, or a function of params that gives them.

    Args:
      new_shape: What changes the shapes that inputs() gives: `lambda *, n: {"n": n + 1}`.
      new_static: What changes a static argument, which the implementations take.
      default_threshold: Whether to try a persistent cache that keeps what JAX keeps by itself: programs that took at
        least a second to compile.
    """

    new_shape: Changes | None = None
    new_static: Changes | None = None
    default_threshold: bool = False


@options("Needs")
class Needs:
    """What a case's processes are given.

    Args:
      devices: How many devices a case uses, a number or a function of params. On the CPU so many are made.
      config: What is set in `jax.config`, a mapping or a function of params: `config={"jax_enable_x64": True}`.
      host: Arguments that stay NumPy arrays in the host's memory, as a data loader gives them; others are on the
        device before anything is timed.
    """

    devices: int | Callable[..., int] = 1
    config: Changes = field(default_factory=dict)
    host: tuple[str, ...] = ()


@options("Items")
class Items:
    """How many items a call processes, so that its throughput stands next to its time: `Items("tokens", 4096)`.

    Args:
      unit: What they are, in the plural; the same in all cases. Throughput is shown in `tokens/s`.
      count: How many of them one call processes, of a stream one pass: a number, or a function of params,
        `lambda *, batch, length: batch * length`.
    """

    unit: str = field(kw_only=False)
    count: int | Callable[..., int] = field(kw_only=False)


@options("workload")
class Declaration:
    """What `@workload` declares: a workload, and the decorated function as its first implementation.

    The function's positional arguments are pytrees of arrays; its keyword-only arguments are params, fixed before
    compilation. Every other function gets the params that its signature names.

    Args:
      inputs: (key, *, params) -> an array or a tuple of arguments; `key` is a `jax.random.key`. Never timed.
      reference: The same inputs as float64 (int64) NumPy arrays -> the trusted result; or `no_reference("why")`. What
        it cannot tell is NaN, there and in what `compare` gives; the record then says how much was not checked.
      params: Name -> values: a value, a tuple, or `levels(...)` by level.
      cost: Params by name -> `Cost(flops=, bytes=)` of one call.
      items: What one call processes, for throughput: `Items("tokens", lambda *, batch, length: batch * length)`.
      peers: Name -> the same computation in another library, a function or a `Peer`.
      modes: How implementations are executed, unless they say otherwise; by default eager, jit and aot (a stream:
        eager and jit). `mixed` is Python code that JAX does not trace as a whole.
      implementation: Name of the function as an implementation, by default the workload's.
      limit: Params by name, and `backend` -> `Skip("why")` where this first implementation should not run, else None.
      compiler_options: XLA's options that this first implementation is compiled with, by name. All of its modes must
        be jit or aot.
      baseline: The variant that speedups refer to, `implementation:mode`; by default the first.
      tolerance: Largest error allowed, relative to the reference's largest entry; then rounding explains no more. By
        default it follows from the formats of the baseline variant, the precision of products and the problem's
        conditioning.
      time_limit_s: Longest time for one stage of one variant (compile, one block …) before it counts as hung: also
        its compile budget.
      stream: Inputs are a list of argument tuples, and one call is a pass over all of them, such as batches of
        different lengths. The reference is called for each; the cost is that of a pass.
      compiles: The recompile budget: how many programs a `jit` variant may compile at most until a second, equal call
        (of a stream, pass) has ended. A number, or a function of params. More fails the case.
      state: What goes from one call to the next: `State(carry={"state": 0}, donate=("state",))`.
      caching: What else the `caching` probe tries: `Caching(new_shape=lambda *, n: {"n": n + 1})`.
      needs: What a case's processes are given: `Needs(devices=8, config={"jax_enable_x64": True}, host=("images",))`.
      representative: Params of the one case that represents the workload where every case would be too much; by
        default the first value of each.
      compare: result as NumPy arrays -> what of it the reference gives, where it is not the result itself, such as the
        moments of random numbers; keyword-only `inputs` are the arguments, as NumPy arrays too. Never timed.
      data: () -> which data inputs() uses, where that depends on what there is: in words, or as a `DataSource`, which
        can tell that `--data` has none of the files that were looked for.
      published: Figures of others that stand beside ours.
      reported: Reports that a release of jax changed its time: `Reported(source="jax issue 40150", before="0.4.31",
        after="0.4.33", factor=60)`. A comparison of two releases says whether that is so here.
      answer: What the workload tells to answer its suite's question: `Answer("…?", "f:jit", against="f:eager")`. One
        workload of a suite has it.
      measures: `"compilation"` where compiling is what is measured: every case then compiles in at least three cold
        processes at each level, and its calls are timed in the fewest processes that have an interval.
      queued: How many calls are queued: besides the time of a call that is waited for, each process times so many that
        are issued one after the other and waited for once, as in a training loop. An integer of 2 or more; where calls
        are slow, fewer are queued.
      level: The lowest level that measures it: quick, default or full.
      name: Of the workload; by default the function's. A `functools.partial` needs one, and each workload of a loop.
      traps: Kinds of traps that every implementation has on purpose: `traps=("callbacks",)`. They are shown as
        declared, not as warnings; docs/traps.md lists the kinds.
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
