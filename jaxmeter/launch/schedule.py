"""Schedules of nightly runs: a template of each scheduler, its blanks, and the times in which it starts."""

from __future__ import annotations

import difflib
import getpass
import json
import os
import re
import shlex
import sys
import textwrap
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template

from jaxmeter.launch.backends import BACKENDS, OPTIONS
from jaxmeter.launch.command_line import SHARED, check_measuring, read_request
from jaxmeter.launch.execution import say
from jaxmeter.launch.nightly import BEGINNING, BEGINNING_FLAGS, ENDING, REFUSED, read_nightly_request
from jaxmeter.launch.options import Parser, UsageError, read_options
from jaxmeter.launch.request import HERE, NOX_VARIABLE, RUNTIME_VARIABLE, is_in_nox, name_command
from jaxmeter.launch.shell import PACKAGE, find_checkout

STORES = ("s3://", "gs://", "file:///")

RESULTS = "/work/results"
BUDGETS = "/work/budgets/"
"""Where images have the folder of runs, and pods the budgets of a cluster."""

LONGEST_NAME = 39
"""A CronJob's may have 52 characters; a JobSet adds to it for its jobs and pods, which may have 63."""

OWN = {
    "--store-image": {"store_image"},
    "--node": {"nodes"},
    "--devices": {"devices", "gres"},
    "--service-account": {"service_account"},
    "--privileged": {"security"},
}
"""Options of the engines whose templates have one of these blanks."""

PRIVILEGED = "{privileged: true, runAsNonRoot: false, runAsUser: 0}"


@dataclass(frozen=True)
class Here:
    """Where a schedule is written.

    Args:
      python: The one that runs nox, or jaxmeter itself.
      folder: Where nightly runs start: that of the noxfile, or the current folder.
      user: Who asks.
      is_nox: Whether nox runs the nightly runs.
    """

    python: str
    folder: Path
    user: str
    is_nox: bool = True

    @property
    def program(self) -> list[str]:
        """The command line of a nightly run without its options."""
        if not self.is_nox:
            return [self.python, "-m", "jaxmeter", "nightly"]
        return [self.python, "-m", "nox", "--noxfile", str(self.folder / "noxfile.py"), "--session", "nightly", "--"]


def look_here() -> Here:
    """Return this process, its folder and who runs it; nobody where the system has no name for them.

    Raises:
      UsageError: The name of the folder cannot be written in a schedule.
    """
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = ""
    nox = os.environ.get(NOX_VARIABLE)
    folder = PACKAGE.parent if nox else Path.cwd()
    check_printable("the folder", str(folder))
    return Here(nox or sys.executable, folder, user, is_nox=bool(nox))


def write_asked_schedule(arguments: Sequence[str], here: Here) -> None:
    """Write a schedule to stdout, or to the file that is asked for.

    Raises:
      UsageError: It cannot be written as asked.
    """
    asked = read_schedule_request(arguments)
    for warning in find_warnings(asked):
        say(f"warning: {warning}")
    files = fill_schedule(asked, here)
    if asked.to is None:
        print("\n".join(files.values()), end="")
        return
    for name, text in files.items():
        path = asked.to.with_suffix(Path(name).suffix) if len(files) > 1 else asked.to
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf8")
        except OSError as error:
            raise UsageError(f"--to {path}: {error.strerror}; name a file that can be written") from None
        say(f"wrote {path}")


def read_schedule_request(arguments: Sequence[str]) -> Namespace:
    """Return the options of `ENGINE --store URL --machine NAME …`, with `scheduler`, and the nightly run's as `rest`.

    Raises:
      UsageError: Something is missing, unknown, or not for this engine; or the schedule needs a checkout.
    """
    scheduler = _choose_scheduler(arguments)
    for word in arguments[1:]:
        check_printable("an option", word)
        if scheduler.evaluates and EXPRESSION in word:
            raise UsageError(f"{word!r}: {scheduler.name} would evaluate {EXPRESSION!r} anywhere; leave it out")
    asked, rest = make_parser(scheduler).parse_known_args(arguments[1:])
    asked.scheduler, asked.rest = scheduler, rest
    needs = BACKENDS[asked.backend]
    if asked.devices is not None and not needs.cluster_device:
        raise UsageError(f"--devices: {needs.devices.name} has none to count; leave it out")
    if asked.privileged and all(option.name != "--privileged" for option in needs.options):
        raise UsageError(f"--privileged: {needs.devices.name} need none; leave it out")
    if scheduler.needs_checkout:
        find_checkout(f"a schedule of {scheduler.name}")
    night = read_options(rest, flags=BEGINNING_FLAGS).rest
    measuring = night if scheduler.in_images else _read_measuring(scheduler, asked.backend, night)
    taken = (*BEGINNING, *ENDING) if scheduler.has_places else BEGINNING
    check_measuring(measuring, f"a nightly run by {scheduler.name}", taken, list_refused(scheduler))
    budgets = read_options(rest, "--budgets").get("--budgets")
    if scheduler.in_images and budgets is not None and not budgets.startswith(BUDGETS):
        raise UsageError(
            f"--budgets {budgets!r}: a container does not see this machine's files; give {BUDGETS}FILE, and the "
            "cluster a ConfigMap: kubectl create configmap jaxmeter-budgets --from-file=FILE"
        )
    return asked


