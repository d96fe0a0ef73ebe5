"""What holds for all tests."""

import signal

import pytest

LONG = ("end_to_end", "browser")
"""Marks of tests that take seconds each."""


def pytest_configure() -> None:
    """Lets programs under test hear Ctrl-C, which those that a shell began in the background are deaf to."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with long tests first: where several processes take one file each, none is left alone with one at the end."""
    long = {item.path for item in items if any(item.get_closest_marker(mark) for mark in LONG)}
    items.sort(key=lambda item: item.path not in long)
