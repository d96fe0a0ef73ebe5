from itertools import permutations

import msgspec
import pytest

from jaxmeter.harness.record import Artifact, Outcome, Status
from jaxmeter.reporting.load import TIMES, Outdated, load
from jaxmeter.reporting.view import build
from tests import samples
from tests.reporting.views import page_of

PLANNED = samples.planned_case()


def run_of(run_id, *planned, started="2026-01-01T00:00:00Z", **changes):
    kept = Artifact(kind="hlo", variant="selu:jit", path="x", size_bytes=1, sha256="0" * 64)
    cases = planned or (PLANNED,)
    pairs = ((one, msgspec.structs.replace(samples.fast_case(one), artifacts=(kept,), notes=("n",))) for one in cases)
    return samples.run(*pairs, run_id=run_id, started=started, **changes)


def cut_older(run):
    """What is kept of a run to which there are two newer ones of one case."""
    outdated = Outdated()
    for name in ("new", "second"):
        outdated.cut(run_of(name))
    return outdated.cut(run)


def probes(run):
    return [set(variant.outcomes) for case in run.cases for variant in case.variants]


def test_the_two_newest_runs_of_a_place_are_kept_whole_and_of_older_ones_the_times():
    newest, second, older = run_of("new"), run_of("second"), run_of("old")
    outdated = Outdated()

    assert outdated.cut(newest) == newest
    assert outdated.cut(second) == second
    cut = outdated.cut(older)

    assert cut.manifest == older.manifest
    assert probes(cut) == [{"numerics", "timing"}, {"numerics", "timing", "memory"}]
    assert [(case.artifacts, case.notes) for case in cut.cases] == [((), ())]
    timings = [variant.outcomes["timing"] for case in cut.cases for variant in case.variants]
    assert all(set(timing.values) <= set(TIMES) for timing in timings)
    whole = [variant.outcomes["timing"] for case in older.cases for variant in case.variants]
    assert [one.values["execution_s"] for one in timings] == [one.values["execution_s"] for one in whole]
    assert [one.details for one in timings] == [one.details for one in whole]


def test_a_case_that_no_newer_run_has_is_kept_whole():
    older = run_of("old", PLANNED, samples.planned_case("other"))

    cut = cut_older(older)

    assert cut.cases[1] == older.cases[1]
    assert cut.cases[0] != older.cases[0]


def test_another_machine_device_or_backend_outdates_nothing():
    outdated = Outdated()
    elsewhere = [
        run_of("machine", machine="b"),
        run_of("device", environment=samples.environment(device_name="Another")),
        run_of("backend", backend="gpu"),
    ]
    for name in ("here", "here before"):
        outdated.cut(run_of(name, machine="a"))

    assert [outdated.cut(one) for one in elsewhere] == elsewhere


def test_runs_of_one_plan_share_their_cases():
    first, second = run_of("a"), msgspec.json.decode(msgspec.json.encode(run_of("b")), type=samples.RunRecord)
    outdated = Outdated()

    assert outdated.cut(second).manifest.cases[0] is outdated.cut(first).manifest.cases[0]


def test_how_a_variant_ended_is_kept_and_what_it_wrote_is_not():
    failed = Outcome(status=Status.FAILED, reason="no memory", stderr="Traceback")

    cut = cut_older(samples.one_case({"selu:jit": {"timing": failed, "memory": failed}}, PLANNED, run_id="old"))

    (variant,) = [one for one in cut.cases[0].variants if one.outcomes]
    assert variant.outcomes == {"timing": Outcome(status=Status.FAILED, reason="no memory", values={})}


def test_reading_only_the_newest_gives_the_same_runs_in_the_same_order_whatever_the_order_given(tmp_path):
    runs = [run_of(f"run-{day}", started=f"2026-01-0{day}T00:00:00Z") for day in (1, 2, 3)]
    folders = [samples.write_run(tmp_path / run.manifest.run_id, run) for run in runs]
    read = []

    for order in (folders, folders[::-1], [*folders, folders[2]]):
        loaded = load(order, only_newest=True, on_read=lambda: read.append(1))
        assert [one.manifest.run_id for one in loaded.runs] == ["run-1", "run-2", "run-3"]
        assert loaded.runs[2].record == runs[2]
        assert probes(loaded.runs[0].record) == [{"numerics", "timing"}, {"numerics", "timing", "memory"}]
    assert len(read) == 10
    assert "was given more than once" in loaded.warnings[0]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_of_runs_that_began_in_one_second_the_order_given_decides_nothing(tmp_path, order):
    runs = [run_of("a"), run_of("b"), run_of("b", settings=samples.settings(confidence=0.9))]
    folders = [samples.write_run(tmp_path / name, run) for name, run in zip("xyz", runs, strict=True)]

    loaded = load([folders[index] for index in order], only_newest=True)
    page = build(loaded)

    assert [one.folder.path.name for one in loaded.runs] == ["x", "y", "z"]
    assert loaded.runs[2].record == runs[2]
    assert [result.run for suite in page.suites for case in suite.cases for result in case.results] == ["b (2)"] * 2
    assert "another run has the id b but other contents" in " ".join(loaded.warnings)


def test_a_case_of_the_same_name_in_another_suite_is_another():
    mine = msgspec.structs.replace(PLANNED, suite="mine")
    older, newer = run_of("older"), run_of("newer", mine, started="2026-01-02T00:00:00Z")
    outdated = Outdated()
    outdated.cut(newer)

    assert outdated.cut(older) == older
    assert [suite.name for suite in page_of(older, newer).suites] == ["mine", "selu"]


def test_of_older_runs_exact_numbers_are_kept_where_all_processes_agree():
    values = {"planned_peak_bytes": (5, 5), "compiles": (1, 2), "recompiles": (None, 0), "argument_bytes": (3,)}
    failed = Outcome(status=Status.FAILED, reason="r", values={"compiles": (1,)})
    outcomes = {"numerics": samples.numerics(), "memory": Outcome(status=Status.OK, values=values, notes=("n",))}
    more = {"compilation": failed, "caching": samples.numerics()}

    cut = cut_older(samples.one_case({"selu:jit": {**outcomes, **more}}, PLANNED, run_id="old"))

    (variant,) = [one for one in cut.cases[0].variants if one.outcomes]
    exact = Outcome(status=Status.OK, values={"planned_peak_bytes": (5,), "recompiles": (0,)})
    assert variant.outcomes == {"numerics": Outcome(status=Status.OK, values={}), "memory": exact}


def test_the_page_tells_since_when_planned_memory_is_another(tmp_path):
    folders = []
    for day in range(1, 8):
        memory = samples.memory(1000 if day < 4 else 3000, 8, 8)
        jit = {"numerics": samples.numerics(), "timing": samples.timing(5e-5), "memory": memory}
        run = samples.one_case({"selu:jit": jit}, PLANNED, run_id=f"day-{day}", started=f"2026-01-0{day}T00:00:00Z")
        folders.append(samples.write_run(tmp_path / f"day-{day}", run))

    page = str(build(load(folders, only_newest=True)))

    assert r"planned peak memory 1\u202f016\u202fB → 2.95\u202fKiB" in page
    assert "since run day-4, begun 2026-01-04" in page
