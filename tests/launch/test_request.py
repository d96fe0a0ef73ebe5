import pytest

from jaxmeter.cli.app import load_verb
from jaxmeter.launch.command_line import (
    FLAGS,
    REASONS,
    VALUED,
    check_measuring,
    check_packages,
    read_backend,
    read_request,
)
from jaxmeter.launch.options import UsageError
from jaxmeter.launch.request import DEFAULT_BASE_IMAGE, Request, format_command, name_command

AUTO = {"JAXMETER_RUNTIME": "auto"}
MIRROR = {"JAXMETER_BASE_IMAGE": "mirror/python:3.13"}


def test_without_options_a_nox_session_uses_a_container_where_there_is_an_engine():
    nothing_special = {"image": None, "privileged": False, "profile_privileged": False}

    assert read_request("cpu", ["--quick"], AUTO) == Request(
        runtime="auto", lock="cpu", base_image=DEFAULT_BASE_IMAGE, arguments=("--quick",), **nothing_special
    )


def test_what_is_not_the_launchers_goes_on_to_the_harness_and_what_was_taken_is_kept_each_in_one_order():
    arguments = ["--select", "selu*", "--profile-privileged", "--cuda=12", "--out=there", "--open", "--quick"]

    request = read_request("gpu", [*arguments, "--base-image", "mine:1", "--runtime=container"], {})

    assert request.arguments == ("--select", "selu*", "--out=there", "--quick")
    assert request.opens_page
    assert request.words == (
        *("--runtime", "container", "--base-image", "mine:1"),
        *("--cuda", "12", "--profile-privileged"),
    )


@pytest.mark.parametrize("runtime", ["here", "auto", "local", "container"])
def test_the_runtime_is_the_users_choice_else_the_environment_of_the_command(runtime):
    assert read_request("cpu", [f"--runtime={runtime}"], AUTO).runtime == runtime
    assert read_request("cpu", [], {"JAXMETER_RUNTIME": runtime}).runtime == runtime
    assert read_request("cpu", [], {"JAXMETER_RUNTIME": ""}).runtime == read_request("cpu", [], {}).runtime == "here"


ABOUT_CONTAINERS = {
    "image": ("cpu", ["--image", "mine:1"], "mine:1"),
    "base_image": ("cpu", ["--base-image", "ubuntu:26.04"], "ubuntu:26.04"),
    "privileged": ("tpu", ["--privileged"], True),
    "profile_privileged": ("gpu", ["--profile-privileged"], True),
}
OF_LOCKS = [("cpu", ["--torch"]), ("gpu", ["--cuda", "12"])]


@pytest.mark.parametrize(
    ("backend", "arguments", "fault"),
    [
        ("cpu", ["--runtime=Local"], "--runtime 'Local' is unknown; allowed: here, auto, local, container"),
        *((one, ["--cuda", "11"], "--cuda '11' is unknown; allowed: 13, 12") for one in ("gpu", "cpu")),
        ("gpu", ["--cuda", ""], "--cuda '' is unknown"),
        ("gpu", ["--cuda"], "--cuda needs a value"),
        *(
            (backend, [*words, "--runtime", "local"], f"{words[0]} is about a container; add --runtime container, or")
            for backend, words, _ in ABOUT_CONTAINERS.values()
        ),
        ("gpu", ["--image", "mine:1", "--cuda", "12"], "--image brings its own CUDA; leave out --cuda"),
        ("cpu", ["--image", "mine:1", "--torch"], "--image is used as it is, with PyTorch or without; leave out --to"),
        ("cpu", ["--image", "mine:1", "--base-image", "ubuntu:26.04"], "give one of them"),
        ("cpu", ["--cuda", "12"], "--cuda belongs to the gpu backend"),
        ("gpu", ["--torch"], "--torch belongs to the cpu backend"),
        ("tpu", ["--profile-privileged"], "--profile-privileged belongs to the gpu backend"),
        ("gpu", ["--privileged"], "--privileged belongs to the tpu backend"),
    ],
)
def test_what_cannot_be_asked_for_is_said(backend, arguments, fault):
    with pytest.raises(UsageError, match=fault):
        read_request(backend, arguments, AUTO)


@pytest.mark.parametrize(
    ("backend", "arguments", "lock"),
    [
        ("tpu", [], "tpu"),
        ("gpu", [], "gpu"),
        ("cpu", ["--torch"], "cpu-torch"),
        ("gpu", ["--cuda", "13"], "gpu"),
        ("gpu", ["--cuda", "12"], "gpu-cuda12"),
    ],
)
def test_the_lock_is_the_backends_and_on_gpus_that_of_a_cuda_version(backend, arguments, lock):
    assert read_request(backend, arguments, AUTO).lock == lock


