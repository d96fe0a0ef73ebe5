"""Declaring what is profiled: a workload with its inputs, params, reference, cost and implementations."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from harness.declare import check
from harness.declare.fingerprint import fingerprint
from harness.declare.implementation import (
    MODES,
    STREAM_MODES,
    Compiles,
    Implementation,
    Peer,
    Skip,
    first_line,
)
from harness.declare.levels import Sizes, Values, call_with, sizes
from harness.machine.data import DataSource
from harness.record import NATIVE, Cost, Param, Published


@dataclass(frozen=True)
class NoReference:
    """A stated reason why a workload's results cannot be checked."""

    reason: str


def no_reference(reason: str) -> NoReference:
    """In place of a reference: why there is none. The report shows it."""
    return NoReference(reason)


Alternative = Mapping[str, Param] | Callable[..., Mapping[str, Param]]


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
    carry: Mapping[str, int] = field(default_factory=dict)
    host: tuple[str, ...] = ()
    devices: int | Callable[..., int] = 1
    config: Mapping[str, Param] | Callable[..., Mapping[str, Param]] = field(default_factory=dict)
    compare: Callable[..., Any] | None = None
    data: Callable[[], str | DataSource] | None = None
    published: tuple[Published, ...] = ()
    quick: bool = True
    implementations: list[Implementation] = field(default_factory=list)

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Calls the function that was decorated."""
        return self.function(*args, **params)

    @property
    def description(self) -> str:
        """The docstring's first line."""
        return first_line(self.function)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the positional arguments, as the decorated function has them."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return tuple(item.name for item in inspect.signature(self.function).parameters.values() if item.kind in kinds)

    def positions(self, names: Iterable[str]) -> tuple[int, ...]:
        """Places of the arguments with these names."""
        return tuple(self.arguments.index(name) for name in names)

    @property
    def carried(self) -> dict[int, int]:
        """`carry` by the places of its arguments."""
        return dict(zip(self.positions(self.carry), self.carry.values(), strict=True))

    def implementation(
        self,
        function: Callable[..., Any] | None = None,
        *,
        name: str | None = None,
        modes: tuple[str, ...] | None = None,
        limit: Callable[..., Skip | None] | None = None,
        compiles: Compiles | None = None,
        donate: tuple[str, ...] = (),
        raises: type[Exception] | None = None,
    ) -> Any:
        """Decorator: another implementation of this workload.

        Args:
          name: Shown name, by default the function's.
          modes: How it is executed, by default as the workload says.
          limit: Params by name, and `backend` -> `Skip("why")` where it should not run, else None.
          compiles: How many programs it may compile at most, in every mode but aot; by default as the workload says.
          donate: Arguments, among those carried, whose memory a jitted call may take: `donate=("state",)`.
          raises: The error that calling it must raise, as the documentation of what it does wrong has it. It is
            recorded and shown; anything else is a failure.
        Raises:
          DeclarationError: A name that is taken, a mode, an argument or a param that does not exist.
        """
        if function is None:
            return partial(
                self.implementation,
                name=name,
                modes=modes,
                limit=limit,
                compiles=compiles,
                donate=donate,
                raises=raises,
            )
        self._attach(
            Implementation(name or function.__name__, function, modes or self.modes, limit, compiles, donate, raises)
        )
        return function

    def attach_peer(self, name: str, peer: Peer | Callable[..., Any]) -> None:
        """Adds a peer, an implementation in another library."""
        peer = peer if isinstance(peer, Peer) else Peer(peer)
        self._attach(Implementation(name, peer.function, (NATIVE,), peer.limit, convert=peer.convert))

    def _attach(self, new: Implementation) -> None:
        check.check_implementation(self, new)
        self.implementations.append(new)

    def check(self) -> None:
        """Raises DeclarationError where names do not fit together. Called when the declaration is complete."""
        check.check(self)

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
        made = () if (source := self.data_source()) is None else (source.words,)
        compared = () if self.compare is None else (self.compare,)
        return fingerprint(self.inputs, reference, self.cost, *compared, constants=made)

    def data_source(self) -> DataSource | None:
        """Which data its inputs are; None where that depends on nothing."""
        found = None if self.data is None else self.data()
        return DataSource(found) if isinstance(found, str) else found

    def needed_devices(self, params: Mapping[str, Param]) -> int:
        """How many devices a case uses."""
        return call_with(self.devices, params) if callable(self.devices) else self.devices

    def settings(self, params: Mapping[str, Param]) -> dict[str, Param]:
        """What a case sets in `jax.config`."""
        return dict(call_with(self.config, params) if callable(self.config) else self.config)

    def claims(self, params: Mapping[str, Param], backend: str) -> tuple[Published, ...]:
        """The published figures that stand beside a case."""
        here = {**params, "backend": backend}
        return tuple(one for one in self.published if all(here[name] == value for name, value in one.at.items()))

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

    def alternative(self, alternatives: Alternative | None, params: Mapping[str, Param]) -> dict[str, Param] | None:
        """The params that change, with their other values; None where nothing is declared.

        Raises:
          DeclarationError: A param that does not exist.
        """
        if alternatives is None:
            return None
        changed = dict(call_with(alternatives, params) if callable(alternatives) else alternatives)
        check.check_names(self, "what is to be tried as new", changed)
        return changed

    def is_representative(self, params: Mapping[str, Param]) -> bool:
        """Whether a case stands for the workload: as declared, else the one with the first value of each param."""
        first = {
            name: (values.quick or values.default or values.full or values.gpu or values.tpu)[0]
            for name, values in self.params.items()
        }
        return all(params[name] == value for name, value in {**first, **self.representative}.items())

    def cases(self, level: str, backend: str) -> Iterator[dict[str, Param]]:
        """One value of each param, in every combination, for a level on a backend; none where it is left out."""
        if level == "quick" and not self.quick:
            return
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
    carry: Mapping[str, int] | None = None,
    donate: tuple[str, ...] = (),
    host: tuple[str, ...] = (),
    devices: int | Callable[..., int] = 1,
    config: Mapping[str, Param] | Callable[..., Mapping[str, Param]] | None = None,
    compare: Callable[..., Any] | None = None,
    data: Callable[[], str | DataSource] | None = None,
    published: tuple[Published, ...] = (),
    quick: bool = True,
) -> Callable[[Callable[..., Any]], Workload]:
    """Decorator: declares a workload, named after the function, which is its first implementation.

    The function's positional arguments are pytrees of arrays; its keyword-only arguments are params, fixed before
    compilation. Every other function gets the params that its signature names.

    Args:
      inputs: (key, *, params) -> an array or a tuple of arguments; `key` is a `jax.random.key`. Never timed.
      reference: The same inputs as float64 (int64) NumPy arrays -> the trusted result; or `no_reference("why")`. What
        it cannot tell is NaN, there and in what `compare` gives; the record then says how much was not checked.
      params: Name -> values: a value, a tuple, or `sizes(...)` by level.
      cost: Params by name -> `Cost(flops=, bytes=)` of one call.
      peers: Name -> the same computation in another library, a function or a `Peer`.
      modes: How implementations are executed, unless they say otherwise; by default eager, jit and aot (a stream:
        eager and jit). `mixed` is Python code that calls what it has jitted itself.
      implementation: Name of the function as an implementation, by default the workload's.
      limit: Params by name, and `backend` -> `Skip("why")` where this first implementation should not run, else None.
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
      carry: Argument -> index of the output that takes its place in the next call: `carry={"state": 0}`. Every block
        of calls begins with the inputs. In a stream the state goes from one tuple's call to the next, and the
        reference does the same.
      donate: Carried arguments whose memory a jitted call of this first implementation may take.
      host: Arguments that stay NumPy arrays in the host's memory, as a data loader gives them; others are on the
        device before anything is timed.
      devices: How many devices a case uses, a number or a function of params. On the CPU so many are made.
      config: What the case's processes set in `jax.config`, a mapping or a function of params:
        `config={"jax_enable_x64": True}`.
      compare: result as NumPy arrays -> what of it the reference gives, where it is not the result itself, such as the
        moments of random numbers; keyword-only `inputs` are the arguments, as NumPy arrays too. Never timed.
      data: () -> which data inputs() uses, where that depends on what there is: in words, or as a `DataSource`, which
        can tell that `--data` has none of the files that were looked for.
      published: Figures of others that stand beside ours.
      quick: Whether a quick run measures it too.
    Raises:
      DeclarationError: Names that do not fit together.
    """

    def declare(function: Callable[..., Any]) -> Workload:
        made = Workload(
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
            carry=carry or {},
            host=host,
            devices=devices,
            config=config or {},
            compare=compare,
            data=data,
            published=published,
            quick=quick,
        )
        made.implementation(function, name=implementation, limit=limit, donate=donate)
        for name, peer in (peers or {}).items():
            made.attach_peer(name, peer)
        return made

    return declare
