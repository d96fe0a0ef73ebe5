"""Templates of docker/schedules, filled with what was asked for."""

from __future__ import annotations

import getpass
import re
import shlex
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from launcher.execution import say
from launcher.nights import read_night_request
from launcher.options import UsageError, take_option
from launcher.quoting import quote_pod_words, quote_unit, quote_yaml
from launcher.schedules import Asked, find_warnings, read_schedule_request

TEMPLATES = Path("docker/schedules")
POD = "pod.yaml"
"""Part of the templates that name it."""

LIMIT_S = 6 * 3600
"""When a night is ended: the longest level takes two hours, its confirmations less."""

PRIVILEGED: Mapping[str, object] = {"privileged": True, "runAsNonRoot": False, "runAsUser": 0}
CONFINED: Mapping[str, object] = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
RESULTS = "/work/results"
"""Where images have the folder of runs."""

LONGEST_NAME = 39
"""A CronJob's may have 52 characters; a JobSet adds to it for its jobs and pods, which may have 63."""

_USER = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*", re.ASCII)


@dataclass(frozen=True)
class Here:
    """Where a schedule is written.

    Args:
      python: The one that runs nox.
      checkout: Folder of the noxfile.
      user: Who asks.
    """

    python: str
    checkout: Path
    user: str


class Blanks(Template):
    """Text with `${name}` to be filled; a shell's `$name` and a workflow's `${{ … }}` are left as they are."""

    idpattern = r"(?!)"
    braceidpattern = r"[a-z_]+"
    flags = re.ASCII


def look_here(checkout: Path) -> Here:
    """This process, and who runs it; nobody where the system has no name for them."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    return Here(sys.executable, checkout.resolve(), user)


def write_asked_schedule(arguments: Sequence[str], here: Here) -> None:
    """Writes a schedule to stdout, or to the file that is asked for.

    Raises:
      UsageError: It cannot be written as asked.
    """
    asked = read_schedule_request(arguments)
    for warning in find_warnings(asked):
        say(f"warning: {warning}")
    files = fill_schedule(asked, here)
    if asked.to is None:
        print("\n".join(text for _, text in files), end="")
        return
    for name, text in files:
        path = asked.to.with_suffix(Path(name).suffix) if len(files) > 1 else asked.to
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf8")
        except OSError as error:
            raise UsageError(f"--to {path}: {error.strerror}; name a file that can be written") from None
        say(f"wrote {path}")


def fill_schedule(asked: Asked, here: Here) -> list[tuple[str, str]]:
    """Name and text of every file of a schedule.

    Raises:
      UsageError: A value cannot be written in the format of this engine.
    """
    return [(name, fill(name, asked, here)) for name in asked.engine.files]


def fill(name: str, asked: Asked, here: Here) -> str:
    """A template with all its blanks filled."""
    text = _read(name, here)
    if found := re.search(r"^( *)\$\{pod\}$", text, re.MULTILINE):
        text = text.replace(found[0], textwrap.indent(_read(POD, here).rstrip(), found[1]))
    blanks = Blanks(text)
    values = VALUES[Path(name).suffix](asked, here)
    return blanks.safe_substitute({blank: values[blank] for blank in blanks.get_identifiers()})


def _read(name: str, here: Here) -> str:
    return (here.checkout / TEMPLATES / name).read_text(encoding="utf8")


def _fill_yaml(asked: Asked, here: Here) -> dict[str, str]:
    return {
        "name": name_objects(asked.machine),
        "at": asked.at.text,
        "limit_s": str(LIMIT_S),
        "limit_minutes": str(LIMIT_S // 60),
        "image": quote_yaml(asked.image),
        "store_image": quote_yaml(asked.store_image),
        "begin": quote_pod_words(["-m", "jaxmeter", "night", "begin", *_begin(asked)]),
        "nodes": quote_yaml(asked.nodes),
        "device": asked.backend.cluster_device,
        "devices": str(asked.devices),
        "service_account": quote_yaml(asked.service_account),
        "shared_memory": f"{asked.backend.shared_memory.removesuffix('g')}Gi",
        "security": quote_yaml(PRIVILEGED if asked.is_privileged else CONFINED),
        "machine": quote_yaml(asked.machine),
        "night": shlex.join(_night(asked)),
        "gate": shlex.join(_measuring(asked, take_option(asked.night, "--baseline")[1])),
    }


def _fill_script(asked: Asked, here: Here) -> dict[str, str]:
    return {
        "name": name_objects(asked.machine),
        "at": asked.at.text,
        "limit_minutes": str(LIMIT_S // 60),
        "devices": f"#SBATCH --gres=gpu:{asked.devices}" if asked.backend.cluster_device else "",
        "command": shlex.join(_nightly(asked, here)),
        "image": shlex.quote(asked.image),
        "store_image": shlex.quote(asked.store_image),
        "begin": shlex.join(_begin(asked)),
    }


def _fill_unit(asked: Asked, here: Here) -> dict[str, str]:
    if not _USER.fullmatch(here.user):
        raise UsageError(f"systemd cannot run a night as {here.user!r}; write the schedule as another user")
    return {
        "user": here.user,
        "command": quote_unit(_nightly(asked, here)),
        "limit_s": str(LIMIT_S),
        "calendar": asked.at.to_calendar(),
    }


VALUES = {".yaml": _fill_yaml, ".sh": _fill_script, ".service": _fill_unit, ".timer": _fill_unit}
"""What blanks are filled with, by the format that decides how values are quoted."""


def name_objects(machine: str) -> str:
    """What a schedule of a machine is called in a cluster: lower-case letters, digits and hyphens."""
    slug = re.sub(r"[^a-z0-9]+", "-", f"jaxmeter-{machine.lower()}", flags=re.ASCII)
    return slug[:LONGEST_NAME].strip("-")


def _nightly(asked: Asked, here: Here) -> list[str]:
    """The whole command of a night in this checkout; nox goes to the folder of its file."""
    noxfile = str(here.checkout / "noxfile.py")
    return [here.python, "-m", "nox", "--noxfile", noxfile, "--session", "nightly", "--", *_night(asked)]


def _night(asked: Asked) -> list[str]:
    return ["--store", asked.store, *_measuring(asked, asked.night)]


def _begin(asked: Asked) -> list[str]:
    """Arguments of the first step, where steps run in images: its own, then those of the measurement."""
    night = read_night_request(_night(asked))
    _, measuring = take_option(night.measuring, "--backend")
    where = ("--machine", asked.machine, "--backend", asked.backend.name, "--out", RESULTS)
    return [asked.store, *where, *night.beginning, "--", *measuring]


def _measuring(asked: Asked, options: Sequence[str]) -> list[str]:
    return ["--machine", asked.machine, "--backend", asked.backend.name, *options]
