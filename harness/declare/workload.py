"""A workload: what was declared of a function, with its implementations, and what follows from that for a case."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Any

from harness.declare.check import check_declaration, check_implementation, check_names
from harness.declare.declaration import (
    Changes,
    Declaration,
    Function,
    ImplementationOptions,
    NoReference,
    make_decorator,
)
from harness.declare.fingerprint import fingerprint
from harness.declare.implementation import (
    MODES,
    STREAM_MODES,
    Implementation,
    implement,
    implement_peer,
    list_variants,
    read_first_line,
)
from harness.declare.levels import LEVELS, DeclarationError, Levels, call_with, levels
from harness.machine.data import DataSource
from harness.record.cases import NATIVE, Param, Published


@dataclass(eq=False)
class Workload:
    """What is computed, and one or more implementations that must give the same answer.

    Made by the decorator `workload`; calling it calls the function that it decorates. Its own decorator
    `implementation` adds another; `ImplementationOptions` describes the options.

    Args:
      name: Of the decorated function.
      module: Where that is written.
      function: Its positional arguments name those of every implementation.
      declaration: All that is declared of it but further implementations.
    """

    name: str
    module: str
    function: Function
    declaration: Declaration
    implementations: list[Implementation] = field(default_factory=list)

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
    def arguments(self) -> tuple[str, ...]:
        """Names of the positional arguments, as the decorated function has them."""
        kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return tuple(item.name for item in inspect.signature(self.function).parameters.values() if item.kind in kinds)

    @property
    def carried(self) -> dict[int, int]:
        """What calls carry, by the places of the arguments: argument -> output."""
        carry = self.declaration.state.carry
        return dict(zip(self.find_positions(carry), carry.values(), strict=True))

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of all variants, `implementation:mode`."""
        return list_variants(self.implementations)

    @property
    def baseline_variant(self) -> str:
        """The variant that speed-ups refer to: as declared, else the first."""
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
        """Hash of what makes this workload itself: inputs, reference and cost; not its implementations."""
        declared = self.declaration
        reference = None if isinstance(declared.reference, NoReference) else declared.reference
        made = () if (source := self.find_data_source()) is None else (source.words,)
        compared = () if declared.compare is None else (declared.compare,)
        return fingerprint(declared.inputs, reference, declared.cost, *compared, constants=made)

    def find_data_source(self) -> DataSource | None:
        """Which data its inputs are; None where that depends on nothing."""
        found = None if self.declaration.data is None else self.declaration.data()
        return DataSource(found) if isinstance(found, str) else found

    def count_devices(self, params: Mapping[str, Param]) -> int:
        """How many devices a case uses."""
        devices = self.declaration.needs.devices
        return call_with(devices, params) if callable(devices) else devices

    def find_config(self, params: Mapping[str, Param]) -> dict[str, Param]:
        """What a case sets in `jax.config`."""
        config = self.declaration.needs.config
        return dict(call_with(config, params) if callable(config) else config)

    def find_published(self, params: Mapping[str, Param], backend: str) -> tuple[Published, ...]:
        """The published figures that stand beside a case."""
        here = {**params, "backend": backend}
        published = self.declaration.published
        return tuple(one for one in published if all(here[name] == value for name, value in one.at.items()))

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
        self.attach(implement(function, options, self._modes))
        return function

    @property
    def _modes(self) -> tuple[str, ...]:
        """How implementations are executed, unless they say otherwise."""
        return self.declaration.modes or (STREAM_MODES if self.declaration.stream else MODES)


def declare(declaration: Declaration, function: Function) -> Workload:
    """A function as a workload, with itself as the first implementation and the peers after it.

    Raises:
      DeclarationError: Names that do not fit together; a workload that it would silently replace.
    """
    _refuse_namesake(function)
    made = Workload(function.__name__, function.__module__, function, declaration)
    made.implementation(
        function, name=declaration.implementation, limit=declaration.limit, donate=declaration.state.donate
    )
    for name, peer in declaration.peers.items():
        made.attach(implement_peer(name, peer))
    return made


workload = make_decorator(Declaration, declare)


def _refuse_namesake(function: Function) -> None:
    """Raises DeclarationError where a workload further up in the same file has the name that this one will take.

    The same lines once more are no second workload: a notebook's cell is run again, a module is reloaded.
    """
    new = inspect.unwrap(function)
    if not isinstance(new, FunctionType) or new.__qualname__ != new.__name__:  # inside a function it takes no place
        return
    other = new.__globals__.get(new.__name__)
    old = inspect.unwrap(other.function) if isinstance(other, Workload) else None
    if not isinstance(old, FunctionType) or old.__code__.co_filename != new.__code__.co_filename:
        return
    lines = [each.__code__.co_firstlineno for each in (old, new)]
    if len(set(lines)) == 2:
        raise DeclarationError(
            f"two workloads are named '{new.__name__}', in lines {lines[0]} and {lines[1]} of "
            f"{Path(new.__code__.co_filename).name}; rename one, since a case's name must say which it is"
        )
