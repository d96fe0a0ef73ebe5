"""How the table of `jaxmeter.measure` reads."""

import pytest
from msgspec import structs

from jaxmeter.harness.notebook.measurement import IN_PROCESS, Measurement
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
