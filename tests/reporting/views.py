"""Pages of made-up runs, as a test reads them."""

from dataclasses import dataclass
from pathlib import Path

from jaxmeter.document.model import Section
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import RunFolder
from jaxmeter.reporting.load import Loaded
from jaxmeter.reporting.view import build
from jaxmeter.reporting.view.growth import find_sweeps, make_sweep_part
from jaxmeter.reporting.view.page_model import Page
from jaxmeter.reporting.view.runs import gather_cases, label_runs
from jaxmeter.reporting.view.sections import list_sections

SECTIONS = {section.id: section for section in list_sections()}
"""Sections of a case view, here of all cases at once."""


@dataclass(frozen=True)
class MadePage(Page):
    """A page, and what it was made of."""

    runs: tuple = ()
    cases: tuple = ()


def kept(*runs):
    """Runs as if each had been read from a folder."""
    return tuple(Run(run, RunFolder(Path("results") / run.manifest.run_id)) for run in runs)


def loaded(*runs, warnings=()):
    return Loaded(kept(*runs), tuple(warnings))


def page_of(*runs, warnings=()):
    labelled = label_runs(kept(*runs))
    return MadePage(**vars(build(loaded(*runs, warnings=warnings))), runs=labelled, cases=gather_cases(labelled))


def section(page, name):
    if name == "sweeps":
        return Section("sweeps", "", "", "", tuple(map(make_sweep_part, find_sweeps(page.cases))))
    if name in SECTIONS:
        return SECTIONS[name].make(page.cases) or Section(name, "", "", "")
    return next(one for one in page.sections if one.id == name)


def tables(page, name):
    return [table for part in section(page, name).parts for table in part.tables]


def texts(row):
    """The row's cells as one reads them: ordinary spaces, the small text after the large."""
    return [" ".join(filter(None, (cell.text, cell.detail))).replace("\u202f", " ") for cell in row.cells]


def by_variant(page, name="speed"):
    """The cells of each variant by their headings, and what the section notes of it."""
    rows = {
        row.cells[0].text: {"Notes": ""} | dict(zip(headings(page, name), texts(row), strict=True))
        for row in tables(page, name)[0].rows
    }
    for note in section(page, name).parts[0].notes:
        names, _, text = note.replace("\u202f", " ").partition(": ")
        for variant in names.split(", "):
            rows.get(variant.partition(" · ")[0], {})["Notes"] = text
    return rows


def headings(page, name):
    return [column.title for column in tables(page, name)[0].columns]


def card_of(cards, name):
    """The card with this id."""
    return next(card for card in cards if card.id == name)


def curves_of(figure):
    """The points of each curve of a figure with one panel, by the curve's name."""
    (panel,) = figure.panels
    return {curve.name: curve.points for curve in panel.curves}


def grown(page, metric):
    """The curves of a metric over size, of the only suite of a page."""
    (suite,) = page.suites
    (figure,) = [card.figure for card in suite.figures if card.id.startswith(f"{metric}-")]
    return curves_of(figure)


def answers_of_suites(page):
    """Without those of all suites together."""
    return [one for one in page.answers if one.suite not in ("memory", "traces")]


def case_view(page, name):
    """The view of a case by its name."""
    return next(case for suite in page.suites for case in suite.cases if case.name == name)
