"""What a failed build or start means, in words for a tired person: the engine's own output is long and about layers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cause:
    """What an engine prints for one cause of failure (a regular expression), and what to say about it."""

    pattern: str
    words: str


BUILD_CAUSES = (
    Cause(
        r"no space left on device|disk quota exceeded",
        "the disk is full where the engine keeps its images. Free some room (`{client} system df` shows what takes it, "
        "`{client} image prune` removes what is not used), or measure without an image: --runtime local",
    ),
    Cause(
        r"x509: ",  # the engine's own words; pip never says them
        "the registry shows a certificate that the engine does not trust, as behind a company's proxy. Give the "
        "company's CA to the engine (docs/containers.md), or load the image from a machine that has it "
        "(`{client} save` there, `{client} load` here)",
    ),
    Cause(
        r"CERTIFICATE_VERIFY_FAILED|certificate verify failed",
        "the package index shows a certificate that is not trusted, as behind a company's proxy. Name the company's CA "
        "bundle: export PIP_CERT=/path/to/ca.pem (docs/containers.md)",
    ),
    Cause(
        r"DO NOT MATCH THE HASHES",
        "the package index serves other files than those that were locked. Do not use them; find out why (a damaged "
        "mirror or proxy cache), or point pip at another index: export PIP_INDEX_URL=…",
    ),
    Cause(
        r"pull access denied|failed to resolve source metadata|failed to do request|initializing source docker://"
        r'|manifest (?:unknown|for .* not found)|short-name|Get "https?://\S+/v2/'
        r"|failed to (?:solve|authorize|fetch).*(?:resolve|token)",
        "the base image {base} is not here and cannot be pulled. Load it from a machine that has it (`{client} save` "
        "there, `{client} load` here), name one of yours (--base-image IMAGE), or measure without: --runtime local",
    ),
    Cause(
        r"python3: (?:not found|command not found)|ensurepip is not|No module named venv",
        "the base image {base} has no Python that can make a virtual environment. Name one that has (--base-image "
        "IMAGE): Python 3.11 or newer with venv",
    ),
    # Before the missing package: pip ends with that, whatever kept it from the index. EOFError: it asks for a
    # name. Not the seconds before an error: 0.401 ERROR.
    Cause(
        r"(?<![.\d])(?:401|403)(?: Client)? Error|Unauthorized|Forbidden|EOFError: EOF when reading a line",
        "the package index (or registry) refuses these credentials, or wants some. Put valid ones into pip.conf, which "
        "a build gets as a secret",
    ),
    Cause(
        r"Temporary failure in name resolution|NameResolutionError|Failed to establish a new connection"
        r"|Max retries exceeded|ReadTimeoutError|Connection (?:refused|reset|aborted)|ProxyError|IncompleteRead"
        r"|Network is unreachable|ConnectTimeout|incomplete-download|not enough bytes were received",
        "the package index did not answer, or broke off. Check network and proxy (HTTPS_PROXY), or name an index that "
        "can be reached (export PIP_INDEX_URL=…); without any network: `wheels` elsewhere, then `images --offline`",
    ),
    Cause(
        r"No matching distribution found|Could not find a version that satisfies",
        "the package index offers no locked version of a package{offline}. Compare with docker/locks/{lock}.txt: a "
        "mirror may be behind, or refuse without a word (pip hides a 403); and wheels are needed for the base image's "
        "Python and processor",
    ),
)

START_CAUSES = (
    Cause(
        r"could not select device driver|unresolvable CDI devices|nvidia-container-cli|GPU vendor"
        r"|nvidia\.com/gpu=all",
        "the engine cannot hand GPUs to a container. Install nvidia-container-toolkit, then ask `doctor gpu`",
    ),
    Cause(
        r"permission denied.*(?:docker\.sock|podman\.sock)",
        "no permission to use the engine. Join its group, or use podman: JAXMETER_ENGINE=podman",
    ),
    Cause(
        r"cannot connect to the docker daemon|failed to connect to the docker API|unable to connect to Podman",
        "the engine does not answer any more. Start it (sudo systemctl start docker), or use another one: "
        "JAXMETER_ENGINE=podman",
    ),
    Cause(
        r"unable to apply caps|operation not permitted.*(?:caps|privileged)",
        "this machine does not let the engine run privileged containers; leave out --privileged",
    ),
    Cause(
        r"container-init binary not found",
        "podman lacks its init program. Install it (Debian and Ubuntu: apt install catatonit)",
    ),
    Cause(
        r"error setting rlimit",
        "this machine does not let the engine raise limits; use docker or a rootless podman",
    ),
)

ENGINE_FAILED = (125, 126, 127)
"""Exit codes by which engines say that the container never ran."""

UNKNOWN_CAUSE = "the engine's own words are above"


def explain_build(output: str, *, client: str, base: str, lock: str, offline: bool = False) -> str:
    """Why a build failed, most likely, and what to do; the first cause that the output speaks of.

    Args:
      output: What the engine printed.
      client: The engine's client, for commands to type.
      base: The image that is built upon.
      lock: The lock that is installed.
      offline: Whether the build had no network on purpose.
    """
    without = " (the build is offline: fill docker/wheels with `wheels`)" if offline else ""
    words = _words_for(output, (*BUILD_CAUSES, *START_CAUSES))
    return words.format(client=client, base=base, lock=lock, offline=without)


def explain_start(output: str) -> str:
    """Why a container never ran, most likely, and what to do."""
    return _words_for(output, START_CAUSES)


def _words_for(output: str, causes: Sequence[Cause]) -> str:
    found = (cause.words for cause in causes if re.search(cause.pattern, output, re.IGNORECASE))
    return next(found, UNKNOWN_CAUSE)
