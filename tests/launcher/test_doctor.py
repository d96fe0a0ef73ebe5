import json
import os
import socket
import threading
from dataclasses import replace

import pytest

from launcher.doctor.examination import Surroundings, conclude, examine, look, read_asked
from launcher.engines import Answer
from launcher.findings import State
from launcher.options import UsageError

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
        return Answer(0, "0, 0, 4\n")
    return Answer(0, DOCKER_INFO if "info" in command else "28.0")


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
        self.variables = {"PATH": str(self.bin), "PIP_CONFIG_FILE": os.devnull}
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

    def without_engine(self):
        (self.bin / "docker").unlink()

    def having(self, *images):
        """Images whose name begins so are there, others are not."""
        self.change(image_id=lambda engine, name: "sha256:1" if name.startswith(images) else None)

    def change(self, **surroundings):
        self.surroundings = replace(self.surroundings, **surroundings)

    def look(self, *arguments):
        """({name: row}, [what follows for each measurement], whether all can be made)."""
        asked = read_asked(arguments, self.variables)
        found = look(asked, self.variables, self.checkout, self.surroundings)
        rows = (*found.engine, *(row for own in found.own.values() for row in own), *found.supplies, *found.results)
        sentences = [conclude(found, each) for each in asked]
        return {row.name: row for row in (*rows, *found.interferences)}, sentences, not any(map(found.missing, asked))


def test_a_machine_that_has_everything_is_fine_throughout(place):
    place.write(place.root, GPU)

    rows, sentences, can = place.look("cpu", "gpu")

    assert {row.state for row in rows.values()} == {State.OK}
    assert {row.remedy for row in rows.values()} == {""}
    assert sentences == ["nox -s cpu can measure here.", "nox -s gpu can measure here."]
    assert can


def test_the_cpu_is_asked_about_where_nothing_is_named_and_each_backend_once():
    assert [asked.backend for asked in read_asked([], {})] == ["cpu"]
    assert [asked.backend for asked in read_asked(["tpu", "cpu", "tpu"], {})] == ["tpu", "cpu"]


def test_options_of_the_measurement_are_part_of_the_command_that_is_judged():
    cpu, gpu = read_asked(["cpu", "gpu", "--cuda=12", "--base-image", "mine:1"], {})

    assert cpu.command == "nox -s cpu -- --base-image mine:1"
    assert gpu.command == "nox -s gpu -- --base-image mine:1 --cuda 12"
    assert (gpu.request.lock, cpu.request.base_image) == ("gpu-cuda12", "mine:1")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["gpus"], "backend 'gpus' is unknown to nox -s doctor; backends: cpu, gpu, tpu; options: --runtime"),
        (["--quick"], "option '--quick' is unknown to nox -s doctor"),
        (["--cuda", "12"], "--cuda belongs to the gpu backend: nox -s doctor -- gpu --cuda 12"),
        (["gpu", "--cuda", "11"], "--cuda '11' is unknown; allowed: 13, 12"),
    ],
)
def test_what_there_is_not_is_a_usage_error_that_tells_what_there_is(arguments, message):
    with pytest.raises(UsageError, match=message):
        read_asked(arguments, {})


def test_without_an_engine_the_local_environment_is_used(place):
    place.without_engine()

    rows, sentences, can = place.look()

    assert rows["container engine"].state is State.NOTE
    assert "install one" in rows["container engine"].remedy
    assert rows["cpu environment"].state is State.NOTE
    assert not {"base image", "cpu image", "disk of images"} & set(rows)
    assert sentences == ["nox -s cpu can measure here."]
    assert can


def test_without_an_engine_a_measurement_that_needs_a_container_cannot_be_made(place):
    place.without_engine()

    rows, (words,), can = place.look("--runtime", "container")

    assert rows["container engine"].state is State.MISSING
    assert "--runtime local" in rows["container engine"].remedy
    assert not {"cpu environment", "cpu image"} & set(rows)
    assert words.startswith("nox -s cpu -- --runtime container cannot measure here: no container engine is installed")
    assert not can


