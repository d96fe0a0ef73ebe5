"""Whether the role of an environment in lock-step changes its times: two releases of jax, each once the earlier one.

    python -m benchmarks.swapped_roles [--releases 0.4.33 0.4.35] [--out FOLDER]

Both orders are measured with three processes each. In each, a variant takes some times as long in the later environment
as in the earlier one. If roles do not matter, the product of both ratios is 1, but for chance. A comparison of equal
environments does not detect all effects of roles: some need two releases. Takes five minutes after installation.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gate import read
from benchmarks.here import describe_here
from examples.releases_of_jax import find_python, measure, run_command
from jaxmeter.harness.metrics.statistics import Interval, take_logarithm
from jaxmeter.reporting.compare.changes import find_changes

PROGRAMS = (
    "squared_differences",
    "mlp_step[network=784-512-10]",
    "attention[causal=True,dtype=float32,length=128]",
    "selu[dtype=float32,n=10000]",
    "at_set[n=10000,updates=1]",
)
"""Programs that XLA splits by the number of cores, and programs that it does not."""

Key = tuple[str, str, str]


@dataclass(frozen=True)
class Roles:
    """Contributions of release and role to a ratio, each with its 95 % interval (low, estimate, high).

    Args:
      release: The second release's time over the first one's.
      role: The later environment's time over the earlier one's, whichever release it has.
    """

    release: tuple[float, float, float]
    role: tuple[float, float, float]

    @property
    def matters(self) -> bool:
        """Whether the role's interval excludes 1."""
        return not self.role[0] <= 1 <= self.role[2]


def separate(forward: Interval, backward: Interval) -> Roles | None:
    """Return what release and role contribute to the ratios of both orders; None where one has no interval."""
    forward_log, backward_log = take_logarithm(forward), take_logarithm(backward)
    if forward_log is None or backward_log is None:
        return None
    half = math.hypot(forward_log[1], backward_log[1]) / 2  # of independent estimates
    release, role = (forward_log[0] - backward_log[0]) / 2, (forward_log[0] + backward_log[0]) / 2
    return Roles(_spread(release, half), _spread(role, half))


def _spread(middle: float, half: float) -> tuple[float, float, float]:
    """Return the ratio of a logarithm with the bounds of its interval."""
    return math.exp(middle - half), math.exp(middle), math.exp(middle + half)


def compare(folder: Path, releases: Sequence[str], pythons: Mapping[str, Path]) -> Mapping[Key, Interval]:
    """Return how many times as long each variant takes in the second release, which is the later environment.

    Raises:
      SystemExit: A release cannot be measured.
    """
    runs = measure(releases, folder, pythons, run_command, PROGRAMS)
    if len(runs) != len(releases):
        raise SystemExit("a release cannot be measured; its messages are above")
    changes = find_changes(*map(read, runs)).times
    own = [one for one in changes if one.in_lock_step and not one.variant.endswith(":aot")]  # aot has the times of jit
    return {one.key: one.effect for one in own if one.effect is not None}


def main() -> None:
    """Prints what release and role do to each variant, and in how many the role matters."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--releases", nargs=2, default=("0.4.33", "0.4.35"), metavar="VERSION")
    parser.add_argument("--out", type=Path, help="where runs are kept; by default nowhere")
    given = parser.parse_args()
    first, second = given.releases
    if first == second:
        parser.error("give two different releases")
    print(describe_here("jax", "numpy"), flush=True)
    pythons = {release: find_python(release, None) for release in given.releases}
    with tempfile.TemporaryDirectory() as temporary:
        out = (given.out or Path(temporary)).absolute()
        forward = compare(out / f"{first}-then-{second}", (first, second), pythons)
        backward = compare(out / f"{second}-then-{first}", (second, first), pythons)
    separated = {key: separate(forward[key], backward[key]) for key in forward if key in backward}
    found = {key: roles for key, roles in separated.items() if roles is not None}
    if not found:
        raise SystemExit("no variant has a ratio in both orders")
    for (case, _, variant), roles in found.items():
        release, role = ("{1:.3f} [{0:.3f}, {2:.3f}]".format(*ratio) for ratio in (roles.release, roles.role))
        print(f"{case} {variant}: role {role}; {second} over {first}: {release}")
    mean = math.exp(statistics.fmean(math.log(roles.role[1]) for roles in found.values()))
    half = statistics.median(roles.role[2] / roles.role[1] - 1 for roles in found.values())
    print(
        f"the role matters in {sum(roles.matters for roles in found.values())} of {len(found)} variants, by chance in "
        f"{len(found) / 20:.1f}; {len({*forward, *backward}) - len(found)} have no ratio in both orders"
    )
    print(f"geometric mean of the roles' ratios {mean:.3f}, median half-width {half:.1%}")


if __name__ == "__main__":
    main()
