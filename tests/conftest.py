"""What holds for all tests."""

import signal


def pytest_configure() -> None:
    """Lets programs under test hear Ctrl-C, which those that a shell began in the background are deaf to."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
