"""What `nox -s schedule` was asked for: an engine, a store, a machine, and how to measure there every night."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from launcher.backends import BACKENDS, BackendNeeds
from launcher.cron import Cron, read_cron
from launcher.measurements import check_night
from launcher.nights import FORBIDDEN
from launcher.options import UsageError, refuse, take_flag, take_option, take_options
from launcher.quoting import check_printable
from launcher.schedulers import MEANINGS, OF_THE_NIGHT, SCHEDULERS, Scheduler

STORES = ("s3://", "gs://", "file:///")
DEFAULT_AT = "0 3 * * *"
BUDGETS = "/work/budgets/"
"""Where pods see the budgets of a cluster."""

_IMAGE = re.compile(r"[\w/][\w./:@#+-]*", re.ASCII)
_LABEL = re.compile(r"([\w./-]+)=([\w.-]*)", re.ASCII)
_ACCOUNT = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", re.ASCII)


@dataclass(frozen=True)
class Asked:
    """A schedule.

    Args:
      night: Options of the night and of its measurement, passed on.
      nodes: Labels that the node has.
      to: Where to write it; None for stdout.
    """

    engine: Scheduler
    store: str
    machine: str
    backend: BackendNeeds
    at: Cron
    night: tuple[str, ...] = ()
    image: str = ""
    store_image: str = ""
    nodes: Mapping[str, str] = field(default_factory=dict)
    devices: int = 1
    service_account: str = "default"
    is_privileged: bool = False
    to: Path | None = None


def read_schedule_request(arguments: Sequence[str]) -> Asked:
    """`ENGINE --store URL --machine NAME [--backend NAME] [--at CRON] [--to FILE]`, the engine's options, the night's.

    Raises:
      UsageError: Something is missing, unknown, or not for this engine.
    """
    engine = _choose_engine(arguments)
    rest = list(arguments[1:])
    for word in rest:
        check_printable("an option", word)
        if engine.evaluates and engine.evaluates in word:
            raise UsageError(
                f"{word!r}: {engine.name} would evaluate {engine.evaluates!r} wherever it stands; leave it out"
            )
    refuse(rest, {**FORBIDDEN, **engine.forbidden})
    refuse(rest, {name: _explain(engine, name) for name in MEANINGS if not _takes(engine, name)})
    store, rest = take_option(rest, "--store")
    machine, rest = take_option(rest, "--machine")
    if store is None or machine is None:
        raise UsageError(
            f"name store and machine: nox -s schedule -- {engine.name} --store s3://team-bucket/nightly --machine NAME"
        )
    _check_store(engine, store)
    check_printable("--machine", machine)
    if machine.startswith("-"):
        raise UsageError(f"--machine {machine!r} would be taken for an option; give another name")
    backend, rest = take_option(rest, "--backend")
    if backend is not None and backend not in engine.backends:
        raise UsageError(f"--backend {backend!r}: {engine.name} measures on {' or '.join(engine.backends)}")
    at, rest = take_option(rest, "--at")
    to, rest = take_option(rest, "--to")
    values: dict[str, str] = {}
    for name in ("--image", "--store-image", "--devices", "--service-account"):
        if name in engine.options:
            value, rest = take_option(rest, name)
            values |= {} if value is None else {name: value}
    labels, rest = take_options(rest, "--node") if "--node" in engine.options else ([], rest)
    is_privileged, rest = take_flag(rest, "--privileged") if "--privileged" in engine.options else (False, rest)
    given = {*values, *(["--node"] if labels else [])}
    if missing := [name for name in engine.needed if name not in given]:
        raise UsageError(f"{engine.name} needs {missing[0]}: {MEANINGS[missing[0]]}")
    needs = BACKENDS[backend or engine.backends[0]]
    if is_privileged and not any(option.name == "--privileged" for option in needs.options):
        raise UsageError(f"--privileged: {needs.devices.name} need none")
    check_night(needs.name, rest)
    if engine.in_images:
        _check_budgets(rest)
    _check_files(engine, to)
    return Asked(
        engine,
        store,
        machine,
        needs,
        read_cron(at or DEFAULT_AT),
        tuple(rest),
        image=_check("--image", values.get("--image"), _IMAGE) or "",
        store_image=_check("--store-image", values.get("--store-image"), _IMAGE) or "",
        nodes=dict(_read_label(label) for label in labels),
        devices=_read_devices(needs, values.get("--devices")),
        service_account=_check("--service-account", values.get("--service-account"), _ACCOUNT) or "default",
        is_privileged=is_privileged,
        to=Path(to) if to else None,
    )


def find_warnings(asked: Asked) -> list[str]:
    """What will work, and should be otherwise, or does not work yet."""
    budgets, _ = take_option(asked.night, "--budgets")
    is_missing = budgets is not None and not asked.engine.in_images and not Path(budgets).is_file()
    missing = [f"--budgets {budgets}: no such file yet; without it every night ends with 2"] if is_missing else []
    return missing + [
        f"{name} {image} is no digest: a tag may name another image tomorrow; name it by @sha256:…"
        for name, image in (("--image", asked.image), ("--store-image", asked.store_image))
        if image and "@sha256:" not in image and not image.startswith("/")
    ]


def _choose_engine(arguments: Sequence[str]) -> Scheduler:
    known = ", ".join(SCHEDULERS)
    if not arguments or arguments[0].startswith("-"):
        raise UsageError(f"name an engine first, one of {known}: nox -s schedule -- systemd --store URL --machine NAME")
    name = arguments[0]
    if name not in SCHEDULERS:
        (nearest,) = difflib.get_close_matches(name, SCHEDULERS, n=1, cutoff=0)
        raise UsageError(f"there is no engine {name!r}; nearest: {nearest!r}; engines: {known}")
    return SCHEDULERS[name]


def _takes(engine: Scheduler, name: str) -> bool:
    return name in engine.options or (name in OF_THE_NIGHT and not engine.in_images)


def _explain(engine: Scheduler, name: str) -> str:
    owners = [one.name for one in SCHEDULERS.values() if name in one.options]
    return f"not for {engine.name}, only for {', '.join(owners)}"


def _check_store(engine: Scheduler, store: str) -> None:
    check_printable("--store", store)
    allowed = STORES[:-1] if engine.in_images else STORES
    if not store.startswith(allowed):
        why = "; a folder in a container is gone with it" if store.startswith(STORES) else ""
        raise UsageError(f"--store {store!r}: give {', '.join(f'{one}…' for one in allowed)}{why}")


def _check_budgets(night: Sequence[str]) -> None:
    budgets, _ = take_option(night, "--budgets")
    if budgets is not None and not budgets.startswith(BUDGETS):
        raise UsageError(
            f"--budgets {budgets!r}: a container does not see this machine's files; give {BUDGETS}FILE, and the "
            "cluster a ConfigMap: kubectl create configmap jaxmeter-budgets --from-file=FILE"
        )


def _check_files(engine: Scheduler, to: str | None) -> None:
    """Checks that of an engine with several files the first one is named as its kind is."""
    ending = Path(engine.files[0]).suffix
    if to is not None and len(engine.files) > 1 and Path(to).suffix != ending:
        others = ", ".join(Path(name).suffix for name in engine.files[1:])
        raise UsageError(f"--to {to!r}: give a name that ends in {ending}; beside it comes one in {others}")


def _check(name: str, value: str | None, pattern: re.Pattern[str]) -> str | None:
    if value is not None and not pattern.fullmatch(value):
        raise UsageError(f"{name} {value!r} cannot be one: {MEANINGS[name]}")
    return value


def _read_label(label: str) -> tuple[str, str]:
    if not (found := _LABEL.fullmatch(label)):
        raise UsageError(f"--node {label!r} is no LABEL=VALUE: {MEANINGS['--node']}")
    return found[1], found[2]


def _read_devices(needs: BackendNeeds, given: str | None) -> int:
    if given is None:
        return 1
    if not needs.cluster_device:
        raise UsageError(f"--devices {given!r}: {needs.devices.name} has none to count; leave it out")
    if not re.fullmatch(r"[1-9]\d{0,2}", given, re.ASCII):
        raise UsageError(f"--devices {given!r} is no count: {MEANINGS['--devices']}")
    return int(given)
