"""Where packages come from, as pip on this machine knows it: handed to a build as secrets, never baked in."""

from __future__ import annotations

import configparser
import ipaddress
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

DEFAULT_INDEX = "https://pypi.org/simple"
SECTIONS = ("global", "install")
SETTINGS = ("index-url", "extra-index-url", "trusted-host", "proxy", "timeout", "retries")
"""What of pip's configuration means the same in a build. Paths of this machine (find-links, cert) do not."""

CERTIFICATE = "cert"
CA_VARIABLES = ("REQUESTS_CA_BUNDLE", "SSL_CERT_FILE", "CURL_CA_BUNDLE")


def host_of(address: str) -> str | None:
    """The host of a URL or of an address without a scheme, as proxies may be written; None where there is none."""
    try:
        return urlsplit(address if "://" in address else f"//{address}").hostname
    except ValueError:  # brackets that enclose no IPv6 address
        return None


def is_loopback(host: str | None) -> bool:
    """Whether a host name or address is this machine's own."""
    if host is None:
        return False
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True)
class Secrets:
    """Files for `--secret`: {id: path}."""

    files: Mapping[str, Path] = field(default_factory=dict)


@dataclass(frozen=True)
class Index:
    """pip's settings on this machine.

    Args:
      settings: Of SETTINGS, those that are set.
      ca_bundle: Certificates that pip trusts here; None where it trusts its own.
    """

    settings: Mapping[str, str]
    ca_bundle: Path | None = None

    @property
    def url(self) -> str:
        """The index, credentials included: not to be shown."""
        return self.settings.get("index-url", DEFAULT_INDEX)

    @property
    def is_on_loopback(self) -> bool:
        """Whether the index or the proxy is this machine itself, which a container's own network does not reach."""
        addresses = " ".join(self.settings.get(name, "") for name in ("index-url", "extra-index-url", "proxy")).split()
        return any(is_loopback(host_of(address)) for address in addresses)


def read_index(variables: Mapping[str, str], *, home: Path, root: Path = Path("/")) -> Index:
    """Return the settings of pip as pip itself reads them: later files override earlier ones, and variables all files.

    They are read here, since `pip config list` does not print the effective ones. It lists a setting of several files
    once for each, in the order of the files' names. So the last one listed need not be the effective one (pip 26.3).
    With a broken file, it lists nothing. In addition, if uv has installed nox, its Python has no pip.

    Args:
      variables: Environment variables.
      home: The user's home folder.
      root: The root of the file system.
    """
    own = variables.get("PIP_CONFIG_FILE")
    users = [home / ".pip/pip.conf", Path(variables.get("XDG_CONFIG_HOME") or home / ".config") / "pip/pip.conf"]
    files = [
        root / "etc/xdg/pip/pip.conf",
        root / "etc/pip.conf",
        *([Path(own)] if own and Path(own).exists() else users),
    ]
    options: dict[str, str] = {}
    for section in SECTIONS:
        for path in [] if own == os.devnull else files:
            options.update(_options(path, section))
    for variable, value in sorted(variables.items()):
        name = _setting(variable.removeprefix("PIP_").lower())
        if variable.startswith("PIP_") and value and name in (*SETTINGS, CERTIFICATE):
            options[name] = value
    certificates = [options.get(CERTIFICATE), *(variables.get(name) for name in CA_VARIABLES)]
    settings = {name: _without_files(options[name]) for name in SETTINGS if name in options}
    return Index(
        settings={name: value for name, value in settings.items() if value},
        ca_bundle=next((path for name in certificates if name and (path := Path(name)).is_file()), None),
    )


@contextmanager
def write_secrets(index: Index) -> Iterator[Secrets]:
    """The index as files that only this user can read, for as long as a build takes."""
    with tempfile.TemporaryDirectory(prefix="jaxmeter-") as folder:
        files = {}
        if index.settings:
            parser = configparser.RawConfigParser()
            parser["global"] = dict(index.settings)
            files["pip_conf"] = Path(folder) / "pip.conf"
            files["pip_conf"].touch(mode=0o600)
            with files["pip_conf"].open("w", encoding="utf8") as file:
                parser.write(file)
        if index.ca_bundle:
            # A copy, as its own path may hold what separates the parts of an option.
            files["ca_bundle"] = Path(shutil.copyfile(index.ca_bundle, Path(folder) / "ca.pem"))
        yield Secrets(files)


def _options(path: Path, section: str) -> dict[str, str]:
    """One section of one file; empty where it cannot be read, which pip itself will complain about."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read(path, encoding="utf8")
        options = parser.items(section)
    except (OSError, configparser.Error, UnicodeDecodeError):
        return {}
    return {_setting(name): value for name, value in options}


def _setting(name: str) -> str:
    """The name of an option as pip shows it; `timeout` has two."""
    return name.replace("_", "-").replace("default-timeout", "timeout")


def _without_files(addresses: str) -> str:
    """Addresses that mean the same in a build."""
    return " ".join(address for address in addresses.split() if not address.startswith("file:"))
