"""What git knows of a checkout."""

import subprocess
from pathlib import Path


def ask_git(folder: Path, *words: str) -> str | None:
    """Return what git prints about a folder; None where there is no git, or it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
