"""jaxmeter's images and the locks that they are made from, named by a hash of what goes into them."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jaxmeter.launch.engines import Engine, EngineAnswer, ask_client
from jaxmeter.launch.host import GB, MB
from jaxmeter.launch.index import Secrets
from jaxmeter.launch.options import UsageError

LOCK_FOLDER = Path("docker/locks")


@dataclass(frozen=True)
class Lock:
    """A lock that becomes an image, and the cost of installing it.

    Args:
      name: Its file is docker/locks/<name>.txt, its image jaxmeter:<name>-<hash>.
      extras: Extras of pyproject.toml, in addition to `all`, as arguments of `uv export`.
      download_bytes: Size of its wheels, for Linux on x86-64 and the image's Python (a cold build fetches these).
      image_bytes: Size of the finished image, with its base.
      disk_bytes: Disk space of a cold build: wheels, the environment twice (build stage and image), and a reserve.
      oldest_driver: Major version of NVIDIA's driver that its CUDA needs; None without CUDA.
    Source: image sizes measured with docker, which the session `container` checks to within 10 % (gpu-cuda12, cpu-torch
      and stores: built once). Downloads are counted from the wheels. Drivers are from JAX's installation page.
    """

    name: str
    extras: tuple[str, ...]
    download_bytes: int
    image_bytes: int
    disk_bytes: int
    oldest_driver: int | None = None


LOCKS = {
    lock.name: lock
    for lock in (
        Lock("cpu", (), 290 * MB, 1270 * MB, 3 * GB),
        # For peers in PyTorch. What PyPI has of it for Linux holds CUDA's libraries too.
        Lock("cpu-torch", ("--extra", "torch"), 3290 * MB, 6840 * MB, 18 * GB),
        Lock("gpu", ("--extra", "gpu"), 2780 * MB, 5320 * MB, 15 * GB, oldest_driver=580),
        Lock("gpu-cuda12", ("--extra", "gpu-cuda12"), 3510 * MB, 6470 * MB, 18 * GB, oldest_driver=525),
        Lock("tpu", ("--extra", "tpu"), 500 * MB, 1940 * MB, 5 * GB),
        Lock("stores", ("--extra", "s3", "--extra", "gcs"), 300 * MB, 1290 * MB, 3 * GB),
    )
}

SMALLEST_LOCK = "cpu"
"""What is meant where no lock is named. A report needs no more."""


STORES_LOCK = "stores"
"""That of the report, with what reads and writes buckets."""


def choose_lock(arguments: Sequence[str]) -> str:
    """The lock that a command of the report needs."""
    return STORES_LOCK if any("://" in word for word in arguments) else SMALLEST_LOCK


def locate_lock(name: str) -> str:
    """Where the file of a lock is, from the root of a checkout."""
    return (LOCK_FOLDER / f"{name}.txt").as_posix()


DOCKERFILE = Path("docker/Dockerfile")
WHEELS = Path("docker/wheels")
CODE = "jaxmeter"
TAG_DIGITS = 12
OWN_IMAGES = "jaxmeter:"
"""How the names of all images begin that are built here."""

UNKNOWN = "unknown"
LOCK_LABEL = "io.jaxmeter.lock-sha256"


@dataclass(frozen=True)
class Image:
    """An image as it would be built from a checkout.

    Args:
      lock: A key of `locks.LOCKS`.
      base: The image that it is built on.
      checkout: Where Dockerfile, locks and code are.
    """

    lock: str
    base: str
    checkout: Path

    @property
    def name(self) -> str:
        """`jaxmeter:cpu-1f0c9a7b3d52`: another input, another name, so what has this name need not be built again."""
        digest = hashlib.sha256(self.base.encode())
        for path in _inputs(self.checkout, self.lock):
            digest.update(f"\n{path.relative_to(self.checkout).as_posix()}\n".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
        return f"{OWN_IMAGES}{self.lock}-{digest.hexdigest()[:TAG_DIGITS]}"

    @property
    def lock_sha256(self) -> str:
        """Hash of the lock: equal hashes, equal packages."""
        return lock_sha256(self.checkout, self.lock)


def lock_sha256(checkout: Path, lock: str) -> str:
    """SHA-256 of a lock's file, in hexadecimal."""
    return hashlib.sha256((checkout / locate_lock(lock)).read_bytes()).hexdigest()


def check_buildable(checkout: Path) -> None:
    """Raises UsageError where this jaxmeter is not a checkout: an installed package has no Dockerfile."""
    if not (checkout / DOCKERFILE).is_file():
        raise UsageError(f"images are built from a checkout of jaxmeter, and {checkout} has no {DOCKERFILE}")


