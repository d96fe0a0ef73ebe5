import csv
import os
import resource
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.machine import environment
from jaxmeter.launch import containers
from jaxmeter.launch.backends import BACKENDS
from jaxmeter.launch.command_line import read_request
from jaxmeter.launch.containers import (
    Caller,
    Container,
    Mount,
    caller_here,
    forwarded_variables,
    mount_value,
    run_arguments,
    user_arguments,
)
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.host import Host

AUTO = {"JAXMETER_RUNTIME": "auto"}
HOME = Path("/home/ana")
CALLER = Caller(1000, 100, "ana", HOME, HOME / "work", "0a1b2c3d", limits={"nofile": 20000, "nproc": 30000})
HOST = Host(driver="580.65.06", gpus=2, cdi_gpu=True, tpu_nodes=("/dev/vfio/0", "/dev/vfio/1"), tpu_groups=(27, 101))
ENGINES = [
    Engine(f"/usr/bin/{kind}", kind, "1", rootless=rootless, nvidia_runtime=kind == "docker")
    for kind in ("docker", "podman", "nerdctl")
    for rootless in (False, True)
]
OPTIONS = [("cpu", []), ("gpu", []), ("gpu", ["--profile-privileged"]), ("tpu", []), ("tpu", ["--privileged"])]
MOUNTS = (
    Mount(Path("/home/ana/suites"), Path("/home/ana/suites")),
    Mount(Path("/home/ana/work/results"), Path("/home/ana/work/results"), writable=True),
)


def container_of(engine, backend, options, host=HOST, **changes):
    """The container of a measurement, as jaxmeter/launch/jobs.py puts it together."""
    request, needs = read_request(backend, options, AUTO), BACKENDS[backend]
    traits = {
        "name": "jaxmeter-1",
        "image": "jaxmeter:cpu-1",
        "arguments": ("-m", "jaxmeter", "run"),
        "mounts": MOUNTS,
        "devices": needs.devices.container_arguments(engine, request, host),
        "network": needs.network,
        "shared_memory": needs.shared_memory,
        "as_root": request.privileged or request.profile_privileged,
        "privileged": request.privileged,
    }
    return Container(**{**traits, **changes})


def arguments_of(engine=ENGINES[0], backend="cpu", options=(), caller=CALLER, host=HOST, **changes):
    return run_arguments(engine, container_of(engine, backend, options, host, **changes), caller)


def values(arguments, option):
    """What follows an option, each time that it is given to the engine."""
    engines_own = arguments[: arguments.index("--entrypoint")]
    return [after for word, after in pairwise(engines_own) if word == option]


@pytest.mark.parametrize("engine", ENGINES, ids=str)
@pytest.mark.parametrize(("backend", "options"), OPTIONS, ids=str)
def test_whatever_the_engine_the_backend_and_the_options_these_hold(engine, backend, options):
    arguments = arguments_of(engine, backend, options)

    assert arguments[:2] == [engine.client, "run"]
    assert {"--rm", "--init", "--read-only"} <= set(arguments)
    assert values(arguments, "--name") == ["jaxmeter-1"]
    assert values(arguments, "--hostname") == ["jaxmeter"]
    assert values(arguments, "--workdir") == ["/home/ana/work"]
    assert values(arguments, "--tmpfs") == [f"{path}:rw,exec,nosuid,nodev,mode=1777" for path in ("/tmp", "/home/ana")]
    assert arguments[-6:] == ["--entrypoint", "python3", "jaxmeter:cpu-1", "-m", "jaxmeter", "run"]
    # No quota of processor time, and read-only mounts unless results go there.
    assert not any(word.startswith(("--cpus", "--cpu-quota", "--cpu-period", "--memory")) for word in arguments)
    assert values(arguments, "--mount") == [
        "type=bind,source=/home/ana/suites,target=/home/ana/suites,readonly",
        "type=bind,source=/home/ana/work/results,target=/home/ana/work/results",
    ]
    # Only a TPU's container has a network.
    assert values(arguments, "--network") == ["host" if backend == "tpu" else "none"]
    assert values(arguments, "--shm-size") == ["100g" if backend == "tpu" else "1g"]
    assert backend != "tpu" or values(arguments, "--device") == ([] if options else list(HOST.tpu_nodes))
    # Every protection is on unless the user gives the container everything.
    protected = (values(arguments, "--cap-drop"), "no-new-privileges" in values(arguments, "--security-opt"))
    assert ("--privileged" in arguments) == ("--privileged" in options)
    assert protected == (([], False) if "--privileged" in options else (["ALL"], True))


