import pytest

from jaxmeter.cli.app import load_verb
from launcher.measurements import FLAGS, VALUED, check_images, check_measuring, check_packages
from launcher.nights import FORBIDDEN
from launcher.options import UsageError

OF_THE_NIGHT = {*FORBIDDEN, "--backend", "--machine", "--help"}
"""What a night, or its schedule, reads itself or refuses."""


def test_every_option_of_a_measurement_is_known():
    run = load_verb("run")
    found = {name: one.is_flag for one in run.params for name in one.opts if name not in OF_THE_NIGHT}

    assert found == {**dict.fromkeys(VALUED, False), **dict.fromkeys(FLAGS, True)}


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--bugdet", "5m"], "--bugdet: a night has no such option; nearest: --budget"),
        (["--quik"], "--quik: a night has no such option; nearest: --quick"),
        (["--bugdet=5m"], "--bugdet: a night has no such option"),
        (["--quick=yes"], "--quick takes no value"),
        (["-q"], "-q: a night has no such option; options: --budget, "),
        (["--quick", "--budget"], "--budget needs a value"),
        (["--budget", "--quick"], "--budget needs a value"),
        (["--quick", "mlp"], "'mlp' belongs to no option"),
        (["--select", "a", "b"], "'b' belongs to no option"),
        (["--probe", "trace"], "--probe: all are needed"),
    ],
)
def test_what_no_measurement_could_read_is_said(words, fault):
    with pytest.raises(UsageError) as error:
        check_measuring(words, "a night", reasons={"--probe": "all are needed"})

    assert fault in str(error.value)


def test_options_of_a_measurement_are_taken_with_those_of_its_session():
    words = [*FLAGS, *(word for name in VALUED for word in (name, "a", f"{name}=b"))]

    check_measuring([*words, "--baseline", "a"], "a night", ["--baseline"])


def test_packages_are_measured_in_environments_of_this_machine():
    assert check_packages(["--quick", "--runtime", "local", "--machine=a"], "an upgrade") == ["--quick", "--machine=a"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["--runtime", "container"],
            "--runtime container: packages are measured in virtual environments; leave it out",
        ),
        (["--quik"], "--quik: an upgrade has no such option; nearest: --quick"),
        (["--baseline", "a"], "--baseline: an upgrade has no such option"),
        (["--open"], "--open: an upgrade has no such option"),
        (["--quick=1"], "--quick takes no value"),
    ],
)
def test_what_an_upgrade_could_not_read_is_said(words, told):
    with pytest.raises(UsageError) as error:
        check_packages(words, "an upgrade")

    assert told in str(error.value)


def test_of_images_the_engine_is_asked_for_too():
    check_images("cpu", ["--runtime", "container", "--quick", "--machine", "a"], "an upgrade")
    with pytest.raises(UsageError, match="--quik: an upgrade has no such option"):
        check_images("cpu", ["--quik"], "an upgrade")
