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


def test_without_options_a_nox_session_uses_a_container_where_there_is_an_engine():
    assert read_request("cpu", ["--quick"], AUTO) == Request(
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


@pytest.mark.parametrize("runtime", ["here", "auto", "local", "container"])
def test_the_runtime_is_the_users_choice(runtime):
    assert read_request("cpu", [f"--runtime={runtime}"], AUTO).runtime == runtime
    assert read_request("cpu", [], {"JAXMETER_RUNTIME": runtime}).runtime == runtime


@pytest.mark.parametrize("variables", [{}, {"JAXMETER_RUNTIME": ""}])
def test_without_an_option_or_a_variable_the_environment_of_the_command_measures(variables):
    assert read_request("cpu", [], variables).runtime == "here"


OF_CONTAINERS = {
    "image": ("cpu", ["--image", "mine:1"]),
    "base_image": ("cpu", ["--base-image", "ubuntu:26.04"]),
    "privileged": ("tpu", ["--privileged"]),
    "profile_privileged": ("gpu", ["--profile-privileged"]),
}


@pytest.mark.parametrize(
    ("backend", "arguments", "fault"),
    [
        *(
            (
                "cpu",
                [f"--runtime={runtime}"],
                f"--runtime '{runtime}' is unknown; allowed: here, auto, local, container",
            )
            for runtime in ("docker", "Local")
        ),
        *(
            (backend, ["--cuda", cuda], f"--cuda '{cuda}' is unknown; allowed: 13, 12")
            for backend, cuda in (("gpu", "11"), ("gpu", "12.9"), ("gpu", ""), ("cpu", "11"))
        ),
        *(("gpu", [name], f"{name} needs a value") for name in ("--runtime", "--image", "--base-image", "--cuda")),
        *(
            (
                backend,
                [*arguments, "--runtime", "local"],
                f"{arguments[0]} is about a container; add --runtime container, or",
            )
            for backend, arguments in OF_CONTAINERS.values()
        ),
        ("gpu", ["--image", "mine:1", "--cuda", "12"], "--image brings its own CUDA; leave out --cuda"),
        (
            "cpu",
            ["--image", "mine:1", "--torch"],
            "--image is used as it is, with PyTorch or without; leave out --torch",
        ),
        ("cpu", ["--image", "mine:1", "--base-image", "ubuntu:26.04"], "give one of them"),
    ],
)
def test_what_cannot_be_asked_for_is_said(backend, arguments, fault):
    with pytest.raises(UsageError, match=fault):
        read_request(backend, arguments, AUTO)


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
    assert read_request(backend, arguments, AUTO).lock == lock


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

    with pytest.raises(UsageError, match=f"{option} belongs to the {owner} backend"):
        read_request(backend, arguments, AUTO)


@pytest.mark.parametrize(
    ("name", "value"),
    [("image", "mine:1"), ("base_image", "ubuntu:26.04"), ("privileged", True), ("profile_privileged", True)],
)
@pytest.mark.parametrize("runtime", [[], ["--runtime", "auto"], ["--runtime", "container"]])
def test_an_option_about_containers_asks_for_one(name, value, runtime):
    backend, arguments = OF_CONTAINERS[name]
    request = read_request(backend, [*arguments, *runtime], AUTO)

    assert (getattr(request, name), request.runtime, request.arguments) == (value, "container", ())


@pytest.mark.parametrize("variables", [{}, {"JAXMETER_RUNTIME": "here"}])
@pytest.mark.parametrize(
    ("backend", "arguments"), [*OF_CONTAINERS.values(), ("cpu", ["--torch"]), ("gpu", ["--cuda", "12"])]
)
def test_an_option_that_the_environment_of_the_command_cannot_follow_is_refused(backend, arguments, variables):
    with pytest.raises(UsageError, match=f"^{arguments[0]} .*--runtime"):
        read_request(backend, arguments, variables)


def test_a_variable_that_names_packages_does_not_give_way_to_an_image():
    with pytest.raises(UsageError, match="add --runtime container"):
        read_request("cpu", ["--image", "mine:1"], {"JAXMETER_RUNTIME": "local"})


@pytest.mark.parametrize(
    ("arguments", "variables", "base"),
    [
        ([], {}, DEFAULT_BASE_IMAGE),
        ([], {"JAXMETER_BASE_IMAGE": ""}, DEFAULT_BASE_IMAGE),
        ([], {"JAXMETER_BASE_IMAGE": "mirror/python:3.13"}, "mirror/python:3.13"),
        (["--base-image", "mine"], {"JAXMETER_BASE_IMAGE": "mirror/python:3.13"} | AUTO, "mine"),
    ],
)
def test_the_base_image_is_the_options_then_the_variables_then_the_default(arguments, variables, base):
    assert read_request("cpu", arguments, variables).base_image == base


def test_the_base_images_variable_is_a_default_and_asks_for_no_container():
    variables = {"JAXMETER_BASE_IMAGE": "mirror/python:3.13"}

    assert read_request("cpu", [], variables).runtime == "here"
    assert read_request("cpu", ["--runtime", "local"], variables).runtime == "local"
    assert read_request("cpu", ["--image", "mine:1"], variables | AUTO).image == "mine:1"


def test_what_was_taken_is_kept_in_one_order_to_be_given_again():
    arguments = ["--profile-privileged", "--cuda=12", "--quick", "--base-image", "mine:1", "--runtime=container"]

    assert read_request("gpu", arguments, {}).words == (
        *("--runtime", "container", "--base-image", "mine:1"),
        *("--cuda", "12", "--profile-privileged"),
    )


def test_the_command_to_go_on_with_is_quoted_for_a_shell(monkeypatch):
    request = read_request("cpu", ["--image", "mine 1"], AUTO)

    assert format_command("cpu", request) == "nox -s cpu -- --image 'mine 1'"
    monkeypatch.delenv("JAXMETER_IN_NOX")
    assert format_command("cpu", request) == "jaxmeter run --backend cpu --image 'mine 1'"


@pytest.mark.parametrize(
    ("words", "in_nox", "installed"),
    [
        (("compare", "a b"), "nox -s compare -- 'a b'", "jaxmeter compare 'a b'"),
        (("diff", "a", "b"), "nox -s report -- diff a b", "jaxmeter diff a b"),
        (("gc",), "nox -s report -- gc", "jaxmeter gc"),
        (("doctor",), "nox -s doctor", "jaxmeter doctor"),
    ],
)
def test_a_verb_is_named_as_the_user_calls_it(words, in_nox, installed, monkeypatch):
    assert name_command(*words) == in_nox
    monkeypatch.delenv("JAXMETER_IN_NOX")
    assert name_command(*words) == installed


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
    with pytest.raises(UsageError, match="--backend 'npu' is unknown; allowed: cpu, gpu, tpu"):
        read_backend(["--backend", "npu"])


def test_whether_the_page_is_opened_is_the_launcher_s_own_business():
    request = read_request("cpu", ["--quick", "--open"], {})

    assert request.opens_page
    assert request.arguments == ("--quick",)
    assert "--open" not in request.words


OF_SESSIONS = {*REASONS, "--backend", "--machine", "--runtime", "--help"}
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
