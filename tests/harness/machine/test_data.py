from pathlib import Path

import pytest

from jaxmeter import data_folder
from jaxmeter.harness.machine.data import DATA_VARIABLE


def test_the_folder_is_the_one_that_was_given(monkeypatch):
    monkeypatch.setenv(DATA_VARIABLE, "/data")

    assert data_folder() == data_folder(required=True) == Path("/data")


@pytest.mark.parametrize("value", [None, ""])
def test_without_one_a_suite_gets_none_or_says_what_it_needs(value, monkeypatch):
    monkeypatch.delenv(DATA_VARIABLE, raising=False)
    if value is not None:
        monkeypatch.setenv(DATA_VARIABLE, value)

    assert data_folder() is None
    with pytest.raises(FileNotFoundError, match="give --data DIR"):
        data_folder(required=True)
