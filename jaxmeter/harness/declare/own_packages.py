"""The packages of the user's own that suites import: found among imported modules, each file with a hash."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from msgspec.structs import replace

from jaxmeter.harness.declare.catalogue import FROM_PATHS, Suite
from jaxmeter.harness.declare.fingerprint import DIGITS
from jaxmeter.harness.record.environment import OwnPackage

MOST_FILES = 1000
"""Python files of one package that get a hash, those that are imported first. jax 0.12 has 627."""

MOST_BYTES = 2**20
"""Of one file; larger ones are generated, and get no hash."""

MOST_ENTRIES = 50_000
"""Entries of a package's folders that are looked at: data may lie there."""

GIT_LIMIT_S = 10

_IMPORT = re.compile(r"(?:^|[:;])[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import\b|import[ \t]+([^#;\n]+))", re.MULTILINE)
_DAMAGE = (OSError, ValueError, LookupError, TypeError, AttributeError)
"""Errors of metadata and folders that are not as pip leaves them."""

_LIBRARIES = ("site-packages", "dist-packages")
_NEVER = frozenset(
    {"__main__", "__mp_main__", "jaxmeter", "sitecustomize", "usercustomize", FROM_PATHS, *sys.stdlib_module_names}
)


@dataclass(frozen=True)
class _Installation:
    """A package that pip installed from a path, a local file, or version control.

    Args:
      folder: The path that it was installed from; None for version control.
      is_editable: Whether its code is imported from that folder.
      names: Names that it is imported by.
    """

    version: str | None
    names: frozenset[str]
    folder: Path | None
    commit: str | None
    is_editable: bool


def list_own_packages(suites: Iterable[Suite]) -> tuple[OwnPackage, ...]:
    """Return the packages that lie on the path, or were installed from a path or from version control.

    Packages are found among imported modules, and in import statements of suites that were not executed yet. The
    suites' own files are left out, since each variant has a hash of its own code.
    """
    modules = {suite.name: suite.workloads[0].module for suite in suites if suite.workloads}
    imported = {name: _list_imports(_read_text(_find_file(module))) for name, module in modules.items()}
    tops = {name.partition(".")[0] for name in list(sys.modules)}.union(*imported.values()) - _NEVER.union(
        modules.values()
    )
    specs = [spec for name in sorted(tops) if (spec := _find_spec(name)) is not None]
    installed = _list_installations()
    own_files = {os.path.realpath(file) for name in modules.values() if (file := _find_file(name)) is not None}
    packages = [package for spec in specs if (package := _try_to_describe(spec, installed, own_files)) is not None]
    reached = _follow(imported, {package.name: _list_imports_of(package.name) for package in packages})
    return tuple(
        replace(package, suites=tuple(name for name in modules if package.name in reached[name]))
        for package in packages
    )


def _find_spec(name: str) -> ModuleSpec | None:
    """Return where a module of the top level comes from; None where nothing says so, or for what is built in."""
    module = sys.modules.get(name)
    try:
        spec = module.__spec__ if module is not None else importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    is_known = spec is not None and spec.name == name and (spec.has_location or spec.submodule_search_locations)
    return spec if is_known else None


def _list_places(spec: ModuleSpec) -> list[str]:
    """List the file of a module, or the folders of a package."""
    if spec.submodule_search_locations is not None:
        return list(spec.submodule_search_locations)
    return [] if spec.origin is None else [spec.origin]


def _find_file(module: str) -> str | None:
    """Return the file of an imported module."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return file if isinstance(file, str) else None


def _is_of_library(spec: ModuleSpec) -> bool:
    """Return whether a module is Python's own, or lies where pip installs libraries."""
    return all(_is_library(Path(place).parent) for place in _list_places(spec))


@lru_cache
def _is_library(folder: Path) -> bool:
    """Return whether a folder is Python's own, or holds what pip installed, such as that of `pip install --target`."""
    if any(part in _LIBRARIES for part in folder.parts) or any(map(folder.is_relative_to, _list_library_folders())):
        return True
    return next(folder.glob("*.dist-info"), None) is not None