def list_refused(scheduler: Scheduler) -> dict[str, str]:
    """Return why a nightly run by this engine does not take an option, by name."""
    owners = {name: [row.name for row in SCHEDULERS.values() if blanks & row.blanks] for name, blanks in OWN.items()}
    refused = {name: f"only for {', '.join(names)}" for name, names in owners.items() if scheduler.name not in names}
    if scheduler.in_images:
        in_checkouts = "steps run in images as they are; it is an option of a checkout: slurm, github, systemd"
        gone = "a file in a container is gone with it; jaxmeter report makes the page, from what is in the store"
        fixed = dict.fromkeys((*SHARED, "--open", *OPTIONS), in_checkouts) | dict.fromkeys(("--out", *ENDING), gone)
        refused = fixed | refused
    elif not scheduler.has_places:
        refused |= dict.fromkeys(
            ("--out", *ENDING), f"{scheduler.name} has folders of its own for what a nightly run writes"
        )
    return REFUSED | refused


def make_parser(scheduler: Scheduler) -> Parser:
    """Return the parser of a schedule's own options: those of all engines, and those that its templates ask for."""
    parser = Parser(
        name_command("schedule", scheduler.name),
        "All other options are those of a nightly run, and of its measurement.",
    )
    add, has = parser.add_argument, {name for name, blanks in OWN.items() if blanks & scheduler.blanks}
    add("--store", required=True, metavar="URL", type=_read_store(scheduler), help="where runs are pushed to")
    add("--machine", required=True, metavar="NAME", type=_read_machine, help="what the machine is called in every run")
    add("--backend", choices=scheduler.backends, default=scheduler.backends[0], help="(default: %(default)s)")
    add("--at", metavar="CRON", type=read_cron, default="0 3 * * *", help="five fields, UTC (default: %(default)s)")
    add("--to", metavar="FILE", type=_read_to(scheduler), help="where to write it (default: stdout)")
    parser.set_defaults(image="", store_image="", node=[], devices=None, service_account="default", privileged=False)
    image = _match(r"[\w/][\w./:@#+-]*", "the name of an image")
    if "--store-image" in has:
        add("--image", required=True, type=image, help="the image that measures, by digest: registry/name@sha256:…")
        add("--store-image", required=True, type=image, metavar="IMAGE", help="the image of the lock 'stores'")
    if "--node" in has:
        label = _match(r"[\w./-]+=[\w.-]*", "LABEL=VALUE, a label of the nodes")
        add("--node", required=True, action="append", metavar="LABEL=VALUE", type=label, help="of nodes of one kind")
    if "--devices" in has:
        add("--devices", metavar="N", type=_match(r"[1-9]\d{0,2}", "a count"), help="how many of a node (default: 1)")
    if "--service-account" in has:
        account = _match(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", "the name of an account of the cluster")
        add("--service-account", metavar="NAME", type=account, help="an account whose role reaches the store")
    if "--privileged" in has:
        add("--privileged", action="store_true", help="for device files that are root's")
    return parser


def find_warnings(asked: Namespace) -> list[str]:
    """Return what will work, and should be otherwise, or does not work yet."""
    budgets = read_options(asked.rest, "--budgets").get("--budgets")
    is_missing = budgets is not None and not asked.scheduler.in_images and not Path(budgets).is_file()
    missing = [f"--budgets {budgets}: no such file yet; without it every nightly run ends with 2"] if is_missing else []
    return missing + [
        f"{name} {image} is no digest: a tag may name another image tomorrow; name it by @sha256:…"
        for name, image in (("--image", asked.image), ("--store-image", asked.store_image))
        if image and "@sha256:" not in image and not image.startswith("/")
    ]


def fill_schedule(asked: Namespace, here: Here) -> dict[str, str]:
    """Return the text of every file of a schedule, by the name of its template.

    Raises:
      UsageError: A value cannot be written in the format of this engine.
    """
    needs, count = BACKENDS[asked.backend], asked.devices or "1"
    measuring = ["--machine", asked.machine, "--backend", asked.backend, *asked.rest]
    night = ["--store", asked.store, *measuring]
    request = read_nightly_request(["--store", asked.store, *asked.rest])
    where = ("--machine", asked.machine, "--backend", asked.backend, "--out", RESULTS)
    begin = [asked.store, *where, *request.beginning, "--", *request.measuring]
    values = {
        # Names and numbers, in which no format reads anything more.
        "name": name_objects(asked.machine),
        "at": asked.at.text,
        "image": asked.image,
        "store_image": asked.store_image,
        "service_account": asked.service_account,
        "device": needs.cluster_device,
        "devices": count,
        "gres": f"#SBATCH --gres=gpu:{count}" if needs.cluster_device else "",
        "shared_memory": needs.shared_memory.replace("g", "Gi"),
        "security": PRIVILEGED if asked.privileged else "*confined",
        # YAML
        "machine": quote_yaml(asked.machine),
        "nodes": quote_yaml(dict(label.split("=") for label in asked.node)),
        "begin_list": quote_list(begin),
        # Shells
        "folder": shlex.quote(str(here.folder)),
        "begin": shlex.join(begin),
        "night": shlex.join(night),
        "gate": shlex.join(read_options(measuring, "--baseline", flags=BEGINNING_FLAGS).rest),
        "command": shlex.join([*here.program, *night]),
        # systemd
        "exec_start": quote_unit([*here.program, *night]),
        "working_directory": quote_folder(here.folder),
        "user": here.user,
    }
    if "calendar" in asked.scheduler.blanks:
        values["calendar"] = asked.at.to_calendar()
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.-]*", here.user, re.ASCII):
            raise UsageError(f"systemd cannot run it as {here.user!r}; write the schedule as another user")
    return {name: template.safe_substitute(values) for name, template in asked.scheduler.templates.items()}


