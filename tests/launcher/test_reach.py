import http.server
import socket
import ssl
import threading
import urllib.error
from contextlib import contextmanager
from pathlib import Path

import pytest

from launcher.doctor.reach import (
    Address,
    UnreachableError,
    UnreadableBundleError,
    explain_failure,
    fetch,
    hide_secrets,
    index_address,
    proxy_for,
    registry_address,
    start,
    status_of,
)
from launcher.index import Index

PYPI = Address("https://user:s3cret@pypi.example/simple/pip/")


@pytest.mark.parametrize(
    ("url", "text"),
    [
        ("https://pypi.org/simple", "https://pypi.org/simple"),
        ("https://user:s3cret@host:8443/simple?token=s3cret#s3cret", "https://host:8443/simple"),
        ("https://user:s3cret/s3cret@host/simple", "https://host/simple"),
        ("https://user:s3cret#s3cret@host/simple", "https://host/simple"),
        ("https://host/simple#s3cret", "https://host/simple"),
        ("user:s3cret@proxy:3128", "proxy:3128"),
        ("https://[user:s3cret@host", "https://host"),
    ],
)
def test_an_address_is_shown_without_its_secrets(url, text):
    assert hide_secrets(url) == text


@pytest.mark.parametrize(
    ("image", "url"),
    [
        ("python:3.13-slim-trixie", "https://registry-1.docker.io/v2/"),
        ("library/python:3.13", "https://registry-1.docker.io/v2/"),
        ("docker.io/library/python:3.13", "https://registry-1.docker.io/v2/"),
        ("registry.example/team/python:3.13", "https://registry.example/v2/"),
        ("registry.example:5000/python", "https://registry.example:5000/v2/"),
        ("localhost:5000/python", "http://localhost:5000/v2/"),
        ("localhost/python", "http://localhost/v2/"),
    ],
)
def test_the_registry_of_an_image_is_the_first_part_of_its_name_if_that_is_a_host(image, url):
    assert registry_address(image, {}).url == url


@pytest.mark.parametrize(
    ("variables", "proxy"),
    [
        ({}, None),
        ({"HTTPS_PROXY": "http://p:1"}, "http://p:1"),
        ({"https_proxy": "http://p:2", "HTTPS_PROXY": "http://p:1"}, "http://p:2"),
        ({"ALL_PROXY": "http://p:3"}, "http://p:3"),
        ({"HTTP_PROXY": "http://p:1"}, None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "localhost, .example"}, None),
        ({"HTTPS_PROXY": "http://p:1", "no_proxy": "*"}, None),
        ({"HTTPS_PROXY": "http://p:1", "NO_PROXY": "other.org,ample"}, "http://p:1"),
    ],
)
def test_the_proxy_is_the_one_that_the_environment_names(variables, proxy):
    assert proxy_for("https://pypi.example/simple", variables) == proxy


def test_the_index_is_asked_as_pip_would_ask_it():
    settings = {"index-url": "https://h:8443/simple/", "proxy": "http://p:1", "trusted-host": "x.org h"}

    address = index_address(Index(settings, Path("/ca.pem")), {"HTTPS_PROXY": "http://other"})

    assert address == Address("https://h:8443/simple/pip/", "http://p:1", Path("/ca.pem"), is_trusted=True)


def test_a_certificate_is_checked_unless_the_very_host_is_trusted():
    assert not index_address(Index({"index-url": "https://h.org/simple", "trusted-host": "org"}), {}).is_trusted


CERTIFICATE = ssl.SSLCertVerificationError(1, "CERTIFICATE_VERIFY_FAILED")
CERTIFICATE.verify_message = "self-signed certificate in certificate chain"


@pytest.mark.parametrize(
    ("error", "what", "remedy"),
    [
        (CERTIFICATE, "not trusted: self-signed certificate in certificate chain", "PIP_CERT="),
        (UnreadableBundleError(13, "Permission denied"), "cannot be read (Permission denied)", "PIP_CERT="),
        (socket.gaierror(-2, "Name or service not known"), "name of pypi.example cannot be resolved", "HTTPS_PROXY="),
        (ConnectionRefusedError(111, "refused"), "pypi.example refuses the connection", "HTTPS_PROXY="),
        (TimeoutError(), "no answer from pypi.example within 5 s", "HTTPS_PROXY="),
        (OSError(101, "Network is unreachable"), "(Network is unreachable)", "HTTPS_PROXY="),
        (ValueError("bad URL https://user:s3cret@pypi.example"), "(ValueError)", "HTTPS_PROXY="),
    ],
)
@pytest.mark.parametrize("wrap", [lambda error: error, urllib.error.URLError])
def test_each_cause_has_its_words_and_its_remedy_and_tells_no_secret(error, what, remedy, wrap):
    cause = explain_failure(wrap(error), PYPI)

    assert what in str(cause)
    assert remedy in cause.remedy
    assert "s3cret" not in str(cause) + cause.remedy


@pytest.mark.parametrize(
    ("error", "what", "remedy"),
    [
        (OSError("Tunnel connection failed: 407 Proxy Authentication Required"), "asks for credentials", "PASSWORD"),
        (
            OSError("Tunnel connection failed: 502 Bad Gateway"),
            "lets nothing through (HTTP 502)",
            "the proxy's address",
        ),
        (ConnectionRefusedError(), "refuses the connection", "the proxy's address"),
    ],
)
@pytest.mark.parametrize("proxy", ["http://user:s3cret@proxy:3128", "user:s3cret@proxy:3128"])
def test_behind_a_proxy_it_is_the_proxy_that_does_not_answer(error, what, remedy, proxy):
    cause = explain_failure(error, Address("https://pypi.example/simple/pip/", proxy))

    assert str(cause) == f"the proxy proxy:3128 {what}"
    assert remedy in cause.remedy


def test_a_name_that_the_resolver_never_answers_does_not_hold_up_the_examination():
    hanging = start(threading.Event().wait)

    with pytest.raises(UnreachableError, match=r"no answer from pypi\.example"):
        status_of(PYPI, hanging, timeout_s=0.01)


def test_what_a_started_piece_of_work_raises_is_raised_where_its_result_is_asked_for():
    with pytest.raises(ZeroDivisionError):
        start(lambda: 1 // 0).result(5)


@contextmanager
def server(status, location=None):
    """A server on this machine's own loopback address, and the headers that it was asked with."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers.get("Authorization")))
            self.send_response(302 if location and len(asked) == 1 else status)
            if location and len(asked) == 1:
                self.send_header("Location", location)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as httpd:
        thread = threading.Thread(target=httpd.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"127.0.0.1:{httpd.server_port}", asked
        finally:
            httpd.shutdown()
            thread.join()


@pytest.mark.parametrize("status", [200, 401, 404, 503])
def test_any_http_status_is_an_answer(status):
    with server(status) as (host, _):
        assert fetch(Address(f"http://{host}/v2/")) == status


def test_credentials_go_to_the_index_and_no_further():
    with server(200) as (other, asked_other), server(200, location=f"http://{other}/elsewhere") as (host, asked):
        fetch(Address(f"http://us%40er:pass@{host}/simple/pip/"))

    assert asked == [("/simple/pip/", "Basic dXNAZXI6cGFzcw==")]
    assert asked_other == [("/elsewhere", None)]


def test_a_ca_bundle_without_certificates_is_recognised(tmp_path):
    (tmp_path / "ca.pem").write_text("no certificate")

    with pytest.raises(UnreadableBundleError, match="no certificates in it"):
        fetch(Address("https://127.0.0.1:9/", ca_bundle=tmp_path / "ca.pem"))
