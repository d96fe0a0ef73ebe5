"""Finding suites: importing their modules and listing the workloads that they declare. Runs in a child."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import ModuleType

from jaxmeter.harness.declare.configuration import (
    describe_configuration,
    find_configuration,
    record_configuration,
    split_configuration,
    undo_configuration,
)
from jaxmeter.harness.declare.declaration import DeclarationError, list_declared, read_first_line
from jaxmeter.harness.declare.fingerprint import find_failing_line
from jaxmeter.harness.declare.workload import Workload
from jaxmeter.harness.machine.jax_internals import describe_missing_name
from jaxmeter.harness.record.wording import describe_missing

DEFAULT_SUITES = "jaxmeter.suites"
FROM_PATHS = "user_suites"
"""Before the names of modules that are read from a path."""


class SuiteError(Exception):
    """A suite cannot be used; the message names it, the file and the line."""


@dataclass(frozen=True)
class Suite:
    """One module with its workloads, in the order of the file.

    Args:
      warnings: What a person must know of its import.
      is_left_out: Whether an older jax lacks what it needs.
    """

    name: str
    description: str
    workloads: tuple[Workload, ...]
    warnings: tuple[str, ...] = ()
    is_left_out: bool = False

    @property
    def question(self) -> str:
        """The question that the suite answers; empty where no workload declares an answer."""
        answers = (workload.declaration.answer for workload in self.workloads)
        return next((answer.question for answer in answers if answer is not None), "")


def find_suites(names: Iterable[str]) -> tuple[Suite, ...]:
    """Imports suites.

    Args:
      names: Module names (`jaxmeter.suites.selu`), packages (all their modules), .py files, or folders of them.
    Raises:
      SuiteError: A name that is not there, a module that fails to import or declares what cannot be, two
        workloads of one name.
    """
    names = tuple(names)
    _refuse_same([Path(name).stem for name in names if name.endswith(".py")])  # before the code of any is run
    suites = tuple(suite for name in names for suite in _load_suites(name))
    _refuse_same([suite.name for suite in suites])
    owner: dict[str, str] = {}
    for suite in suites:
        for workload in suite.workloads:
            if workload.name in owner:
                raise SuiteError(
                    f"two workloads are named '{workload.name}', in suites '{owner[workload.name]}' and "
                    f"'{suite.name}'; rename one, since a case's name must say which it is"
                )
            owner[workload.name] = suite.name
    return suites


@lru_cache
def find_suites_once(names: tuple[str, ...]) -> tuple[Suite, ...]:
    """Import suites once in a process and all that are forked from it: finding them again takes 30 ms.

    Raises:
      SuiteError: As `find_suites`.
    """
    return find_suites(names)


def _refuse_same(names: list[str]) -> None:
    """Raises SuiteError where two suites have one name."""
    if twice := [name for name in names if names.count(name) > 1]:
        raise SuiteError(f"two suites are named '{twice[0]}'; rename one file, since a case must say which it is")


def _load_suites(name: str) -> list[Suite]:
    path = Path(name).expanduser()  # a run remembers home as ~
    if path.suffix == ".py" or (path.is_dir() and not _is_module(name)):
        files = sorted(path.glob("*.py")) if path.is_dir() else [path]
        suites = [_make_suite(_import_file(file)) for file in files if not file.name.startswith("_")]
    else:
        package = _import(name)
        modules = [item.name for item in pkgutil.iter_modules(getattr(package, "__path__", []))]
        members = [f"{name}.{module}" for module in modules if not module.startswith("_")]
        suites = [_make_suite(package), *map(_load_member, members)]
    suites = [suite for suite in suites if suite.workloads or suite.is_left_out]
    if not suites:
        raise SuiteError(f"no workload is declared in '{name}'; a suite declares one with @workload(...), see README")
    return suites


def _load_member(name: str) -> Suite:
    """A suite of a package; without workloads where a package or a name of jax is missing: others can be measured."""
    try:
        return _make_suite(_import(name))
    except SuiteError as error:
        missing = describe_missing(error.__cause__) or describe_missing_name(error.__cause__ or error)
        if not missing:
            raise
        own = name.rpartition(".")[2]
        return Suite(own, "", (), (f"the suite {own} is left out: {missing}",), is_left_out=True)


def _is_module(name: str) -> bool:
    return name.isidentifier() and importlib.util.find_spec(name) is not None


def _import(name: str) -> ModuleType:
    try:
        with undo_configuration(name):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise SuiteError(
                f"no suite module or file '{name}'; --suites takes a module name, a .py file or a folder"
            ) from error
        raise SuiteError(_describe_error(name, error)) from error
    except BaseException as error:  # a suite may raise anything, also SystemExit and KeyboardInterrupt
        raise SuiteError(_describe_error(name, error)) from error


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise SuiteError(f"no suite module or file '{path}'; --suites takes a module name, a .py file or a folder")
    spec = importlib.util.spec_from_file_location(f"{FROM_PATHS}.{path.stem}", path.resolve())
    if spec is None or spec.loader is None:
        raise SuiteError(f"'{path}' is not a Python file")
    if (known := sys.modules.get(spec.name)) is not None and known.__file__ == spec.origin:  # as `import` does
        return known
    sys.path.append(str(path.parent.resolve()))  # a suite may import its neighbours
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # as `import` does, so that dataclasses and pickles in a suite find it
    try:
        with undo_configuration(spec.name), record_configuration(module):
            spec.loader.exec_module(module)
    except BaseException as error:  # a suite may raise anything, also SystemExit and KeyboardInterrupt
        del sys.modules[spec.name]
        raise SuiteError(_describe_error(str(path), error)) from error
    return module


def _describe_error(name: str, error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return f"suite '{name}' fails to import: {error.filename}:{error.lineno}: SyntaxError: {error.msg}"
    where = find_failing_line(error) or name
    hint = (
        "; a suite from a path is in no package: write `import other`, without the dot" if _is_relative(error) else ""
    )
    return f"suite '{name}' fails to import: {where}: {type(error).__name__}: {error}{hint}"


def _is_relative(error: BaseException) -> bool:
    """Whether a suite from a path tried `from . import other`."""
    return isinstance(error, ModuleNotFoundError) and error.name == FROM_PATHS


def _make_suite(module: ModuleType) -> Suite:
    workloads: tuple[Workload, ...] = list_declared(module)
    for workload in workloads:
        suite = f"suite '{module.__name__}': {workload.location}"
        try:
            workload.check()
        except DeclarationError as error:
            raise SuiteError(f"{suite}: {error}") from error
        except BaseException as error:
            what = f"workload '{workload.name}': its options cannot be checked"
            raise SuiteError(f"{suite}: {what}: {type(error).__name__}: {error}") from error
    answers = [workload.name for workload in workloads if workload.declaration.answer is not None]
    if len(answers) > 1:
        raise SuiteError(
            f"suite '{module.__name__}': {' and '.join(answers)} each have an answer; a suite has one question, so "
            "leave answer= at the one that answers it"
        )
    name, changed = module.__name__.rpartition(".")[2], find_configuration(module)
    for workload in workloads:
        workload.of_import, _ = split_configuration(changed)
    declared = [workload.fixed_config for workload in workloads]
    return Suite(name, read_first_line(module), workloads, tuple(describe_configuration(name, changed, declared)))