@lru_cache
def _list_library_folders() -> tuple[str, ...]:
    return tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def _list_installations() -> list[_Installation]:
    """List what pip installed by a direct address. conda notes one for every package, of the machine that built it."""
    installations = []
    for distribution in importlib.metadata.distributions():
        with suppress(*_DAMAGE):
            text = distribution.read_text("direct_url.json")
            is_of_pip = (distribution.read_text("INSTALLER") or "").strip() != "conda"
            if (
                text is not None
                and is_of_pip
                and (installation := _read_installation(distribution, json.loads(text))) is not None
            ):
                installations.append(installation)
    return installations


def _read_installation(
    distribution: importlib.metadata.Distribution, address: Mapping[str, Any]
) -> _Installation | None:
    """Return an installation by its direct address; None for an archive from the network.

    Args:
      address: As in direct_url.json.
    """
    url, repository = urlsplit(address["url"]), address.get("vcs_info", {})
    if url.scheme != "file" and not repository:
        return None
    is_editable = bool(address.get("dir_info", {}).get("editable"))
    folder = None if repository else Path(url2pathname(url.path))
    names = frozenset() if is_editable else frozenset(_list_names(distribution))
    return _Installation(distribution.metadata.get("Version"), names, folder, repository.get("commit_id"), is_editable)


def _list_names(distribution: importlib.metadata.Distribution) -> Iterator[str]:
    """Yield the names that an installed package is imported by."""
    for file in distribution.files or ():
        first = file.parts[0]
        if file.suffix == ".py" and first not in ("..", "__pycache__"):
            yield first.removesuffix(".py")


def _try_to_describe(
    spec: ModuleSpec, installed: Iterable[_Installation], without: Container[str]
) -> OwnPackage | None:
    """Return a package as `_describe` does; without any hash if that fails, so that nobody takes it for equal."""
    try:
        return _describe(spec, installed, without)
    except _DAMAGE:
        return OwnPackage(name=spec.name, left_out=1)


def _describe(spec: ModuleSpec, installed: Iterable[_Installation], without: Container[str]) -> OwnPackage | None:
    """Return a package as a record has it; None for a library, and for what has no Python file.

    Args:
      without: Files that do not count.
    """
    is_library = _is_of_library(spec)
    own = next((installation for installation in installed if _holds(installation, spec, is_library=is_library)), None)
    if own is None and is_library:
        return None
    # A file that is a suite and that others import by its name counts for these.
    files, left_out = _hash_files(spec, without if spec.submodule_search_locations is not None else ())
    if not files and not left_out:
        return None
    top = Path(_list_places(spec)[0])
    folder = top.parent if spec.submodule_search_locations is None else top
    if not is_library:
        commit, dirty = _read_commit(folder)
    elif own is not None and own.folder is not None:
        commit, dirty = _find_source(own.folder, spec.name, files)
    else:
        commit, dirty = None if own is None else own.commit, None
    version = _find_version(spec.name, folder) if own is None else own.version
    return OwnPackage(name=spec.name, version=version, commit=commit, dirty=dirty, files=files, left_out=left_out)


def _holds(installation: _Installation, spec: ModuleSpec, *, is_library: bool) -> bool:
    """Return whether a module is of an installation: one among libraries by its name, an editable one by its folder."""
    if is_library or not installation.is_editable or installation.folder is None:
        return is_library and spec.name in installation.names
    return any(Path(place).resolve().is_relative_to(installation.folder.resolve()) for place in _list_places(spec))


def _hash_files(spec: ModuleSpec, without: Container[str]) -> tuple[dict[str, str], int]:
    """Return the hash of each Python file by its path below the package, and how many have none."""
    files, left_out = _list_files(spec)
    loaded = {_find_file(module) for module in list(sys.modules)}
    chosen = [(name, path) for name, path in files.items() if os.path.realpath(path) not in without]
    hashes: dict[str, str] = {}
    for name, path in sorted(chosen, key=lambda item: (str(item[1]) not in loaded, item)):
        digest = _hash(path) if len(hashes) < MOST_FILES and name.isprintable() else None
        if digest is None:
            left_out += 1
        else:
            hashes[name] = digest
    return dict(sorted(hashes.items())), left_out