def test_an_engine_that_was_passed_over_is_told_with_its_reason(place):
    place.change(ask=lambda command: Answer(0, json.dumps({"ServerErrors": ["permission denied"]})))

    rows, _, can = place.look()

    assert rows["passed over"].found == f"{place.bin}/docker: permission denied"
    assert "usermod" in rows["passed over"].remedy
    assert can


def test_an_engine_is_asked_each_question_once(place):
    asked = []
    place.change(ask=lambda command: asked.append(command) or docker(command))

    place.look()

    assert len(asked) == len(set(map(tuple, asked)))


def test_the_network_is_asked_while_the_engine_is(place):
    begun = threading.Event()
    place.change(fetch=lambda url, index, proxy: begun.set() or 200)
    place.change(ask=lambda command: docker(command) if begun.wait(10) else broken())

    rows, _, _ = place.look()

    assert rows["container engine"].state is State.OK


def test_an_image_that_is_not_built_yet_is_no_obstacle_where_it_can_be_built(place):
    place.having(BASE)

    rows, sentences, can = place.look()

    assert rows["cpu image"].state is State.NOTE
    assert "the first nox -s cpu builds it" in rows["cpu image"].found
    assert "takes up to 3 GB, 100.0 GB are free" in rows["cpu image"].found
    assert sentences == ["nox -s cpu can measure here."]
    assert can


def test_an_index_out_of_reach_prevents_building_but_not_measuring_with_what_is_built(place):
    place.write(place.root, GPU)
    place.having(BASE, "jaxmeter:cpu")
    place.change(fetch=unreachable)

    rows, (cpu, gpu), can = place.look("cpu", "gpu")

    assert rows["package index"].state is State.MISSING
    assert "https://pypi.org/simple: no answer (Name or service not known)" in rows["package index"].found
    assert "nox -s wheels" in rows["package index"].remedy
    assert rows["cpu image"].state is State.OK
    assert cpu == "nox -s cpu can measure here."
    assert gpu == (
        "nox -s gpu cannot measure here: the gpu image is not built yet, and cannot be without the package index."
    )
    assert not can


def test_an_index_out_of_reach_is_good_to_know_while_nothing_has_to_be_made(place):
    place.change(fetch=unreachable)

    rows, _, can = place.look()

    assert rows["package index"].state is State.NOTE
    assert "not needed now" in rows["package index"].found
    assert can


def test_with_wheels_at_hand_the_remedy_is_to_build_from_them(place):
    place.having(BASE)
    place.change(fetch=unreachable)
    place.write(place.checkout, {"docker/wheels/jax-1-py3-none-any.whl": ""})

    rows, _, _ = place.look()

    assert rows["cpu image"].remedy == "build it from docker/wheels: nox -s images -- --offline cpu"


def test_wheels_at_hand_are_no_remedy_for_a_local_environment(place):
    place.change(fetch=unreachable)
    place.write(place.checkout, {"docker/wheels/jax-1-py3-none-any.whl": ""})

    rows, _, _ = place.look("--runtime", "local")

    assert rows["cpu environment"].remedy == "see below"


def test_a_local_environment_needs_the_index_only_until_it_is_made(place):
    place.change(fetch=unreachable)

    before, _, can_before = place.look("--runtime", "local")
    place.write(place.checkout, {".nox/cpu/lib/python3.13/site-packages/jax/__init__.py": ""})
    after, _, can_after = place.look("--runtime", "local")

    assert (before["cpu environment"].state, can_before) == (State.MISSING, False)
    assert (after["cpu environment"].state, can_after) == (State.OK, True)


@pytest.mark.parametrize(
    ("status", "state", "words"),
    [
        (200, State.OK, "answers"),
        (401, State.OK, "answers"),  # pip may have credentials
        (403, State.OK, "answers"),
        (399, State.OK, "answers"),
        (400, State.MISSING, "HTTP 400"),
        (404, State.MISSING, "HTTP 404"),
        (503, State.MISSING, "HTTP 503"),
    ],
)
def test_an_index_has_to_answer_with_a_page(place, status, state, words):
    place.having(BASE)
    place.change(fetch=lambda url, index, proxy: status)

    row = place.look()[0]["package index"]

    assert row.state is state
    assert words in row.found
    assert bool(row.remedy) == (state is State.MISSING)


