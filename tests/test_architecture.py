"""Imports run one way: suites -> the public names; reporting -> the record, without jax; both and cli -> document."""

import ast
import sys
from collections.abc import Callable, Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[1]
PACKAGES = ("jaxmeter",)


def imports(root: Path, package: str) -> Iterator[tuple[str, str]]:
    """(importing module, imported module) for every import below a package or in a file, also inside functions."""
    for path in sorted((root / package).rglob("*.py")) or [root / f"{package}.py"]:
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
BELOW_HISTORY = ("compare", "load", "text")

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
    assert {path.parent.name for path in (CHECKOUT / "jaxmeter/harness").glob("*/__init__.py")} == set(HARNESS)


@pytest.mark.parametrize(
    ("module", "code", "violation"),
    [
        ("suites/selu", "from jaxmeter import workload\nimport numpy, jax.numpy", ""),
        ("suites/selu", "from jaxmeter.harness.declare import workload", "harness.declare.workload"),
        ("suites/selu", "from jaxmeter.harness import record", "harness.record"),
        ("harness/probes/timing", "from ..record import Case\nfrom . import memory", ""),
        ("harness/probes/timing", "import jaxmeter.suites.selu", "suites.selu"),
        ("harness/results", "def late():\n    from jaxmeter.reporting import load", "reporting.load"),
        ("harness/record/files", "from jaxmeter.harness.plan import cases", "harness.plan"),
        ("harness/plan/cases", "from jax import numpy", "jax"),
        ("harness/programs/modes", "import jax", ""),
        ("harness/programs/modes", "from jaxmeter.harness.probes import timing", "harness.probes"),
        ("reporting/load", "from jaxmeter.harness.record import metrics, statistics", ""),
        ("reporting/load", "def late():\n    import jax", "jax"),
        ("launch/runs", "import jaxmeter.launch.options, jaxmeter.cli.run", "cli.run"),
        ("reporting/compare/programs", "from ..load import Run", ""),
        ("reporting/compare/programs", "from ..render import html", "reporting.render.html"),
        ("reporting/nightly/outcome", "from ..render import html", "reporting.render.html"),
        ("launch/runs", "from pathlib import Path\nfrom jaxmeter.launch.options import read_options", ""),
        ("launch/runs", "import numpy", "numpy"),
        ("cli/run", "from jaxmeter.harness.parent import execution", ""),
        ("cli/list", "from jaxmeter.suites import selu", "suites.selu"),
    ],
)
def test_an_import_against_the_arrows_is_found(tmp_path, module, code, violation):
    for name in (
        "harness/record",
        "harness/declare/workload",
        "reporting/load",
        "reporting/render/html",
        "suites/selu",
    ):
        (tmp_path / "jaxmeter" / f"{name}.py").parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "jaxmeter" / f"{name}.py").touch()
    # As in the real package, `workload` is a public name and a module.
    (tmp_path / "jaxmeter" / "__init__.py").write_text("__all__ = ['measure', 'workload']")
    path = tmp_path / "jaxmeter" / f"{module}.py"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    folders = ["/".join(path.relative_to(tmp_path).parts[:count]) for count in (3, 2, 1)]

    found = violations(tmp_path, next(folder for folder in folders if folder in ARROWS))

    imported = violation if violation in ("", "jax", "numpy") else f"jaxmeter.{violation}"
    assert found == ([f"jaxmeter.{module.replace('/', '.')} imports {imported}"] if violation else [])
