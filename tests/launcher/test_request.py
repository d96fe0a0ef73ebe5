import pytest

from jaxmeter.cli.app import load_verb
from launcher.command_line import FLAGS, REASONS, VALUED, check_measuring, check_packages, read_backend, read_request
from launcher.options import UsageError
from launcher.request import DEFAULT_BASE_IMAGE, Request, format_command


def test_without_options_a_container_is_used_where_there_is_an_engine():
    assert read_request("cpu", ["--quick"], {}) == Request(
        runtime="auto",
        lock="cpu",
        image=None,
        base_image="python:3.13-slim-trixie",
        privileged=False,
        profile_privileged=False,
        arguments=("--quick",),
    )


def test_what_is_not_the_launchers_goes_on_to_the_harness_in_its_order():
    arguments = ["--select", "selu*", "--runtime", "local", "--out=there", "--cuda=12", "--quick"]

    assert read_request("gpu", arguments, {}).arguments == ("--select", "selu*", "--out=there", "--quick")


@pytest.mark.parametrize("runtime", ["auto", "local", "container"])
def test_the_runtime_is_the_users_choice(runtime):
    assert read_request("cpu", [f"--runtime={runtime}"], {}).runtime == runtime


@pytest.mark.parametrize("runtime", ["docker", "", "Local"])
def test_an_unknown_runtime_is_an_error_that_lists_the_known(runtime):
    with pytest.raises(UsageError, match=f"--runtime '{runtime}' is unknown; allowed: auto, local, container"):
        read_request("cpu", [f"--runtime={runtime}"], {})


@pytest.mark.parametrize(
    ("backend", "arguments", "lock"),
    [
        ("cpu", [], "cpu"),
        ("tpu", [], "tpu"),
        ("gpu", [], "gpu"),
        ("cpu", ["--torch"], "cpu-torch"),
        ("gpu", ["--cuda", "13"], "gpu"),
        ("gpu", ["--cuda", "12"], "gpu-cuda12"),
    ],
)
def test_the_lock_is_the_backends_and_on_gpus_that_of_a_cuda_version(backend, arguments, lock):
    assert read_request(backend, arguments, {}).lock == lock


def test_an_image_of_ones_own_brings_its_own_cuda():
    with pytest.raises(UsageError, match="--image brings its own CUDA; leave out --cuda"):
        read_request("gpu", ["--image", "mine:1", "--cuda", "12"], {})


def test_an_image_of_ones_own_brings_its_own_pytorch():
    with pytest.raises(UsageError, match="--image is used as it is, with PyTorch or without; leave out --torch"):
        read_request("cpu", ["--image", "mine:1", "--torch"], {})


@pytest.mark.parametrize("cuda", ["11", "12.9", ""])
def test_an_unknown_cuda_version_is_an_error_that_lists_the_known(cuda):
    with pytest.raises(UsageError, match=f"--cuda '{cuda}' is unknown; allowed: 13, 12"):
        read_request("gpu", ["--cuda", cuda], {})


@pytest.mark.parametrize(
    ("backend", "arguments", "owner"),
    [
        ("cpu", ["--cuda", "12"], "gpu"),
        ("tpu", ["--cuda", "12"], "gpu"),
        ("gpu", ["--torch"], "cpu"),
        ("cpu", ["--profile-privileged"], "gpu"),
        ("tpu", ["--profile-privileged"], "gpu"),
        ("cpu", ["--privileged"], "tpu"),
        ("gpu", ["--privileged"], "tpu"),
    ],
)
def test_an_option_of_another_backend_is_an_error_that_names_its_owner(backend, arguments, owner):
    option = arguments[0]

    with pytest.raises(UsageError, match=f"{option} belongs to the {owner} backend: nox -s {owner} -- {option}"):
        read_request(backend, arguments, {})


@pytest.mark.parametrize(
    ("backend", "arguments", "name", "value"),
    [
        ("cpu", ["--image", "mine:1"], "image", "mine:1"),
        ("cpu", ["--base-image", "ubuntu:26.04"], "base_image", "ubuntu:26.04"),
        ("tpu", ["--privileged"], "privileged", True),
        ("gpu", ["--profile-privileged"], "profile_privileged", True),
    ],
)
@pytest.mark.parametrize("runtime", [[], ["--runtime", "auto"], ["--runtime", "container"]])
def test_an_option_about_containers_asks_for_one(backend, arguments, name, value, runtime):
    request = read_request(backend, [*arguments, *runtime], {})

    assert getattr(request, name) == value
    assert request.runtime == "container"
    assert request.arguments == ()


