import getpass
import inspect
import os
import time
from pathlib import Path
from types import SimpleNamespace

import jax
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.machine import environment
from jaxmeter.harness.machine.environment import (
    LONGEST_WORDS,
    allowed_cores,
    cpu_quota,
    describe_environment,
    describe_error,
    device_memory_bytes,
    least_memory_bytes,
    make_paths_private,
    make_private,
    paid_cores,
    recorded_variables,
    usable_cores,
)
from jaxmeter.harness.probes.context import LONGEST_REASON, LONGEST_TRACEBACK, describe_failure
from jaxmeter.harness.record import Status
from jaxmeter.launch.host import cpu_quota as quota_as_the_launcher_reads_it


@pytest.fixture
def anna(monkeypatch) -> None:
    """Someone else is at the machine."""
    monkeypatch.setattr(Path, "home", lambda: Path("/home/anna"))
    monkeypatch.setattr(getpass, "getuser", lambda: "anna")


def write(folder: Path, files: dict[str, str]) -> None:
    """Files of a made-up system."""
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)


def test_what_steers_jax_is_recorded_and_nothing_else():
    steering = {"XLA_FLAGS": "--xla_a", "JAX_ENABLE_X64": "1", "OMP_NUM_THREADS": "2"}
    others = {"PATH": "/bin", "USER": "anna", "HOME": "/home/anna", "OMP_PLACES": "cores"}

    assert recorded_variables({**steering, **others}) == steering


@given(
    prefix=st.sampled_from(["JAX_", "XLA_", "JAXMETER_"]),
    word=st.sampled_from(["KEY", "TOKEN", "SECRET", "PASSWORD", "PASSPHRASE", "PASS", "AUTH", "CREDENTIALS"]),
)
def test_a_secret_is_never_recorded(prefix, word):
    assert recorded_variables({f"{prefix}{word}": "s3cr3t", f"{prefix}API_{word}_2": "s3cr3t"}) == {}


@pytest.mark.parametrize("name", ["JAX_COMPILER_ENABLE_REMAT_PASS", "JAX_DEBUG_KEY_REUSE"])
def test_a_switch_is_no_secret_whatever_its_name_says(name):
    assert recorded_variables({name: "true"}) == {name: "true"}
    assert recorded_variables({name: "truely secret"}) == {}


@pytest.mark.parametrize(
    ("value", "recorded"),
    [
        ("anna:s3cr3t@host:8476", "***@host:8476"),
        ("anna@host:8476", "***@host:8476"),
        ("host:8476", "host:8476"),
        ("[::1]:8476", "[::1]:8476"),
        ("gs://bucket/dump", "gs://bucket/dump"),
        ("https://anna:s3=c,r@3t@host/dump", "https://***@host/dump"),
        ("https://host/dump?token=s3cr3t&part=1", "https://host/dump?token=***&part=1"),
        ("https://host/dump?sv=2&sig=s3cr3t%3D==", "https://host/dump?sv=2&sig=***=="),
        ("https://host/dump?X-Amz-Signature=s3cr3t", "https://host/dump?X-Amz-Signature=***"),
        ("--xla_a=1 --xla_api_key=s3cr3t --xla_b=2", "--xla_a=1 --xla_api_key=*** --xla_b=2"),
        ("--xla_to=password=s3cr3t,level=3", "--xla_to=password=***,level=3"),
        ("--xla_disable_hlo_passes=algsimp --xla_dump_hlo_pass_re=.*", None),
        ("--xla_force_host_platform_device_count=8 --xla_signal=4", None),
    ],
)
def test_a_secret_within_a_value_is_hidden_and_what_steers_is_kept(value, recorded):
    assert recorded_variables({"XLA_FLAGS": value}) == {"XLA_FLAGS": recorded or value}


@pytest.mark.parametrize("part", ["token", "a", "@", "://", "a:", "token="])
def test_a_value_of_another_run_costs_no_more_time_than_it_is_long(part):
    assert recorded_variables({"XLA_FLAGS": part * 10**5})  # squared, this would be minutes


