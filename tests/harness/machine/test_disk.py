import errno

import pytest

from jaxmeter.harness.machine.own_fault import is_disk_full
from jaxmeter.harness.probes.context import describe_failure


def caused_by(error: Exception) -> Exception:
    outer = ValueError("cannot write")
    outer.__cause__ = error
    return outer


FULL = [
    OSError(errno.ENOSPC, "No space left on device"),
    OSError(errno.EDQUOT, "Disk quota exceeded"),
    RuntimeError("INTERNAL: writing x.xplane.pb: No space left on device"),
    caused_by(OSError(errno.ENOSPC, "No space left on device")),
]


@pytest.mark.parametrize("error", FULL, ids=["disk", "quota", "words of C++", "cause"])
def test_a_full_disk_is_known_and_is_no_failure_of_the_variant(error):
    assert is_disk_full(error)
    with pytest.raises(type(error)):
        describe_failure(error, "numerics")


@pytest.mark.parametrize("error", [OSError(errno.EACCES, "Permission denied"), ValueError("full"), None])
def test_any_other_error_is_none(error):
    assert not is_disk_full(error)
