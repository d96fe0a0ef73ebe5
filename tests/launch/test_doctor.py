import json
import os
import re
import socket
import threading
from dataclasses import replace

import pytest

from jaxmeter.launch.doctor.examination import Surroundings, conclude, examine, look, read_asked
from jaxmeter.launch.engines import EngineAnswer
from jaxmeter.launch.environments import MARK, locate_locked
from jaxmeter.launch.host import ObservationState
from jaxmeter.launch.options import UsageError
from tests.golden_texts import check_golden_scenes

GB = 10**9
DOCKER_INFO = json.dumps({"ServerVersion": "28.0", "DockerRootDir": "/store", "Runtimes": {"nvidia": {}}})
QUIET = {
    "proc/cpuinfo": "flags\t: fpu\n",
    "proc/loadavg": "0.00 0.00 0.00 1/100 4242",
    "proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "performance",
}
GPU = {
    "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27\n",
    "proc/driver/nvidia/gpus/0000:01:00.0/information": "Model: H200\n",
}
BASE = "python:3.13-slim-trixie"


def docker(command):
    """A docker that works, and an nvidia-smi that reports a GPU at rest."""
    if command[0] == "nvidia-smi":
        return EngineAnswer(0, "0, 0, 4\n")
    return EngineAnswer(0, DOCKER_INFO if "info" in command else "28.0")


def unreachable(url, index, proxy):
    raise socket.gaierror(-2, "Name or service not known")


@pytest.fixture
def place(tmp_path):
    """A quiet machine with a docker that has every image, an index that answers, and room on its disks."""
    return Place(tmp_path)


class Place:
    def __init__(self, folder):
        self.root, self.checkout, self.bin = folder / "root", folder / "checkout", folder / "bin"
        self.write(self.root, QUIET)
        self.write(self.checkout, {"docker/Dockerfile": "", ".dockerignore": ""})
        self.write(self.checkout, {f"docker/locks/{lock}.txt": lock for lock in ("cpu", "gpu", "gpu-cuda12", "tpu")})
        self.write(self.bin, {"docker": ""})
        (self.bin / "docker").chmod(0o755)
        self.variables = {"PATH": str(self.bin), "PIP_CONFIG_FILE": os.devnull, "JAXMETER_RUNTIME": "auto"}
        self.surroundings = Surroundings(
            root=self.root,
            home=folder,
            folder=folder,
            cores=2,
            allowed_cores=2,
            is_root=False,
            ask=docker,
            fetch=lambda url, index, proxy: 200,
            image_id=lambda engine, name: "sha256:1",
            free_bytes=lambda folder: 100 * GB,
        )

    def write(self, folder, files):
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
        return self

    def having(self, *images):
        """Images whose name begins so are there, others are not."""
        return self.change(image_id=lambda engine, name: "sha256:1" if name.startswith(images) else None)

    def change(self, **surroundings):
        self.surroundings = replace(self.surroundings, **surroundings)
        return self

    def without(self, file):
        file.unlink()
        return self

    def with_gpu(self, **more):
        return self.write(self.root, {**GPU, **more})

    def with_wheels(self):
        return self.write(self.checkout, {"docker/wheels/jax-1-py3-none-any.whl": ""})

    def look(self, *arguments):
        """({name: row}, [what follows for each measurement], whether all can be made)."""
        asked = read_asked(arguments, self.variables)
        found = look(asked, self.variables, self.checkout, self.surroundings)
        rows = (*found.engine, *(row for own in found.own.values() for row in own), *found.supplies, *found.results)
        sentences = [conclude(found, each) for each in asked]
        return {row.name: row for row in (*rows, *found.interferences)}, sentences, not any(map(found.missing, asked))

    def describe(self, *arguments):
        """What is found, of what, with its remedy, and what follows; whether all can be made."""
        rows, sentences, can = self.look(*arguments)
        lines = [
            f"{row.state.name.lower()}: {name}: {row.finding}" + (f"; remedy: {row.remedy}" if row.remedy else "")
            for name, row in rows.items()
        ]
        folder = str(self.root.parent)
        return [re.sub("-[0-9a-f]{12}", "-HASH", line.replace(folder, "PLACE")) for line in (*lines, *sentences)], can


def broken(*_):
    raise RuntimeError("unheard of")


def registry_out_of_reach(url, *way):
    return unreachable(url, *way) if "docker.io" in url else 200


def refused(words):
    return lambda command: EngineAnswer(0, json.dumps({"ServerErrors": [words]}))


RESTRICTED = {"proc/driver/nvidia/params": "RmProfilingAdminOnly: 1\n"}
NOISE = {"proc/loadavg": "2.00 0 0 1/1 1", "sys/fs/cgroup/cpu.max": "50000 100000"}
OLD_GPU = {name: text.replace("580", "535") for name, text in GPU.items()}

