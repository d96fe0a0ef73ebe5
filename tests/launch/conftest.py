"""The launcher as nox sessions call it."""

import sys

import pytest


@pytest.fixture(autouse=True)
def called_by_nox(monkeypatch):
    monkeypatch.setenv("JAXMETER_IN_NOX", sys.executable)
