import msgspec
import pytest

from jaxmeter.harness.record import MemoryDetails, Status
from jaxmeter.reporting.view.cells import MOST_NOTES
from jaxmeter.reporting.view.figures.stacks import NEAR_FULL
from jaxmeter.reporting.view.sections.memory import MOST_BUFFERS, MOST_PROGRAMS
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.view.page_text import write_row, write_text
from tests.reporting.views import card_of, case_view, page_of, section, tables, texts

MIB = 2**20


def page_with(outcome, *, held=None, capacity=None, devices=1, **changes):
    called = {} if held is None else {"measured_memory": samples.measured_memory(held)}
    changes = {"environment": samples.environment(device_memory_bytes=capacity), **changes}
    return page_of(samples.one_case({"f:jit": {"memory": outcome, **called}}, {"devices": devices}, **changes))


def limit_of(page):
    """The line of what the device has, in the figure of the only variant of a page."""
    return card_of(case_view(page, "selu[dtype=float32,n=10000]").figures, "memory").figure.limit


@pytest.mark.parametrize(("share", "is_shown"), [(1.5, True), (NEAR_FULL, True), (0.9 * NEAR_FULL, False)])
def test_what_the_device_has_is_drawn_where_a_plan_comes_near_it(share, is_shown):
    limit = limit_of(page_with(samples.memory(int(1000 * share), 0, 0), capacity=1000))

    assert (limit is not None and limit.value == 1000) is is_shown


def page_of_three():
    """Each variant lacks another number, for a reason."""
    little = samples.measured_memory(notes=("too little to tell",))
    outcomes = {
        "f:eager": {"measured_memory": little},
        "f:jit": {"memory": samples.memory(1, 1, 1, notes=("slow to compile",))},
        "g:jit": {"memory": samples.memory(1, 1, 1), "measured_memory": little},
    }
    return page_of(samples.one_case(outcomes))


def make_pages():
    """Pages with the memory of one variant, by what is odd about it."""
    plan, huge = {"planned_peak_bytes": 10}, (10**400, -(10**400), 1e300, None)
    unplanned = samples.memory(4 * MIB, 3 * MIB, 0)
    unplanned = msgspec.structs.replace(unplanned, details=MemoryDetails(unplanned=("ynn_fusion",)))
    notes = tuple(f"compiling took {seconds} s" for seconds in range(MOST_NOTES + 3))
    damaged = samples.buffer(-1, values=-1, shape="", instruction="", operation=None, source=None, kind="")
    return {
        **{
            f"a call on {devices} devices": page_with(samples.memory(4, 4, 4, more=plan), held=40, devices=devices)
            for devices in (1, 8)
        },
        **{
            f"a device of {str(capacity)[:8]} bytes": page_with(samples.memory(1000, 0, 0), capacity=capacity)
            for capacity in (1000, 2000, 10**6, 2 * 10**6, 999, -1, 10**400, 0)
        },
        **{
            f"donation that saves {str(saves)[:8]}": page_with(
                samples.memory(4, 4, 4, more={"donation_saves_bytes": saves})
            )
            for saves in (0, *huge)
        },
        **{
            f"a planned peak of {str(peak)[:8]}": page_with(
                samples.memory(4, 4, 4, more={"planned_peak_bytes": peak}), held=5, capacity=8
            )
            for peak in (-1, 10**400, 1e300, None)
        },
        "a plan beside what a call held": page_with(samples.memory(4 * MIB, 3 * MIB, 2 * MIB), held=10 * MIB),
        "a plan that leaves out products": page_with(unplanned, held=256 * MIB),
        "numbers that are missing for a reason": page_of_three(),
        "many notes": page_with(samples.memory(1, 1, 1, notes=notes)),
        "a damaged buffer": page_with(samples.memory(4, 4, 4, buffers=(damaged, samples.buffer(2048)))),
    }


def test_memory_reads_as_its_golden_text():
    def lines(page):
        for part in section(page, "memory").parts:
            for table in part.tables:
                yield " | ".join(column.title for column in table.columns)
                yield from map(write_row, table.rows)
            yield from part.notes
        for card in page.suites[0].cases[0].figures:
            yield from [write_text(card)] if card.id == "memory" else []
        yield from (f"answer: {line.text}" for line in page.answers if line.suite == "memory")

    check_golden_scenes("memory", {rule: list(lines(page)) for rule, page in make_pages().items()})


def test_buffers_are_few_and_of_the_programs_that_hold_most():
    buffers = tuple(samples.buffer(2**10 * index) for index in range(1, 9))
    pairs = (
        samples.pair({"f:jit": {"memory": samples.memory(n, 0, 0, buffers=buffers)}}, params={"n": n})
        for n in range(MOST_PROGRAMS + 2)
    )

    _, table = tables(page_of(samples.run(*pairs)), "memory")

    assert [group.title.split(" ")[0] for group in table.groups[:2]] == ["selu[n=21]", "selu[n=20]"]
    assert len(table.groups) == MOST_PROGRAMS
    assert [texts(row)[1] for row in table.groups[0].rows] == [f"{size}.00 KiB" for size in (8, 7, 6, 5, 4)]
    assert len(table.groups[0].rows) == MOST_BUFFERS
    assert table.caption.endswith("2 programs with less left out.")


@pytest.mark.parametrize(
    ("status", "reason", "is_warning"),
    [(Status.TOO_LARGE, "any words", True), (Status.FAILED, "does not fit: allocation failed", False)],
)
def test_a_program_that_does_not_fit_is_recognised_by_its_status_whatever_the_reason(status, reason, is_warning):
    page = page_of(samples.one_case({"f:jit": {"numerics": samples.Outcome(status=status, reason=reason)}}))

    assert ("does not fit" in [item.label for item in page.warnings]) is is_warning
    assert ("failed" in [item.label for item in page.attention]) is not is_warning
    assert ("Of 1 variant: 1 too large." in page.summary) is is_warning
