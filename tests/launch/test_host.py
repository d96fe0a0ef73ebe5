"""Machines are folders of the test's own, with the files that drivers and kernels write."""

import pytest

from jaxmeter.launch import host
from jaxmeter.launch.host import Host, cpu_quota, look_at_host

PROPRIETARY = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.65.06  Sun Jul 27 07:22:57 UTC 2025\n"
OPEN = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@U22)  "
    "Sun Jul 27 06:58:44 UTC 2025\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
)
GVNIC = ("0x1ae0", "0x0042")
TPU_V6E = ("0x1ae0", "0x006f")


def write(root, files):
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def plug(root, *cards):
    """Puts cards, (vendor, device), on the PCI bus."""
    for slot, (vendor, device) in enumerate(cards):
        card = f"sys/bus/pci/devices/0000:00:{slot:02x}.0"
        write(root, {f"{card}/vendor": f"{vendor}\n", f"{card}/device": f"{device}\n"})


@pytest.mark.parametrize(
    ("words", "driver", "major"),
    [
        (PROPRIETARY, "580.65.06", 580),
        (OPEN, "580.65.06", 580),
        ("NVRM version: unknown\n", None, None),
    ],
    ids=["proprietary", "open", "unknown words"],
)
def test_the_drivers_version_is_read_from_either_kernel_module(tmp_path, words, driver, major):
    write(tmp_path, {"proc/driver/nvidia/version": words})

    found = look_at_host(tmp_path)

    assert (found.driver, found.driver_major) == (driver, major)


def test_gpus_are_those_that_the_driver_names(tmp_path):
    gpus = {f"proc/driver/nvidia/gpus/0000:{bus}:00.0/information": "Model: NVIDIA H200\n" for bus in ("19", "3b")}
    write(tmp_path, {"proc/driver/nvidia/version": OPEN, **gpus})

    assert look_at_host(tmp_path).gpus == 2


@pytest.mark.parametrize(
    ("params", "restricted"),
    [
        ("ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n", True),
        ("RmProfilingAdminOnly: 0\n", False),
        ("", None),
    ],
)
def test_the_driver_tells_whether_counters_are_for_administrators(tmp_path, params, restricted):
    write(tmp_path, {"proc/driver/nvidia/version": OPEN, "proc/driver/nvidia/params": params})

    assert look_at_host(tmp_path).profiling_restricted is restricted
    (tmp_path / "proc/driver/nvidia/version").unlink()
    assert look_at_host(tmp_path).profiling_restricted is None  # without a driver


@pytest.mark.parametrize(
    ("folder", "text", "found"),
    [
        ("etc/cdi", 'cdiVersion: "0.5.0"\nkind: nvidia.com/gpu\ndevices:\n- name: all\n', True),
        ("var/run/cdi", '{"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu"}', True),
        ("etc/cdi", "kind: example.com/gpu\n", False),
    ],
)
def test_a_cdi_file_for_nvidias_gpus_is_found_by_its_kind(tmp_path, folder, text, found):
    write(tmp_path, {f"{folder}/devices.yaml": text})

    assert look_at_host(tmp_path).cdi_gpu is found


@pytest.mark.parametrize(
    ("cards", "files", "chips", "nodes"),
    [
        ([("0x1ae0", "0x005e")] * 4 + [GVNIC], [f"accel{number}" for number in range(4)], 4, None),
        ([GVNIC, *[TPU_V6E] * 4], [f"vfio/{name}" for name in (0, 1, 2, 3, "vfio")], 4, None),
        ([TPU_V6E], ["vfio/10", "vfio/9", "vfio/2"], 1, ["vfio/2", "vfio/9", "vfio/10"]),
        ([TPU_V6E] * 2, ["vfio/vfio"], 2, []),
        # Another maker's card may have a TPU's number.
        *((cards, ["vfio/0", "vfio/vfio"], 0, []) for cards in ([], [GVNIC], [("0x10de", "0x2335")])),
        ([("0x10de", "0x006f")], ["vfio/0", "vfio/vfio"], 0, []),
    ],
)
def test_a_tpu_has_chips_on_the_bus_and_device_files_and_other_files_are_somebody_elses(
    tmp_path, cards, files, chips, nodes
):
    plug(tmp_path, *cards)
    write(tmp_path, {f"dev/{name}": "" for name in files})

    found = look_at_host(tmp_path)

    wanted = tuple(f"/dev/{name}" for name in (files if nodes is None else nodes))
    assert (found.tpu_chips, found.tpu_nodes) == (chips, wanted)
    assert found.tpu_groups == ((tmp_path.stat().st_gid,) if found.tpu_nodes else ())


def install(folder, monkeypatch, name, script=""):
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo 560.94; echo 560.94", ("560.94", 2)),
        ("echo 'Failed to initialize NVML: Driver/library version mismatch'; exit 18", (None, 0)),
        ("echo 560.94; exit 1", (None, 0)),
        ("echo '[N/A]'", (None, 0)),
    ],
)
def test_where_the_kernel_shows_no_driver_nvidia_smi_is_asked(tmp_path, monkeypatch, script, expected):
    """As in WSL."""
    install(tmp_path, monkeypatch, "nvidia-smi", script)
    monkeypatch.setattr(host, "_nvidia", lambda root: (None, 0))

    found = look_at_host()

    assert (found.driver, found.gpus) == expected


def test_another_machines_files_are_not_mixed_with_what_this_machine_can_run(tmp_path, monkeypatch):
    install(tmp_path, monkeypatch, "nvidia-smi", "echo 560.94")
    install(tmp_path, monkeypatch, "nvidia-container-runtime-hook")

    assert look_at_host(tmp_path) == Host()


@pytest.mark.parametrize(("tool", "found"), [("nvidia-container-runtime-hook", True), ("nvidia-ctk", False)])
def test_only_nvidias_hook_serves_dockers_option_for_gpus(tmp_path, monkeypatch, tool, found):
    install(tmp_path, monkeypatch, tool)

    assert look_at_host().toolkit is found


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000\n"}, 1.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0.5),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"../../../proc/self/cgroup": "0::/a/b", "a/cpu.max": "50000 100000", "cpu.max": "150000 100000"}, 0.5),
        ({}, None),
    ],
)
def test_a_quota_of_either_control_group_version_is_in_cores_and_the_least_of_all_groups_counts(tmp_path, files, cores):
    (tmp_path / "sys/fs/cgroup").mkdir(parents=True)
    write(tmp_path, {f"sys/fs/cgroup/{name}": text for name, text in files.items()})

    assert cpu_quota(tmp_path) == cores


def test_cores_are_those_that_this_process_may_use_and_a_file_that_cannot_be_read_has_no_text(monkeypatch, tmp_path):
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 5}, raising=False)

    assert host.allowed_cores() == 2
    assert host.read_text(tmp_path) == host.read_text(tmp_path / "missing") == ""
