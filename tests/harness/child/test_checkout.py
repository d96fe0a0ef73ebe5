"""What an arm imports that has the code of another checkout, next to installations that lead to today's."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from tests.end_to_end.conftest import CHECKOUT

IMPORT = """
import sys
sys.path.remove("")  # as begin.py does
import json
from importlib import import_module
from pathlib import Path
from jaxmeter.harness.child.checkout import CheckoutFinder, list_strangers
early, late = sys.argv[3].split(), sys.argv[4].split()
for name in early:
    import_module(name)
CheckoutFinder(Path(sys.argv[1]), Path(sys.argv[2])).install()
files = {name: import_module(name).__file__ for name in late}
print(json.dumps({"files": files, "strangers": list_strangers()}))
"""

FINDER = """
import sys
from importlib.util import spec_from_file_location
from pathlib import Path

MAPPING = {mapping!r}


class Finder:  # as setuptools writes it for packages that are not all below one folder
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name in MAPPING:
            return spec_from_file_location(name, Path(MAPPING[name], "__init__.py"))


sys.meta_path.{install}
"""
LAST, FIRST = "append(Finder)", "insert(0, Finder)"
"""setuptools appends its finder, scikit-build-core and meson-python come first."""


def write_package(folder: Path, *modules: str) -> Path:
    folder.mkdir(parents=True)
    for name in ("__init__", *modules):
        (folder / f"{name}.py").touch()
    return folder


@pytest.fixture
def checkouts(tmp_path: Path) -> tuple[Path, Path]:
    """Today's and the earlier one, with packages in the folder itself, in src and elsewhere."""
    for checkout in ("today", "then"):
        write_package(tmp_path / checkout / "flat", "inner")
        write_package(tmp_path / checkout / "src" / "below", "inner")
        write_package(tmp_path / checkout / "src" / "team" / "part")  # `team` is a namespace
        write_package(tmp_path / checkout / "python" / "apart")
        (tmp_path / checkout / "types.py").touch()
        (tmp_path / checkout / "colorsys.py").touch()
    return tmp_path / "today", tmp_path / "then"


@pytest.fixture
def python(tmp_path: Path) -> Path:
    venv.create(tmp_path / "environment", symlinks=True)
    return tmp_path / "environment" / "bin" / "python"


def install(python: Path, *lines: str, **modules: str) -> None:
    """Write what pip writes for an editable installation: a .pth file, and modules for it."""
    (packages,) = (python.parents[1] / "lib").glob("python*/site-packages")
    (packages / "__editable__.pth").write_text("\n".join(lines))
    for name, text in modules.items():
        (packages / f"{name}.py").write_text(text)


def load(python: Path, checkouts: tuple[Path, Path], *names: str, early: str = "", path: str = "") -> dict:
    ended = subprocess.run(
        [str(python), "-c", IMPORT, *map(str, checkouts), early, " ".join(names)],
        cwd=checkouts[1],
        env={"PYTHONPATH": f"{CHECKOUT}:{path}" if path else str(CHECKOUT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


def is_below(folder: Path, files: dict[str, str]) -> bool:
    return all(Path(file).is_relative_to(folder) for file in files.values())


def test_packages_of_a_checkout_come_before_a_path_of_an_editable_installation(python, checkouts):
    today, then = checkouts
    install(python, str(today), str(today / "src"), str(today / "python"))

    seen = load(python, checkouts, "flat", "flat.inner", "below.inner", "team.part", "apart")

    assert is_below(then, seen["files"]), seen
    assert seen["strangers"] == {}


@pytest.mark.parametrize("place", [LAST, FIRST])
def test_packages_of_a_checkout_come_before_the_finder_of_an_editable_installation(python, checkouts, place):
    today, then = checkouts
    mapping = {"flat": str(today / "flat"), "below": str(today / "src" / "below")}
    mapping["team.part"] = str(today / "src" / "team" / "part")
    install(python, "import editable_finder", editable_finder=FINDER.format(mapping=mapping, install=place))

    seen = load(python, checkouts, "flat", "flat.inner", "below.inner", "team.part")

    assert is_below(then, seen["files"]), seen
    assert seen["strangers"] == {}


def test_a_package_that_only_the_finder_finds_is_a_stranger(python, checkouts):
    today, _ = checkouts
    mapping = {"apart": str(today / "python" / "apart")}
    install(python, "import editable_finder", editable_finder=FINDER.format(mapping=mapping, install=LAST))

    seen = load(python, checkouts, "flat", "apart")

    assert seen["strangers"] == {"apart": str(today / "python" / "apart" / "__init__.py")}


def test_a_package_that_was_imported_before_is_a_stranger(python, checkouts):
    today, _ = checkouts
    install(python, str(today))

    assert list(load(python, checkouts, "below", early="flat")["strangers"]) == ["flat"]


def test_an_installed_copy_gives_way_to_the_checkout_and_other_packages_are_as_installed(python, checkouts):
    _, then = checkouts
    (packages,) = (python.parents[1] / "lib").glob("python*/site-packages")
    write_package(packages / "flat")
    other = write_package(packages / "other")

    seen = load(python, checkouts, "flat", "other")

    assert seen["files"] == {"flat": str(then / "flat/__init__.py"), "other": str(other / "__init__.py")}
    assert seen["strangers"] == {}


def test_the_standard_library_and_jaxmeter_are_nobodys_checkout(python, checkouts):
    write_package(checkouts[1] / "jaxmeter")

    files = load(python, checkouts, "colorsys", "jaxmeter.version")["files"]

    assert not any(Path(file).is_relative_to(checkouts[1]) for file in files.values())


def test_a_relative_python_path_is_that_of_each_checkout_and_an_absolute_one_moves_with_it(python, checkouts):
    today, then = checkouts

    for path in ("python", str(today / "python")):
        seen = load(python, checkouts, "apart", path=path)
        assert is_below(then, seen["files"]), path


def test_an_environment_inside_todays_checkout_is_not_todays_code(checkouts):
    today, _ = checkouts
    venv.create(today / ".venv", symlinks=True)
    python = today / ".venv" / "bin" / "python"
    (packages,) = (today / ".venv" / "lib").glob("python*/site-packages")
    write_package(packages / "other")

    assert load(python, checkouts, "flat", "other")["strangers"] == {}


def test_a_checkout_inside_todays_is_a_checkout_of_its_own(python, checkouts):
    today, then = checkouts
    inside = then.rename(today / "base")
    install(python, str(today), str(today / "src"))

    seen = load(python, (today, inside), "flat", "below")

    assert is_below(inside, seen["files"])
    assert seen["strangers"] == {}


def test_a_process_without_a_checkout_has_no_strangers():
    from jaxmeter.harness.child.checkout import list_strangers

    assert "json" in sys.modules
    assert list_strangers() == {}
