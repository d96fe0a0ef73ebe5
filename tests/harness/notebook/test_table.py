"""How the table of `jaxmeter.measure` reads."""

import sys
from statistics import median

import matplotlib
import pytest
from msgspec import structs

import jaxmeter
from jaxmeter.document.numbers import choose_unit
from jaxmeter.harness.metrics.statistics import find_block_time
from jaxmeter.harness.notebook.measurement import IN_PROCESS, Measurement, Ratio
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.harness.conftest import time_few_blocks
from tests.odd_run import odd_run

matplotlib.use("agg")
from matplotlib import pyplot

RUNS = {"usual": samples.run(), "troubled": samples.troubled_run(), "odd": odd_run()}


def measurement_of(run, record, case):
    return Measurement(case, record, run.manifest.environment, run.manifest.settings)


@pytest.mark.parametrize("name", RUNS)
def test_the_table_of_a_measurement_reads_as_its_golden_text(name):
    planned = {case.id: case for case in RUNS[name].manifest.cases}
    tables = {
        record.name: measurement_of(RUNS[name], structs.replace(record, notes=(IN_PROCESS,)), planned[record.id])
        for record in RUNS[name].cases
    }

    check_golden_scenes(f"measure-{name}", {case: repr(table) for case, table in tables.items()})


@pytest.fixture(scope="module")
def measured():
    with time_few_blocks():
        return jaxmeter.measure.with_options(modes=("jit",))({"a": lambda x: x + 1, "b": lambda x: x + 1.0}, 1.0)


def test_both_times_at_odds_with_a_speedup_are_marked_with_the_reason(measured, monkeypatch):
    first, second = (variant.name for variant in measured.case.variants)
    ratio = {second: Ratio(1e6, 2e6, 3e6, 24)}
    monkeypatch.setattr(type(measured), "find_speedup", lambda self, name: ratio.get(name))

    found = measured.list_disagreements()
    lines = repr(measured).splitlines()

    assert set(found) == {first, second}
    marked = [line.split(":")[0] for line in lines if line[:2] in ("a:", "b:") and "*" in line]
    assert marked == [name.split(":")[0] for name in (first, second)]
    assert " ".join(found[second].split()) in " ".join(" ".join(lines).split())
    assert "*</td>" in measured._repr_html_()


def test_a_plot_has_a_row_a_variant_with_its_time_and_its_speedup(measured):
    _, axes = pyplot.subplots()

    assert measured.plot(axes) is axes

    marks = [line for line in axes.lines if line.get_marker() == "o"]
    names = [label.get_text() for label in axes.get_yticklabels()]
    timed = {
        item.variant: [find_block_time(block.samples_s) for block in item.blocks] for item in measured.process.variants
    }
    assert names == list(timed)
    times = [median(own) for own in timed.values()]
    size, unit = choose_unit(min(times))
    assert f"[{unit}]" in axes.get_xlabel()
    assert [float(mark.get_xdata()[0]) for mark in marks] == pytest.approx([time / size for time in times])
    ratios = {name: measured.find_speedup(name) for name in timed}
    written = [text.get_text() for text in axes.texts]
    assert all(str(ratio) in text for ratio, text in zip(ratios.values(), written, strict=True) if ratio is not None)
    pyplot.close()


def test_a_plot_of_nothing_says_so():
    run = samples.run()

    with pytest.raises(ValueError, match="no variant was timed"):
        measurement_of(run, run.cases[0], run.manifest.cases[0]).plot()


def test_a_plot_without_matplotlib_names_what_to_install(measured, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
        monkeypatch.delitem(sys.modules, name)

    with pytest.raises(ImportError, match=r"jaxmeter\[plot\]"):
        measured.plot()
