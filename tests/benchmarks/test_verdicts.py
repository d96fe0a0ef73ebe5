"""Rates in words."""

from benchmarks.verdicts import write_rate


def test_a_rate_is_written_with_its_bounds():
    assert write_rate(0, 100) == "0 of 100 (0.0 %; 95 % bounds 0.0 to 3.6 %)"
    assert write_rate(0, 0) == "none to count"
