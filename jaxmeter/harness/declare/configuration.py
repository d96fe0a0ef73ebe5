"""JAX's configuration that the import of a suite changes: its own cases have it, those of other suites do not.

While suites are imported, each module records which options its execution has changed. After each suite the options are
as before. A module that imports one that was executed earlier, for another suite, has its options too.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from enum import Enum
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from jaxmeter.harness.declare.fingerprint import is_of_user
from jaxmeter.harness.record.cases import Param

_VARIABLE = "__jaxmeter_configuration__"

OF_THE_RUN = (
    *("jax_compilation_cache_", "jax_enable_compilation_cache", "jax_persistent_cache_"),
    *("jax_platforms", "jax_platform_name", "jax_num_cpu_devices"),
)
"""Options that the run decides itself; an import has no say in them."""


@contextmanager
def undo_configuration(name: str) -> Iterator[None]:
    """Undo what the import of a suite changes, after each module has recorded it.

    Args:
      name: Of the module that is imported, which is a user's wherever it is installed.
    """
    before = read_configuration()
    finder = _ConfigurationFinder(name)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
        _restore(before)


@contextmanager
def record_configuration(module: ModuleType) -> Iterator[None]:
    """Keep in a module which options its execution changes."""
    before = read_configuration()
    yield
    changed = _find_changed(before)
    if changed:
        setattr(module, _VARIABLE, changed)


def read_configuration() -> dict[str, Any]:
    """Read the values of JAX's options; none where nothing has imported jax."""
    jax = sys.modules.get("jax")
    return {} if jax is None else dict(jax.config.values)


def find_configuration(module: ModuleType) -> dict[str, Any]:
    """Find the options that a module needs as its import has set them: its own, and those of what it imports."""
    if not any(map(_read_record, list(sys.modules.values()))):  # the usual case, in which no text is parsed
        return {}
    options: dict[str, Any] = {}
    seen: set[str] = set()
    waiting = [module.__name__]
    while waiting:
        name = waiting.pop()
        current = sys.modules.get(name)
        if name in seen or current is None:
            continue
        seen.add(name)
        options = {**_read_record(current), **options}
        waiting += _list_parents(name)
        if name == module.__name__ or is_of_user(getattr(current, "__file__", None)):
            waiting += _list_imported(current)
    return options


def _read_record(module: Any) -> dict[str, Any]:
    """Read what a module has recorded; some entries of `sys.modules` are no modules."""
    record: dict[str, Any] = getattr(module, "__dict__", {}).get(_VARIABLE, {})
    return record


def split_configuration(changed: Mapping[str, Any]) -> tuple[dict[str, Param], tuple[str, ...]]:
    """Return what a case can have of changed options, and the names of those that it cannot have."""
    plain = {name: value.value if isinstance(value, Enum) else value for name, value in changed.items()}
    kept = {
        name: value for name, value in plain.items() if isinstance(value, Param) and not name.startswith(OF_THE_RUN)
    }
    return kept, tuple(name for name in plain if name not in kept)


def describe_configuration(
    suite: str, changed: Mapping[str, Any], declared: Sequence[Mapping[str, Param]]
) -> list[str]:
    """Describe what the import of a suite has changed, and what to write instead.

    Args:
      declared: What each workload declares itself; an option that all of them declare is not described.
    """
    kept, others = split_configuration(changed)
    said = []
    new = {name: value for name, value in kept.items() if not all(config.get(name) == value for config in declared)}
    if new:
        options = ", ".join(f"{name} to {value!r}" for name, value in new.items())
        said.append(
            f"importing suite '{suite}' sets {options}: its own cases have that, other suites' do not; "
            f"declare it with needs=Needs(config={new!r})"
        )
    if others:
        said.append(
            f"importing suite '{suite}' sets {', '.join(others)}, which no case can have from an import: "
            "this was undone; leave it out"
        )
    return said


def _find_changed(before: Mapping[str, Any]) -> dict[str, Any]:
    now = read_configuration()
    return {name: now[name] for name, value in before.items() if name in now and _differs(now[name], value)}


def _restore(before: Mapping[str, Any]) -> None:
    jax = sys.modules.get("jax")
    for name in _find_changed(before):
        # An option that a backend has read by now refuses another value.
        with suppress(Exception):
            jax.config.update(name, before[name])  # type: ignore[union-attr]


def _differs(left: Any, right: Any) -> bool:
    try:
        return bool(left is not right and left != right)
    except Exception:  # noqa: BLE001  an object of a library's may refuse to be compared
        return True


class _ConfigurationFinder(MetaPathFinder):
    """Has the modules of users, and the tops of libraries, record what they change; their insides are left alone."""

    def __init__(self, name: str) -> None:
        self._name = name

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Find a module as the others do, and take over its execution."""
        top, _, inside = fullname.partition(".")
        if inside and not fullname.startswith(self._name) and not _is_user_package(top):
            return None
        for finder in sys.meta_path:
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(fullname, path, target)
            if spec is not None:
                if spec.loader is not None and hasattr(spec.loader, "exec_module"):
                    spec.loader = _Loader(spec.loader)
                return spec
        return None


class _Loader(Loader):
    """Executes a module by its own loader, which it has again before it begins."""

    def __init__(self, own: Loader) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Create it as its own loader does."""
        spec.loader = self._own
        try:
            return self._own.create_module(spec)
        finally:
            spec.loader = self

    def exec_module(self, module: ModuleType) -> None:
        """Execute it."""
        if module.__spec__ is not None:
            module.__spec__.loader = self._own
        module.__loader__ = self._own
        with record_configuration(module):
            self._own.exec_module(module)


def _is_user_package(name: str) -> bool:
    package = sys.modules.get(name)
    file = getattr(package, "__file__", None)
    return package is not None and (file is None or is_of_user(file))


def _list_parents(name: str) -> list[str]:
    """`a.b.c` -> `a`, `a.b`."""
    parts = name.split(".")
    return [".".join(parts[:length]) for length in range(1, len(parts))]


def _list_imported(module: ModuleType) -> list[str]:
    """List the names of modules that a module's own text imports; none where its text cannot be read."""
    try:
        tree = ast.parse(Path(str(module.__file__)).read_text(encoding="utf8"))
    except (OSError, SyntaxError, ValueError):
        return []
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = (module.__package__ or "").split(".")
            within = above[: len(above) - node.level + 1] if node.level else []
            source = ".".join([*within, *filter(None, [node.module])])
            names += [source, *(f"{source}.{alias.name}" for alias in node.names)]
    return [imported for name in names for imported in (*_list_parents(name), name)]
