"""Examples show what this version gives."""

import pytest

from benchmarks.published_figures import make_page
from tests.end_to_end.conftest import CHECKOUT
from tests.notebooks import run_cells, stored_outputs

RUNS = sorted(path.parent for path in (CHECKOUT / "examples").glob("*-cpu-*/manifest.json"))
NOTEBOOKS = sorted((CHECKOUT / "examples").glob("*.ipynb"))


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
