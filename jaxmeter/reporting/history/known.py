"""Known change points: a file that says of some changes why they are no news.

[[change_point]]
run = "2026-11-20T02-00-00Z-cpu-1a2b3c4"   # the first run that has it
case = "mlp_step*"                          # all, without it
variant = "step:jit"                        # all, without it
why = "a batch of 64 since then"
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

from jaxmeter.harness.record import PlannedCase
from jaxmeter.harness.record.cases import find_nearest, match_cases

NAMES = ("run", "case", "variant", "why")
NEEDED = ("run", "why")


class KnownError(Exception):
    """A file of known change points that cannot be used; the message says what to write instead."""


@dataclass(frozen=True)
class KnownChangePoint:
    """A change point that somebody has explained.

    Args:
      run: The id of the first run that has it.
      case: A pattern, as of `--select`.
      variant: Its name; empty for all.
    """

    run: str
    why: str
    case: str = "*"
    variant: str = ""

    def means(self, case: PlannedCase, variant: str) -> bool:
        """Whether it is about a variant of a case."""
        return self.variant in ("", variant) and bool(match_cases([case], self.case))


def read_known(path: Path) -> tuple[KnownChangePoint, ...]:
    """The change points in a file.

    Raises:
      KnownError: It cannot be read, or says what nobody understands.
    """
    try:
        entries = tomllib.loads(path.read_text("utf8"))
    except OSError as error:
        raise KnownError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # of TOML, of UTF-8
        raise KnownError(f"{path}: is no TOML: {error}") from error
    change_points = entries.pop("change_point", [])
    if entries or not isinstance(change_points, list):
        raise KnownError(
            f'{path}: contains other entries than [[change_point]] tables; write [[change_point]], run = "…", why = "…"'
        )
    return tuple(_read_change_point(path, number, change_point) for number, change_point in enumerate(change_points, 1))


def _read_change_point(path: Path, number: int, change_point: object) -> KnownChangePoint:
    if not isinstance(change_point, dict):
        raise KnownError(f'{path}: change point {number} is not a table; write [[change_point]], run = "…", why = "…"')
    for name, value in change_point.items():
        if name not in NAMES:
            nearest = find_nearest(name, NAMES)
            hint = f", nearest: {nearest}" if nearest else ""
            raise KnownError(f"{path}: change point {number} has no {name!r}{hint}; it may have {', '.join(NAMES)}")
        if not isinstance(value, str) or not value:
            raise KnownError(f'{path}: change point {number}: {name} = {value!r} is not a text; write {name} = "…"')
    for name in NEEDED:
        if name not in change_point:
            raise KnownError(f'{path}: change point {number} lacks {name!r}; write {name} = "…"')
    return KnownChangePoint(**change_point)
