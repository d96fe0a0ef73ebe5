"""A run with two platforms, one of them a made-up target: through record, page, export and comparison."""

import msgspec
import pytest

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import MemoryDetails, Outcome, RecordError, RunFolder, Status, read_manifest, read_run
from jaxmeter.reporting.compare.changes import find_changes
from jaxmeter.reporting.compare.verdicts import Verdict
from jaxmeter.reporting.load import load
from jaxmeter.reporting.render.export import list_rows
from jaxmeter.reporting.view.page_model import Hue
from tests import samples
from tests.reporting.views import loaded, page_of

TARGET = "tpu:made-up"
GIB = 2**30


def two_platforms(run_id="both", *, planned_bytes=GIB, memory_bytes=16 * GIB, **changes):
    """A run that measured a case on the CPU, and compiled it for a target of so much memory."""
    here = samples.planned_case()
    there = msgspec.structs.replace(here, id=f"{here.id}-there", platform=TARGET)
    plan = Outcome(status=Status.OK, values={"planned_peak_bytes": (planned_bytes,)}, details=MemoryDetails())
    target = samples.environment(
        device_kind="Made-up TPU", device_name="Made-up TPU", device_count=4, device_memory_bytes=memory_bytes
    )
    return samples.run(
        (here, samples.fast_case(here)),
        (there, samples.record(there, {"selu:jit": {"memory": plan}})),
        run_id=run_id,
        environment=samples.environment(device_memory_bytes=8 * GIB),
        environments={TARGET: target},
        **changes,
    )


def test_a_record_keeps_one_environment_a_platform_and_is_damaged_without(tmp_path):
    run = two_platforms()
    folder = RunFolder(samples.write_run(tmp_path / "both", run))
    manifest = msgspec.structs.replace(run.manifest, environments={"cpu": run.manifest.environment})
    damaged = RunFolder(samples.write_run(tmp_path / "it", msgspec.structs.replace(run, manifest=manifest)))

    assert read_run(folder) == run
    assert read_manifest(folder).environments.keys() == {"cpu", TARGET}
    assert (len(load([folder.path]).runs), load([folder.path]).warnings) == (1, ())
    for read in (read_manifest, read_run):
        with pytest.raises(RecordError, match=TARGET):
            read(damaged)


def test_a_case_is_read_in_the_environment_of_its_platform():
    run = Run(two_platforms(planned_bytes=4 * GIB))
    here, there = run.by_key["selu[dtype=float32,n=10000]", "cpu"], run.by_key["selu[dtype=float32,n=10000]", TARGET]

    assert here.environment.device_name == "Sample Processor 1"
    assert there.environment.device_name == "Made-up TPU"
    assert there.variant("selu:jit").read("capacity_share").estimate == 0.25  # of the target's memory, not the host's
    assert run.case("selu[dtype=float32,n=10000]") is here


def test_the_page_has_a_column_and_a_device_for_each_platform_of_one_run_on_one_machine():
    page = page_of(two_platforms(machine="here"))

    assert [column.title for column in page.matrix.columns[1:]] == ["● Sample Processor 1", "◆ 4 × Made-up TPU"]
    assert [(run.where, len(run.cases)) for run in page.runs] == [("cpu", 1), (TARGET, 1)]
    assert {device.hue: device.name for device in page.overview.devices} == {
        Hue.CPU: "Sample Processor 1, 2 cores",
        Hue.TPU: "4 × Made-up TPU",
    }
    assert page.subtitle.startswith("1 run ")
    assert "measured on 2 platforms of one machine" in page.finding
    elsewhere = page_of(two_platforms(machine="here"), two_platforms("elsewhere", machine="there"))
    assert "measured at 2 machines" in elsewhere.finding


def test_an_export_has_the_platform_and_device_of_every_row():
    rows = list(list_rows(loaded(two_platforms())))

    found = {(row["backend"], row["device"]) for row in rows}
    assert found == {("cpu", "Sample Processor 1"), (TARGET, "4 × Made-up TPU")}
    (plan,) = [row for row in rows if row["backend"] == TARGET and row["value"] == GIB]
    assert (plan["variant"], plan["metric"]) == ("selu:jit", "planned_peak_bytes")


def test_a_comparison_pairs_cases_of_one_platform_and_does_not_guess_what_one_was_before():
    plain = Run(samples.run(run_id="plain"))
    before, after = (Run(two_platforms(name, planned_bytes=size)) for name, size in (("a", GIB), ("b", 2 * GIB)))

    found = [one for one in find_changes(before, after).entries if (one.platform, one.variant) == (TARGET, "selu:jit")]
    assert [(one.metric, one.verdict) for one in found] == [("planned_peak_bytes", Verdict.MORE)]
    new = [one.verdict for one in find_changes(plain, after).entries if one.platform == TARGET]
    assert new == [Verdict.NEW]


def test_conditions_are_those_of_the_platform():
    before, after = Run(two_platforms("a")), Run(two_platforms("b"))
    renamed = msgspec.structs.replace(
        after.manifest.environments[TARGET], x64=not after.manifest.environments[TARGET].x64
    )
    manifest = msgspec.structs.replace(after.manifest, environments={**after.manifest.environments, TARGET: renamed})
    other = Run(msgspec.structs.replace(after.record, manifest=manifest))

    found = {one.platform: one.verdict for one in find_changes(before, other).entries if not one.variant}

    assert found == {TARGET: Verdict.NOT_COMPARABLE}
