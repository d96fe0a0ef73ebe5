"""Measurements in this process that take little time: what they tell does not depend on how many blocks there are."""

from contextlib import nullcontext

import pytest

from tests.harness.conftest import time_few_blocks


@pytest.fixture(autouse=True, scope="module")
def few_blocks(request):
    """Everywhere but in the tests of agreement, whose one measurement takes as long as a user's."""
    with nullcontext() if request.module.__name__.endswith(".test_agreement") else time_few_blocks():
        yield
