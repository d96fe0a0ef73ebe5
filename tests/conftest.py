"""What holds for all tests."""

import os
import signal

from hypothesis import settings

# No test asserts on real time: a busy machine must not fail one. Other examples are drawn in every run, in CI too.
settings.register_profile("few", deadline=None, max_examples=33)
settings.register_profile("many", deadline=None, max_examples=100)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE") or ("many" if os.environ.get("CI") else "few"))


def pytest_configure() -> None:
    """Lets programs under test hear Ctrl-C, which those that a shell began in the background are deaf to."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