def test_credentials_of_index_and_proxy_are_never_shown(place, capsys):
    place.variables |= {"PIP_INDEX_URL": "https://me:s3cret@host/simple", "HTTPS_PROXY": "http://me:s3cret@proxy:3128"}
    place.change(fetch=unreachable)

    examine([], place.variables, place.checkout, place.surroundings)

    printed = " ".join(capsys.readouterr().out.split())
    assert "https://host/simple (through the proxy http://proxy:3128): no answer" in printed
    assert "s3cret" not in printed


@pytest.mark.parametrize("status", [200, 401])
def test_a_base_image_that_is_not_here_is_fine_where_its_registry_answers_anything(place, status):
    place.having("none")
    place.change(fetch=lambda url, index, proxy: status if "docker.io" in url else 200)

    rows, _, can = place.look()

    assert rows["base image"].state is State.OK
    assert "registry answers" in rows["base image"].found
    assert can


def test_a_base_image_out_of_reach_prevents_building(place):
    place.having("none")
    place.change(fetch=lambda url, *way: unreachable(url, *way) if "docker.io" in url else 200)

    rows, (words,), can = place.look()

    assert rows["base image"].state is State.MISSING
    assert f"{place.bin}/docker load" in rows["base image"].remedy
    assert words.endswith("the cpu image is not built yet, and cannot be without the base image.")
    assert not can


def test_a_base_image_is_not_asked_for_while_the_images_are_built(place):
    asked = []
    place.having("jaxmeter")
    place.change(fetch=lambda url, index, proxy: asked.append(url) or 200)

    rows, _, can = place.look()

    assert rows["base image"].state is State.NOTE
    assert asked == ["https://pypi.org/simple/pip/"]
    assert can


@pytest.mark.parametrize(("free", "can_expected"), [(14 * GB, False), (15 * GB, True)])
def test_an_image_needs_room_to_be_built(place, free, can_expected):
    place.write(place.root, GPU)
    place.having(BASE)
    place.change(free_bytes=lambda folder: free)

    rows, (words,), can = place.look("gpu")

    assert can == can_expected
    assert (rows["gpu image"].state is State.NOTE) == can_expected
    assert ("takes up to 15 GB, 14.0 GB are free in /store" in words) == (not can_expected)


def test_an_image_that_is_built_needs_no_room(place):
    place.change(free_bytes=lambda folder: GB)

    assert place.look()[2]


def test_where_the_engine_keeps_images_may_be_out_of_sight(place):
    place.having(BASE)
    place.change(free_bytes=lambda folder: None if folder == "/store" else 100 * GB)

    rows, sentences, _ = place.look()

    assert rows["disk of images"].state is State.UNKNOWN
    assert sentences == ["nox -s cpu can measure here."]


def test_free_room_is_told_in_gigabytes(place):
    place.change(free_bytes=lambda folder: 12_340_000_000)

    rows, _, _ = place.look()

    assert rows["disk of images"].found == "12.3 GB free in /store"
    assert rows["disk of results"].found == f"12.3 GB free in {place.surroundings.folder}"


def test_results_need_a_little_room(place):
    place.change(free_bytes=lambda folder: 90 * 10**6 if folder == str(place.surroundings.folder) else 100 * GB)

    rows, _, can = place.look()

    assert rows["disk of results"].state is State.MISSING
    assert not can


def test_without_checkout_images_cannot_be_built_and_the_local_environment_is_the_way(place):
    (place.checkout / "docker/Dockerfile").unlink()

    rows, _, can = place.look()

    assert rows["cpu image"].state is State.MISSING
    assert "--runtime local" in rows["cpu image"].remedy
    assert not can


