"""Examples show what this version gives."""

import pytest

from tests.end_to_end.conftest import CHECKOUT
from tests.notebooks import run_cells, stored_outputs

NOTEBOOKS = sorted((CHECKOUT / "examples").glob("*.ipynb"))


def test_there_is_a_notebook():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_a_notebook_gives_what_it_shows(path, monkeypatch):
    monkeypatch.chdir(path.parent)

    found = list(run_cells(path))

    assert [outputs for _, outputs in found] == stored_outputs(path)
    assert sum(bool(outputs) for _, outputs in found) >= 3
