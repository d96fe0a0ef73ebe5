"""What of a process is loading its programs."""

import pytest

from benchmarks.process_overhead import add_up_loading
from jaxmeter.harness.plan.messages import Heartbeat


def test_loading_is_what_comes_before_the_first_call_of_each_variant():
    stages = ("inputs", "prepare", "compile", "first call", "prepare", "first call", "warm-up")
    beats = [
        (float(moment**2), Heartbeat(None if stage == "inputs" else "selu:jit", stage))
        for moment, stage in enumerate(stages)
    ]

    assert add_up_loading(beats) == pytest.approx((9 - 1) + (25 - 16))
