"""The container engine: which one is here, whether it can build and run, and what its errors mean."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxmeter.launch.index import host_of, is_loopback
from jaxmeter.launch.options import UsageError

ENGINE_VARIABLE = "JAXMETER_ENGINE"
KINDS = ("docker", "podman", "nerdctl")
"""In the order in which they are tried."""

ANSWER_TIMEOUT_S = 20
"""docker answers in 0.06 s, podman in 0.3 s; an engine whose storage wakes up first takes seconds."""

BUILDX_SINCE = 23
"""From this version on docker's client builds with its plugin buildx; older ones know BuildKit themselves."""

CONTEXT_ADDRESS = ("context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
ELSEWHERE = "run jaxmeter there, or unset DOCKER_HOST, CONTAINER_HOST or the client's context"

Ask = Callable[[list[str]], "EngineAnswer"]


@dataclass(frozen=True)
class EngineAnswer:
    """What a client said: its exit code (None: it could not be started, or never answered) and its words."""

    code: int | None
    stdout: str = ""
    stderr: str = ""

    @property
    def complaint(self) -> str:
        """The last line of what it printed, which is where clients put their reason."""
        return find_last_line(self.stderr, self.stdout) or f"it ended with exit code {self.code}"


@dataclass(frozen=True)
class Engine:
    """A container engine that answered and can build.

    Args:
      client: Path of its client.
      kind: One of KINDS.
      version: The server's, as it says.
      rootless: Whether root in a container is the caller outside.
      remapped: Whether a root daemon maps container users to others (`userns-remap`).
      nvidia_runtime: Whether NVIDIA's runtime is registered with it.
      cdi: Whether it takes CDI names as `--device`.
      selinux: Whether it labels containers, so that mounts of a home folder are refused.
      storage: Folder on this machine where it keeps images; None where it is not known.
    """

    client: str
    kind: str
    version: str
    rootless: bool = False
    remapped: bool = False
    nvidia_runtime: bool = False
    cdi: bool = False
    selinux: bool = False
    storage: str | None = None

    def __str__(self) -> str:
        return f"{self.kind} {self.version}{' (rootless)' if self.rootless else ''}"


@dataclass(frozen=True)
class Rejected:
    """A client that is there and cannot be used, with the reason and what to do about it."""

    client: str
    reason: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.client}: {self.reason}; {self.remedy}"


@dataclass(frozen=True)
class Search:
    """What a search for an engine found: the one to use, and those that were passed over."""

    engine: Engine | None
    rejected: tuple[Rejected, ...]

    def why_none(self) -> str:
        """Why there is no engine, in one line a client."""
        if not self.rejected:
            return f"no container engine is installed (looked for {', '.join(KINDS)} on PATH)"
        return "no container engine can be used:" + "".join(f"\n  {rejected}" for rejected in self.rejected)


def find_engine(variables: Mapping[str, str], ask: Ask | None = None) -> Search:
    """The first client that answers and can build: $JAXMETER_ENGINE alone, or every docker on PATH, podman, nerdctl.

    Raises:
      UsageError: $JAXMETER_ENGINE names a client that is not there, is of no known kind, or cannot be used.
    """
    ask = ask or ask_client
    path = variables.get("PATH", os.defpath)
    if wanted := variables.get(ENGINE_VARIABLE):
        examined = _examine(_named(wanted, path), ask, variables)
        if isinstance(examined, Rejected):
            raise UsageError(f"{ENGINE_VARIABLE}={wanted}: {examined.reason}; {examined.remedy}")
        return Search(examined, ())
    rejected: list[Rejected] = []
    for client in _on_path(path):
        examined = _examine(client, ask, variables)
        if isinstance(examined, Engine):
            return Search(examined, tuple(rejected))
        rejected.append(examined)
    return Search(None, tuple(rejected))


