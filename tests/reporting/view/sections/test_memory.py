import msgspec
import pytest

from jaxmeter.harness.record import MemoryDetails, Status
from jaxmeter.reporting.view.doubts import MOST_NOTES
from jaxmeter.reporting.view.figure_model import Fill
from jaxmeter.reporting.view.figures.stacks import NEAR_FULL
from jaxmeter.reporting.view.sections.memory import MOST_BUFFERS, MOST_PROGRAMS
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.view.page_text import write_row
from tests.reporting.views import by_variant, card_of, case_view, page_of, section, tables, texts

MIB = 2**20


def page_with(outcome, *, held=None, capacity=None, devices=1, **changes):
    planned = samples.planned_case(variants=("f:jit",), devices=devices)
    called = {} if held is None else {"measured_memory": samples.measured_memory(held)}
    run = samples.run(
        (planned, samples.record(planned, {"f:jit": {"memory": outcome, **called}})),
        **{"environment": samples.environment(device_memory_bytes=capacity), **changes},
    )
    return page_of(run)


def drawn(page):
    """The memory of the only variant of a page, as it is drawn, and the line of what the device has."""
    figure = card_of(case_view(page, "selu[dtype=float32,n=10000]").figures, "memory").figure
    (row,) = figure.rows
    return row, figure.limit


def test_a_plan_is_drawn_in_bytes_beside_what_a_call_held():
    row, _ = drawn(page_with(samples.memory(4 * MIB, 3 * MIB, 2 * MIB), held=10 * MIB))

    parts = {part.name: (part.amount, part.fill) for part in row.parts}
    assert parts == {
        "arguments": (4 * MIB, Fill.FIRST),
        "outputs": (3 * MIB, Fill.SECOND),
        "temporary": (2 * MIB, Fill.THIRD),
    }
    assert row.mark.estimate.value == 10 * MIB


@pytest.mark.parametrize(("share", "is_shown"), [(1.5, True), (NEAR_FULL, True), (0.9 * NEAR_FULL, False)])
def test_what_the_device_has_is_drawn_where_a_plan_comes_near_it(share, is_shown):
    _, limit = drawn(page_with(samples.memory(int(1000 * share), 0, 0), capacity=1000))

    assert (limit is not None and limit.value == 1000) is is_shown


def test_an_output_in_the_memory_of_an_argument_is_drawn_once():
    row, _ = drawn(page_with(samples.memory(4 * MIB, 4 * MIB, 0, more={"alias_bytes": 4 * MIB})))

    assert [part.name for part in row.parts] == ["arguments"]


def test_a_plan_that_leaves_out_products_says_so_next_to_its_number():
    plan = samples.memory(4 * MIB, 3 * MIB, 0)
    plan = msgspec.structs.replace(plan, details=MemoryDetails(unplanned=("ynn_fusion",)))
    page = page_with(plan, held=256 * MIB)

    row = by_variant(page, "memory")["f:jit"]
    answer = next(line.text for line in page.answers if line.suite == "memory").replace("\u202f", " ")

    assert row["Planned"].replace("\u202f", " ") == "7.00 MiB without products"
    assert "Largest plan: 7.00 MiB (measured 256 MiB, as the plan leaves out the working memory of products)" in answer


def page_of_three():
    """Each variant lacks another number, for a reason."""
    planned = samples.planned_case(variants=("f:eager", "f:jit", "g:jit"))
    little = samples.measured_memory(notes=("too little to tell",))
    outcomes = {
        "f:eager": {"measured_memory": little},
        "f:jit": {"memory": samples.memory(1, 1, 1, notes=("slow to compile",))},
        "g:jit": {"memory": samples.memory(1, 1, 1), "measured_memory": little},
    }
    return page_of(samples.run((planned, samples.record(planned, outcomes))))


def make_pages():
    """Pages with the memory of one variant, by what is odd about it."""
    plan, huge = {"planned_peak_bytes": 10}, (10**400, -(10**400), 1e300, None)
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

    check_golden_scenes("memory", {rule: list(lines(page)) for rule, page in make_pages().items()})


def test_buffers_are_few_and_of_the_programs_that_hold_most():
    pairs = []
    for n in range(MOST_PROGRAMS + 2):
        planned = samples.planned_case(params={"n": n}, variants=("f:jit",))
        buffers = tuple(samples.buffer(2**10 * index) for index in range(1, 9))
        outcomes = {"f:jit": {"memory": samples.memory(n, 0, 0, buffers=buffers)}}
        pairs.append((planned, samples.record(planned, outcomes)))

    _, table = tables(page_of(samples.run(*pairs)), "memory")

    assert [group.title.split(" ")[0] for group in table.groups[:2]] == ["selu[n=21]", "selu[n=20]"]
    assert len(table.groups) == MOST_PROGRAMS
    assert [texts(row)[1] for row in table.groups[0].rows] == [f"{size}.00 KiB" for size in (8, 7, 6, 5, 4)]
    assert len(table.groups[0].rows) == MOST_BUFFERS
    assert table.caption.endswith("2 programs with less left out.")


def test_the_environment_shows_the_device_s_memory_as_a_size():
    (everything,) = tables(page_of(samples.watched_run()), "environment")
    (unknown,) = tables(page_of(samples.run()), "environment")

    assert ["device_memory_bytes", "8.00 GiB"] in [texts(row) for row in everything.rows]
    assert ["device_memory_bytes", "unknown"] in [texts(row) for row in unknown.rows]


def test_a_program_that_does_not_fit_is_recognised_by_its_status_whatever_the_reason():
    planned = samples.planned_case(variants=("f:jit",))
    large = samples.Outcome(status=Status.TOO_LARGE, reason="any words")
    record = samples.record(planned, {"f:jit": {"numerics": large}})

    page = page_of(samples.run((planned, record)))

    assert [item.label for item in page.warnings] == ["does not fit"]
    assert by_variant(page)["f:jit"]["Notes"] == "does not fit: any words"
    assert "Of 1 variant: 1 too large." in page.summary


def test_a_failure_whose_words_speak_of_fitting_stays_a_failure():
    planned = samples.planned_case(variants=("f:jit",))
    failed = samples.Outcome(status=Status.FAILED, reason="does not fit: allocation failed")
    record = samples.record(planned, {"f:jit": {"numerics": failed}})

    page = page_of(samples.run((planned, msgspec.structs.replace(record))))

    assert [item.label for item in page.attention] == ["failed"]
    assert "does not fit" not in [item.label for item in page.warnings]
