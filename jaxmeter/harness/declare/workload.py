"""A workload: what was declared of a function, with its implementations, and what follows from that for a case."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from jaxmeter.harness.declare.check import (
    check_declaration,
    check_implementation,
    check_item_count,
    check_name,
    check_names,
)
from jaxmeter.harness.declare.declaration import (
    LEVELS,
    MODES,
    STREAM_MODES,
    Changes,
    Declaration,
    Function,
    Implementation,
    ImplementationOptions,
    Levels,
    NoReference,
    call_with,
    find_own_name,
    implement,
    implement_peer,
    levels,
    list_variants,
    make_decorator,
    read_first_line,
    register,
)
from jaxmeter.harness.declare.fingerprint import Origin, find_origin, fingerprint
from jaxmeter.harness.machine.data import DataSource
from jaxmeter.harness.record.cases import NATIVE, Param, Published, Reported

_Placed = TypeVar("_Placed", Published, Reported)


@dataclass(eq=False)
class Workload:
    """A computation, and one or more implementations that must give the same result.

    The decorator `workload` makes it. A call of the workload calls the decorated function. Its own decorator
    `implementation` adds another implementation; `ImplementationOptions` describes the options.

    Args:
      name: As declared, else the name of the decorated function.
      module: Module that declares it.
      function: The decorated function, whose positional arguments name those of every implementation.
      declaration: Everything that is declared of it except further implementations.
      origin: Where it is declared; None outside the top level of a module.
      of_import: Changes of `jax.config` by the import of its module.
    """

    name: str
    module: str
    function: Function
    declaration: Declaration
    implementations: list[Implementation] = field(default_factory=list)
    origin: Origin | None = None
    of_import: Mapping[str, Param] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.params: Mapping[str, Levels] = {
            name: values if isinstance(values, Levels) else levels(quick=values)
            for name, values in self.declaration.params.items()
        }
        self.implementation = make_decorator(ImplementationOptions, self._implement)

    def __call__(self, *args: Any, **params: Any) -> Any:
        """Calls the function that was decorated."""
        return self.function(*args, **params)

    @property
    def description(self) -> str:
        """The docstring's first line."""
        return read_first_line(self.function)

    @property
    def __name__(self) -> str:
        """Its name, as of a function."""
        return self.name

    @property
    def location(self) -> str:
        """Place of its declaration (file and line); the module's name if the place is not known."""
        return self.module if self.origin is None else self.origin.location

    @property
    def arguments(self) -> tuple[str, ...]:
        """Names of the positional arguments, as the decorated function has them."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return tuple(item.name for item in inspect.signature(self.function).parameters.values() if item.kind in kinds)

    @property
    def carried(self) -> dict[int, int]:
        """Positions of the state: argument of a call -> output of the call before."""
        carry = self.declaration.state.carry
        return dict(zip(self.find_positions(carry), carry.values(), strict=True))

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of all variants, which have the implementation and the mode."""
        return list_variants(self.implementations)

    @property
    def baseline_variant(self) -> str:
        """The variant that speedups refer to: as declared, else the first."""
        return self.declaration.baseline or self.variants[0]

    def attach(self, new: Implementation) -> None:
        """Adds an implementation.

        Raises:
          DeclarationError: It does not fit.
        """
        check_implementation(self.name, self.declaration, self.implementations, new)
        self.implementations.append(new)

    def check(self) -> None:
        """Raises DeclarationError where names do not fit together. Called when the declaration is complete."""
        check_declaration(self.name, self.declaration, self.arguments, self.implementations)

    def find_positions(self, names: Iterable[str]) -> tuple[int, ...]:
        """Places of the arguments with these names."""
        return tuple(self.arguments.index(name) for name in names)

    def find_variant(self, name: str) -> tuple[Implementation, str]:
        """The implementation and mode of a variant's name."""
        wanted, _, mode = name.rpartition(":")
        return next(item for item in self.implementations if item.name == wanted), mode

    def hash_definition(self) -> str:
        """Hash of what makes this workload itself: inputs, reference and cost; not its implementations.

        Items are left out: how a call's work is counted changes no time.
        """
        declared = self.declaration
        reference = None if isinstance(declared.reference, NoReference) else declared.reference
        made = () if (source := self.find_data_source()) is None else (source.words,)
        compared = () if declared.compare is None else (declared.compare,)
        return fingerprint(declared.inputs, reference, declared.cost, *compared, constants=made)

    def find_data_source(self) -> DataSource | None:
        """Which data its inputs are; None where that depends on nothing."""
        source = None if self.declaration.data is None else self.declaration.data()
        return DataSource(source) if isinstance(source, str) else source

    def count_items(self, params: Mapping[str, Param]) -> int | None:
        """How many items one call processes; None where nothing is declared.

        Raises:
          DeclarationError: It is not an integer, or less than 1.
        """
        items = self.declaration.items
        if items is None:
            return None
        count = call_with(items.count, params) if callable(items.count) else items.count
        return check_item_count(self.name, items.unit, count, params)

    def count_devices(self, params: Mapping[str, Param]) -> int:
        """How many devices a case uses."""
        devices = self.declaration.needs.devices
        return call_with(devices, params) if callable(devices) else devices

    def find_config(self, params: Mapping[str, Param]) -> dict[str, Param]:
        """What a case sets in `jax.config`: what its module's import has changed there, and what is declared."""
        config = self.declaration.needs.config
        return {**self.of_import, **(call_with(config, params) if callable(config) else config)}

    @property
    def fixed_config(self) -> Mapping[str, Param]:
        """What is declared for all cases alike."""
        config = self.declaration.needs.config
        return {} if callable(config) else config

    def find_published(self, params: Mapping[str, Param], backend: str) -> tuple[Published, ...]:
        """Return the published figures of a case."""
        return _find_at(self.declaration.published, params, backend)

    def find_reported(self, params: Mapping[str, Param], backend: str) -> tuple[Reported, ...]:
        """The reports of releases that a case is of."""
        return _find_at(self.declaration.reported, params, backend)

    def find_compile_budget(self, variant: str, params: Mapping[str, Param]) -> int | None:
        """How many programs a variant may compile at most; None where nothing is declared.

        What the workload declares is meant for `jit`; what an implementation declares, for all its modes but `aot`.
        """
        implementation, mode = self.find_variant(variant)
        declared = implementation.compiles
        if declared is None and mode == "jit":
            declared = self.declaration.compiles
        if declared is None or mode in ("aot", NATIVE):
            return None
        return call_with(declared, params) if callable(declared) else declared

    def find_declared_traps(self, variant: str) -> frozenset[str]:
        """Kinds of traps that a variant has on purpose: those of the workload, and of its implementation."""
        return frozenset((*self.declaration.traps, *self.find_variant(variant)[0].traps))

    def find_changes(self, changes: Changes | None, params: Mapping[str, Param]) -> dict[str, Param] | None:
        """The params that change, with their other values; None where nothing is declared.

        Raises:
          DeclarationError: A param that does not exist.
        """
        if changes is None:
            return None
        changed = dict(call_with(changes, params) if callable(changes) else changes)
        check_names(self.name, self.declaration, "what is to be tried as new", changed)
        return changed

    def represents_workload(self, params: Mapping[str, Param]) -> bool:
        """Whether a case represents the workload: as declared, else the one with the first value of each param."""
        first = {name: values.first for name, values in self.params.items()}
        return all(params[name] == value for name, value in {**first, **self.declaration.representative}.items())

    def list_cases(self, level: str, device: str) -> Iterator[dict[str, Param]]:
        """One value of each param, in every combination, for a level on a device; none where it is left out."""
        if LEVELS.index(level) < LEVELS.index(self.declaration.level):
            return
        values = [self.params[name].at(level, device) for name in self.params]
        for combination in itertools.product(*values):
            yield dict(zip(self.params, combination, strict=True))

    def _implement(self, options: ImplementationOptions, function: Function) -> Function:
        modes = self.declaration.modes or (STREAM_MODES if self.declaration.stream else MODES)
        self.attach(implement(function, options, modes))
        return function


def declare(declaration: Declaration, function: Function) -> Workload:
    """A function as a workload, with itself as the first implementation and the peers after it.

    Raises:
      DeclarationError: Names that do not fit together, or none; the module has a workload of this name.
    """
    origin = find_origin()
    check_name(declaration.name)
    name = declaration.name or find_own_name(function, "workload")
    module = function.__module__ if origin is None else origin.module
    made = Workload(name, module, function, declaration, origin=origin)
    made.implementation(
        function,
        name=declaration.implementation or declaration.name,
        limit=declaration.limit,
        donate=declaration.state.donate,
        compiler_options=declaration.compiler_options,
    )
    for peer_name, peer in declaration.peers.items():
        made.attach(implement_peer(peer_name, peer))
    if origin is not None:
        register(made, origin)
    return made


workload = make_decorator(Declaration, declare)


def _find_at(declared: tuple[_Placed, ...], params: Mapping[str, Param], backend: str) -> tuple[_Placed, ...]:
    here = {**params, "backend": backend}
    return tuple(placed for placed in declared if all(here[name] == value for name, value in placed.at.items()))
