"""Packages of the user's own: found where they lie or were installed from, and hashed file by file."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from jaxmeter.harness.declare import own_packages
from jaxmeter.harness.declare.catalogue import find_suites
from jaxmeter.harness.declare.own_packages import list_own_packages

SUITE = """
from jaxmeter import no_reference, workload
{imports}

@workload(inputs=lambda key: (), reference=no_reference("none"), modes=("jit",))
def {name}():
    {inside}
    return 1.0
"""


def write(folder: Path, **files: str) -> Path:
    """Files by name, with `__` for a slash, of Python where they have no suffix."""
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def make_package(folder: Path, name: str = "ownpkg") -> Path:
    (folder / name).mkdir(parents=True)
    (folder / name / "__init__.py").write_text("from . import step\n")
    (folder / name / "step.py").write_text("rate = 1\n")
    return folder


def make_suite(folder: Path, name: str, imports: str = "", inside: str = "pass") -> Path:
    return write(folder, **{name: SUITE.format(imports=imports, name=name, inside=inside)}) / f"{name}.py"


def commit(folder: Path) -> str:
    git = ("git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "all")):
        subprocess.run([*git, *words], check=True)
    return subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()


def install(folder: Path, name: str, version: str, address: dict[str, object], *, installer: str = "pip") -> Path:
    """Metadata as pip writes it next to installed code."""
    metadata = folder / f"{name}-{version}.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    (metadata / "direct_url.json").write_text(json.dumps(address))
    (metadata / "INSTALLER").write_text(f"{installer}\n")
    (metadata / "RECORD").write_text("".join(f"{path.relative_to(folder)},,\n" for path in folder.rglob("*.py")))
    return folder


@pytest.fixture(autouse=True)
def clean(monkeypatch):
    """Modules and paths as they were; what pytest and other tests have imported does not count."""
    before = dict(sys.modules)
    monkeypatch.setattr(own_packages, "_NEVER", own_packages._NEVER.union(name.partition(".")[0] for name in before))
    monkeypatch.setattr(sys, "path", list(sys.path))
    own_packages._is_library.cache_clear()
    yield
    for name in sys.modules.keys() - before.keys():
        del sys.modules[name]


def look(*suites: Path):
    return {one.name: one for one in list_own_packages(find_suites(map(str, suites)))}


def test_a_package_on_the_path_has_a_hash_of_each_file_and_its_repository_s_commit(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(make_package(tmp_path / "repository" / "src"))
    suite = make_suite(tmp_path / "bench", "main", "import ownpkg")
    revision = commit(tmp_path / "repository")

    (found,) = look(suite).values()

    assert (found.name, found.commit, found.dirty, found.suites) == ("ownpkg", revision, False, ("main",))
    assert found.files.keys() == {"__init__.py", "step.py"}
    (tmp_path / "repository/src/ownpkg/step.py").write_text("rate = 2\n")
    changed = look(suite)["ownpkg"]
    assert changed.dirty
    assert {name for name in found.files if changed.files[name] != found.files[name]} == {"step.py"}


def test_no_recorded_text_names_a_folder_above_the_package(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(make_package(tmp_path / "private"))

    (found,) = look(make_suite(tmp_path, "main", "import ownpkg")).values()

    assert str(tmp_path) not in repr(found)
    assert "private" not in repr(found)


def test_a_neighbour_of_a_suite_counts_and_its_own_file_only_for_another_suite_that_imports_it(tmp_path):
    write(tmp_path, _common="x = 1\n")
    first, second = make_suite(tmp_path, "first", "import second"), make_suite(tmp_path, "second", "import _common")

    found = look(first, second)

    assert {name: set(one.files) for name, one in found.items()} == {"_common": {"_common.py"}, "second": {"second.py"}}
    assert found["second"].suites == ("first",)


@pytest.mark.parametrize(
    ("place", "text", "suites"),
    [("ownpkg", "import ownpkg", ("bench",)), (".", "import importlib; importlib.import_module('own' + 'pkg')", ())],
    ids=["a suite inside the package is left out of its files", "of a package that nothing names no suite is known"],
)
def test_a_package_has_its_files_and_the_suites_that_name_it(tmp_path, monkeypatch, place, text, suites):
    monkeypatch.syspath_prepend(make_package(tmp_path / "lib"))

    found = look(make_suite(tmp_path / "lib" / place, "bench", text))["ownpkg"]

    assert (found.files.keys(), found.suites) == ({"__init__.py", "step.py"}, suites)


def test_each_suite_has_the_packages_that_it_reaches_also_through_others_and_inside_functions(tmp_path, monkeypatch):
    paths = write(tmp_path / "lib", outer="import inner\n", inner="", lazy="", both="")
    monkeypatch.syspath_prepend(paths)
    first = make_suite(tmp_path / "bench", "first", "import outer, both as other")
    second = make_suite(tmp_path / "bench", "second", "from both import (\n    __name__ as x)", inside="import lazy")

    found = look(first, second)

    assert {name: one.suites for name, one in found.items()} == {
        "both": ("first", "second"),
        "inner": ("first",),
        "lazy": ("second",),
        "outer": ("first",),
    }


def test_of_a_folder_without_init_only_imported_files_count(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(write(tmp_path / "lib", space__inner__a="", space__inner__b="", space__other__c=""))

    found = look(make_suite(tmp_path, "main", "import space.inner.a"))

    assert found["space"].files.keys() == {"inner/a.py"}


def test_an_installed_library_is_not_recorded(tmp_path, monkeypatch):
    for folder in ("site-packages", "target"):
        make_package(tmp_path / folder, f"lib_{folder[:4]}")
    install(tmp_path / "target", "lib_targ", "1.0", {"url": "https://x/lib.whl", "archive_info": {}})
    for folder in ("site-packages", "target"):
        monkeypatch.syspath_prepend(tmp_path / folder)

    assert look(make_suite(tmp_path, "main", "import lib_site, lib_targ, numpy")) == {}


def test_conda_notes_an_address_for_every_library_and_none_is_the_users_own(tmp_path, monkeypatch):
    site = make_package(tmp_path / "site-packages")
    install(site, "ownpkg", "1.0", {"url": "file:///home/conda/work", "dir_info": {}}, installer="conda")
    monkeypatch.syspath_prepend(site)

    assert look(make_suite(tmp_path, "main", "import ownpkg")) == {}


def test_a_copy_that_was_installed_from_a_folder_has_that_folder_s_commit_while_its_files_are_equal(
    tmp_path, monkeypatch
):
    source = make_package(tmp_path / "source")
    revision = commit(source)
    site = make_package(tmp_path / "site-packages")
    install(site, "own_dist", "1.2", {"url": source.as_uri(), "dir_info": {}})
    monkeypatch.syspath_prepend(site)
    suite = make_suite(tmp_path, "main", "import ownpkg")

    (found,) = look(suite).values()

    assert (found.name, found.version, found.commit) == ("ownpkg", "1.2", revision)
    (source / "ownpkg" / "step.py").write_text("rate = 3\n")
    assert look(suite)["ownpkg"].commit is None


def test_an_editable_installation_has_the_version_of_its_metadata(tmp_path, monkeypatch):
    source = make_package(tmp_path / "source" / "src")
    site = install(
        tmp_path / "site-packages",
        "own-dist",
        "1.3",
        {"url": (tmp_path / "source").as_uri(), "dir_info": {"editable": True}},
    )
    monkeypatch.syspath_prepend(source)
    monkeypatch.syspath_prepend(site)

    assert look(make_suite(tmp_path, "main", "import ownpkg"))["ownpkg"].version == "1.3"


def test_an_installation_from_version_control_has_the_commit_that_pip_noted(tmp_path, monkeypatch):
    site = make_package(tmp_path / "site-packages")
    address = {"url": "https://host/own.git", "vcs_info": {"vcs": "git", "commit_id": "c" * 40}}
    monkeypatch.syspath_prepend(install(site, "own", "2", address))

    found = look(make_suite(tmp_path, "main", "import ownpkg"))["ownpkg"]

    assert (found.version, found.commit, found.dirty) == ("2", "c" * 40, None)


def test_files_beyond_the_bounds_are_counted_and_imported_ones_come_first(tmp_path, monkeypatch):
    package = make_package(tmp_path / "lib") / "ownpkg"
    write(package, **{f"a{number}": "" for number in range(4)}, large="#" * 200)
    monkeypatch.syspath_prepend(tmp_path / "lib")
    monkeypatch.setattr(own_packages, "MOST_FILES", 3)
    monkeypatch.setattr(own_packages, "MOST_BYTES", 100)

    found = look(make_suite(tmp_path, "main", "import ownpkg"))["ownpkg"]

    assert found.files.keys() == {"__init__.py", "step.py", "a0.py"}
    assert found.left_out == 4


def test_damaged_metadata_of_others_stops_nothing(tmp_path, monkeypatch):
    site = tmp_path / "site-packages"
    for number, text in enumerate(("{", "[]", '{"url": 3}', '{"url": "file:///x", "dir_info": 1}', "null")):
        (install(site, f"broken{number}", "1", {}) / f"broken{number}-1.dist-info/direct_url.json").write_text(text)
    monkeypatch.syspath_prepend(site)
    monkeypatch.syspath_prepend(make_package(tmp_path / "lib"))

    install(site, "unnamed", "1", {"url": "file:///x"})
    (site / "unnamed-1.dist-info" / "METADATA").unlink()

    assert look(make_suite(tmp_path, "main", "import ownpkg")).keys() == {"ownpkg"}


def test_a_package_that_cannot_be_read_is_not_taken_for_equal(tmp_path, monkeypatch):
    def fail(spec):
        raise PermissionError

    monkeypatch.syspath_prepend(make_package(tmp_path / "lib"))
    monkeypatch.setattr(own_packages, "_list_files", fail)

    found = look(make_suite(tmp_path, "main", "import ownpkg"))["ownpkg"]

    assert (found.files, found.left_out) == ({}, 1)


READ = (
    *("import own", "import a, own as b", "from own import x", "from own.a.b import (x,", "import own; x = 1"),
    *("import own.a.b  # why", "    import own", "try: import own", "x = 1; from own import y"),
)
PASSED_OVER = ("from . import own", "from .own import x", "# import own", "important own", "x.own")


@pytest.mark.parametrize("text", [*READ, *PASSED_OVER])
def test_an_import_statement_is_read_wherever_it_stands_if_it_is_of_the_top_level(text):
    assert ("own" in own_packages._list_imports(f"y = 1\n{text}\n")) is (text in READ)
