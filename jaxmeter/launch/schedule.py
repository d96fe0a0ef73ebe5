"""Schedules of nightly runs: a few options fill the blanks of a scheduler's template, and users edit the rest."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import textwrap
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from string import Template

from jaxmeter.launch.backends import BACKENDS
from jaxmeter.launch.command_line import check_measuring, read_request
from jaxmeter.launch.execution import say
from jaxmeter.launch.nightly import BEGINNING, BEGINNING_FLAGS, ENDING, REFUSED, read_nightly_request
from jaxmeter.launch.options import Parser, UsageError, read_options, write_option
from jaxmeter.launch.request import HERE, NOX_VARIABLE, name_command
from jaxmeter.launch.shell import PACKAGE, find_checkout

TEMPLATES = Path(__file__).with_name("schedules")
LONGEST_NAME = 39  # of a CronJob 52, of a pod 63; a JobSet lengthens its name for its pods
EXPRESSION = "${{"  # GitHub evaluates it in all texts of a workflow, quoted or not

IMAGE = r"[\w/][\w./:@#+-]*"
CRON = r" *[\w*/,-]+( +[\w*/,-]+){4} *"
CALENDAR = r"[a-z]+|[\w*/,.~ -]+:[\w*/,.:~ -]+"


def quote_list(words: Sequence[str]) -> str:
    """Return words of a pod's command as items of a YAML list. There `$(NAME)` is a variable, and `$$` a dollar."""
    return json.dumps([word.replace("$", "$$") for word in words], ensure_ascii=False)[1:-1]