def ask_client(command: list[str], timeout_s: float = ANSWER_TIMEOUT_S) -> EngineAnswer:
    """Runs a client that should answer at once."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return EngineAnswer(None, stderr=f"no answer within {timeout_s} s")
    except OSError as error:
        return EngineAnswer(None, stderr=f"it cannot be started: {error.strerror or error}")
    return EngineAnswer(done.returncode, done.stdout, done.stderr)


def _named(wanted: str, path: str) -> str:
    client = shutil.which(wanted, path=path)
    if client is None:
        raise UsageError(
            f"{ENGINE_VARIABLE}={wanted} is not there or not executable; give a path or a name on PATH, "
            f"or measure without a container: --runtime local"
        )
    if _kind(client) is None:
        raise UsageError(f"{ENGINE_VARIABLE}={wanted} is of no known kind; known are {', '.join(KINDS)}")
    return client


def _on_path(path: str) -> Iterator[str]:
    """Every client on PATH, kind after kind: a first docker that cannot build may hide a second one that can."""
    for kind in KINDS:
        seen = set()
        for folder in path.split(os.pathsep):
            client = shutil.which(kind, path=folder or os.curdir)
            if client and os.path.realpath(client) not in seen:
                seen.add(os.path.realpath(client))
                yield client


def _kind(client: str) -> str | None:
    name = Path(client).name
    return next((kind for kind in KINDS if name == kind or name.startswith(kind)), None)


def _examine(client: str, ask: Ask, variables: Mapping[str, str]) -> Engine | Rejected:
    if _is_elsewhere(client, ask, variables):
        return Rejected(
            client, "its engine is on another machine, where this one's folders and devices are not", ELSEWHERE
        )
    if _kind(client) == "docker" and "podman" in ask([client, "--version"]).stdout.lower():
        return _podman(client, ask)  # Debian's podman-docker and its kin
    return {"docker": _docker, "podman": _podman, "nerdctl": _nerdctl}[_kind(client) or "docker"](client, ask)


def _is_elsewhere(client: str, ask: Ask, variables: Mapping[str, str]) -> bool:
    """An engine on another machine has other devices and other folders: its results would not arrive here."""
    if _kind(client) == "docker":
        address = variables.get("DOCKER_HOST") or ask([client, *CONTEXT_ADDRESS]).stdout.strip()
    else:
        address = variables.get("CONTAINER_HOST", "") if _kind(client) == "podman" else ""
    is_remote = address.startswith("tcp://") and not is_loopback(host_of(address))
    return is_remote or address.startswith("ssh://")


def _docker(client: str, ask: Ask) -> Engine | Rejected:
    answer = ask([client, "info", "--format", "{{json .}}"])
    # Where it reaches no daemon, an old client ends with 0 and says so inside; a new one ends with 1.
    info = _read(answer) or {}
    complaint = " ".join(info.get("ServerErrors") or ())
    if complaint or answer.code != 0 or not info:
        complaint = complaint or answer.complaint
        return Rejected(client, complaint, _docker_remedy(complaint))
    if problem := _cannot_build(client, ask):
        return problem
    options = " ".join(info.get("SecurityOptions") or ())
    return Engine(
        client=client,
        kind="docker",
        version=str(info.get("ServerVersion", "")),
        rootless="name=rootless" in options,
        remapped="name=userns" in options,
        nvidia_runtime="nvidia" in (info.get("Runtimes") or {}),
        cdi=bool(info.get("CDISpecDirs")),
        selinux="name=selinux" in options,
        storage=info.get("DockerRootDir"),
    )


def _docker_remedy(complaint: str) -> str:
    if "permission denied" in complaint.lower():
        return "join the group docker (sudo usermod -aG docker $USER, then log in again), or use podman"
    if "Cannot connect" in complaint or "failed to connect" in complaint:
        return "start the daemon (sudo systemctl start docker)"
    return "see whether `docker info` works"


def _cannot_build(client: str, ask: Ask) -> Rejected | None:
    """Why a docker client cannot build with BuildKit, or None. Old ones can without buildx."""
    said = ask([client, "version", "--format", "{{.Client.Version}}"]).stdout
    major = said.partition(".")[0].strip()
    if (major.isdigit() and int(major) < BUILDX_SINCE) or ask([client, "buildx", "version"]).code == 0:
        return None
    return Rejected(client, f"it cannot build: version {said.strip()} has no buildx", "install docker-buildx")


def _podman(client: str, ask: Ask) -> Engine | Rejected:
    answer = ask([client, "info", "--format", "json"])
    info = _read(answer)
    if answer.code != 0 or info is None:
        return Rejected(client, answer.complaint, "see whether `podman info` works")
    host, store = info.get("host") or {}, info.get("store") or {}
    security = host.get("security") or {}
    return Engine(
        client=client,
        kind="podman",
        version=str((info.get("version") or {}).get("Version", "")),
        rootless=bool(security.get("rootless")),
        cdi=True,
        selinux=bool(security.get("selinuxEnabled")),
        storage=store.get("graphRoot"),
    )


def _nerdctl(client: str, ask: Ask) -> Engine | Rejected:
    answer = ask([client, "info", "--format", "{{json .}}"])
    info = _read(answer)
    if answer.code != 0 or info is None:
        return Rejected(client, answer.complaint, "see whether `nerdctl info` works")
    if ask(["buildctl", "debug", "workers"]).code != 0:
        return Rejected(client, "it cannot build: buildctl reaches no buildkitd", "install and start BuildKit")
    options = " ".join(info.get("SecurityOptions") or ())
    return Engine(
        client=client,
        kind="nerdctl",
        version=str(info.get("ServerVersion", "")),
        rootless="name=rootless" in options,
        cdi=bool(info.get("CDISpecDirs")),
        storage=None,
    )


def _read(answer: EngineAnswer) -> dict[str, Any] | None:
    try:
        read = json.loads(answer.stdout)
    except ValueError:
        return None
    return read if isinstance(read, dict) else None


BUILD_CAUSES = {
    r"no space left on device|disk quota exceeded": (
        "the disk is full where the engine keeps its images. Free some room (`{client} system df` shows what takes it, "
        "`{client} image prune` removes what is not used), or measure without an image: --runtime local"
    ),
    r"x509: |certificate verify failed": (
        "a certificate is not trusted, as behind a company's proxy. For packages, name the company's CA bundle: export "
        "PIP_CERT=/path/to/ca.pem; for the base image, give the CA to the engine (docs/containers.md)"
    ),
    r"failed to (?:resolve (?:source|reference)|do request|authorize)|access denied|manifest unknown|short-name"
    r"|/v2/\"": (
        "the base image is not here and cannot be pulled. Load it from a machine that has it (`{client} save` there, "
        "`{client} load` here), name one of yours (--base-image IMAGE), or measure without: --runtime local"
    ),
    # Before the missing package, with which pip ends whatever kept it from the index. EOFError: pip asks for a name.
    # Not the seconds before an error: 0.401 ERROR.
    r"(?<![.\d])(?:401|403)(?: Client)? Error|Unauthorized|Forbidden|EOFError: EOF when reading a line": (
        "the package index (or registry) needs valid credentials. Put them into pip.conf: a build gets it as a secret"
    ),
    r"DO NOT MATCH THE HASHES": (
        "the package index serves other files than those that were locked. Do not use them: a mirror may be broken, or "
        "worse; name another index (export PIP_INDEX_URL=…)"
    ),
    r"No matching distribution found|Connection (?:aborted|broken|reset)|Read timed out|not enough bytes"
    r"|Failed to resolve|Max retries exceeded|ProxyError": (
        "the package index does not answer, or lacks a locked package: a mirror may be behind. Check network and proxy "
        "(HTTPS_PROXY), or name another index (export PIP_INDEX_URL=…); without any network: `wheels` elsewhere, then "
        "`images --offline`"
    ),
}
OFFLINE_CAUSE = {
    r"No matching distribution found": (
        "the build is offline: fill docker/wheels with `wheels` on a machine with a network, and copy it here"
    ),
}
START_CAUSES = {
    r"could not select device driver|unresolvable CDI devices|nvidia-container-cli|GPU vendor|nvidia\.com/gpu=all": (
        "the engine cannot hand GPUs to a container. Install nvidia-container-toolkit, then ask `doctor gpu`"
    ),
    r"cannot connect to the docker daemon|unable to connect to podman": (
        "the engine does not answer any more; start it again (systemctl start docker)"
    ),
    r"permission denied.*(?:docker\.sock|podman\.sock)": (
        "no permission to use the engine. Join its group, or use podman: JAXMETER_ENGINE=podman"
    ),
    r"unable to apply caps|operation not permitted.*(?:caps|privileged)": (
        "this machine does not let the engine run privileged containers; leave out --privileged"
    ),
}
"""What to do about failures whose output matches a regular expression; the first that matches counts."""

ENGINE_FAILED = (125, 126, 127)
"""Exit codes by which engines say that the container never ran."""


def explain_build(output: str, client: str, *, offline: bool = False) -> str:
    """Return what to do about a failed build by an engine's client; else the last line of the output.

    Args:
      offline: Whether the build had no network on purpose.
    """
    causes = (OFFLINE_CAUSE if offline else {}) | BUILD_CAUSES | START_CAUSES
    return _explain(output, causes).replace("{client}", client)


def explain_start(output: str) -> str:
    """Return what to do about a container that never ran; else the last line of the output."""
    return _explain(output, START_CAUSES)


def _explain(output: str, causes: Mapping[str, str]) -> str:
    known = (words for pattern, words in causes.items() if re.search(pattern, output, re.IGNORECASE))
    return next(known, None) or f"{find_last_line(output) or 'no reason given'}; its output is above"


def find_last_line(*outputs: str) -> str:
    """Return the last line of the first output that has one, which is where clients put their reason."""
    return next((text.strip().splitlines()[-1].strip() for text in outputs if text.strip()), "")