def name_objects(machine: str) -> str:
    """Return what a schedule of a machine is called in a cluster: lower-case letters, digits and hyphens."""
    slug = re.sub(r"[^a-z0-9]+", "-", f"jaxmeter-{machine.lower()}", flags=re.ASCII)
    return slug[:LONGEST_NAME].strip("-")


def _choose_scheduler(arguments: Sequence[str]) -> Scheduler:
    known = ", ".join(SCHEDULERS)
    if not arguments or arguments[0].startswith("-"):
        raise UsageError(f"name an engine first, one of {known}: systemd --store URL --machine NAME")
    name = arguments[0]
    if name not in SCHEDULERS:
        (nearest,) = difflib.get_close_matches(name, SCHEDULERS, n=1, cutoff=0)
        raise UsageError(f"there is no engine {name!r}; nearest: {nearest!r}; engines: {known}")
    return SCHEDULERS[name]


def _read_measuring(scheduler: Scheduler, backend: str, night: Sequence[str]) -> Sequence[str]:
    """Return the arguments of the harness, once those of the launcher are checked.

    Raises:
      UsageError: An option of the launcher is invalid, or needs a checkout.
    """
    by_nox = scheduler.needs_checkout or is_in_nox()
    request = read_request(backend, night, {RUNTIME_VARIABLE: "auto"} if by_nox else {})
    if request.runtime != HERE:
        find_checkout(f"--runtime {request.runtime}", "; or leave it out, and the environment of this command measures")
    return request.arguments


def _read_store(scheduler: Scheduler) -> Callable[[str], str]:
    allowed = STORES[:-1] if scheduler.in_images else STORES

    def read(text: str) -> str:
        if not text.startswith(allowed):
            why = "; a folder in a container is gone with it" if text.startswith(STORES) else ""
            raise ArgumentTypeError(f"{text!r}: give {', '.join(f'{scheme}…' for scheme in allowed)}{why}")
        return text

    return read


def _read_machine(text: str) -> str:
    check_printable("--machine", text)
    if text.startswith("-"):
        raise ArgumentTypeError(f"{text!r} would be taken for an option; give another name")
    return text


def _read_to(scheduler: Scheduler) -> Callable[[str], Path]:
    first, *others = (Path(name).suffix for name in scheduler.files)

    def read(text: str) -> Path:
        if others and Path(text).suffix != first:
            raise ArgumentTypeError(f"{text!r}: give a name that ends in {first}; next to it comes {' '.join(others)}")
        return Path(text)

    return read


