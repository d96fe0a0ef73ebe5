"""What a page says of where a run was made."""

from pathlib import Path

import pytest

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import RunFolder
from jaxmeter.harness.record.differences import facts_of
from jaxmeter.reporting.view.overview import make_subtitle
from jaxmeter.reporting.view.runs import label_runs
from jaxmeter.reporting.view.sections.environment import describe_place
from tests import samples


def labelled(**settings):
    run = samples.run(settings=samples.settings(**settings), environment=samples.environment(cores=8, allowed_cores=4))
    return label_runs([Run(run, RunFolder(Path(run.manifest.run_id)))])[0]


@pytest.mark.parametrize(
    ("settings", "words", "fact"),
    [
        ({}, "4 cores, ", "all that are allowed"),
        ({"cores": 2}, "4 cores, each timing process on 2, ", 2),
        ({"lock_step_cores": 1}, "4 cores, each timing process on one, ", 1),
    ],
)
def test_the_cores_that_timing_processes_ran_on_stand_where_the_machine_is_named(settings, words, fact):
    run = labelled(**settings)

    assert words in describe_place(run)
    assert words.rstrip(", ") in make_subtitle([run])
    assert (facts_of(run.manifest)["process_cores"], facts_of(run.manifest)["cores"]) == (fact, 8)
