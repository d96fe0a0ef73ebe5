"""Pages of made-up runs, as a test reads them."""

from pathlib import Path

from harness.record import RunFolder
from reporting.load import Loaded, LoadedRun
from reporting.view import build


def loaded(*runs, warnings=()):
    """Runs as if each had been read from a folder."""
    return Loaded(
        tuple(LoadedRun(run, RunFolder(Path("results") / run.manifest.run_id)) for run in runs), tuple(warnings)
    )


def page_of(*runs, warnings=()):
    return build(loaded(*runs, warnings=warnings))


def section(page, name):
    return next(section for section in page.sections if section.id == name)


def tables(page, name):
    return [table for part in section(page, name).parts for table in part.tables]


def texts(row):
    """The row's cells as one reads them: ordinary spaces, the small text after the large."""
    return [" ".join(filter(None, (cell.text, cell.detail))).replace("\u202f", " ") for cell in row.cells]


def by_variant(page, name="speed"):
    return {
        row.cells[0].text: dict(zip(headings(page, name), texts(row), strict=True))
        for row in tables(page, name)[0].rows
    }


def headings(page, name):
    return [column.title for column in tables(page, name)[0].columns]
