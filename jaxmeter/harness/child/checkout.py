"""The fork server of an earlier run's checkout: what it imports comes from there before it comes from elsewhere.

A package that is installed as editable is one checkout for all processes: its finder, or a path that a .pth file
has added, leads to today's code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

_OURS = __name__.partition(".")[0]
_INSTALLED = frozenset({"site-packages", "dist-packages"})
_PROGRAM = "__main__"


def serve(descriptor: str, path: str, today: str, then: str, *suites: str) -> None:
    """Serve as `arm.py` does, with the code of a checkout.

    Args:
      today: The folder whose place the checkout takes.
      then: The checkout.
    """
    CheckoutFinder(Path(today), Path(then)).install()
    import_module("jaxmeter.harness.child.arm").serve(descriptor, path, *suites)  # it imports jax


class CheckoutFinder(MetaPathFinder):
    """Finds modules in a checkout and in its `src`. jaxmeter and the standard library are found as usual.

    Args:
      today, then: As in `serve`.
    """

    def __init__(self, today: Path, then: Path) -> None:
        self._today, self._then = today.resolve(), then.resolve()
        self._roots = [str(self._then), str(self._then / "src")]

    def install(self) -> None:
        """Have this process import from the checkout, and not from the folder whose place it takes."""
        paths = [self._move(entry) for entry in sys.path]
        first = next((place for place, entry in enumerate(paths) if _INSTALLED & set(Path(entry).parts)), len(paths))
        # For namespaces, whose portions sys.path joins. After the standard library, whose names a checkout may have.
        sys.path[:] = dict.fromkeys((*paths[:first], *self._roots, *paths[first:]))
        sys.meta_path.insert(0, self)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the module of the checkout; None if it has none, or only a portion of a namespace."""
        if not _is_users(fullname):
            return None
        places = self._roots if path is None else [entry for entry in path if self._holds(Path(entry))]
        spec = PathFinder.find_spec(fullname, places, target)
        return None if spec is None or spec.loader is None else spec

    def list_strangers(self) -> Iterator[tuple[str, str]]:
        """List imported modules, with their files, that are today's, or not the ones that the checkout has."""
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if file is None or name == _PROGRAM or not _is_users(name) or self._holds(Path(file)):
                continue
            if self._is_todays(Path(file)) or ("." not in name and self.find_spec(name) is not None):
                yield name, file

    def _move(self, entry: str) -> str:
        """Return an entry of sys.path; if it is today's, its counterpart."""
        path = Path(entry)
        if not self._is_todays(path) or (path / _OURS).is_symlink():  # the folder with our package alone
            return entry
        return str(self._then / path.resolve().relative_to(self._today))

    def _holds(self, path: Path) -> bool:
        """Return whether a path is of the checkout."""
        return self._is_nearest(path.resolve(), self._then, self._today)

    def _is_todays(self, path: Path) -> bool:
        """Return whether a path is of the other one, and of no environment that lies in it."""
        path, prefix = path.resolve(), Path(sys.prefix).resolve()
        in_environment = path.is_relative_to(prefix) and prefix.is_relative_to(self._today)
        is_installed = in_environment or bool(_INSTALLED & set(path.parts))
        return not is_installed and self._is_nearest(path, self._today, self._then)

    def _is_nearest(self, path: Path, root: Path, other: Path) -> bool:
        """Return whether a path lies in a root, and in the other one only if that is around the root."""
        return path.is_relative_to(root) and (root.is_relative_to(other) or not path.is_relative_to(other))


def list_strangers() -> dict[str, str]:
    """Return the files of modules that are not of the checkout, by their names; none in a process without one."""
    finder = next((finder for finder in sys.meta_path if isinstance(finder, CheckoutFinder)), None)
    return {} if finder is None else dict(finder.list_strangers())


def _is_users(name: str) -> bool:
    """Return whether a module can be a user's own."""
    top = name.partition(".")[0]
    return top != _OURS and top not in sys.stdlib_module_names
