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


HARNESS: dict[str, tuple[str, ...]] = {
    "record": (),
    "machine": ("record",),
    "declare": ("record", "machine"),
    "plan": ("record", "machine", "declare"),
    "programs": ("record", "machine", "declare"),
    "probes": ("record", "machine", "declare", "plan", "programs"),
    "child": ("record", "machine", "declare", "plan", "programs", "probes"),
    "notebook": ("record", "machine", "declare", "plan", "programs", "probes"),
    "parent": ("record", "machine", "declare", "plan"),
}
"""Which folders of the harness each one may import, beside itself."""

BELOW_HISTORY = ("history", "compare", "load", "outdated", "text")

WITHOUT_JAX = ("record", "machine", "declare", "plan", "parent")

ARROWS: dict[str, Callable[[str], bool]] = {
    "suites": lambda module: of_others(module) or within(module, "suites") or module == "harness",
    "harness": lambda module: of_others(module) or within(module, "harness"),
    **{
        f"harness/{folder}": lambda module, folder=folder, others=others: (
            (of_others(module) and not (folder in WITHOUT_JAX and within(module, "jax", "jaxlib")))
            or within(module, *(f"harness.{name}" for name in (folder, *others)), "harness.version")
        )
        for folder, others in HARNESS.items()
    },
    "reporting": lambda module: (
        (of_others(module) and not within(module, "jax", "jaxlib")) or within(module, "reporting", "harness.record")
    ),
    "reporting/history": lambda module: (
        of_others(module) or within(module, "harness.record", *(f"reporting.{name}" for name in BELOW_HISTORY))
    ),
    "reporting/compare": lambda module: (
        of_others(module)
        or within(module, "harness.record", *(f"reporting.{name}" for name in ("compare", "load", "numbers", "text")))
    ),
    "launcher": lambda module: within(module, "launcher", *sys.stdlib_module_names),
}


def violations(root: Path, package: str) -> list[str]:
    allowed = ARROWS[package]
    return [f"{module} imports {imported}" for module, imported in imports(root, package) if not allowed(imported)]


@pytest.mark.parametrize("package", ARROWS)
def test_imports_run_one_way(package):
    assert list(imports(CHECKOUT, package)), f"{package} has no imports: is the test looking in the right place?"
    assert violations(CHECKOUT, package) == []


def test_every_folder_of_the_harness_has_its_arrows():
    folders = {path.parent.name for path in (CHECKOUT / "harness").glob("*/__init__.py")}

    assert folders == set(HARNESS)


@pytest.mark.parametrize(
    ("module", "code", "violation"),
    [
        ("suites/selu.py", "from harness import workload", None),
        ("suites/selu.py", "import numpy, jax.numpy", None),
        ("suites/selu.py", "from harness.declare import workload", "imports harness.declare.workload"),
        ("suites/selu.py", "from harness import record", "imports harness.record"),
        ("suites/selu.py", "import reporting", "imports reporting"),
        ("harness/probes/timing.py", "from ..record import Case", None),
        ("harness/probes/timing.py", "from . import memory", None),
        ("harness/probes/timing.py", "import suites.selu", "imports suites.selu"),
        ("harness/commands.py", "def late():\n    from reporting import load", "imports reporting"),
        ("harness/commands.py", "import launcher", "imports launcher"),
        ("harness/record/layout.py", "from harness.plan import cases", "imports harness.plan"),
        ("harness/record/layout.py", "import jax", "imports jax"),
        ("harness/plan/cases.py", "from jax import numpy", "imports jax"),
        ("harness/plan/cases.py", "from harness.programs import modes", "imports harness.programs"),
        ("harness/parent/prepare_run.py", "def late():\n    import jax", "imports jax"),
        ("harness/parent/prepare_run.py", "from harness.child import worker", "imports harness.child"),
        ("harness/programs/modes.py", "import jax", None),
        ("harness/programs/modes.py", "from harness.probes import timing", "imports harness.probes"),
        ("reporting/load.py", "from harness.record import load_run", None),
        ("reporting/load.py", "from harness.record import metrics, statistics", None),
        ("reporting/view/__init__.py", "from .words import name_of", None),
        ("reporting/compare/pairs.py", "from ..load import LoadedRun", None),
        ("reporting/compare/pairs.py", "from ..view import build", "imports reporting.view"),
        ("reporting/compare/pairs.py", "from ..html import render", "imports reporting.html"),
        ("reporting/load.py", "from harness import measure", "imports harness"),
        ("reporting/load.py", "from harness.declare.workload import Skip", "imports harness.declare.workload"),
        ("reporting/load.py", "from jax import numpy", "imports jax"),
        ("reporting/load.py", "import launcher.runs", "imports launcher.runs"),
        ("launcher/runs.py", "from pathlib import Path\nfrom launcher.options import take_option", None),
        ("launcher/runs.py", "import numpy", "imports numpy"),
        ("launcher/runs.py", "import harness", "imports harness"),
    ],
)
def test_an_import_against_the_arrows_is_found(tmp_path, module, code, violation):
    (tmp_path / "harness" / "declare").mkdir(parents=True)
    for name in ("record", "declare/workload"):
        (tmp_path / "harness" / f"{name}.py").touch()
    # As in the real package, `workload` is a module and the decorator that it offers.
    (tmp_path / "harness" / "__init__.py").write_text("__all__ = ['measure', 'workload']")
    path = tmp_path / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    folder = "/".join(Path(module).parts[:-1][:2])
    package = folder if folder in ARROWS else Path(module).parts[0]

    found = violations(tmp_path, package)

    assert found == ([f"{module.removesuffix('.py').replace('/', '.')} {violation}"] if violation else [])


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    "modules",
    [
        "harness.record, harness.record.metrics",
        "harness.plan.cases, harness.parent.prepare_run",
        "reporting.html, reporting.__main__",
    ],
)
def test_records_are_read_and_shown_without_jax(modules):
    code = f"import sys, {modules}; sys.exit('jax' in sys.modules)"

    ended = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr or f"importing {modules} loads jax"