@dataclass(frozen=True)
class Build:
    """How to build.

    Args:
      image: What.
      secrets: pip's configuration and the certificates that it trusts.
      offline: Without a network, from docker/wheels/ alone.
      proxies: Names of proxy variables that are set; their values stay out of command lines and images.
      on_host_network: Whether the index or proxy listens on this machine's own loopback address.
    """

    image: Image
    secrets: Secrets = field(default_factory=Secrets)
    offline: bool = False
    proxies: tuple[str, ...] = ()
    on_host_network: bool = False


def build_arguments(engine: Engine, build: Build, *, revision: str, version: str) -> list[str]:
    """The command line that builds an image."""
    image = build.image
    network = "none" if build.offline else "host" if build.on_host_network else None
    values = {
        "BASE_IMAGE": image.base,
        "LOCK": image.lock,
        "VERSION": version,
        "REVISION": revision,
        "LOCK_SHA256": image.lock_sha256,
        **({"PIP_NO_INDEX": "1"} if build.offline else {}),
    }
    return [
        *(engine.client, "build", "--file", str(image.checkout / DOCKERFILE), "--tag", image.name),
        *(("--progress", "plain") if engine.kind != "podman" else ()),
        *(("--network", network) if network else ()),
        *(word for name, value in values.items() for word in ("--build-arg", f"{name}={value}")),
        *(word for name in build.proxies for word in ("--build-arg", name)),
        *(word for name, path in build.secrets.files.items() for word in ("--secret", f"id={name},src={path}")),
        str(image.checkout),
    ]


def image_id(engine: Engine, name: str) -> str | None:
    """The engine's id of an image that it has, `sha256:…`; None where it has none of that name."""
    answer = _inspect(engine, name, "{{.Id}}")
    if answer.code != 0 or not answer.stdout.strip():
        return None
    return f"sha256:{answer.stdout.strip().splitlines()[0].removeprefix('sha256:')}"


def image_variables(engine: Engine, name: str) -> dict[str, str]:
    """Environment variables that an image sets."""
    lines = _inspect(engine, name, "{{range .Config.Env}}{{println .}}{{end}}").stdout.splitlines()
    return {name: value for name, mark, value in (line.partition("=") for line in lines) if mark}


def has_image_of_lock(engine: Engine, sha256: str) -> bool:
    """Whether an image of this lock is there, whose layers a build of newer code can use."""
    wanted = f"label={LOCK_LABEL}={sha256}"
    return bool(ask_client([engine.client, "images", "--quiet", "--filter", wanted]).stdout.strip())


def image_size_bytes(engine: Engine, name: str) -> int | None:
    """What an image takes, base included."""
    said = _inspect(engine, name, "{{.Size}}").stdout.strip()
    return int(said) if said.isdigit() else None


def revision_of(folder: Path) -> str:
    """The git revision of a folder, `-dirty` where tracked files differ from it; `unknown` outside a repository."""
    said = ask_git(folder, "rev-parse", "HEAD")
    if said is None or not re.fullmatch(r"[0-9a-f]{40,64}", said):
        return UNKNOWN
    return f"{said}-dirty" if ask_git(folder, "status", "--porcelain", "--untracked-files=no") else said


def version_of(checkout: Path) -> str:
    """The version of jaxmeter, as jaxmeter/version.py has it; the launcher does not import the harness."""
    match = re.search(r'__version__ = "([^"]+)"', (checkout / "jaxmeter/version.py").read_text(encoding="utf8"))
    return match[1] if match else UNKNOWN


def proxies_in(variables: Mapping[str, str]) -> tuple[str, ...]:
    """Proxy variables that are set. Engines know them as build arguments and keep them out of the image's history."""
    names = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY")
    return tuple(name for name in names if variables.get(name))


def _inputs(checkout: Path, lock: str) -> Iterator[Path]:
    yield checkout / DOCKERFILE
    yield checkout / ".dockerignore"
    yield checkout / locate_lock(lock)
    for path in sorted((checkout / CODE).rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            yield path


def _inspect(engine: Engine, name: str, wanted: str) -> EngineAnswer:
    return ask_client([engine.client, "image", "inspect", "--format", wanted, name])


def ask_git(folder: Path, *words: str) -> str | None:
    """Return what git prints about a folder; None where there is no git, or it fails."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *words], capture_output=True, text=True, check=True, timeout=10
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
