import http.server
import ssl
import threading
import urllib.error
from concurrent.futures import Future
from contextlib import contextmanager

import pytest

from jaxmeter.launch.doctor.reach import fetch, find_proxy, hide_secrets, locate_registry, read_status, start
from jaxmeter.launch.index import Index

NO_SETTINGS = Index({})


@pytest.mark.parametrize(
    ("url", "text"),
    [
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
    ("image", "registry"),
    [
        *(
            (name, "https://registry-1.docker.io")
            for name in ("python:3.13", "library/python", "docker.io/library/python")
        ),
        ("registry.example/team/python:3.13", "https://registry.example"),
        ("registry.example:5000/python", "https://registry.example:5000"),
        ("localhost:5000/python", "http://localhost:5000"),
        ("localhost/python", "http://localhost"),
    ],
)
def test_the_registry_of_an_image_is_the_first_part_of_its_name_if_that_is_a_host(image, registry):
    assert locate_registry(image) == f"{registry}/v2/"


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
def test_the_proxy_is_that_of_pips_settings_else_the_one_that_the_environment_names(variables, proxy):
    assert find_proxy("https://pypi.example/simple", NO_SETTINGS, variables) == proxy
    assert find_proxy("https://pypi.example/simple", Index({"proxy": "http://p:9"}), variables) == "http://p:9"


def failing(error):
    future = Future()
    future.set_exception(error)
    return future


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (
            ssl.SSLCertVerificationError(1, "certificate verify failed: self-signed"),
            "certificate verify failed: self-s",
        ),
        (ConnectionRefusedError(111, "Connection refused"), "Connection refused"),
        (OSError("Tunnel connection failed: 407 Proxy Authentication Required"), "407 Proxy Authentication Required"),
    ],
)
@pytest.mark.parametrize("wrap", [lambda error: error, urllib.error.URLError])
def test_the_network_s_own_words_say_why_there_is_no_answer(error, words, wrap):
    status = read_status(failing(wrap(error)))

    assert status.startswith("no answer (")
    assert words in status


@pytest.mark.parametrize("wrap", [lambda error: error, urllib.error.URLError])
def test_words_that_may_hold_a_password_are_not_shown(wrap):
    error = wrap(ValueError("bad URL https://user:s3cret@pypi.example"))

    assert read_status(failing(error)) == f"no answer ({type(error).__name__})"


def test_a_name_that_the_resolver_never_answers_does_not_hold_up_the_examination_and_an_error_is_raised_later():
    assert read_status(start(threading.Event().wait), timeout_s=0.01).startswith("no answer")
    with pytest.raises(ZeroDivisionError):
        start(lambda: 1 // 0).result(5)


@contextmanager
def server(status):
    """A server on this machine's own loopback address, and the paths and headers that it was asked with."""
    asked = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append((self.path, self.headers.get("Authorization")))
            self.send_response(status)
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


@pytest.mark.parametrize("status", [200, 404])
def test_any_http_status_is_an_answer(status):
    with server(status) as (host, _):
        assert fetch(f"http://{host}/v2/", NO_SETTINGS, None) == status


def test_a_proxy_is_asked_in_place_of_the_server():
    with server(200) as (host, asked):
        assert fetch("http://index.example/simple/pip/", NO_SETTINGS, f"http://{host}") == 200

    assert asked == [("http://index.example/simple/pip/", None)]