@pytest.mark.parametrize(
    ("options", "added"),
    [
        (("gpu", []), []),
        (("gpu", ["--profile-privileged"]), ["DAC_OVERRIDE", "CHOWN", "SYS_ADMIN"]),
        (("tpu", ["--privileged"]), ["DAC_OVERRIDE", "CHOWN"]),
    ],
    ids=str,
)
def test_capabilities_are_added_one_by_one_where_an_option_or_a_device_needs_them(options, added):
    assert values(arguments_of(ENGINES[0], *options), "--cap-add") == added


@pytest.mark.parametrize(
    ("engine", "as_caller", "as_root"),
    [
        (Engine("", "docker", "28"), ["--user", "1000:100"], []),
        (Engine("", "docker", "28", rootless=True), ["--user", "0:0"], []),
        (Engine("", "docker", "28", remapped=True), ["--userns", "host", "--user", "1000:100"], ["--userns", "host"]),
        (Engine("", "podman", "5"), ["--user", "1000:100"], []),
        (Engine("", "podman", "5", rootless=True), ["--userns", "keep-id", "--user", "1000:100"], []),
        (Engine("", "nerdctl", "2"), ["--user", "1000:100"], []),
        (Engine("", "nerdctl", "2", rootless=True), ["--user", "0:0"], []),
    ],
    ids=["docker", "rootless docker", "remapped docker", "podman", "rootless podman", "nerdctl", "rootless nerdctl"],
)
def test_results_belong_to_the_caller_in_each_engines_own_way(engine, as_caller, as_root):
    rights = ["--cap-add", "DAC_OVERRIDE", "--cap-add", "CHOWN"]

    assert list(user_arguments(engine, CALLER, as_root=False)) == as_caller
    assert list(user_arguments(engine, CALLER, as_root=True)) == [*as_root, "--user", "0:0", *rights]


@pytest.mark.parametrize(("kind", "rootless"), [("podman", False), ("podman", True), ("docker", False)])
def test_podman_as_root_keeps_to_the_callers_limits(kind, rootless):
    limits = ["nofile=20000:20000", "nproc=30000:30000"] if kind == "podman" and not rootless else []

    assert values(arguments_of(Engine(kind, kind, "1", rootless=rootless)), "--ulimit") == limits


@pytest.mark.parametrize(("selinux", "options"), [(True, ["label=disable"]), (False, [])])
def test_where_mounts_would_be_refused_by_their_label_it_is_left_out_and_files_keep_theirs(selinux, options):
    arguments = arguments_of(Engine("podman", "podman", "1", selinux=selinux))

    assert values(arguments, "--security-opt") == ["no-new-privileges", *options]
    assert not any(word.endswith((":z", ":Z")) for word in arguments)


@pytest.mark.parametrize(("has_terminal", "count"), [(True, 1), (False, 0)])
def test_a_terminal_is_handed_on_where_there_is_one(has_terminal, count):
    arguments = arguments_of(has_terminal=has_terminal)

    assert (arguments.count("--interactive"), arguments.count("--tty")) == (count, count)


def test_a_folder_that_is_mounted_or_all_of_the_file_system_is_not_covered():
    """One engine refuses two things in one place."""
    mounts = (Mount(Path("/tmp"), Path("/tmp"), writable=True),)

    assert values(arguments_of(mounts=mounts), "--tmpfs") == ["/home/ana:rw,exec,nosuid,nodev,mode=1777"]
    assert values(arguments_of(mounts=mounts, caller=replace(CALLER, home=Path("/"))), "--tmpfs") == []


