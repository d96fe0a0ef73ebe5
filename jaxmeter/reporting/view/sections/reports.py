"""Reports of releases: which programs became slower or faster here as they did where that was reported."""

from __future__ import annotations

from collections.abc import Sequence

from ...compare.verdicts import JudgedReport
from ..page_model import Part, Section
from ..reports import describe_reports, make_report_table

ID = "reports"
QUESTION = "Which reported changes of a release show here?"


def make_reports_section(found: Sequence[JudgedReport]) -> Section | None:
    """The section: a row for every report; None without any."""
    if not found:
        return None
    parts = (Part(tables=(make_report_table(found),)),)
    return Section(ID, "Reports of releases", QUESTION, f"{describe_reports(found)}.", parts, packed=True)
