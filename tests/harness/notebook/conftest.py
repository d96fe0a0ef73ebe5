"""Measurements in this process that take little time: what they tell does not depend on how many blocks there are."""

import pytest

from tests.harness.conftest import time_few_blocks


@pytest.fixture(autouse=True, scope="module")
def few_blocks():
    with time_few_blocks():
        yield
