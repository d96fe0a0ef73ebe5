"""All tests, and which of them continuous integration leaves out: those that cost much and test a few files."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from tests.tools.git import ask_git

EVERYTHING = (
    *("lint", "types", "docs"),
    *("tests", "end_to_end", "oldest", "page", "suites", "torch", "container", "slow", "releases", "cloud"),
)
"""The sessions that check jaxmeter, in an order that fails early."""

REQUIRED = ("JAXMETER_REQUIRE_BROWSER", "JAXMETER_REQUIRE_ENGINE", "JAXMETER_REQUIRE_PODMAN")
"""Variables that make a failure of what would be skipped: a skipped test proves nothing."""

OF_OLDER_JAX = (
    *("pyproject.toml", "docker/locks/dev.txt", "docker/locks/launch.txt"),
    *("jaxmeter/harness/machine/jax_internals.py", "jaxmeter/harness/programs/older_jax.py", "noxfile.py", ".ci/run"),
)
"""What decides whether jaxmeter works with an older Python or jax."""

ONLY_IF_CHANGED: Mapping[str, Sequence[str]] = {
    "torch": (
        "docker/locks/cpu-torch.txt",
        "jaxmeter/suites/*_in_torch.py",
        *(f"jaxmeter/suites/{name}.py" for name in ("attention", "cnn", "mlp", "peers")),
        *(f"tests/suites/{name}.py" for name in ("checked", "test_cnn", "test_every_suite", "test_mlp")),
    ),
    "podman": (
        *(".ci/run", ".dockerignore", "docker/Dockerfile", "docker/locks/*", "tests/container/*"),
        *(f"jaxmeter/launch/{name}.py" for name in ("containers",)),
        *(f"jaxmeter/launch/{name}.py" for name in ("engines", "execution", "gate", "images", "index", "jobs")),
        *(f"jaxmeter/launch/{name}.py" for name in ("environments", "nvidia", "request", "tpu")),
        "jaxmeter/launch/doctor/examination.py",
    ),
    "releases": (
        *OF_OLDER_JAX,
        *(f"jaxmeter/harness/{name}/*" for name in ("child", "parent")),
        *(f"jaxmeter/launch/{name}.py" for name in ("bisect", "environments", "releases", "upgrade")),
        "jaxmeter/reporting/releases.py",
        *(f"tests/end_to_end/{name}.py" for name in ("test_light_install", "test_older_releases")),
    ),
    "oldest": (*OF_OLDER_JAX, "jaxmeter/harness/*", "tests/harness/*", ".ci/find-python"),
}
"""By the mark of its tests, or their session: the files whose change calls for them, as fnmatch reads a path (`*`
matches slashes)."""

DAY_S = 24 * 60 * 60
MAIN = "main"


def select_changed(changed: Collection[str] | None) -> list[str]:
    """Return the keys of ONLY_IF_CHANGED whose tests a change calls for.

    Args:
      changed: Paths from the root of the checkout; None if unknown, which calls for all.
    """
    return [
        mark
        for mark, patterns in ONLY_IF_CHANGED.items()
        if changed is None or any(fnmatchcase(path, pattern) for path in changed for pattern in patterns)
    ]


def find_base(checkout: Path) -> str | None:
    """Return the commit since which changes count; None if it is unknown, as in a shallow clone.

    The commit where HEAD left main of the remote. Where HEAD has not left it, as on main itself, the newest ancestor
    that is a day older than HEAD: nothing records which commit passed last, and a day is longer than one change takes.
    """
    head = ask_git(checkout, "rev-parse", "HEAD")
    parting = ask_git(checkout, "merge-base", "HEAD", f"origin/{MAIN}")
    if parting is None and ask_git(checkout, "branch", "--show-current") != MAIN:
        return None
    if parting not in (None, head):
        return parting
    if not (written_s := ask_git(checkout, "show", "--no-patch", "--format=%ct", "HEAD")):
        return None
    day_before = f"--min-age={int(written_s) - DAY_S}"
    return ask_git(checkout, "rev-list", "-1", "--first-parent", day_before, "HEAD") or None


def list_changed(checkout: Path, base: str) -> list[str] | None:
    """Return the files that differ from a commit, those not committed yet among them; None if git cannot say."""
    listed = ask_git(checkout, "diff", "--name-only", "--no-renames", base)
    return None if listed is None else listed.splitlines()


def choose(checkout: Path) -> tuple[list[str], str]:
    """Return the keys of ONLY_IF_CHANGED whose tests are called for, and why, as a sentence."""
    base = find_base(checkout)
    changed = list_changed(checkout, base) if base else None
    selected = select_changed(changed)
    if changed is None:
        return selected, "the history does not show what changed"
    return selected, f"{len(changed)} files changed since {base}"


if __name__ == "__main__":
    marks, reason = choose(Path(__file__).parents[2])
    left_out = [mark for mark in ONLY_IF_CHANGED if mark not in marks]
    print(f"{reason}; left out: {', '.join(left_out) or 'nothing'}", file=sys.stderr)
    print(*marks)
