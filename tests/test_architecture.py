"""Imports run one way: suites -> the public names; reporting -> the record, without jax; both and cli -> document."""

import ast
import subprocess
import sys
from collections.abc import Callable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
PACKAGES = ("jaxmeter",)


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
    "metrics": ("record", "traces"),
    "machine": ("record",),
    "traces": ("record", "machine"),
    "declare": ("record", "metrics", "machine"),
    "plan": ("record", "metrics", "machine", "declare"),
    "programs": ("record", "traces", "machine", "declare"),
    "probes": ("record", "metrics", "traces", "machine", "declare", "plan", "programs"),
    "child": ("record", "machine", "declare", "plan", "programs", "probes"),
    "notebook": ("record", "metrics", "traces", "machine", "declare", "plan", "programs", "probes"),
    "parent": ("record", "metrics", "machine", "declare", "plan"),
}
"""Which folders of the harness each one may import, in addition to itself."""

BELOW_COMPARE = ("gc_pause", "load", "numbers", "text")
BELOW_HISTORY = ("compare", "load", "trim", "text")

READ_BY_REPORTING = ("record", "metrics", "traces")

WITHOUT_JAX = (*READ_BY_REPORTING, "machine", "declare", "plan", "parent")


def of_harness(module: str, *folders: str) -> bool:
    return within(
        module, *(f"jaxmeter.harness.{folder}" for folder in folders), "jaxmeter.version", "jaxmeter.document"
    )


def of_read(module: str) -> bool:
    folders = (f"jaxmeter.harness.{name}" for name in READ_BY_REPORTING)
    return within(module, "jaxmeter.document", "jaxmeter.harness.plan.probes", *folders)


def of_reporting(module: str, *folders: str) -> bool:
    return of_read(module) or within(module, *(f"jaxmeter.reporting.{folder}" for folder in folders))


def without_jax(module: str) -> bool:
    return of_others(module) and not within(module, "jax", "jaxlib")


ARROWS: dict[str, Callable[[str], bool]] = {
    "jaxmeter/suites": lambda module: of_others(module) or within(module, "jaxmeter.suites") or module == "jaxmeter",
    "jaxmeter/harness": lambda module: (
        of_others(module) or within(module, "jaxmeter.harness", "jaxmeter.version", "jaxmeter.document")
    ),
    **{
        f"jaxmeter/harness/{folder}": lambda module, folder=folder, others=others: (
            (without_jax(module) if folder in WITHOUT_JAX else of_others(module)) or of_harness(module, folder, *others)
        )
        for folder, others in HARNESS.items()
    },
    "jaxmeter/document": lambda module: within(
        module, "jaxmeter.document", "jaxmeter.harness.record.wording", "rich", *sys.stdlib_module_names
    ),
    "jaxmeter/reporting": lambda module: without_jax(module) or of_read(module) or within(module, "jaxmeter.reporting"),
    **{
        f"jaxmeter/reporting/{folder}": lambda module, folder=folder: (
            not within(module, "jaxmeter.reporting.render") and ARROWS["jaxmeter/reporting"](module)
        )
        for folder in ("view", "nightly", "store")
    },
    "jaxmeter/reporting/history": lambda module: of_others(module) or of_reporting(module, "history", *BELOW_HISTORY),
    "jaxmeter/reporting/compare": lambda module: of_others(module) or of_reporting(module, "compare", *BELOW_COMPARE),
    "jaxmeter/cli": lambda module: (
        without_jax(module) or (within(module, "jaxmeter") and not within(module, "jaxmeter.suites"))
    ),
    "jaxmeter/launch": lambda module: within(
        module, "jaxmeter.launch", "jaxmeter.harness.record", "msgspec", "packaging", *sys.stdlib_module_names
    ),
}


def violations(root: Path, package: str) -> list[str]:
    allowed = ARROWS[package]
    return [f"{module} imports {imported}" for module, imported in imports(root, package) if not allowed(imported)]


@pytest.mark.parametrize("package", ARROWS)
def test_imports_run_one_way(package):
    assert list(imports(CHECKOUT, package)), f"{package} has no imports: is the test looking in the right place?"
    assert violations(CHECKOUT, package) == []


def test_there_is_no_circle_of_imports():
    graph: dict[str, set[str]] = {}
    for module, imported in (pair for package in PACKAGES for pair in imports(CHECKOUT, package)):
        if within(imported, *PACKAGES) and imported != module:
            graph.setdefault(module, set()).add(imported)

    list(TopologicalSorter(graph).static_order())  # raises CycleError, which names the circle


def test_every_folder_of_the_harness_has_its_arrows():
    folders = {path.parent.name for path in (CHECKOUT / "jaxmeter/harness").glob("*/__init__.py")}

    assert folders == set(HARNESS)