def _hash(path: Path) -> str | None:
    try:
        return None if path.stat().st_size > MOST_BYTES else hashlib.sha256(path.read_bytes()).hexdigest()[:DIGITS]
    except OSError:
        return None


def _list_files(spec: ModuleSpec) -> tuple[dict[str, Path], int]:
    """Return a package's Python files by name, and 1 where its folders hold too much to look at everything.

    Of a package without `__init__.py`, only what is imported counts: its folder may be anybody's, such as home.
    """
    if spec.submodule_search_locations is None:
        return {path.name: path for path in map(Path, _list_places(spec)) if path.suffix == ".py"}, 0
    if spec.origin is not None:
        return _walk(Path(spec.origin).parent)
    files: dict[str, Path] = {}
    left_out = 0
    for module in _list_loaded(spec.name):
        child, own_name = getattr(sys.modules[module], "__spec__", None), module.removeprefix(f"{spec.name}.")
        if "." in own_name or child is None or _is_of_library(child):
            continue
        own, more = _list_files(child)
        below = "" if child.submodule_search_locations is None else f"{own_name}/"
        files |= {f"{below}{name}": path for name, path in own.items()}
        left_out += more
    return files, left_out


def _walk(top: Path) -> tuple[dict[str, Path], int]:
    files: dict[str, Path] = {}
    entries = 0
    for folder, folders, names in os.walk(top):
        entries += len(folders) + len(names)
        if entries > MOST_ENTRIES:
            return files, 1
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in _LIBRARIES)
        here = Path(folder)
        files |= {(here / name).relative_to(top).as_posix(): here / name for name in names if name.endswith(".py")}
    return files, 0


def _list_loaded(package: str) -> list[str]:
    return [name for name in list(sys.modules) if name.startswith(f"{package}.")]


def _find_version(name: str, folder: Path) -> str | None:
    """Return the version by metadata next to the code, else the module's own."""
    for distribution in importlib.metadata.distributions(name=name, path=[str(folder.parent), str(folder)]):
        return distribution.metadata.get("Version")
    declared = getattr(sys.modules.get(name), "__version__", None)
    return declared if isinstance(declared, str) else None


def _find_source(folder: Path, name: str, files: Mapping[str, str]) -> tuple[str | None, bool | None]:
    """Return the commit of the folder that a package was installed from, if that still has the installed files."""
    for top in (folder, folder / "src"):
        inside = top / name if (top / name).is_dir() else top
        if files and all(_hash(inside / file) == digest for file, digest in files.items()):
            return _read_commit(inside)
    return None, None


def _read_commit(folder: Path) -> tuple[str | None, bool | None]:
    """Return the commit of a folder's Python files and whether these differ; None where git tracks none of them."""

    def ask(*words: str) -> str:
        command = ("git", "--no-optional-locks", "-C", str(folder), *words)
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=GIT_LIMIT_S).stdout.strip()

    try:
        if not ask("ls-files", "--", "*.py"):
            return None, None
        return ask("rev-parse", "HEAD"), bool(ask("status", "--porcelain", "--untracked-files=all", "--", "*.py"))
    except (OSError, ValueError, subprocess.SubprocessError):
        return None, None


def _list_imports(text: str) -> set[str]:
    """Return the names of the top level that import statements name, also statements inside functions."""
    tops = set()
    for source, names in _IMPORT.findall(text):
        tops |= {word.split()[0].partition(".")[0] for word in (source or names).split(",") if word.strip()}
    return tops - {""}


def _list_imports_of(package: str) -> set[str]:
    """Return what a package's imported modules import."""
    return set().union(*(_list_imports(_read_text(_find_file(name))) for name in (package, *_list_loaded(package))))


def _read_text(file: str | None) -> str:
    try:
        return (
            "" if file is None or not file.endswith(".py") else Path(file).read_text(encoding="utf8", errors="replace")
        )
    except OSError:
        return ""


def _follow(imported: Mapping[str, set[str]], further: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """Return by suite all that it imports, through packages too."""
    reached = {}
    for suite, names in imported.items():
        seen, coming = set(), list(names)
        while coming:
            name = coming.pop()
            if name not in seen:
                seen.add(name)
                coming += further.get(name, ())
        reached[suite] = seen
    return reached
