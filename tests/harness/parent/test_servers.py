"""With which variables the processes of a run begin."""

from contextlib import ExitStack

import pytest

from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.parent.servers import Servers
from jaxmeter.harness.record import OtherEnvironment

OTHER = OtherEnvironment(python="python", version="3.11.9", packages={}, variables={})
PREALLOCATE = "XLA_PYTHON_CLIENT_PREALLOCATE"


@pytest.mark.parametrize(("lock_step", "expected"), [(None, "true"), (OTHER, "false")])
def test_two_environments_never_take_a_gpus_memory_ahead(tmp_path, monkeypatch, lock_step, expected):
    monkeypatch.setenv(PREALLOCATE, "true")
    servers = Servers(ExitStack(), tmp_path, None, (), lock_step, None)

    assert servers._make_variables(BACKENDS["gpu"])[PREALLOCATE] == expected