@pytest.mark.parametrize(
    ("module", "code", "violation"),
    [
        ("jaxmeter/suites/selu.py", "from jaxmeter import workload", None),
        ("jaxmeter/suites/selu.py", "import numpy, jax.numpy", None),
        (
            "jaxmeter/suites/selu.py",
            "from jaxmeter.harness.declare import workload",
            "imports jaxmeter.harness.declare.workload",
        ),
        ("jaxmeter/suites/selu.py", "from jaxmeter.harness import record", "imports jaxmeter.harness.record"),
        ("jaxmeter/suites/selu.py", "import jaxmeter.reporting", "imports jaxmeter.reporting"),
        ("jaxmeter/harness/probes/timing.py", "from ..record import Case", None),
        ("jaxmeter/harness/probes/timing.py", "from . import memory", None),
        ("jaxmeter/harness/probes/timing.py", "import jaxmeter.suites.selu", "imports jaxmeter.suites.selu"),
        (
            "jaxmeter/harness/results.py",
            "def late():\n    from jaxmeter.reporting import load",
            "imports jaxmeter.reporting.load",
        ),
        ("jaxmeter/harness/results.py", "import jaxmeter.launch.runs", "imports jaxmeter.launch.runs"),
        (
            "jaxmeter/harness/record/files.py",
            "from jaxmeter.harness.plan import cases",
            "imports jaxmeter.harness.plan",
        ),
        ("jaxmeter/harness/record/files.py", "import jax", "imports jax"),
        ("jaxmeter/harness/plan/cases.py", "from jax import numpy", "imports jax"),
        (
            "jaxmeter/harness/plan/cases.py",
            "from jaxmeter.harness.programs import modes",
            "imports jaxmeter.harness.programs",
        ),
        ("jaxmeter/harness/parent/prepare_run.py", "def late():\n    import jax", "imports jax"),
        (
            "jaxmeter/harness/parent/prepare_run.py",
            "from jaxmeter.harness.child import worker",
            "imports jaxmeter.harness.child",
        ),
        ("jaxmeter/harness/programs/modes.py", "import jax", None),
        (
            "jaxmeter/harness/programs/modes.py",
            "from jaxmeter.harness.probes import timing",
            "imports jaxmeter.harness.probes",
        ),
        ("jaxmeter/reporting/load.py", "from jaxmeter.harness.record import load_run", None),
        ("jaxmeter/reporting/load.py", "from jaxmeter.harness.record import metrics, statistics", None),
        ("jaxmeter/reporting/view/__init__.py", "from .words import name_of", None),
        ("jaxmeter/reporting/compare/programs.py", "from ..load import Run", None),
        ("jaxmeter/reporting/compare/programs.py", "from ..view import build", "imports jaxmeter.reporting.view"),
        (
            "jaxmeter/reporting/compare/programs.py",
            "from ..render import html",
            "imports jaxmeter.reporting.render.html",
        ),
        (
            "jaxmeter/reporting/nightly/outcome.py",
            "from ..render import html",
            "imports jaxmeter.reporting.render.html",
        ),
        ("jaxmeter/reporting/load.py", "from jaxmeter import measure", "imports jaxmeter"),
        (
            "jaxmeter/reporting/load.py",
            "from jaxmeter.harness.declare.workload import Skip",
            "imports jaxmeter.harness.declare.workload",
        ),
        ("jaxmeter/reporting/load.py", "from jax import numpy", "imports jax"),
        ("jaxmeter/reporting/load.py", "import jaxmeter.launch.runs", "imports jaxmeter.launch.runs"),
        ("jaxmeter/launch/runs.py", "from pathlib import Path\nfrom jaxmeter.launch.options import read_options", None),
        ("jaxmeter/launch/runs.py", "import numpy", "imports numpy"),
        ("jaxmeter/launch/runs.py", "import jaxmeter", "imports jaxmeter"),
        ("jaxmeter/cli/run.py", "from jaxmeter.harness.parent import execution", None),
        ("jaxmeter/cli/run.py", "import jax", "imports jax"),
        ("jaxmeter/cli/list.py", "from jaxmeter.suites import selu", "imports jaxmeter.suites.selu"),
    ],
)
def test_an_import_against_the_arrows_is_found(tmp_path, module, code, violation):
    for name in (
        "harness/record",
        "harness/declare/workload",
        "reporting/load",
        "reporting/render/html",
        "suites/selu",
        "harness/parent/execution",
    ):
        (tmp_path / "jaxmeter" / f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "jaxmeter" / f"{name}.py").touch()
    # As in the real package, `workload` is a public name and a module.
    (tmp_path / "jaxmeter" / "__init__.py").write_text("__all__ = ['measure', 'workload']")
    path = tmp_path / module
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    folders = ["/".join(Path(module).parts[:count]) for count in (3, 2, 1)]
    package = next(folder for folder in folders if folder in ARROWS)

    found = violations(tmp_path, package)

    assert found == ([f"{module.removesuffix('.py').replace('/', '.')} {violation}"] if violation else [])


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    "modules",
    [
        "jaxmeter.harness.record, jaxmeter.harness.metrics.table, jaxmeter.harness.traces.hlo",
        "jaxmeter.harness.plan.cases, jaxmeter.harness.parent.prepare_run",
        "jaxmeter.reporting.render.html, jaxmeter.cli.report, jaxmeter.cli.app",
    ],
)
def test_records_are_read_and_shown_without_jax(modules):
    code = f"import sys, {modules}; sys.exit('jax' in sys.modules)"

    ended = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=False)

    assert ended.returncode == 0, ended.stderr or f"importing {modules} loads jax"