@pytest.mark.parametrize(
    ("backend", "arguments"),
    [
        ("cpu", ["--image", "mine:1"]),
        ("cpu", ["--base-image", "ubuntu:26.04"]),
        ("tpu", ["--privileged"]),
        ("gpu", ["--profile-privileged"]),
    ],
)
def test_an_option_about_containers_and_the_local_environment_exclude_each_other(backend, arguments):
    with pytest.raises(UsageError, match=f"{arguments[0]} is about a container; leave out --runtime local, or"):
        read_request(backend, [*arguments, "--runtime", "local"], {})


def test_an_image_to_use_and_one_to_build_upon_exclude_each_other():
    with pytest.raises(UsageError, match="give one of them"):
        read_request("cpu", ["--image", "mine:1", "--base-image", "ubuntu:26.04"], {})


@pytest.mark.parametrize(
    ("arguments", "variables", "base"),
    [
        ([], {}, DEFAULT_BASE_IMAGE),
        ([], {"JAXMETER_BASE_IMAGE": ""}, DEFAULT_BASE_IMAGE),
        ([], {"JAXMETER_BASE_IMAGE": "mirror/python:3.13"}, "mirror/python:3.13"),
        (["--base-image", "mine"], {"JAXMETER_BASE_IMAGE": "mirror/python:3.13"}, "mine"),
    ],
)
def test_the_base_image_is_the_options_then_the_variables_then_the_default(arguments, variables, base):
    assert read_request("cpu", arguments, variables).base_image == base


def test_the_base_images_variable_is_a_default_and_asks_for_no_container():
    variables = {"JAXMETER_BASE_IMAGE": "mirror/python:3.13"}

    assert read_request("cpu", [], variables).runtime == "auto"
    assert read_request("cpu", ["--runtime", "local"], variables).runtime == "local"
    assert read_request("cpu", ["--image", "mine:1"], variables).image == "mine:1"


@pytest.mark.parametrize("option", ["--runtime", "--image", "--base-image", "--cuda"])
def test_an_option_without_its_value_is_an_error_that_names_it(option):
    with pytest.raises(UsageError, match=f"{option} needs a value"):
        read_request("gpu", [option], {})


def test_what_was_taken_is_kept_in_one_order_to_be_given_again():
    arguments = ["--profile-privileged", "--cuda=12", "--quick", "--base-image", "mine:1", "--runtime=container"]

    assert read_request("gpu", arguments, {}).words == (
        *("--runtime", "container", "--base-image", "mine:1"),
        *("--cuda", "12", "--profile-privileged"),
    )


def test_the_command_to_go_on_with_is_quoted_for_a_shell():
    request = read_request("cpu", ["--image", "mine 1"], {})

    assert format_command("cpu", request) == "nox -s cpu -- --image 'mine 1'"


@pytest.mark.parametrize(("backend", "value"), [("cpu", "11"), ("gpu", "11")])
def test_a_value_that_there_is_not_is_told_before_whose_option_it_is(backend, value):
    with pytest.raises(UsageError, match=f"--cuda '{value}' is unknown"):
        read_request(backend, ["--cuda", value], {})


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--json"], ("cpu", ["--json"])),
        (["--backend", "gpu", "--json"], ("gpu", ["--json"])),
        (["--backend=tpu"], ("tpu", [])),
    ],
)
def test_a_session_of_no_backend_takes_the_one_that_is_named_else_the_cpu(arguments, expected):
    assert read_backend(arguments) == expected


def test_a_backend_that_there_is_not_is_named_with_those_that_are():
    with pytest.raises(UsageError, match="--backend 'npu' is unknown; allowed: cpu, gpu, tpu"):
        read_backend(["--backend", "npu"])


def test_whether_the_page_is_opened_is_the_launcher_s_own_business():
    request = read_request("cpu", ["--quick", "--open"], {})

    assert request.opens_page
    assert request.arguments == ("--quick",)
    assert "--open" not in request.words


OF_SESSIONS = {*REASONS, "--backend", "--machine", "--help"}
"""What sessions of several runs read themselves or refuse."""


def test_every_option_of_a_measurement_is_known():
    run = load_verb("run")
    found = {name: option.is_flag for option in run.params for name in option.opts if name not in OF_SESSIONS}

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
    assert check_packages(["--quick", "--runtime", "local", "--machine=a"], "an upgrade", REASONS) == [
        "--quick",
        "--machine=a",
    ]


@pytest.mark.parametrize(
    ("words", "fault"),
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
def test_what_an_upgrade_could_not_read_is_said(words, fault):
    with pytest.raises(UsageError) as error:
        check_packages(words, "an upgrade", REASONS)

    assert fault in str(error.value)
