"""How the table of `jaxmeter.measure` reads."""

import pytest
from msgspec import structs

import jaxmeter
from jaxmeter.harness.notebook.measurement import IN_PROCESS, Measurement
from jaxmeter.harness.notebook.passes import Ratio
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.odd_run import odd_run

RUNS = {"usual": samples.run(), "troubled": samples.troubled_run(), "odd": odd_run()}


@pytest.mark.parametrize("name", RUNS)
def test_the_table_of_a_measurement_reads_as_its_golden_text(name):
    run = RUNS[name]
    planned = {case.id: case for case in run.manifest.cases}
    tables = {
        record.name: Measurement(
            planned[record.id],
            structs.replace(record, notes=(IN_PROCESS,)),
            run.manifest.environment,
            run.manifest.settings,
        )
        for record in run.cases
    }

    check_golden_scenes(f"measure-{name}", {case: repr(table) for case, table in tables.items()})


def test_both_times_at_odds_with_a_speedup_are_marked_with_the_reason(monkeypatch):
    measured = jaxmeter.measure({"a": lambda x: x + 1, "b": lambda x: x + 1.0}, 1.0)
    first, second, *_ = (variant.name for variant in measured.case.variants)
    ratio = {second: Ratio(1e6, 2e6, 3e6, 24)}
    monkeypatch.setattr(type(measured), "find_speedup", lambda self, name: ratio.get(name))

    found = measured.list_disagreements()
    lines = repr(measured).splitlines()

    assert set(found) == {first, second}
    assert all("*" in line for line in lines[2:4])
    assert not any("*" in line for line in lines[4 : 2 + len(measured.case.variants)])
    assert lines[2 + len(measured.case.variants)] == found[second]
    assert "*</td>" in measured._repr_html_()
