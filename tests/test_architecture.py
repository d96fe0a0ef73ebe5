"""Imports run one way: suites -> harness, and reporting -> a few modules of harness, without jax."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
PACKAGES = ("harness", "suites", "reporting", "launcher")


def imports(root: Path, package: str) -> Iterator[tuple[str, str]]:
    """(importing module, imported module) for every import below a package, also inside functions."""
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        module = ".".join(parts).removesuffix(".__init__")
        for node in ast.walk(ast.parse(path.read_text(), filename=str(path))):
            if isinstance(node, ast.Import):
                yield from ((module, alias.name) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                # A relative import counts from the folder of the file: one dot is that folder.
                parent = ".".join((*parts[: len(parts) - node.level], *filter(None, [node.module])))
                source = parent if node.level else node.module
                yield from ((module, origin(root, source, alias.name)) for alias in node.names)


def origin(root: Path, source: str, name: str) -> str:
    """The module that `from source import name` takes: a submodule, unless the package itself offers that name."""
    path = root.joinpath(*source.split("."))
    is_submodule = (path / name).is_dir() or (path / f"{name}.py").is_file()
    return f"{source}.{name}" if is_submodule and name not in public_names(path / "__init__.py") else source


def public_names(path: Path) -> list[str]:
    """The literal `__all__` of a module, empty where it has none."""
    for node in ast.parse(path.read_text()).body if path.is_file() else []:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return ast.literal_eval(node.value)
    return []


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def of_others(module: str) -> bool:
    return not within(module, *PACKAGES)


ARROWS: dict[str, Callable[[str], bool]] = {
    "suites": lambda module: of_others(module) or within(module, "suites") or module == "harness",
    "harness": lambda module: of_others(module) or within(module, "harness"),
    "reporting": lambda module: (
        (of_others(module) and not within(module, "jax", "jaxlib"))
        or within(module, "reporting", "harness.record", "harness.metrics", "harness.statistics", "harness.hlo")
    ),
    "launcher": lambda module: within(module, "launcher", *sys.stdlib_module_names),
}


def violations(root: Path, package: str) -> list[str]:
    allowed = ARROWS[package]
    return [f"{module} imports {imported}" for module, imported in imports(root, package) if not allowed(imported)]


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_run_one_way(package):
    assert list(imports(CHECKOUT, package)), f"{package} has no imports: is the test looking in the right place?"
    assert violations(CHECKOUT, package) == []


@pytest.mark.parametrize(
    ("module", "code", "violation"),
    [
        ("suites/selu.py", "from harness import workload", None),
        ("suites/selu.py", "import numpy, jax.numpy", None),
        ("suites/selu.py", "from harness.workload import workload", "suites.selu imports harness.workload"),
        ("suites/selu.py", "from harness import record", "suites.selu imports harness.record"),
        ("suites/selu.py", "import reporting", "suites.selu imports reporting"),
        ("harness/probes/timing.py", "from ..record import Case", None),
        ("harness/probes/timing.py", "from . import memory", None),
        ("harness/probes/timing.py", "import suites.selu", "harness.probes.timing imports suites.selu"),
        ("harness/runner.py", "def late():\n    from reporting import load", "harness.runner imports reporting"),
        ("harness/runner.py", "import launcher", "harness.runner imports launcher"),
        ("reporting/load.py", "from harness.record import load_run", None),
        ("reporting/load.py", "from harness import record, metrics, statistics", None),
        ("reporting/view/__init__.py", "from .words import name_of", None),
        ("reporting/load.py", "from harness import measure", "reporting.load imports harness"),
        ("reporting/load.py", "from harness.workload import Skip", "reporting.load imports harness.workload"),
        ("reporting/load.py", "from jax import numpy", "reporting.load imports jax"),
        ("reporting/load.py", "import launcher.runs", "reporting.load imports launcher.runs"),
        ("launcher/runs.py", "from pathlib import Path\nfrom launcher.options import take_option", None),
        ("launcher/runs.py", "import numpy", "launcher.runs imports numpy"),
        ("launcher/runs.py", "import harness", "launcher.runs imports harness"),
    ],
)
def test_an_import_against_the_arrows_is_found(tmp_path, module, code, violation):
    harness = tmp_path / "harness"
    harness.mkdir()
    for name in ("record", "metrics", "statistics", "workload"):
        (harness / f"{name}.py").touch()
    # As in the real package, `workload` is a module and the decorator that it offers.
    (harness / "__init__.py").write_text("__all__ = ['measure', 'workload']")
    path = tmp_path / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)

    assert violations(tmp_path, Path(module).parts[0]) == ([violation] if violation else [])


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    "modules",
    ["harness.record, harness.metrics, harness.statistics", "reporting.html, reporting.__main__"],
)
def test_records_are_read_and_shown_without_jax(modules):
    code = f"import sys, {modules}; sys.exit('jax' in sys.modules)"

    ended = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr or f"importing {modules} loads jax"
