"""The limits of a comparison: the smallest difference that counts, and budgets, how much more a case may take.

Budgets are of a metric, from a TOML file:

    "mlp/*" = { time = "5%", peak_memory = "0%", compiles = 0 }

A key is a pattern of `suite/case`; of several that match, the first that names a metric decides. A metric that
no pattern names has the allowance of DEFAULTS, or of BETWEEN_RELEASES if both runs have different releases.
"""

from __future__ import annotations

import fnmatch
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from jaxmeter.document import numbers
from jaxmeter.harness.metrics.metric import Unit
from jaxmeter.harness.metrics.plausibility import LARGEST
from jaxmeter.harness.metrics.statistics import MINIMUM_EFFECT
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.record.cases import find_nearest

from .verdicts import TIME

TIME_BUDGET = "time"

NAMES = {TIME_BUDGET: TIME, **{metric.budget: metric.name for metric in METRICS.values() if metric.budget}}
"""What a budget calls a metric."""

_SHARE = re.compile(r"(\d+(?:\.\d+)?)\s*%")
_EFFECT = re.compile(r"(\d+(?:\.\d+)?)\s*%?")

LARGEST_EFFECT = 100.0
"""Per cent. A larger minimum effect would let anything pass."""


class LimitError(Exception):
    """A minimum effect or a file of budgets that cannot be used; the message says what to write instead."""


@dataclass(frozen=True)
class Allowance:
    """An allowed increase: a share of the earlier number, a number in the metric's unit, or the sum of both."""

    share: float | None = None
    more: float | None = None

    def is_exceeded(self, before: float, after: float) -> bool:
        """Whether a number has grown beyond it."""
        return after > before * (1 + (self.share or 0.0)) + (self.more or 0.0)


DEFAULTS: Mapping[str, Allowance] = {
    TIME: Allowance(share=MINIMUM_EFFECT),
    **{metric.name: Allowance(more=0) for metric in METRICS.values() if metric.fails_gate},
}


_PLANNED_BYTES = Allowance(share=0.01, more=64 * 2**10)
"""Releases of XLA plan the same program slightly differently. From jaxlib 0.10.2 to 0.12.0.1, the plan of a training
step of a transformer grows by 60 KiB (0.4 %). `more` is for small programs, where the alignment of a few buffers
matters."""

BETWEEN_RELEASES: Mapping[str, Allowance] = {
    metric.name: _PLANNED_BYTES for metric in METRICS.values() if metric.fails_gate and metric.unit is Unit.BYTES
}
"""Allowances without a budget, for runs with different releases of jax or jaxlib. Counts have no allowance."""


def describe_between_releases(metric: str) -> str:
    """Return `1 % + 64 KiB`: the allowance of a metric between releases."""
    allowance = BETWEEN_RELEASES[metric]
    more = numbers.amount_exactly((allowance.more or 0) / 2**10, "KiB")
    return f"{numbers.percent(allowance.share)} + {more}"


@dataclass(frozen=True)
class Budgets:
    """Rules in the order of the file: pattern, and allowances by the metric's own name."""

    rules: tuple[tuple[str, Mapping[str, Allowance]], ...] = ()
    defaults: Mapping[str, Allowance] = field(default_factory=lambda: DEFAULTS)

    def least_time(self, minimum_effect: float) -> float:
        """The smallest share that a time may grow by anywhere: what verdicts must be able to detect."""
        shares = [rule[TIME].share for _, rule in self.rules if TIME in rule]
        return min([minimum_effect, *(share for share in shares if share)])

    def relax(self) -> Budgets:
        """Return the budgets for runs with different releases of jax or jaxlib. Rules of a file take precedence."""
        return replace(self, defaults={**self.defaults, **BETWEEN_RELEASES})

    def find_unused(self, names: Iterable[str]) -> list[str]:
        """Patterns that match no `suite/case`."""
        known = list(names)
        return [pattern for pattern, _ in self.rules if not any(_matches(name, pattern) for name in known)]

    def find(self, suite: str, case: str, metric: str) -> Allowance | None:
        """What a case may take more of a metric; None where nothing is said of it."""
        name = f"{suite}/{case}"
        for pattern, allowances in self.rules:
            if metric in allowances and _matches(name, pattern):
                return allowances[metric]
        return self.defaults.get(metric)


def _matches(name: str, pattern: str) -> bool:
    """Brackets mean themselves, as the names of cases hold them."""
    return fnmatch.fnmatchcase(name, pattern.replace("[", "[[]"))


def read_limits(min_effect: str, path: Path | None) -> tuple[float, Budgets]:
    """Return the smallest difference of a time that counts anywhere, and what is allowed.

    Args:
      path: Of a file of budgets; without it there are the allowances of what no budget names.
    Raises:
      LimitError: One of them cannot be used.
    """
    effect = read_effect(min_effect)
    budgets = Budgets(defaults=make_defaults(effect)) if path is None else read_budgets(path, effect)
    return budgets.least_time(effect), budgets


def read_effect(text: str) -> float:
    """Return the share of `3%`, `2.5 %`, `3`.

    Raises:
      LimitError: It is no percentage, 0, or so large that anything would pass.
    """
    match = _EFFECT.fullmatch(text.strip())
    if match is None or not 0 < float(match[1]) <= LARGEST_EFFECT:
        raise LimitError(f"--min-effect '{text}' is not a percentage; write 3% or 2.5%")
    return float(match[1]) / 100


def read_budgets(path: Path, minimum_effect: float = MINIMUM_EFFECT) -> Budgets:
    """The budgets in a file.

    Raises:
      LimitError: It cannot be read, or says what nobody understands.
    """
    try:
        table = tomllib.loads(path.read_text("utf8"))
    except OSError as error:
        raise LimitError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8, of numbers that no machine holds
        raise LimitError(f"{path}: is no TOML: {error}") from error
    rules = tuple((pattern, _read_rule(path, pattern, rule)) for pattern, rule in table.items())
    return Budgets(rules, make_defaults(minimum_effect))


def make_defaults(minimum_effect: float) -> Mapping[str, Allowance]:
    """The allowances of what no budget names."""
    return {**DEFAULTS, TIME: Allowance(share=minimum_effect)}


def _read_rule(path: Path, pattern: str, rule: object) -> Mapping[str, Allowance]:
    if not isinstance(rule, dict):
        raise LimitError(f'{path}: "{pattern}" is not a table; write "{pattern}" = {{ time = "5%" }}')
    allowances = {}
    for name, value in rule.items():
        if name not in NAMES:
            nearest = find_nearest(name, NAMES)
            hint = f", nearest: {nearest}" if nearest else ""
            raise LimitError(f'{path}: "{pattern}" has no metric {name!r}{hint}; metrics are {", ".join(NAMES)}')
        allowances[NAMES[name]] = _read_allowance(path, pattern, name, value)
    return allowances


def _read_allowance(path: Path, pattern: str, name: str, value: object) -> Allowance:
    if isinstance(value, str) and (match := _SHARE.fullmatch(value.strip())):
        return Allowance(share=float(match[1]) / 100)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number and name != "time" and 0 <= value <= LARGEST:  # type: ignore[operator]
        return Allowance(more=float(value))  # type: ignore[arg-type]
    ways = '"5%"' if name == "time" else '"5%", or a number that may be added'
    raise LimitError(f'{path}: "{pattern}" {name} = {value!r} is not a budget; write {ways}')