@pytest.mark.parametrize("name", ABOUT_CONTAINERS)
@pytest.mark.parametrize("runtime", [[], ["--runtime", "container"]])
def test_an_option_about_containers_asks_for_one(name, runtime):
    backend, arguments, value = ABOUT_CONTAINERS[name]
    request = read_request(backend, [*arguments, *runtime], AUTO)

    assert (getattr(request, name), request.runtime, request.arguments) == (value, "container", ())


@pytest.mark.parametrize(("backend", "arguments"), [*(one[:2] for one in ABOUT_CONTAINERS.values()), *OF_LOCKS])
def test_an_option_that_the_environment_of_the_command_cannot_follow_is_refused(backend, arguments):
    for variables in ({}, {"JAXMETER_RUNTIME": "here"}):
        with pytest.raises(UsageError, match=f"^{arguments[0]} .*--runtime"):
            read_request(backend, arguments, variables)


@pytest.mark.parametrize(
    ("arguments", "variables", "base"),
    [
        ([], {"JAXMETER_BASE_IMAGE": ""}, DEFAULT_BASE_IMAGE),
        ([], MIRROR, "mirror/python:3.13"),
        (["--base-image", "mine"], MIRROR | AUTO, "mine"),
    ],
)
def test_the_base_image_is_the_options_then_the_variables_then_the_default(arguments, variables, base):
    assert read_request("cpu", arguments, variables).base_image == base


def test_a_variable_is_a_default_which_asks_for_no_container_and_keeps_out_no_image():
    assert read_request("cpu", [], MIRROR).runtime == "here"
    assert read_request("cpu", ["--image", "mine:1"], MIRROR | AUTO).image == "mine:1"
    with pytest.raises(UsageError, match="add --runtime container"):  # it names packages
        read_request("cpu", ["--image", "mine:1"], {"JAXMETER_RUNTIME": "local"})


@pytest.mark.parametrize(
    ("words", "in_nox", "installed"),
    [
        (("compare", "a b"), "nox -s compare -- 'a b'", "jaxmeter compare 'a b'"),
        (("diff", "a"), "nox -s report -- diff a", "jaxmeter diff a"),
        (("gc",), "nox -s report -- gc", "jaxmeter gc"),
        (("doctor",), "nox -s doctor", "jaxmeter doctor"),
    ],
)
def test_a_verb_is_named_as_the_user_calls_it(words, in_nox, installed, monkeypatch):
    request = read_request("cpu", ["--image", "mine 1"], AUTO)

    assert name_command(*words) == in_nox
    assert format_command("cpu", request) == "nox -s cpu -- --image 'mine 1'"
    monkeypatch.delenv("JAXMETER_IN_NOX")
    assert name_command(*words) == installed
    assert format_command("cpu", request) == "jaxmeter run --backend cpu --image 'mine 1'"


def test_a_session_of_no_backend_takes_the_one_that_is_named_else_the_cpu():
    assert read_backend(["--json"]) == ("cpu", ["--json"])
    assert read_backend(["--backend", "gpu", "--json"]) == ("gpu", ["--json"])
    with pytest.raises(UsageError, match="--backend 'npu' is unknown; allowed: cpu, gpu, tpu"):
        read_backend(["--backend", "npu"])


OF_SESSIONS = {*REASONS, "--backend", "--machine", "--runtime", "--help"}
"""What sessions of several runs read themselves or refuse."""


def test_every_option_of_a_measurement_is_known():
    run = load_verb("run")
    found = {name: option.is_flag for option in run.params for name in option.opts if name not in OF_SESSIONS}

    assert found == {**dict.fromkeys(VALUED, False), **dict.fromkeys(FLAGS, True)}


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        (["--quik"], "--quik: a night has no such option; nearest: --quick"),
        (["--bugdet=5m"], "--bugdet: a night has no such option; nearest: --budget"),
        (["--quick=yes"], "--quick takes no value"),
        (["-q"], "-q: a night has no such option; options: --budget, "),
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
    words = ["--quick", "--machine=a"]

    assert check_packages([*words, "--runtime", "local"], "an upgrade", REASONS) == words
    with pytest.raises(UsageError, match="--runtime container: packages are measured in virtual environments; leave"):
        check_packages(["--runtime", "container"], "an upgrade", REASONS)
    with pytest.raises(UsageError, match="--quik: an upgrade has no such option; nearest: --quick"):
        check_packages(["--quik"], "an upgrade", REASONS)
