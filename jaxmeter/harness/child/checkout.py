"""The modules that a fork server imports before it forks, also those of an earlier run's checkout."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from jaxmeter.harness.child.family import die_with_parent, end_children, list_children
from jaxmeter.harness.declare import fingerprint
from jaxmeter.harness.declare.catalogue import DEFAULT_SUITES, find_suites_once
from jaxmeter.harness.machine.environment import describe_error

_THREADS = Path("/proc/self/task")
_LONGEST_WORDS = 4096

_AT_FIRST_USE = ("flax.linen", "optax")
"""Modules that suites import: their import takes 0.4 s, once instead of in each process. They initialise no backend."""

_AT_FIRST_LOWERING = ("jaxlib.mlir.dialects.builtin", "jaxlib.mlir.dialects.mhlo", "jaxlib.lapack", "scipy.linalg")
"""Modules that JAX imports at its first lowering: 20 ms, once instead of in each process, and 200 ms at the first use
of LAPACK. The harness's own imports include a part of them. Another jaxlib may lack them."""

_TRIAL_LIMIT_S = 50
"""The trial and the import itself are part of the server's start, which may take 120 s."""
_DO_NOTHING_ONCE = "the top of a suite runs more than once, so it must only declare"


def import_early() -> None:
    """Import the modules of first use that are installed and work with this JAX."""
    for name in (*_AT_FIRST_LOWERING, *_AT_FIRST_USE):
        with suppress(Exception):
            import_module(name)


def import_suites(names: Sequence[str]) -> str:
    """Import suites here, once for all processes, unless the import fails or starts threads, which a fork would lose.

    A separate process tries the import first; the processes that need a faulty suite report what is wrong with it.
    All processes of a run then have the same suites, even if the files change meanwhile.

    Returns:
      Why every process has to import the suites itself, and what to do about it; empty if none has to, if no
      names are given, and outside Linux.
    """
    if not names or not _THREADS.is_dir():  # not Linux
        return ""
    if tuple(names) == (DEFAULT_SUITES,):  # only declares, as tests hold: a trial would cost 0.7 s of each server
        _read(names)
        return ""
    report = os.memfd_create("trial")
    server, own = os.getpid(), list_children()
    pid = os.fork()
    if pid == 0:
        die_with_parent(server)
        os.write(report, json.dumps(_tried(names)).encode())
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    end_children(kept=own)
    words = os.pread(report, _LONGEST_WORDS, 0)
    os.close(report)
    reason = str(json.loads(words)) if words else _ended(status)
    if not reason:
        _read(names)
    return reason


def _tried(names: Sequence[str]) -> str:
    """Import suites in a process that may be lost; return why the server cannot import them, or an empty text."""
    signal.alarm(_TRIAL_LIMIT_S)  # ends the process
    try:
        _read(names)
    except BaseException as error:  # noqa: BLE001  whatever it was, it must not happen to the server
        return f"a trial of importing them failed: {describe_error(error)}; {_DO_NOTHING_ONCE}"
    if len(list(_THREADS.iterdir())) > 1:  # a backend begins many
        return "importing them begins threads, as making an array does; make arrays in functions, such as inputs()"
    return ""


def _ended(status: int) -> str:
    """Return why a process that tried to import suites wrote no answer, by its wait status."""
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return f"importing them takes longer than {_TRIAL_LIMIT_S} s; do long work in functions, such as inputs()"
    return f"a trial of importing them ended its process; {_DO_NOTHING_ONCE}"


def _read(names: Sequence[str]) -> None:
    """Import suites and read their source at the same moment."""
    fingerprint.read([workload.module for suite in find_suites_once(tuple(names)) for workload in suite.workloads])


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
