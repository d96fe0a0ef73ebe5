"""A clock that tests move by hand, and modules written for one test."""

from __future__ import annotations

import gc
import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import ModuleType

import pytest

Import = Callable[[str], ModuleType]


def pytest_collection_finish() -> None:
    """What was imported and collected is no garbage: the collections of timed processes need not search it."""
    gc.collect()
    gc.freeze()


class FakeClock:
    """Seconds that pass only when told to. Powers of two add up exactly."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@contextmanager
def time_few_blocks() -> Iterator[None]:
    """Has `jaxmeter.measure` time six short blocks of each variant instead of half a second."""
    from jaxmeter.harness.notebook import one_process

    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("BLOCK_S", 0.002), ("BLOCKS", 6), ("SETTLE_S", 0.0)):
            patch.setattr(one_process, name, value)
        yield


@pytest.fixture
def module_of(tmp_path: Path) -> Import:
    """Imports a text as a module; every version of it is a file of its own, as in another checkout."""
    numbers = count()

    def load(text: str) -> ModuleType:
        path = tmp_path / f"version{next(numbers)}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("written_for_this_test", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