def quote_unit(words: Sequence[str]) -> str:
    """Return a command of a systemd unit: `%` begins a specifier, and `$` a variable except in the program."""
    program, *arguments = (word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%") for word in words)
    return " ".join(f'"{word}"' for word in (program, *(word.replace("$", "$$") for word in arguments)))


@dataclass(frozen=True)
class Scheduler:
    """A scheduler that starts nightly runs.

    Args:
      backends: Backends that it can measure on; the first is the default.
      quote: Writes a command in its template.
      in_images: Whether its steps run in images of a registry.
      in_checkout: Whether it makes a checkout, and its steps are sessions there, as in a workflow of GitHub.
      times: Pattern of its start times, and the default.
    """

    backends: Sequence[str]
    quote: Callable[[Sequence[str]], str]
    in_images: bool = False
    in_checkout: bool = False
    times: tuple[str, str] = (CRON, "0 3 * * *")


SCHEDULERS = {
    "kubernetes": Scheduler(("gpu", "tpu"), quote_list, in_images=True),
    "jobset": Scheduler(("tpu",), quote_list, in_images=True),
    "slurm": Scheduler(("cpu", "gpu"), shlex.join),
    "pyxis": Scheduler(("gpu", "cpu"), shlex.join, in_images=True),
    "github": Scheduler(tuple(BACKENDS), shlex.join, in_checkout=True),
    "systemd": Scheduler(tuple(BACKENDS), quote_unit, times=(CALENDAR, "*-*-* 03:00:00 UTC")),
}


class Blanks(Template):
    """Text with blanks `${name}`; a shell's `$name` and GitHub's `${{ name }}` are none."""

    idpattern = r"(?!)"
    braceidpattern = r"[a-z_]+"


def look_here() -> tuple[list[str], Path]:
    """Return the command of a nightly run of this nox or this environment, and the folder in which it starts."""
    if python := os.environ.get(NOX_VARIABLE):
        noxfile = str(PACKAGE.parent / "noxfile.py")
        return [python, "-m", "nox", "--noxfile", noxfile, "--session", "nightly", "--"], PACKAGE.parent
    return [sys.executable, "-m", "jaxmeter", "nightly"], Path.cwd()


def write_asked_schedule(arguments: Sequence[str]) -> None:
    """Write a schedule to stdout, or to the requested file.

    Raises:
      UsageError: It cannot be written as asked.
    """
    asked = read_schedule_request(arguments)
    files = fill_schedule(asked, *look_here())
    if asked.to is None:
        print("\n".join(files.values()), end="")
        return
    for name, text in files.items():
        path = asked.to.parent / f"{asked.to.stem}{Path(name).suffix}" if len(files) > 1 else asked.to
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf8")
        except OSError as error:
            raise UsageError(f"--to {path}: {error.strerror}; name a file that can be written") from None
        say(f"wrote {path}")


def read_schedule_request(arguments: Sequence[str]) -> Namespace:
    """Return the options of `ENGINE --store URL --machine NAME …`; those of the nightly run as `rest` and `night`.

    Raises:
      UsageError: Something is missing, unknown, or not for this engine; or the schedule needs a checkout.
    """
    engine = next(iter(arguments), "")
    if engine not in SCHEDULERS:
        raise UsageError(f"{engine!r} is no engine; name one first: {', '.join(SCHEDULERS)}")
    scheduler = SCHEDULERS[engine]
    for word in arguments:
        if not word.isprintable():
            raise UsageError(f"{word!r} has characters that cannot be printed; leave them out")
        if scheduler.in_checkout and EXPRESSION in word:
            raise UsageError(f"{word!r}: {engine} would evaluate {EXPRESSION!r} anywhere; leave it out")
    asked, rest = _make_parser(engine, scheduler).parse_known_args(arguments[1:])
    measuring = read_options(rest, flags=BEGINNING_FLAGS).rest
    if scheduler.in_checkout:
        find_checkout(f"a schedule of {engine}")
    if not scheduler.in_images:
        request = read_request(asked.backend, measuring, os.environ)
        if request.runtime != HERE:
            find_checkout(f"--runtime {request.runtime}", "; or leave it out: the environment of this command measures")
        measuring = list(request.arguments)
    named = ("--out", *ENDING) if scheduler.in_images or scheduler.in_checkout else ()
    reasons = REFUSED | dict.fromkeys(named, f"the file of {engine} names it; leave it out, or edit the file")
    check_measuring(measuring, f"a nightly run by {engine}", (*BEGINNING, *ENDING), reasons)
    night = read_nightly_request(["--store", asked.store, *write_option("--machine", asked.machine), *rest])
    asked.engine, asked.rest, asked.night = engine, rest, night
    return asked


def _make_parser(engine: str, scheduler: Scheduler) -> Parser:
    parser = Parser(name_command("schedule", engine), "Other options are those of a nightly run and its measurement.")
    add, (times, at) = parser.add_argument, scheduler.times
    folder = "" if scheduler.in_images else "|file:///.+"  # a folder in a container is gone with it
    store = _match(f"(s3|gs)://.+{folder}", f"s3://…, gs://…{' or file:///…' if folder else ''}")
    image = _match(IMAGE, "the name of an image")
    add("--store", required=True, metavar="URL", type=store, help="where runs are pushed to")
    add("--machine", required=True, metavar="NAME", help="what the machine is called in every run")
    add("--backend", choices=scheduler.backends, default=scheduler.backends[0], help="(default: %(default)s)")
    add("--at", metavar="TIME", type=_match(times, f"a time such as {at!r}"), default=at, help="(default: %(default)s)")
    add("--to", metavar="FILE", type=Path, help="where to write it (default: stdout)")
    parser.set_defaults(image="", store_image="")
    if scheduler.in_images:
        add("--image", required=True, type=image, help="the image that measures, by digest: registry/name@sha256:…")
        add("--store-image", required=True, type=image, metavar="IMAGE", help="the image of the lock 'stores'")
    return parser


def _match(pattern: str, wanted: str) -> Callable[[str], str]:
    def read(text: str) -> str:
        if not re.fullmatch(pattern, text, re.ASCII):
            raise ArgumentTypeError(f"{text!r}: give {wanted}")
        return text

    return read


def fill_schedule(asked: Namespace, program: Sequence[str], folder: Path) -> dict[str, str]:
    """Return the text of each file of a schedule, by the name of its template; arguments as of `look_here`.

    Raises:
      UsageError: The nightly run cannot start in this folder.
    """
    start = str(folder)
    if not start.isprintable() or start != start.strip() or start.endswith("\\"):  # systemd would change it
        raise UsageError(f"{start!r}: a schedule cannot start in this folder; call the command in another one")
    needs, scheduler = BACKENDS[asked.backend], SCHEDULERS[asked.engine]
    where = [*write_option("--machine", asked.machine), "--backend", asked.backend]
    night = [*(() if scheduler.in_checkout else program), "--store", asked.store, *where, *asked.rest]
    begin = [asked.store, *where, "--out", "/work/results", *asked.night.beginning, "--", *asked.night.measuring]
    slug = re.sub(r"[^a-z0-9]+", "-", f"jaxmeter-{asked.machine.lower()}")
    blanks = {
        "command": scheduler.quote(begin if scheduler.in_images else night),
        "gate": shlex.join([*where, *read_options(asked.rest, "--baseline", flags=BEGINNING_FLAGS).rest]),
        "folder": start.replace("%", "%%") if asked.engine == "systemd" else shlex.quote(start),
        "machine": json.dumps(asked.machine, ensure_ascii=False),
        "name": slug[:LONGEST_NAME].strip("-"),
        "at": " ".join(asked.at.split()),
        "image": asked.image,
        "store_image": asked.store_image,
        "device": needs.cluster_device,
        "shared_memory": needs.shared_memory.replace("g", "Gi"),
        "sbatch": "#SBATCH" if needs.cluster_device else "##SBATCH",
        "user": str(os.getuid()),
    }

    def fill(name: str) -> str:
        return Blanks((TEMPLATES / name).read_text(encoding="utf8")).safe_substitute(blanks)

    blanks["pod"] = textwrap.indent(fill("pod.yaml").rstrip(), " " * 10)
    return {path.name: fill(path.name) for path in sorted(TEMPLATES.glob(f"{asked.engine}.*"))}
