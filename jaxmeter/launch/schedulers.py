"""The schedulers of nightly runs, one row each; the templates define which options a schedule has."""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template

from jaxmeter.launch.backends import BACKENDS

TEMPLATES = Path(__file__).with_name("schedules")
POD = "pod.yaml"
"""Part of the templates that name it."""

EXPRESSION = "${{"
"""What GitHub evaluates in any text of a workflow, quoted or not."""


class Blanks(Template):
    """Text with `${name}` to be filled; a shell's `$name` and a workflow's `${{ … }}` are left as they are."""

    idpattern = r"(?!)"
    braceidpattern = r"[a-z_]+"
    flags = re.ASCII


@dataclass(frozen=True)
class Scheduler:
    """A scheduler that starts nightly runs.

    Args:
      files: Its templates in the folder `schedules`; the second and later ones take the name of the first.
      backends: Backends that it can measure on; the first is the default.
      has_places: Whether options of the nightly run specify its output folders; else the template specifies them.
      needs_checkout: Whether its template calls the sessions of a checkout of jaxmeter.
    """

    name: str
    files: tuple[str, ...]
    backends: tuple[str, ...]
    has_places: bool = False
    needs_checkout: bool = False

    @cached_property
    def templates(self) -> dict[str, Blanks]:
        """Templates by the name of their file."""
        return {name: Blanks(_read_template(name)) for name in self.files}

    @cached_property
    def blanks(self) -> set[str]:
        """Names of the blanks in the templates."""
        return {name for template in self.templates.values() for name in template.get_identifiers()}

    @property
    def in_images(self) -> bool:
        """Whether steps run in images of a registry; else a checkout runs them."""
        return "store_image" in self.blanks

    @property
    def evaluates(self) -> bool:
        """Whether it evaluates EXPRESSION in any text."""
        return any(EXPRESSION in template.template for template in self.templates.values())


def _read_template(name: str) -> str:
    text = (TEMPLATES / name).read_text(encoding="utf8")
    if place := re.search(r"^( *)\$\{pod\}$", text, re.MULTILINE):
        text = text.replace(place[0], textwrap.indent(_read_template(POD).rstrip(), place[1]))
    return text


SCHEDULERS = {
    scheduler.name: scheduler
    for scheduler in (
        Scheduler(
            "kubernetes", ("cronjob.yaml",), tuple(name for name, needs in BACKENDS.items() if needs.cluster_device)
        ),
        Scheduler("jobset", ("jobset.yaml",), ("tpu",)),
        Scheduler("slurm", ("sbatch.sh",), ("cpu", "gpu"), has_places=True),
        Scheduler("pyxis", ("sbatch-pyxis.sh",), ("gpu", "cpu")),
        Scheduler("github", ("github-actions.yaml",), tuple(BACKENDS), needs_checkout=True),
        Scheduler("systemd", ("systemd.service", "systemd.timer"), tuple(BACKENDS), has_places=True),
    )
}
