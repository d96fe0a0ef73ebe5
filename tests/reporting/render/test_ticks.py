from jaxmeter.reporting.render.ticks import MOST_TICKS, limits, powers


def test_ticks_are_whole_powers_and_few():
    assert powers(3.0, 900.0) == [1.0, 10.0, 100.0, 1000.0]
    assert powers(1000.0, 1000.0) == [1000.0, 10000.0]
    assert powers(5000.0, 70_000.0, 4) == [4096.0, 16_384.0, 65_536.0, 262_144.0]
    assert len(powers(1e-12, 1e12)) <= MOST_TICKS
    assert len(powers(1e-12, 1e12, most=3)) <= 3


def test_an_axis_reaches_beyond_its_outermost_ticks():
    low, high = limits((3.0, 900.0), 10)

    assert low < 1 < 1000 < high
