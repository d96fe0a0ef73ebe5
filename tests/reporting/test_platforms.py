"""A run with two platforms, one of them a made-up target: through record, page, export and comparison."""

import msgspec
import pytest

from jaxmeter.harness.metrics.reading import Run, split_platforms
from jaxmeter.harness.record import MemoryDetails, Outcome, RecordError, RunFolder, Status, read_manifest, read_run
from jaxmeter.reporting.compare.changes import find_changes
from jaxmeter.reporting.compare.verdicts import Verdict
from jaxmeter.reporting.load import load
from jaxmeter.reporting.render import html
from jaxmeter.reporting.render.export import list_rows
from jaxmeter.reporting.view.figure_model import Hue
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


def test_the_record_keeps_one_environment_a_platform(tmp_path):
    folder = RunFolder(samples.write_run(tmp_path / "both", two_platforms()))

    assert read_run(folder) == two_platforms()
    assert read_manifest(folder).environments.keys() == {"cpu", TARGET}


@pytest.mark.parametrize("read", [read_manifest, read_run])
def test_a_platform_without_an_environment_is_a_damaged_record(tmp_path, read):
    run = two_platforms()
    manifest = msgspec.structs.replace(run.manifest, environments={"cpu": run.manifest.environment})
    folder = RunFolder(samples.write_run(tmp_path / "it", msgspec.structs.replace(run, manifest=manifest)))

    with pytest.raises(RecordError, match=TARGET):
        read(folder)


def test_a_case_is_read_in_the_environment_of_its_platform():
    run = Run(two_platforms(planned_bytes=4 * GIB))
    here, there = run.by_key["selu[dtype=float32,n=10000]", "cpu"], run.by_key["selu[dtype=float32,n=10000]", TARGET]

    assert here.environment.device_name == "Sample Processor 1"
    assert there.environment.device_name == "Made-up TPU"
    assert there.variant("selu:jit").read("capacity_share").estimate == 0.25  # of the target's memory, not the host's
    assert run.case("selu[dtype=float32,n=10000]") is here


def test_each_platform_is_a_run_of_its_own_on_the_page():
    backend, target = split_platforms(Run(two_platforms()))

    assert [(run.where, len(run.cases)) for run in (backend, target)] == [("cpu", 1), (TARGET, 1)]


def test_the_page_has_a_column_for_each_platform_and_shows_both():
    page = page_of(two_platforms())

    assert [column.title for column in page.matrix.columns[1:]] == ["● Sample Processor 1", "◆ 4 × Made-up TPU"]
    assert [run.where for run in page.runs] == ["cpu", TARGET]
    assert "Made-up TPU" in html.render(page)


def test_the_first_screen_names_both_platforms_in_the_colour_of_their_kind():
    devices = page_of(two_platforms()).overview.devices

    assert {device.hue: device.name for device in devices} == {
        Hue.CPU: "Sample Processor 1, 2 cores",
        Hue.TPU: "4 × Made-up TPU",
    }


def test_a_run_of_two_platforms_counts_once():
    assert page_of(two_platforms()).subtitle.startswith("1 run ")


def test_two_platforms_of_a_run_are_one_machine():
    both, elsewhere = two_platforms(machine="here"), two_platforms("elsewhere", machine="there")

    assert "measured on 2 platforms of one machine" in page_of(both).finding
    assert "measured at 2 machines" in page_of(both, elsewhere).finding


def test_an_export_has_the_platform_and_device_of_every_row():
    rows = list(list_rows(loaded(two_platforms())))

    found = {(row["backend"], row["device"]) for row in rows}
    assert found == {("cpu", "Sample Processor 1"), (TARGET, "4 × Made-up TPU")}
    (plan,) = [row for row in rows if row["backend"] == TARGET and row["value"] == GIB]
    assert (plan["variant"], plan["metric"]) == ("selu:jit", "planned_peak_bytes")


def test_a_comparison_pairs_cases_of_one_platform():
    before, after = (Run(two_platforms(name, planned_bytes=size)) for name, size in (("a", GIB), ("b", 2 * GIB)))

    found = [one for one in find_changes(before, after).entries if one.platform == TARGET]

    assert [(one.variant, one.metric, one.verdict) for one in found if one.variant == "selu:jit"] == [
        ("selu:jit", "planned_peak_bytes", Verdict.MORE)
    ]


def test_a_platform_of_one_run_alone_is_new_and_what_it_was_before_is_not_guessed():
    plain = samples.run(run_id="a")

    found = [one for one in find_changes(Run(plain), Run(two_platforms("b"))).entries if one.platform == TARGET]

    assert [one.verdict for one in found] == [Verdict.NEW]


def test_conditions_are_those_of_the_platform():
    before, after = Run(two_platforms("a")), Run(two_platforms("b"))
    renamed = msgspec.structs.replace(
        after.manifest.environments[TARGET], x64=not after.manifest.environments[TARGET].x64
    )
    manifest = msgspec.structs.replace(after.manifest, environments={**after.manifest.environments, TARGET: renamed})
    other = Run(msgspec.structs.replace(after.record, manifest=manifest))

    found = {one.platform: one.verdict for one in find_changes(before, other).entries if not one.variant}

    assert found == {TARGET: Verdict.NOT_COMPARABLE}


def test_a_run_of_two_platforms_is_loaded_once(tmp_path):
    folder = samples.write_run(tmp_path / "both", two_platforms())

    found = load([folder])

    assert len(found.runs) == 1
    assert found.warnings == ()