@pytest.mark.usefixtures("anna")
def test_values_of_variables_are_private():
    there, shown = "--xla_gpu_cuda_data_dir=/home/anna/cuda", "--xla_gpu_cuda_data_dir=~/cuda"

    assert recorded_variables({"XLA_FLAGS": there}) == {"XLA_FLAGS": shown}


@pytest.mark.parametrize(
    ("name", "value", "recorded"),
    [
        ("JAX_DUMP_IR_TO", "/projects/acme/dump", "***"),
        ("JAX_DUMP_IR_TO", "acme", "***"),
        ("JAX_DUMP_IR_MODES", "stablehlo", "stablehlo"),
        ("XLA_FLAGS", "--xla_dump_to=/projects/acme --xla_b=2", "--xla_dump_to=*** --xla_b=2"),
        ("XLA_FLAGS", "--xla_gpu_dump_autotune_results_to=/acme", "--xla_gpu_dump_autotune_results_to=***"),
        ("XLA_FLAGS", "--xla_dump_hlo_as_text --xla_dump_hlo_pass_re=.*", None),
        ("LIBTPU_INIT_ARGS", "--xla_jf_dump_to=/acme", "--xla_jf_dump_to=***"),
    ],
)
def test_where_programs_are_dumped_is_not_recorded_and_that_they_are_is(name, value, recorded):
    assert recorded_variables({name: value}) == {name: recorded or value}


@given(st.text(alphabet="ABCDEFGHIJKLMNOPQRSTUVWXYZ_", max_size=12).filter(lambda name: name != "DATA"))
def test_of_jaxmeters_own_variables_only_the_folder_of_data_is_recorded(name):
    assert recorded_variables({f"JAXMETER_{name}": "s3cr3t", "JAXMETER_API": "s3cr3t", "JAX_API": "s3cr3t"}) == {}
    assert recorded_variables({"JAXMETER_DATA": "/data"}) == {"JAXMETER_DATA": "/data"}


@pytest.mark.usefixtures("anna")
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/home/anna/suites/a.py:3", "~/suites/a.py:3"),
        ("/home/anna", "~"),
        ("a=/home/anna/x b=/home/anna/y", "a=~/x b=~/y"),
        ("/scratch/anna/jax", "/scratch/user/jax"),
        ("by annabel, see /data/annabel/x", "by annabel, see /data/annabel/x"),
        ("nothing to hide", "nothing to hide"),
        ("/scratch/anna", "/scratch/user"),
        ("no folder '/scratch/anna'", "no folder '/scratch/user'"),
        ("/data/anna:/data/b", "/data/user:/data/b"),
        ("no file /home/anna.", "no file ~."),
        ("see /scratch/anna. Then", "see /scratch/user. Then"),
        ("/home/annabel/x", "/home/annabel/x"),
    ],
)
def test_home_is_shown_as_a_tilde_and_the_users_name_in_a_path_as_user(text, expected):
    assert make_private(text) == expected


@pytest.mark.parametrize("written", ["/home/änna/suites/a.py", r"/home/\303\244nna/suites/a.py"])
def test_a_home_that_is_not_ascii_is_a_tilde_also_as_xla_writes_it(monkeypatch, written):
    monkeypatch.setattr(Path, "home", lambda: Path("/home/änna"))

    assert make_private(written) == "~/suites/a.py"
    monkeypatch.setattr(getpass, "getuser", lambda: "änna")
    assert make_private(written.replace("home", "scratch")) == "/scratch/user/suites/a.py"


@pytest.mark.usefixtures("anna")
def test_what_an_error_says_is_one_short_private_line():
    error = ValueError("no file /home/anna/x\n  and more" + " of it" * LONGEST_WORDS)

    found = describe_error(error)

    assert found.startswith("no file ~/x and more of it of it")
    assert len(found) <= LONGEST_WORDS


def test_a_user_without_a_name_is_no_error(monkeypatch):
    def nameless() -> str:
        raise KeyError("uid not found")

    monkeypatch.setattr(getpass, "getuser", nameless)
    monkeypatch.setattr(Path, "home", lambda: Path("/"))

    assert make_private("/scratch/a") == "/scratch/a"