def _match(pattern: str, what: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ArgumentTypeError(f"{text!r} is not {what}")
        return text

    return read


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


FIELDS = {"minute": (0, 59), "hour": (0, 23), "day of the month": (1, 31), "month": (1, 12), "day of the week": (0, 7)}
"""What each field may hold; on days of the week 0 and 7 are both Sunday."""

WEEKDAYS = ("Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat")

EXAMPLE = '"0 3 * * *" is every day at three, UTC'

_PART = re.compile(r"(?:\*|(\d{1,2})(?:-(\d{1,2}))?)(?:/(\d{1,2}))?", re.ASCII)


@dataclass(frozen=True)
class Cron:
    """Times at which something starts.

    Args:
      values: What each of FIELDS allows, in order; None where it allows all.
    """

    text: str
    values: tuple[tuple[int, ...] | None, ...]

    def to_calendar(self) -> str:
        """The same times as systemd writes them: `*-*-* 03:00:00 UTC`.

        Raises:
          UsageError: Both days are limited. To cron one of them is enough, to systemd it is not.
        """
        minutes, hours, days, months, weekdays = self.values
        if days is not None and weekdays is not None:
            raise UsageError(
                f"--at {self.text!r} names days of the month and of the week; for systemd name one of them"
            )
        week = "" if weekdays is None else ",".join(WEEKDAYS[day] for day in weekdays) + " "
        return f"{week}*-{_join(months)}-{_join(days)} {_join(hours)}:{_join(minutes)}:00 UTC"


def read_cron(text: str) -> Cron:
    """Reads five fields of numbers, `*`, ranges `1-5`, steps `*/2` and lists `1,3`.

    Raises:
      UsageError: It is something else.
    """
    words = text.split()
    if len(words) != len(FIELDS):
        raise UsageError(f"--at {text!r}: give five fields, {', '.join(FIELDS)}: {EXAMPLE}")
    values = tuple(_read_field(text, name, word) for name, word in zip(FIELDS, words, strict=True))
    return Cron(" ".join(words), values)


def _read_field(text: str, name: str, word: str) -> tuple[int, ...] | None:
    low, high = FIELDS[name]
    if word == "*":
        return None
    allowed: set[int] = set()
    for part in word.split(","):
        found = _PART.fullmatch(part)
        first, last, step = found.groups() if found else (None, None, "0")
        start = low if first is None else int(first)
        end = int(last) if last else high if first is None or step else start
        if int(step or 1) == 0 or not low <= start <= end <= high:
            raise UsageError(f"--at {text!r}: {part!r} is no {name}, which is a number from {low} to {high}: {EXAMPLE}")
        allowed.update(range(start, end + 1, int(step or 1)))
    if name == "day of the week":
        allowed = {day % len(WEEKDAYS) for day in allowed}
    return tuple(sorted(allowed))


def _join(values: tuple[int, ...] | None) -> str:
    return "*" if values is None else ",".join(f"{value:02}" for value in values)


def check_printable(name: str, value: str) -> None:
    """Check that a value is one line of text, which every format can hold.

    Raises:
      UsageError: It is empty, or has line breaks or other characters that nobody sees.
    """
    if not value.strip():
        raise UsageError(f"{name} is empty")
    if not value.isprintable():
        raise UsageError(f"{name} {value!r} has characters that cannot be printed; leave them out")


def quote_yaml(value: object) -> str:
    """Return text or a mapping as YAML on one line: what is JSON is YAML too."""
    return json.dumps(value, ensure_ascii=False)


def quote_list(words: Sequence[str]) -> str:
    """Return words of a pod's command, as items of a list in YAML: there `$(NAME)` is a variable, `$$` a dollar."""
    return ", ".join(quote_yaml(word.replace("$", "$$")) for word in words)


def quote_unit(words: Sequence[str]) -> str:
    """Return a command of a systemd unit: there `%` begins a specifier, and `$` a variable except in the program."""
    program, *arguments = (word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") for word in words)
    return " ".join(f'"{word}"' for word in (program, *(one.replace("$", "$$") for one in arguments)))


def quote_folder(folder: Path) -> str:
    """Return the working folder of a systemd unit: `%` begins a specifier, and there are neither quotes nor escapes.

    Raises:
      UsageError: systemd would change the path.
    """
    text = str(folder)
    if text != text.strip() or text.endswith("\\"):
        raise UsageError(f"{text!r}: systemd cannot start in this folder; call the command in another one")
    return text.replace("%", "%%")
