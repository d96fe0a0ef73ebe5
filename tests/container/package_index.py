"""A package index of one package, on this machine's own loopback address, that can be as broken as a test needs."""

from __future__ import annotations

import hashlib
import io
import socket
import ssl
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

WHEEL = "placeholder-1.0-py3-none-any.whl"


@dataclass(frozen=True)
class Certificate:
    certificate: Path
    key: Path


@dataclass(frozen=True)
class PackageIndex:
    """Where it listens, and the paths that it was asked for."""

    url: str
    asked: list[str] = field(default_factory=list)


def make_wheel(data: bytes) -> bytes:
    """A wheel of the package `placeholder`, which holds nothing but `data`."""
    info = "placeholder-1.0.dist-info"
    files = {
        "placeholder/__init__.py": b"",
        "placeholder/data": data,
        f"{info}/METADATA": b"Metadata-Version: 2.1\nName: placeholder\nVersion: 1.0\n",
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{name},,\n" for name in (*files, f"{info}/RECORD"))
    wheel = io.BytesIO()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in {**files, f"{info}/RECORD": record.encode()}.items():
            archive.writestr(name, content)
    return wheel.getvalue()


def locked(wheel: bytes) -> str:
    """The lock that wants exactly this wheel."""
    return f"placeholder==1.0 --hash=sha256:{hashlib.sha256(wheel).hexdigest()}"


def make_certificate(folder: Path) -> Certificate:
    """A certificate for localhost that nobody else has signed; for an address pip's own libraries check none."""
    made = Certificate(folder / "ca.pem", folder / "key.pem")
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost"),
            *("-addext", "keyUsage=critical,digitalSignature,keyCertSign"),
            *("-keyout", str(made.key), "-out", str(made.certificate)),
        ],
        capture_output=True,
        check=True,
    )
    return made


def closed_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@contextmanager
def serving(
    wheel: bytes, *, certificate: Certificate | None = None, breaks_off: bool = False
) -> Iterator[PackageIndex]:
    """An index that offers `wheel`.

    Args:
      wheel: The only file.
      certificate: What it shows; None for plain HTTP.
      breaks_off: Whether every transfer of the wheel ends in the middle.
    """
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            is_wheel = self.path.endswith(WHEEL)
            content = wheel if is_wheel else f'<a href="/{WHEEL}">{WHEEL}</a>'.encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/octet-stream" if is_wheel else "text/html")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2] if is_wheel and breaks_off else content)

        def log_message(self, *_: object) -> None:
            """Says nothing: what was asked is kept."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """Says nothing: that clients refuse the certificate is what a test is about."""

    with Server(("127.0.0.1", 0), Handler) as server:
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate.certificate, certificate.key)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        scheme = "https" if certificate else "http"
        yield PackageIndex(f"{scheme}://localhost:{server.server_port}/simple", asked)
        server.shutdown()
        thread.join()