def test_the_devices_of_a_backend_are_needed_for_it_alone(place):
    rows, (cpu, gpu, tpu), can = place.look("cpu", "gpu", "tpu")

    assert rows["NVIDIA GPUs"].state is rows["TPUs"].state is State.MISSING
    assert rows["NVIDIA GPUs"].remedy
    assert rows["TPUs"].remedy
    assert "GPUs at rest" not in rows
    assert cpu == "nox -s cpu can measure here."
    assert gpu.startswith("nox -s gpu cannot measure here: no NVIDIA driver")
    assert tpu.startswith("nox -s tpu cannot measure here: no TPU")
    assert not can


def test_gpus_are_told_with_their_number_and_driver(place):
    place.write(place.root, GPU)

    assert place.look("gpu")[0]["NVIDIA GPUs"].found == "1, with driver 580.65.06"


def test_an_older_cuda_can_be_asked_about(place):
    place.write(place.root, {name: text.replace("580", "535") for name, text in GPU.items()})

    rows, (words,), can = place.look("gpu")
    _, (words_cuda12,), can_cuda12 = place.look("gpu", "--cuda", "12")

    assert "--cuda 12" in rows["NVIDIA GPUs"].remedy
    assert "driver 535.65.06 is older than 580" in words
    assert words_cuda12 == "nox -s gpu -- --cuda 12 can measure here."
    assert (can, can_cuda12) == (False, True)


def test_counters_that_the_driver_keeps_to_itself_are_good_to_know(place):
    place.write(place.root, {**GPU, "proc/driver/nvidia/params": "RmProfilingAdminOnly: 1\n"})

    rows, _, can = place.look("gpu")

    assert rows["GPU traces"].state is State.NOTE
    assert can


@pytest.mark.parametrize(
    ("is_root", "runtime", "is_told"),
    [(False, "local", True), (True, "local", False), (False, "container", True), (True, "container", True)],
)
def test_root_may_read_the_counters_itself_but_its_container_may_not(place, is_root, runtime, is_told):
    place.write(place.root, {**GPU, "proc/driver/nvidia/params": "RmProfilingAdminOnly: 1\n"})
    place.change(is_root=is_root)

    rows, _, _ = place.look("gpu", "--runtime", runtime)

    assert ("GPU traces" in rows) == is_told


def test_whether_gpus_rest_is_asked_only_where_they_can_be_used(place):
    place.write(place.root, GPU)

    resting, _, _ = place.look("gpu")
    not_asked, _, _ = place.look("cpu")

    assert resting["GPUs at rest"].state is State.OK
    assert "GPUs at rest" not in not_asked


def test_what_spoils_times_is_named_and_does_not_prevent_measuring(place):
    place.write(place.root, {"proc/loadavg": "2.00 0 0 1/1 1", "sys/fs/cgroup/cpu.max": "50000 100000"})

    _, sentences, can = place.look()

    assert sentences == ["nox -s cpu can measure here. For better times, first see to: CPU quota, other programs."]
    assert can


def broken(*_):
    raise RuntimeError("unheard of")


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
    place.change(**{part: broken})

    rows, _, can = place.look()

    assert rows[row].state is State.UNKNOWN
    assert rows[row].found == "could not be checked (RuntimeError: unheard of)"
    assert rows["CPU governor"].state is State.OK
    assert can


def test_what_could_not_be_checked_is_named_where_it_matters(place):
    place.change(ask=broken)

    _, sentences, _ = place.look()

    assert sentences == ["nox -s cpu may be able to measure here; not known: container engine."]


@pytest.mark.parametrize(("arguments", "code"), [([], 0), (["cpu", "tpu"], 2)])
def test_the_exit_code_tells_whether_everything_asked_can_be_measured(place, capsys, arguments, code):
    assert examine(arguments, place.variables, place.checkout, place.surroundings) == code

    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "What a measurement needs"
    assert any(line.startswith("nox -s cpu can measure here.") for line in lines)


def test_words_of_an_engine_cannot_steer_the_terminal(place, capsys):
    place.change(ask=lambda command: Answer(0, json.dumps({"ServerErrors": ["\x1b[2Jgone"]})))

    examine([], place.variables, place.checkout, place.surroundings)

    assert "?[2Jgone" in capsys.readouterr().out
