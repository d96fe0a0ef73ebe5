"""The public names of the package: they load when they are used, and type checkers see the same ones."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import jaxmeter

CHECKOUT = Path(__file__).parents[1]


@pytest.mark.parametrize("name", jaxmeter.__all__)
def test_every_public_name_is_there_and_listed(name):
    assert getattr(jaxmeter, name) is not None
    assert name in dir(jaxmeter)


def test_type_checkers_read_the_names_where_they_are_loaded_from():
    tree = ast.parse(Path(jaxmeter.__file__).read_text())
    (checked,) = [node for node in tree.body if isinstance(node, ast.If)]
    imported = {alias.name: node.module for node in checked.body for alias in node.names}

    assert imported == {name: f"jaxmeter.{module}" for name, module in jaxmeter._MODULES.items()}
    assert {*imported, "__version__"} == set(jaxmeter.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error_that_lists_them():
    with pytest.raises(AttributeError, match=r"has no attribute 'mesure'; it has .*measure"):
        jaxmeter.mesure  # noqa: B018


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import jaxmeter", ("jax", "pandas", "numpy", "msgspec", "typer")),
        ("from jaxmeter import workload, levels", ("jax", "pandas", "scipy.stats")),
        ("from jaxmeter import load_frame", ("jax",)),
        ("import jaxmeter.cli.app", ("jax", "pandas", "numpy")),
        ("import jaxmeter.cli.run", ("jax", "pandas", "fsspec")),
        ("import jaxmeter.harness.record, jaxmeter.harness.metrics.table, jaxmeter.harness.traces.hlo", ("jax",)),
        ("import jaxmeter.harness.plan.cases, jaxmeter.reporting.render.html, jaxmeter.cli.report", ("jax",)),
    ],
)
def test_a_name_brings_no_library_that_it_does_not_need(statement, absent):
    code = f"{statement}; import sys; print([name for name in {absent} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", code], cwd=CHECKOUT, capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