def test_a_container_knows_its_caller_and_takes_what_else_it_is_told():
    arguments = arguments_of(variables={"XLA_FLAGS": "--xla_a=1 --xla_b=2", "HOME": "/elsewhere"})

    own = ["HOME=/elsewhere", "USER=ana", "LOGNAME=ana", "JAXMETER_HOST=0a1b2c3d"]
    assert values(arguments, "--env") == [*own, "XLA_FLAGS=--xla_a=1 --xla_b=2"]


STEERING = ("JAX_ENABLE_X64", "LIBTPU_INIT_ARGS", "OMP_NUM_THREADS", "TPU_VISIBLE_DEVICES", "XLA_FLAGS")
NOT_HANDED_ON = (
    "JAX_COMPILATION_CACHE_DIR",  # a warm cache would make compile times wrong
    "JAX_PLATFORMS",  # the backend decides
    "TPU_LIBRARY_PATH",
    *("AWS_SECRET_ACCESS_KEY", "PIP_INDEX_URL", "HTTPS_PROXY", "LD_PRELOAD", "PYTHONPATH", "HOME"),
    *("JAXMETER_HOST", "MY_JAX_FLAG", "jax_enable_x64"),
)


def test_what_steers_jax_is_handed_on_in_one_order_and_nothing_else():
    given = dict.fromkeys((*NOT_HANDED_ON, *reversed(STEERING)), "x")

    assert list(forwarded_variables(given).items()) == [(name, "x") for name in STEERING]


def test_what_a_container_is_given_is_what_the_harness_records():
    # LD_PRELOAD names a file of this machine; JAXMETER_… the launcher makes inside.
    recorded = {name for name in environment._VARIABLES - {"LD_PRELOAD"} if not name.startswith("JAXMETER_")}
    of_tpus = {name for name in recorded if name.startswith("TPU_")}  # recorded by name: some hold names of machines

    assert recorded - of_tpus == containers.FORWARDED - {"NO_COLOR"}  # which steers what is shown
    assert set(environment._VARIABLE_PREFIXES) == set(containers.FORWARDED_PREFIXES) - {"TPU_"}
    assert forwarded_variables(dict.fromkeys(recorded, "x")).keys() == recorded


signs = st.sampled_from(",\"' =\\;:éß漢🙂") | st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/")
paths = st.text(signs, min_size=1).map(lambda name: Path("/data") / name)


@given(source=paths, target=paths, writable=...)
def test_a_mount_of_any_path_is_read_back_as_it_was(source: Path, target: Path, writable: bool):
    (fields,) = csv.reader([mount_value(Mount(source, target, writable))])

    assert fields == ["type=bind", f"source={source}", f"target={target}", *([] if writable else ["readonly"])]


def test_the_caller_is_the_user_of_this_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/ana")

    caller = caller_here({"USER": "ana", "LOGNAME": "else"})

    assert (caller.uid, caller.gid, caller.name) == (os.getuid(), os.getgid(), "ana")
    assert (caller.home, caller.folder) == (Path("/home/ana"), tmp_path)
    assert set(caller.limits) == {"nofile", "nproc"}
    assert caller_here({"LOGNAME": "ana"}).name == "ana"
    assert caller_here({"USER": "", "LOGNAME": ""}).name == "jaxmeter"  # one without a name is given one
    monkeypatch.setattr("platform.node", lambda: "host.example.com")
    assert caller_here({}).host == "b0732f01"  # a hash, the same in a container and outside


@pytest.mark.parametrize(
    ("processes", "ids", "expected"),
    [(9000, "4000", 4000), (3000, "4000", 3000), (resource.RLIM_INFINITY, "4000", 4000), (9000, "", 9000)],
)
def test_a_containers_processes_are_never_more_than_there_are_process_ids(monkeypatch, processes, ids, expected):
    hard_limits = {resource.RLIMIT_NPROC: processes, resource.RLIMIT_NOFILE: 700}
    monkeypatch.setattr("resource.getrlimit", lambda kind: (1, hard_limits[kind]))
    monkeypatch.setattr("jaxmeter.launch.containers.read_text", lambda path: ids)

    assert caller_here({}).limits == {"nofile": 700, "nproc": expected}
