import pytest

from launcher.options import UsageError
from launcher.runtime import local_arguments


@pytest.mark.parametrize("runtime", [[], ["--runtime", "local"], ["--runtime=auto"]])
def test_the_harness_never_sees_the_runtime(runtime):
    assert local_arguments(["--quick", *runtime, "--select", "selu*"]) == ["--quick", "--select", "selu*"]


def test_containers_are_refused_with_what_to_use_instead():
    with pytest.raises(UsageError, match="not part of this version; use --runtime local"):
        local_arguments(["--runtime", "container"])


def test_an_unknown_runtime_is_named_beside_the_allowed_ones():
    with pytest.raises(UsageError, match=r"--runtime 'cloud' is unknown; allowed: auto, local, container"):
        local_arguments(["--runtime", "cloud"])