def test_an_environment_names_what_decides_the_program(monkeypatch):
    monkeypatch.setenv("XLA_FLAGS_SAMPLE", "1")

    found = describe_environment(jax)

    assert found.packages["jax"] == jax.__version__
    assert (found.device_kind, found.device_count) == ("cpu", jax.device_count())
    assert 1 <= found.allowed_cores <= found.cores
    assert found.allowed_cores == allowed_cores()
    assert found.variables["XLA_FLAGS_SAMPLE"] == "1"
    assert len(found.host) == 8


@pytest.mark.parametrize(("platform", "name"), [("cpu", "Sample Processor 1"), ("gpu", "Sample GPU")])
def test_a_device_is_called_what_it_is_and_the_processor_by_its_own_name(monkeypatch, platform, name):
    client = SimpleNamespace(platform_version="1", device_count=lambda: 1)
    device = SimpleNamespace(
        platform=platform, device_kind="Sample GPU", client=client, memory_stats=lambda: {"bytes_limit": 7}
    )
    monkeypatch.setattr(environment, "_processor", lambda: "Sample Processor 1")
    monkeypatch.setattr(jax, "devices", lambda: [device])

    found = describe_environment(jax)

    assert (found.device_name, found.device_kind, found.processor) == (name, "Sample GPU", "Sample Processor 1")


def test_what_a_launcher_tells_of_the_outside_is_recorded_and_is_no_variable_that_steers(monkeypatch):
    told = {
        "JAXMETER_HOST": "5bce98f7",
        "JAXMETER_IMAGE": "jaxmeter:cpu-1f0c sha256:77",
        "JAXMETER_LOCK_SHA256": "99",
        "JAXMETER_REVISION": "abc-dirty",
        "JAXMETER_COMMAND": "nox -s cpu --",
    }
    for name, value in told.items():
        monkeypatch.setenv(name, value)

    found = describe_environment(jax)

    assert (found.host, found.image, found.lock_sha256) == ("5bce98f7", "jaxmeter:cpu-1f0c sha256:77", "99")
    assert (found.git_revision, found.git_dirty) == ("abc", True)
    assert not told.keys() & found.variables.keys()
    for name in told:
        monkeypatch.delenv(name)
    outside = describe_environment(jax)
    assert (outside.image, outside.lock_sha256) == (None, None)


VERSION_1 = {
    "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1",
    "sys/fs/cgroup/cpu/docker/1f/cpu.cfs_quota_us": "300000",
    "sys/fs/cgroup/cpu/docker/1f/cpu.cfs_period_us": "100000",
}


@pytest.mark.parametrize(
    ("files", "quota"),
    [
        ({}, None),
        ({"sys/fs/cgroup/cpu.max": "max 100000"}, None),
        ({"sys/fs/cgroup/cpu.max": "150000 100000"}, 1.5),
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/cpu.max": "50000 100000"}, 0.5),
        (
            {
                "proc/self/cgroup": "0::/a/b",
                **{f"sys/fs/cgroup/{of}/cpu.max": f"{us} 100000" for of, us in (("a", 400000), ("a/b", 200000))},
            },
            2.0,
        ),
        ({"proc/self/cgroup": "4:cpu,cpuacct:/docker/1f\n1:name=systemd:/", **VERSION_1}, 3.0),
    ],
    ids=["nothing to read", "no limit", "container", "limited by its parent", "the least of two", "version 1"],
)
def test_a_cpu_quota_is_the_least_of_all_control_groups_around_the_process(tmp_path, files, quota):
    write(tmp_path, files)

    assert cpu_quota(tmp_path) == quota
    assert quota_as_the_launcher_reads_it(tmp_path) == quota


@pytest.mark.parametrize(
    ("allowed", "quota", "in_full", "in_part"),
    [(4, "max 100000", 4, 4), (4, "250000 100000", 2, 2.5), (2, "800000 100000", 2, 2), (4, "5 10", 1, 0.5)],
)
def test_as_many_cores_can_be_used_as_are_allowed_and_paid_for(tmp_path, monkeypatch, allowed, quota, in_full, in_part):
    write(tmp_path, {"proc/self/cgroup": "0::/", "sys/fs/cgroup/cpu.max": quota})
    monkeypatch.setattr(environment, "allowed_cores", lambda: allowed)

    assert (usable_cores(tmp_path), paid_cores(tmp_path)) == (in_full, in_part)


