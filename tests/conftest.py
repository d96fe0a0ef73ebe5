"""What holds for all tests."""

import os
import signal

from hypothesis import settings

# A third of hypothesis' own number, which its profile `ci` has: it loads that by itself where CI is set.
settings.register_profile("default", max_examples=33)
if profile := os.environ.get("HYPOTHESIS_PROFILE"):
    settings.load_profile(profile)


def pytest_configure() -> None:
    """Lets programs under test hear Ctrl-C, which those that a shell began in the background are deaf to."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
