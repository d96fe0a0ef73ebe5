import pytest

from jaxmeter.launch.doctor.interferences import Machine, find_interferences
from jaxmeter.launch.host import ObservationState

CPU = "sys/devices/system/cpu"
BATTERY = {"sys/class/power_supply/BAT0/type": "Battery"}
MAINS = {"sys/class/power_supply/AC/type": "Mains", **BATTERY}
GUEST = {"proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu hypervisor avx2\n"}

GOOD = {
    "proc/cpuinfo": "processor\t: 0\nflags\t\t: fpu avx2\n",
    "proc/loadavg": "0.10 0.50 0.90 1/100 4242",
    "proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 12000000 kB\nSwapTotal: 1000 kB\nSwapFree: 1000 kB\n",
    "sys/fs/cgroup/cpu.max": "max 100000",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance",
    f"{CPU}/cpu1/cpufreq/scaling_governor": "performance",
}


@pytest.fixture
def look(tmp_path):
    """{name: row} of a machine that is good but for the given files; a file that is None is absent."""

    def find(files=None, *, cores=4, allowed_cores=4):
        for name, content in {**GOOD, **(files or {})}.items():
            if content is not None:
                (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
                (tmp_path / name).write_text(content)
        return {row.name: row for row in find_interferences(Machine(tmp_path, cores, allowed_cores))}

    return find


def test_a_quiet_machine_is_fine_throughout_and_nothing_needs_to_be_done(look):
    rows = look()

    assert {row.state for row in rows.values()} == {ObservationState.OK}
    assert {row.remedy for row in rows.values()} == {""}


def test_a_machine_that_tells_nothing_is_shown_as_not_known_and_never_as_noisy(look):
    rows = look(dict.fromkeys(GOOD))

    assert {row.state for row in rows.values()} == {ObservationState.OK, ObservationState.UNKNOWN}
    assert {name for name, row in rows.items() if row.state is ObservationState.OK} == {"cores", "CPU quota"}


@pytest.mark.parametrize(
    ("name", "files", "found"),
    [
        # What does not spoil times: nothing is found.
        ("CPU quota", {"sys/fs/cgroup/cpu.max": "400000 100000"}, None),
        ("CPU governor", {f"{CPU}/cpu1/cpufreq/scaling_governor": "userspace"}, None),
        ("turbo", {f"{CPU}/intel_pstate/no_turbo": "1"}, None),
        ("turbo", {f"{CPU}/cpufreq/boost": "0"}, None),
        ("other programs", {"proc/loadavg": "0.79 9.00 9.00 1/100 4242"}, None),
        ("memory", {"proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 2000000 kB\n"}, None),
        ("hypervisor", {**GUEST, "proc/stat": "cpu  900 0 50 9000 0 0 0 50 0 0\n"}, None),
        ("hypervisor", {**GUEST, "proc/stat": "cpu  0 0 0 0 0 0 0 0 0 0\n"}, None),
        ("power", {**MAINS, "sys/class/power_supply/AC/online": "1"}, None),
        ("power", {**BATTERY, "sys/class/power_supply/BAT0/status": "Full"}, None),
        # What does.
        ("CPU quota", {"sys/fs/cgroup/cpu.max": "150000 100000"}, "1.5 cores' time for 4 cores"),
        ("CPU governor", dict.fromkeys((name for name in GOOD if "governor" in name), "schedutil"), "schedutil: "),
        ("CPU governor", {f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave"}, "performance on 1 cores, powersave on"),
        (
            "CPU governor",
            {f"{CPU}/cpu0/cpufreq/scaling_{name}": "intel_pstate" for name in ("governor", "driver")},
            "(intel_pstate)",
        ),
        ("other programs", {"proc/loadavg": "0.81 0.00 0.00 1/100 4242"}, "load 0.81 over the last minute on 4 cores"),
        ("memory", {"proc/meminfo": "MemTotal: 16000000 kB\nMemAvailable: 1900000 kB\n"}, "1.9 GB of 16.4 GB"),
        ("hypervisor", {**GUEST, "proc/stat": "cpu  900 0 50 9000 0 0 0 150 0 0\n"}, "kept 1.49% of the time"),
        ("power", {**MAINS, "sys/class/power_supply/AC/online": "0"}, "on battery"),
        ("power", {**BATTERY, "sys/class/power_supply/BAT0/status": "Discharging"}, "on battery"),
    ],
)
def test_what_spoils_times_is_recognised_and_comes_with_a_remedy_and_nothing_else_is_flagged(look, name, files, found):
    row = look(files)[name]

    assert row.state is (ObservationState.OK if found is None else ObservationState.NOISY)
    assert found is None or found in row.finding
    assert bool(row.remedy) is (found is not None)


def test_turbo_and_fewer_cores_than_the_machine_has_are_good_to_know_and_swapped_memory_is_told(look):
    swapped = f"{GOOD['proc/meminfo']}SwapTotal: 4000000 kB\nSwapFree: 2000000 kB\n"
    mouse = {"type": "Battery", "scope": "Device", "status": "Discharging"}  # which does not power the machine
    files = {f"sys/class/power_supply/mouse/{name}": text for name, text in mouse.items()}

    rows = look({"proc/meminfo": swapped, **files}, cores=64, allowed_cores=4)

    assert (rows["cores"].state, rows["cores"].finding.partition(" are")[0]) == (ObservationState.NOTE, "4 of 64")
    assert "2.0 GB swapped out" in rows["memory"].finding
    assert "power" not in rows
    for told in ({f"{CPU}/cpufreq/boost": "1"}, {f"{CPU}/intel_pstate/no_turbo": "0"}):
        assert look(told)["turbo"].state is ObservationState.NOTE
