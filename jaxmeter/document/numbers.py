"""How every number is written: the one module for it. A missing or impossible value is a dash, never NaN or blank."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

SPACE = "\u202f"
"""Narrow no-break space: before a unit, and between thousands."""

MISSING = "—"
DIGITS = 3
EXACT_DIGITS = 6
WIDE_HALF_WIDTH = 0.5
"""Bounds this far apart get two digits each; the estimate's decimals would make 0.0 of the lower one."""

EXTRA_DECIMALS = 2
NEAR_1_DECIMALS = 2
"""For bounds of a ratio: 1.03 is a difference, and 1.0 reads as none."""

LARGEST = 1e300
MOST_DECIMALS = 9
"""Beyond it a value is nothing that was measured; without it, one damaged value would fill a page with zeros."""

BOUNDS, RANGE = "[{}, {}]", "{} to {}"
"""How an interval is written, and how the smallest and the largest of some processes."""

DIGITS_IF_VAGUE = 2
VAGUE_HALF_WIDTH = 0.05
"""A third digit says nothing where the interval is wider than ±5 %."""

_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_RATE_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_THROUGHPUT_PREFIXES = ((1e9, "billion "), (1e6, "million "), (1.0, ""))
"""A word such as tokens takes no prefix."""

_MEMORY_UNITS = ((2**40, "TiB"), (2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


class _Bounded(Protocol):
    """An estimate between its bounds, such as a `statistics.Interval`; the bounds are None where there are none."""

    @property
    def low(self) -> float | None: ...

    @property
    def estimate(self) -> float: ...

    @property
    def high(self) -> float | None: ...

    @property
    def half_width(self) -> float | None:
        """Half the distance of the bounds, relative to the estimate."""


class _Single(NamedTuple):
    """A number without bounds."""

    estimate: float
    low: None = None
    high: None = None
    half_width: None = None


def usable(value: float | int | None) -> float | None:
    """The value as a float, or None where it is missing, not finite or so large that rounding it could overflow."""
    if value is None:
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if abs(number) < LARGEST else None


def positive_bounds(interval: _Bounded) -> tuple[float, float] | None:
    """Both bounds where a logarithmic axis can show them, else None."""
    low, high = usable(interval.low), usable(interval.high)
    return None if low is None or high is None or low <= 0 else (low, high)


def time(seconds: float | None) -> str:
    """`451 µs`: three significant digits."""
    return time_with_bounds(None if seconds is None else _Single(seconds))[0]


def time_with_bounds(interval: _Bounded | None, form: str = BOUNDS) -> tuple[str, str]:
    """(`451 µs`, `[448, 456]`): the bounds in the estimate's unit and decimals; none below 0 was measured."""
    if interval is None or interval.estimate < 0:
        return MISSING, MISSING
    return difference_with_bounds(interval, form)


def exact_time(seconds: float) -> str:
    """Write a time with 6 digits, `1.2341 ms`, if 3 digits do not distinguish two times."""
    size, unit = choose_unit(abs(seconds), EXACT_DIGITS)
    return f"{_fixed(seconds / size, _decimals(seconds / size, EXACT_DIGITS))}{SPACE}{unit}"


def difference(seconds: float | None) -> str:
    """`45.2 ms`, `−3.1 ms`: a time saved, or lost."""
    return difference_with_bounds(None if seconds is None else _Single(seconds))[0]


def difference_with_bounds(interval: _Bounded | None, form: str = BOUNDS) -> tuple[str, str]:
    """(`−3.1 ms`, `[−4.0, −2.2]`): a time saved, or lost, in the estimate's unit, or the bounds' if 0 is between."""
    estimate = None if interval is None else usable(interval.estimate)
    if interval is None or estimate is None:
        return MISSING, MISSING
    digits, low, high = _digits(interval), usable(interval.low), usable(interval.high)
    around_0 = low is not None and high is not None and low < 0 < high
    size, unit = choose_unit(max(-(low or 0.0), high or 0.0) if around_0 else abs(estimate), digits)
    decimals = _decimals(estimate / size, digits)
    return f"{_fixed(estimate / size, decimals)}{SPACE}{unit}", _bounds(interval, decimals, size, form)


def speedup(ratio: float | None) -> str:
    """`8.7×`: how many times faster, two decimals below 2, one below 10, none above; two digits below 0.1."""
    number = usable(ratio)
    return MISSING if number is None or number <= 0 else f"{_fixed(number, _speedup_decimals(number))}×"


def speedup_with_bounds(interval: _Bounded | None, form: str = BOUNDS) -> tuple[str, str]:
    """(`8.7×`, `[8.5, 8.9]`); a bound near 1 has the decimals that tell its side: (`2.3×`, `[1.03, 5.1]`)."""
    estimate = None if interval is None else usable(interval.estimate)
    if interval is None or estimate is None or estimate <= 0:
        return MISSING, MISSING
    return speedup(estimate), _bounds(interval, _speedup_decimals(estimate), 1.0, form, least_near_1=NEAR_1_DECIMALS)


LEAST_PERCENT, LEAST_FACTOR = 0.01, 1.995
"""Ratios to what was before between which a change is a percentage: beyond, it says too little, or rounds to 2.0×."""


def change(interval: _Bounded | None) -> tuple[str, str]:
    """(`+5.1 %`, `[+3.9, +6.3]`) of a ratio to what was before; above a factor of 2 (`2.3×`, `[2.1, 2.5]`)."""
    estimate = None if interval is None else usable(interval.estimate)
    if interval is None or estimate is None or estimate <= 0:
        return MISSING, MISSING
    if not LEAST_PERCENT < estimate < LEAST_FACTOR:
        return speedup_with_bounds(interval)
    low, high = usable(interval.low), usable(interval.high)
    bounds = MISSING if low is None or high is None else f"[{_signed_percent(low)}, {_signed_percent(high)}]"
    return f"{_signed_percent(estimate)}{SPACE}%", bounds


def _signed_percent(ratio: float) -> str:
    """`+5.1`, `−12`: one decimal below 10."""
    share = 100 * (ratio - 1)
    decimals = 1 if abs(round(share, 1)) < 10 else 0
    return f"{'+' if round(share, decimals) > 0 else ''}{_fixed(share, decimals)}"


def roughly(factor: float) -> str:
    """`130`, `5.3`: two digits of a number that has no interval."""
    return _two_digits(factor, 0)


def exponent_with_bounds(interval: _Bounded | None, form: str = BOUNDS) -> tuple[str, str]:
    """(`1.02`, `[0.98, 1.06]`): two decimals, the sign a minus sign."""
    estimate = None if interval is None else usable(interval.estimate)
    if interval is None or estimate is None:
        return MISSING, MISSING
    low, high = usable(interval.low), usable(interval.high)
    bounds = MISSING if low is None or high is None else form.format(_fixed(low, 2), _fixed(high, 2))
    return _fixed(estimate, 2), bounds


def memory(size_bytes: float | int | None) -> str:
    """`1.91 MiB`, by 1024; bytes are exact."""
    number = usable(size_bytes)
    if number is None:
        return MISSING
    for size, unit in _MEMORY_UNITS[:-1]:
        # Rounding may carry into this unit: 1048575 bytes are 1.00 MiB, not 1024 KiB.
        if float(f"{abs(number) / size:.4g}") >= 1:
            return f"{_fixed(number / size, _decimals(abs(number) / size, DIGITS))}{SPACE}{unit}"
    return f"{_fixed(number, 0)}{SPACE}B"


def amount(value: float | int | None, unit: str) -> str:
    """`12.3 GFLOP`, `12.3 GB/s`, by 1000: of a unit that takes prefixes."""
    return amount_with_bounds(None if value is None else _Single(value), unit)[0]


def amount_exactly(value: float, unit: str) -> str:
    """Write a value without a prefix: `17 240 064 B`. A median of two counts can have a half."""
    return f"{_fixed(value, 0 if value == int(value) else 1)}{SPACE}{unit}"


def memory_sides(before: float | None, after: float | None) -> tuple[str, str]:
    """Write two sizes: (`16.3 MiB`, `16.4 MiB`), or (`17 203 200 B`, `17 240 064 B`) if both would read the same."""
    return distinguish(before, after, memory, lambda value: amount_exactly(value, "B"))


def distinguish(
    before: float | None,
    after: float | None,
    write: Callable[[float | None], str],
    write_exactly: Callable[[float], str],
) -> tuple[str, str]:
    """Write two values; exactly if they differ but would read the same."""
    texts = write(before), write(after)
    if before is None or after is None or before == after or texts[0] != texts[1] or texts[0] == MISSING:
        return texts
    return write_exactly(before), write_exactly(after)


def throughput_with_bounds(interval: _Bounded | None, unit: str, form: str = BOUNDS) -> tuple[str, str]:
    """(`12 300 tokens/s`, `[12 100, 12 500]`), from a million on `1.23 million tokens/s`."""
    return amount_with_bounds(interval, unit, form, prefixes=_THROUGHPUT_PREFIXES)


def amount_with_bounds(
    interval: _Bounded | None,
    unit: str,
    form: str = BOUNDS,
    *,
    prefixes: tuple[tuple[float, str], ...] = _RATE_PREFIXES,
) -> tuple[str, str]:
    """(`12.3 GFLOP/s`, `[12.1, 12.5]`): the bounds with the estimate's prefix and decimals."""
    estimate = None if interval is None else usable(interval.estimate)
    if interval is None or estimate is None or estimate < 0:
        return MISSING, MISSING
    digits = _digits(interval)
    sizes = (pair for pair in prefixes if float(f"{estimate / pair[0]:.{digits}g}") >= 1)
    size, prefix = next(sizes, prefixes[-1])
    decimals = _decimals(estimate / size, digits)
    return f"{_fixed(estimate / size, decimals)}{SPACE}{prefix}{unit}", _bounds(interval, decimals, size, form)


def count(number: float | int | None) -> str:
    """`12 345`: a whole number, thousands apart."""
    value = usable(number)
    return MISSING if value is None else _fixed(value, 0)


def count_in_range(interval: _Bounded, noun: str) -> str:
    """`3 to 12 calls`, `at least 3 calls` without a high bound, `3 calls` without any."""
    low, high = usable(interval.low), usable(interval.high)
    if low is None:
        shown, last = count(interval.estimate), interval.estimate
    elif high is None:
        shown, last = f"at least {count(low)}", low
    else:
        shown, last = count(low) if low == high else f"{count(low)} to {count(high)}", high
    return f"{shown} {noun}{'' if last == 1 else 's'}"


def signed_count(difference: int) -> str:
    """`+12`, `−3`: how many more, or fewer."""
    return f"{'+' if difference > 0 else ''}{count(difference)}"


def number(value: float | int | None) -> str:
    """`12 345`, `0.25`: a number that may be whole, such as a param's value, a mean of counts or an exponent."""
    known = usable(value)
    return MISSING if known is None else count(known) if known == int(known) else f"{known:g}".replace("-", "−")


def percent(share: float | None, *, digits: int = 2) -> str:
    """`2 %`, `0.4 %`: that many significant digits below 10 %, whole above."""
    value = usable(share)
    if value is None:
        return MISSING
    size = abs(value) * 100
    shown = f"{size:.{digits}g}" if 0.001 <= size < 9.95 else _fixed(size, 0)
    return f"{'−' if value < 0 else ''}{shown}{SPACE}%"


def percent_with_bounds(interval: _Bounded | None, form: str = BOUNDS) -> tuple[str, str]:
    """(`43 %`, `[41, 45]`): the bounds with the estimate's decimals."""
    estimate = None if interval is None else usable(interval.estimate)
    if interval is None or estimate is None:
        return MISSING, MISSING
    size = abs(estimate) * 100
    decimals = _decimals(size, DIGITS_IF_VAGUE) if 0.001 <= size < 9.95 else 0
    return percent(estimate), _bounds(interval, decimals, 0.01, form)


def error(ratio: float | None) -> str:
    """`1.2e−7`: two digits, since only its size matters; an exact result is 0."""
    value = usable(ratio)
    if value is None:
        return MISSING
    if value == 0:
        return "0"
    mantissa, power = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(power)}".replace("-", "−")


def _digits(interval: _Bounded) -> int:
    half_width = interval.half_width
    return DIGITS_IF_VAGUE if half_width is not None and half_width > VAGUE_HALF_WIDTH else DIGITS


def choose_unit(seconds: float, digits: int = DIGITS) -> tuple[float, str]:
    """The unit that leaves a value of at least 1 after rounding; nanoseconds take what is smaller."""
    for size, unit in _TIME_UNITS:
        # Compared after rounding to three digits or fewer, since 999.6 µs is 1.00 ms.
        if float(f"{seconds / size:.{digits}g}") >= 1:
            return size, unit
    return _TIME_UNITS[-1]


def _decimals(value: float, digits: int) -> int:
    """Decimals that show `digits` significant digits; negative where digits before the point are rounded away."""
    if value == 0:
        return 0
    magnitude = int(f"{value:.{digits - 1}e}".split("e")[1])
    return min(digits - 1 - magnitude, MOST_DECIMALS)


def _speedup_decimals(ratio: float) -> int:
    if float(f"{ratio:.1e}") < 0.1:
        return _decimals(ratio, 2)
    # By the rounded value, so that 1.996 reads 2.0× and 9.96 reads 10×.
    if round(ratio, 2) < 2:
        return 2
    return 1 if round(ratio, 1) < 10 else 0


def _bounds(interval: _Bounded, decimals: int, size: float, form: str, least_near_1: int = 0) -> str:
    low, high = usable(interval.low), usable(interval.high)
    if low is None or high is None:
        return MISSING
    if (interval.half_width or 0.0) > WIDE_HALF_WIDTH:
        return form.format(_two_digits(low / size, least_near_1), _two_digits(high / size, least_near_1))
    most = decimals + EXTRA_DECIMALS
    # Bounds that would read the same although they differ get a digit more, or two.
    while decimals < most and _fixed(low / size, decimals) == _fixed(high / size, decimals) and low < high:
        decimals += 1
    if 1 in (round(low / size, decimals), round(high / size, decimals)):
        decimals = max(decimals, least_near_1)
    return form.format(_fixed(low / size, decimals), _fixed(high / size, decimals))


def _two_digits(value: float, least_near_1: int) -> str:
    decimals = _decimals(abs(value), DIGITS_IF_VAGUE)
    return _fixed(value, max(decimals, least_near_1) if round(value, decimals) == 1 else decimals)


def _fixed(value: float, decimals: int) -> str:
    # Digits far left of the point exist only for values beyond any measurement; round() takes them too.
    rounded = round(value, decimals)
    text = f"{abs(rounded):,.{max(decimals, 0)}f}".replace(",", SPACE)
    return f"−{text}" if rounded < 0 else text


def short_count(number: float) -> str:
    """`10 000`, from a million on `1e6`: for axis ticks."""
    return f"{number:.0e}".replace("e+0", "e").replace("e+", "e") if number >= 1e6 or number < 1 else count(number)