SCENES = {
    "everything": (Place.with_gpu, ["cpu", "gpu"], True),
    "no engine": (lambda place: place.without(place.bin / "docker"), [], True),
    "no engine, and a container": (
        lambda place: place.without(place.bin / "docker"),
        ["--runtime", "container"],
        False,
    ),
    "an engine that was passed over": (lambda place: place.change(ask=refused("permission denied")), [], True),
    "an image that is not built yet": (lambda place: place.having(BASE), [], True),
    "an index out of reach, with one of two images built": (
        lambda place: place.with_gpu().having(BASE, "jaxmeter:cpu").change(fetch=unreachable),
        ["cpu", "gpu"],
        False,
    ),
    "an index out of reach while nothing has to be made": (lambda place: place.change(fetch=unreachable), [], True),
    "wheels at hand": (lambda place: place.having(BASE).change(fetch=unreachable).with_wheels(), [], False),
    "wheels at hand, and a local environment": (
        lambda place: place.change(fetch=unreachable).with_wheels(),
        ["--runtime", "local"],
        False,
    ),
    "a base image that is not here, whose registry answers": (lambda place: place.having("none"), [], True),
    "a base image out of reach": (lambda place: place.having("none").change(fetch=registry_out_of_reach), [], False),
    "where the engine keeps images is out of sight": (
        lambda place: place.having(BASE).change(free_bytes=lambda folder: None if folder == "/store" else 100 * GB),
        [],
        True,
    ),
    "little room for images that are built": (lambda place: place.change(free_bytes=lambda folder: GB), [], True),
    "no room for results": (
        lambda place: place.change(
            free_bytes=lambda folder: 90 * 10**6 if folder == str(place.surroundings.folder) else 12_340_000_000
        ),
        [],
        False,
    ),
    "no checkout": (lambda place: place.without(place.checkout / "docker/Dockerfile"), [], False),
    "no devices": (lambda place: place, ["cpu", "gpu", "tpu"], False),
    "an older driver": (lambda place: place.write(place.root, OLD_GPU), ["gpu"], False),
    "an older driver and CUDA": (lambda place: place.write(place.root, OLD_GPU), ["gpu", "--cuda", "12"], True),
    "counters that the driver keeps to itself": (lambda place: place.with_gpu(**RESTRICTED), ["gpu"], True),
    "what spoils times": (lambda place: place.write(place.root, NOISE), [], True),
    "an engine that could not be checked": (lambda place: place.change(ask=broken), [], True),
}
"""A machine, what is asked of it, and whether all of that can be measured."""


def test_what_a_machine_lacks_reads_as_its_golden_text(tmp_path):
    scenes, can = {}, {}
    for number, (rule, (arrange, arguments, _)) in enumerate(SCENES.items()):
        scenes[rule], can[rule] = arrange(Place(tmp_path / str(number))).describe(*arguments)
    usual = {line for line in scenes["everything"] if line.startswith("ok: ")}

    assert can == {rule: expected for rule, (_, _, expected) in SCENES.items()}
    others = {rule: [line for line in lines if line not in usual] for rule, lines in scenes.items()}
    check_golden_scenes("doctor", {**others, "everything": scenes["everything"]})


@pytest.mark.parametrize("runtime", ["local", "container", "here"])
def test_without_a_checkout_only_the_environment_of_the_command_measures(place, runtime):
    rows, _, can = place.without(place.checkout / "docker" / "Dockerfile").look("--runtime", runtime)

    assert can is (runtime == "here")
    faults = [row.finding.partition(" a checkout")[0] for row in rows.values() if row.state is ObservationState.MISSING]
    assert faults == [f"--runtime {runtime} needs"] * (not can)


def test_each_backend_is_asked_about_once_with_options_of_the_measurement_and_the_cpu_where_none_is_named():
    assert [asked.backend for asked in read_asked([], {})] == ["cpu"]
    assert [asked.backend for asked in read_asked(["tpu", "cpu", "tpu"], {})] == ["tpu", "cpu"]
    cpu, gpu = read_asked(["cpu", "gpu", "--cuda=12", "--base-image", "mine:1"], {"JAXMETER_RUNTIME": "auto"})
    assert cpu.command == "nox -s cpu -- --base-image mine:1"
    assert gpu.command == "nox -s gpu -- --base-image mine:1 --cuda 12"
    assert (gpu.request.lock, cpu.request.base_image) == ("gpu-cuda12", "mine:1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gpus"], "backend 'gpus' is unknown to the doctor; backends: cpu, gpu, tpu; options: --runtime"),
        (["--quick"], "option '--quick' is unknown to the doctor"),
        (["--cuda", "12"], "--cuda belongs to the gpu backend: nox -s doctor -- gpu --cuda 12"),
    ],
)
def test_what_there_is_not_is_a_usage_error_that_tells_what_there_is(arguments, message):
    with pytest.raises(UsageError, match=message):
        read_asked(arguments, {})