@pytest.mark.parametrize(
    ("files", "limit"),
    [
        ({"proc/self/cgroup": "0::/", "sys/fs/cgroup/memory.max": "max"}, None),
        ({"proc/self/cgroup": "0::/a/b", "sys/fs/cgroup/a/memory.max": "4096"}, 4096),
        ({"proc/self/cgroup": "0::/gone", "sys/fs/cgroup/memory.max": "8192"}, 8192),
        ({"proc/self/cgroup": "3:memory:/a", "sys/fs/cgroup/memory/a/memory.limit_in_bytes": "2048"}, 2048),
        ({}, None),
    ],
    ids=["no limit", "limited by its parent", "container", "version 1", "nothing to read"],
)
def test_the_memory_of_a_cpu_is_the_machines_or_what_its_control_groups_allow(tmp_path, files, limit):
    write(tmp_path, files)

    machine = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert least_memory_bytes(tmp_path) == (limit or machine)


@pytest.mark.parametrize(
    ("platform", "kind", "statistics", "expected", "count"),
    [
        ("cpu", "cpu", None, least_memory_bytes() // 8, 8),  # devices that share a processor
        ("gpu", "NVIDIA H200", {"bytes_limit": 7}, 7, 1),
        ("gpu", "NVIDIA H200", None, 141 * 10**9, 1),
        ("gpu", "unknown", None, None, 1),
        ("tpu", "unknown", {}, None, 1),
        ("cpu", "cpu", None, least_memory_bytes(), 1),
    ],
)
def test_the_memory_of_a_device_is_its_allocators_limit_else_that_of_its_kind(
    platform, kind, statistics, expected, count
):
    client = SimpleNamespace(device_count=lambda: count)
    device = SimpleNamespace(platform=platform, device_kind=kind, memory_stats=lambda: statistics, client=client)

    assert device_memory_bytes(device) == expected


@pytest.mark.usefixtures("anna")
@pytest.mark.parametrize("before", range(LONGEST_WORDS - 12, LONGEST_WORDS))
def test_words_that_are_cut_inside_the_home_tell_no_part_of_it(before):
    assert "/h" not in describe_error(ValueError("x" * before + "/home/anna/suite.py"))


@pytest.mark.usefixtures("anna")
def test_a_reason_that_is_cut_inside_the_home_tells_no_part_of_it():
    before = "x" * (LONGEST_REASON - len("in stage 'trace': ValueError: ") - 8)

    assert "/home" not in describe_failure(ValueError(before + "/home/anna/suite.py"), "trace").reason


def test_an_error_of_twenty_million_letters_fails_within_seconds_in_shortened_words():
    start_s = time.process_time()

    outcome = describe_failure(RuntimeError("E" * 20_000_000), "numerics")

    assert outcome.status is Status.FAILED
    assert outcome.reason.startswith("in stage 'numerics': RuntimeError: EEE")
    assert (len(outcome.reason), len(outcome.stderr)) == (LONGEST_REASON, LONGEST_TRACEBACK)
    assert time.process_time() - start_s < 5


def test_a_path_of_the_code_begins_with_its_package():
    here = Path(inspect.getfile(make_private))

    assert make_private(f'File "{here.parents[2] / "suites" / "selu.py"}", line 3') == 'File "suites/selu.py", line 3'


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "HF_TOKEN", "service_password", "OPENAI_API", "GIT_AUTH"])
def test_a_secret_of_the_environment_is_in_no_recorded_words(monkeypatch, name):
    monkeypatch.setenv(name, "wJalr/XUtn=FEMI")
    error = ValueError("cannot open with wJalr/XUtn=FEMI")

    assert describe_error(error) == "cannot open with ***"
    outcome = describe_failure(error, "trace")
    assert "wJalr" not in f"{outcome.reason}{outcome.stderr}"


def test_a_path_that_is_opened_stays_the_one_that_is_there(monkeypatch):
    monkeypatch.setenv("MONKEY_HOME", "/projects/monkey")

    assert make_paths_private("/projects/monkey/suite.py") == "/projects/monkey/suite.py"
