"""Whether a server on the network answers, and if not, why: with the proxy and the certificates that pip would use."""

from __future__ import annotations

import base64
import http.client
import re
import socket
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

from launcher.index import Index, is_loopback

TIMEOUT_S = 5
"""A server that takes longer is of no use to a build either; package indexes answer within a second."""

RESOLVER_GRACE_S = 1
"""A name that cannot be resolved takes the resolver's own time, which no socket's timeout limits."""

HUB = "registry-1.docker.io"
HUB_NAMES = ("docker.io", "index.docker.io")

Result = TypeVar("Result")


@dataclass(frozen=True)
class Address:
    """What to ask for, and by which way.

    Args:
      url: With credentials, if any: not to be shown.
      proxy: The proxy to go through, credentials included: not to be shown.
      ca_bundle: Certificates to trust; None for those of this system.
      is_trusted: Whether the certificate need not be checked (`trusted-host`).
    """

    url: str
    proxy: str | None = None
    ca_bundle: Path | None = None
    is_trusted: bool = False


class UnreachableError(Exception):
    """Why there is no answer."""

    def __init__(self, what: str, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.remedy = remedy


Fetch = Callable[[Address], int]
"""The HTTP status that a server answers with; raises what the network raises."""


def index_address(index: Index, variables: Mapping[str, str]) -> Address:
    """A small page that every package index has."""
    url = f"{index.url.rstrip('/')}/pip/"
    server = _server(url)
    trusted = index.settings.get("trusted-host", "").split()
    return Address(
        url,
        proxy=index.settings.get("proxy") or proxy_for(url, variables),
        ca_bundle=index.ca_bundle,
        is_trusted=server in trusted or server.partition(":")[0] in trusted,
    )


def registry_address(image: str, variables: Mapping[str, str]) -> Address:
    """The address of the registry of an image; the first part of its name is a host if it looks like one."""
    first, slash, _ = image.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    host = first if is_host and first not in HUB_NAMES else HUB
    scheme = "http" if is_loopback(host.partition(":")[0]) else "https"
    url = f"{scheme}://{host}/v2/"
    return Address(url, proxy=proxy_for(url, variables))


def proxy_for(url: str, variables: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for an address."""
    scheme, server = url.partition("://")[0], _server(url)
    host = server.partition(":")[0]
    direct = variables.get("no_proxy") or variables.get("NO_PROXY") or ""
    for name in filter(None, (entry.strip().lstrip(".") for entry in direct.split(","))):
        if name == "*" or name in (host, server) or host.endswith(f".{name}"):
            return None
    names = (f"{scheme}_proxy", f"{scheme}_proxy".upper(), "all_proxy", "ALL_PROXY")
    return next((variables[name] for name in names if variables.get(name)), None)


def hide_secrets(url: str) -> str:
    """An address without what may be secret: user, password, query. Works on what is no proper address, too."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        scheme, rest = "", url
    return scheme + mark + re.split(r"[?#]", rest.rpartition("@")[2])[0]


def fetch(address: Address) -> int:
    """Asks the server itself; any HTTP status is an answer."""
    parts = urlsplit(address.url)
    request = urllib.request.Request(
        f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}", headers={"Accept": "text/html, */*"}
    )
    if parts.username:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}".encode()
        # Never on to another server, where a redirect may lead.
        request.add_unredirected_header("Authorization", f"Basic {base64.b64encode(pair).decode()}")
    proxies = {parts.scheme: address.proxy} if address.proxy else {}
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler(proxies), urllib.request.HTTPSHandler(context=_context(address))
    )
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def start(work: Callable[[], Result]) -> Future[Result]:
    """Begins work in a thread that nobody has to wait for: a name's resolver may hang for minutes."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:  # noqa: BLE001  it is raised where the result is asked for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def status_of(address: Address, answer: Future[int], timeout_s: float = TIMEOUT_S + RESOLVER_GRACE_S) -> int:
    """The status that a started fetch ends with.

    Raises:
      UnreachableError: It ends without one, or not in time.
    """
    try:
        return answer.result(timeout_s)
    except (OSError, ValueError, http.client.HTTPException) as error:
        raise explain_failure(error, address) from None


def explain_failure(error: Exception, address: Address) -> UnreachableError:
    """What a failed fetch means. The error's own words are used only where they cannot hold an address."""
    reason = error.reason if isinstance(error, urllib.error.URLError) else error
    subject = f"the proxy {_server(address.proxy)}" if address.proxy else _server(address.url)
    if isinstance(reason, ssl.SSLCertVerificationError):
        against = f"checked against {address.ca_bundle}" if address.ca_bundle else "with this system's certificates"
        return UnreachableError(
            f"its certificate is not trusted: {reason.verify_message} ({against})",
            "behind a company's proxy, name the company's CA bundle: export PIP_CERT=/path/to/ca.pem; "
            "if a date is wrong, set this machine's clock",
        )
    if isinstance(reason, UnreadableBundleError):
        return UnreachableError(
            f"the CA bundle {address.ca_bundle} cannot be read ({reason.strerror or reason})",
            "name one that can: export PIP_CERT=/path/to/ca.pem",
        )
    remedy = PROXY_REMEDY if address.proxy else NETWORK_REMEDY
    if isinstance(reason, socket.gaierror):
        return UnreachableError(f"the name of {subject} cannot be resolved", remedy)
    if isinstance(reason, ConnectionRefusedError):
        return UnreachableError(f"{subject} refuses the connection", remedy)
    if isinstance(reason, TimeoutError):
        return UnreachableError(f"no answer from {subject} within {TIMEOUT_S} s", remedy)
    if tunnel := re.match(r"Tunnel connection failed: (\d+)", str(reason)):
        if tunnel[1] == PROXY_CREDENTIALS_NEEDED:
            put = "put them into its address: export HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT"
            return UnreachableError(f"{subject} asks for credentials", put)
        return UnreachableError(f"{subject} lets nothing through (HTTP {tunnel[1]})", remedy)
    words = reason.strerror if isinstance(reason, OSError) else None
    return UnreachableError(f"{subject} cannot be asked ({words or type(reason).__name__})", remedy)


PROXY_CREDENTIALS_NEEDED = "407"
NETWORK_REMEDY = "check address and network; behind a proxy: export HTTPS_PROXY=http://HOST:PORT"
PROXY_REMEDY = "see whether the proxy's address is right (HTTPS_PROXY, or proxy in pip.conf)"


class UnreadableBundleError(OSError):
    """The CA bundle is no file of certificates."""


def _server(url: str) -> str:
    """Host and port; a proxy may be written without a scheme."""
    return hide_secrets(url).rpartition("://")[2].partition("/")[0]


def _context(address: Address) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=address.ca_bundle)
    except ssl.SSLError:
        raise UnreadableBundleError(0, "no certificates in it") from None
    except OSError as error:
        raise UnreadableBundleError(error.errno, error.strerror) from None
    if address.is_trusted:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
