"""What can start nights by itself: one row of one table for each engine, with what it takes and what it does not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from launcher.backends import BACKENDS, OPTIONS
from launcher.nights import ENDING

_AS_IT_IS = "steps run in images as they are; it is an option of a checkout: slurm, github, systemd"
_GONE = "a file in a container is gone with it; the store keeps the verdict, and nox -s report makes the page"
FORBIDDEN_IN_IMAGES = {
    **{name: _AS_IT_IS for name in ("--runtime", "--base-image", "--open", *OPTIONS) if name != "--privileged"},
    "--out": "steps share one folder of their own",
    **dict.fromkeys(ENDING, _GONE),
}
FORBIDDEN_IN_WORKFLOWS = dict.fromkeys(("--out", *ENDING), "the workflow has places of its own")


@dataclass(frozen=True)
class Scheduler:
    """What starts nights.

    Args:
      files: Its templates in docker/schedules; the second and later ones take the name of the first.
      backends: What it can measure on; the first one where none is named.
      options: What it takes beside the options of all engines and those of the night.
      needed: Those of them that have to be given.
      forbidden: Why, by option, beside what no night takes.
      in_images: Whether steps run in images of a registry; else a checkout runs `nox -s nightly`.
      evaluates: What it would take for an expression in any text, quoted or not.
    """

    name: str
    files: tuple[str, ...]
    backends: tuple[str, ...]
    options: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    forbidden: Mapping[str, str] = field(default_factory=dict)
    in_images: bool = False
    evaluates: str = ""


_IMAGES = ("--image", "--store-image")
_POD = (*_IMAGES, "--node", "--devices", "--service-account", "--privileged")

SCHEDULERS = {
    one.name: one
    for one in (
        Scheduler(
            "kubernetes",
            ("cronjob.yaml",),
            tuple(name for name, needs in BACKENDS.items() if needs.cluster_device),
            options=_POD,
            needed=(*_IMAGES, "--node"),
            forbidden=FORBIDDEN_IN_IMAGES,
            in_images=True,
        ),
        Scheduler(
            "jobset",
            ("jobset.yaml",),
            ("tpu",),
            options=_POD,
            needed=(*_IMAGES, "--node"),
            forbidden=FORBIDDEN_IN_IMAGES,
            in_images=True,
        ),
        Scheduler("slurm", ("sbatch.sh",), ("cpu", "gpu"), options=("--devices",)),
        Scheduler(
            "pyxis",
            ("sbatch-pyxis.sh",),
            ("gpu", "cpu"),
            options=(*_IMAGES, "--devices"),
            needed=_IMAGES,
            forbidden=FORBIDDEN_IN_IMAGES,
            in_images=True,
        ),
        Scheduler(
            "github", ("github-actions.yaml",), tuple(BACKENDS), forbidden=FORBIDDEN_IN_WORKFLOWS, evaluates="${{"
        ),
        Scheduler("systemd", ("systemd.service", "systemd.timer"), tuple(BACKENDS)),
    )
}

MEANINGS = {
    "--image": "the image that measures, where the engine can pull it, by digest: --image registry/jaxmeter@sha256:…",
    "--store-image": "the image of the lock 'stores', by digest: --store-image registry/jaxmeter-stores@sha256:…",
    "--node": "a label of the nodes, so that every night runs on the same kind of machine: --node LABEL=VALUE",
    "--devices": "how many devices of a node: --devices 1",
    "--service-account": "an account of the cluster whose role reaches the store: --service-account NAME",
    "--privileged": "gives up protection for device files: --privileged",
}
"""What the options that only some engines have are good for."""

OF_THE_NIGHT = ("--image", "--privileged")
"""Options by these names that a night in a checkout takes itself, for the container that it measures in."""