def test_an_engine_is_asked_each_question_once_while_the_network_is_asked(place):
    begun, asked = threading.Event(), []

    def ask(command):
        asked.append(tuple(command))
        return docker(command) if begun.wait(10) else broken()

    rows, _, _ = place.change(fetch=lambda url, index, proxy: begun.set() or 200, ask=ask).look()

    assert len(asked) == len(set(asked))
    assert rows["container engine"].state is ObservationState.OK


def test_a_local_environment_needs_the_index_only_until_it_is_made(place):
    place.change(fetch=unreachable)

    before, _, can_before = place.look("--runtime", "local")
    lock, environments = place.checkout / "docker" / "locks" / "cpu.txt", place.checkout / ".nox" / "environments"
    made = locate_locked(lock, environments)
    made.mkdir(parents=True)
    (made / MARK).write_text("0")
    after, _, can_after = place.look("--runtime", "local")

    assert (before["cpu environment"].state, can_before) == (ObservationState.MISSING, False)
    assert (after["cpu environment"].state, can_after) == (ObservationState.OK, True)


@pytest.mark.parametrize(
    ("status", "is_there"),
    [(399, True), (400, False), (401, True), (402, False), (403, True), (404, False)],  # pip may have credentials
)
def test_an_index_has_to_answer_with_a_page(place, status, is_there):
    row = place.having(BASE).change(fetch=lambda url, index, proxy: status).look()[0]["package index"]

    assert (row.state, bool(row.remedy)) == (
        (ObservationState.OK, False) if is_there else (ObservationState.MISSING, True)
    )
    assert row.finding.endswith(" answers" if is_there else f": HTTP {status}")


def test_credentials_of_index_and_proxy_are_never_shown(place, capsys):
    place.change(fetch=unreachable)
    place.variables |= {"PIP_INDEX_URL": "https://me:s3cret@host/simple", "HTTPS_PROXY": "http://me:s3cret@proxy:3128"}
    examine([], place.variables, place.checkout, place.surroundings)

    printed = " ".join(capsys.readouterr().out.split())
    assert "https://host/simple (through the proxy http://proxy:3128): no answer" in printed
    assert "s3cret" not in printed


def test_a_base_image_is_not_asked_for_while_the_images_are_built(place):
    asked = []

    rows, _, can = place.having("jaxmeter").change(fetch=lambda url, *_: asked.append(url) or 200).look()

    assert rows["base image"].state is ObservationState.NOTE
    assert asked == ["https://pypi.org/simple/pip/"]
    assert can


@pytest.mark.parametrize(("free", "can_expected"), [(14 * GB, False), (15 * GB, True)])
def test_an_image_needs_room_to_be_built(place, free, can_expected):
    place.with_gpu().having(BASE).change(free_bytes=lambda folder: free)

    rows, (words,), can = place.look("gpu")

    assert can == can_expected
    assert (rows["gpu image"].state is ObservationState.NOTE) == can_expected
    assert ("takes up to 15 GB, 14.0 GB are free in /store" in words) == (not can_expected)


@pytest.mark.parametrize(
    ("is_root", "runtime", "is_told"),
    [(False, "local", True), (True, "local", False), (False, "container", True), (True, "container", True)],
)
def test_root_may_read_the_counters_itself_but_its_container_may_not(place, is_root, runtime, is_told):
    rows, _, _ = place.with_gpu(**RESTRICTED).change(is_root=is_root).look("gpu", "--runtime", runtime)

    assert ("GPU traces" in rows) == is_told


@pytest.mark.parametrize(
    ("part", "row"),
    [
        ("ask", "container engine"),
        ("fetch", "package index"),
        ("image_id", "cpu image"),
        ("image_id", "base image"),
        ("free_bytes", "disk of results"),
        ("free_bytes", "disk of images"),
    ],
)
def test_whatever_breaks_is_a_row_and_the_rest_is_examined(place, part, row):
    rows, _, can = place.change(**{part: broken}).look()

    assert (rows[row].state, rows[row].finding) == (
        ObservationState.UNKNOWN,
        "could not be checked (RuntimeError: unheard of)",
    )
    assert rows["CPU governor"].state is ObservationState.OK
    assert can


@pytest.mark.parametrize(("arguments", "code"), [([], 0), (["cpu", "tpu"], 2)])
def test_the_exit_code_tells_whether_everything_asked_can_be_measured(place, capsys, arguments, code):
    assert examine(arguments, place.variables, place.checkout, place.surroundings) == code

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "What a measurement needs"
    assert any(line.startswith("nox -s cpu can measure here.") for line in lines)
