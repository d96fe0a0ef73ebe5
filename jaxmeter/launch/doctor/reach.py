"""Whether a server on the network answers at all, asked as pip would ask it; the network's own words say why not."""

from __future__ import annotations

import http.client
import ssl
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TypeVar
from urllib.parse import urlsplit

from jaxmeter.launch.index import Index, host_of, is_loopback

TIMEOUT_S = 5
"""A server that takes longer is of no use to a build either; package indexes answer within a second."""

RESOLVER_GRACE_S = 1
"""A name that cannot be resolved takes the resolver's own time, which no socket's timeout limits."""

HUB = "registry-1.docker.io"
HUB_NAMES = ("docker.io", "index.docker.io")

Result = TypeVar("Result")

Fetch = Callable[[str, Index, str | None], int]
"""URL, pip's settings, proxy -> the HTTP status that a server answers with; raises what the network raises."""


def locate_registry(image: str) -> str:
    """Return the URL of the registry of an image; the first part of its name is a host if it looks like one."""
    first, slash, _ = image.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    host = first if is_host and first not in HUB_NAMES else HUB
    return f"{'http' if is_loopback(host_of(host)) else 'https'}://{host}/v2/"


def find_proxy(url: str, index: Index, variables: Mapping[str, str]) -> str | None:
    """Return the proxy of pip's settings, else the one that the environment names for an address."""
    if "proxy" in index.settings:
        return index.settings["proxy"]
    # Sorted, lower case comes last and counts.
    named = ((name.lower(), value) for name, value in sorted(variables.items()) if value)
    proxies = {name.removesuffix("_proxy"): value for name, value in named if name.endswith("_proxy")}
    parts, host = urlsplit(url), host_of(url) or ""
    direct = {entry.strip().lstrip(".") for entry in proxies.get("no", "").split(",")} - {""}
    if direct & {"*", host, parts.netloc} or any(host.endswith(f".{name}") for name in direct):
        return None
    return proxies.get(parts.scheme) or proxies.get("all")


def hide_secrets(url: str) -> str:
    """Return an address without user, password and query. Works on what is no proper address, too."""
    scheme, mark, rest = url.partition("://") if "://" in url else ("", "", url)
    return scheme + mark + rest.rpartition("@")[2].partition("?")[0].partition("#")[0]


def fetch(url: str, index: Index, proxy: str | None) -> int:
    """Ask the server itself, without credentials; any HTTP status is an answer."""
    context = ssl.create_default_context(cafile=index.ca_bundle)
    if {host_of(url), urlsplit(url).netloc} & set(index.settings.get("trusted-host", "").split()):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    proxies = {"http": proxy, "https": proxy} if proxy else {}
    handlers = (urllib.request.ProxyHandler(proxies), urllib.request.HTTPSHandler(context=context))
    try:
        with urllib.request.build_opener(*handlers).open(url, timeout=TIMEOUT_S) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        error.close()
        return error.code


def start(work: Callable[[], Result]) -> Future[Result]:
    """Begin work in a thread that nobody has to wait for: a name's resolver may hang for minutes."""
    future: Future[Result] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except Exception as error:  # noqa: BLE001  it is raised where the result is asked for
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


def read_status(answer: Future[int], timeout_s: float = TIMEOUT_S + RESOLVER_GRACE_S) -> int | str:
    """Return the HTTP status that a started fetch ends with, else why there is none."""
    try:
        return answer.result(timeout_s)
    except (OSError, ValueError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        # Words of other errors may hold an address, and with it a password.
        words = reason.strerror or str(reason) if isinstance(reason, OSError) else ""
        return f"no answer ({words or type(error).__name__})"
