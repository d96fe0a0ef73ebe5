"""Examples show what this version gives."""

import pytest

from benchmarks.published_figures import make_page
from jaxmeter.reporting.load import load
from jaxmeter.reporting.view import build
from tests.end_to_end.conftest import CHECKOUT
from tests.notebooks import run_cells, stored_outputs

RUNS = sorted(path.parent for path in (CHECKOUT / "examples").glob("*-cpu-*/manifest.json"))
NOTEBOOKS = sorted((CHECKOUT / "examples").glob("*.ipynb"))


@pytest.mark.parametrize(
    "path", sorted((CHECKOUT / "examples").glob("**/manifest.json")), ids=lambda path: path.parent.name
)
def test_each_example_is_a_whole_run_of_which_a_page_can_be_made(path):
    loaded = load([path.parent])

    (run,) = loaded.runs
    assert loaded.warnings == ()
    assert run.manifest.run_id == path.parent.name
    assert f" on {run.manifest.backend}: " in build(loaded).title


def test_there_is_a_notebook():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_gives_what_it_shows(path, monkeypatch):
    monkeypatch.chdir(path.parent)

    found = list(run_cells(path))

    assert [outputs for _, outputs in found] == stored_outputs(path)
    assert sum(bool(outputs) for _, outputs in found) >= 3


def test_the_page_of_published_figures_is_that_of_the_examples_on_cpus():
    assert RUNS
    written = (CHECKOUT / "docs" / "published.md").read_text(encoding="utf8")

    assert written == make_page(RUNS), "make it again: python -m benchmarks.published_figures examples/*-cpu-* > it"
