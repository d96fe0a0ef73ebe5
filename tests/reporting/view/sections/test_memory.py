import msgspec
import pytest

from jaxmeter.harness.record import Status
from jaxmeter.reporting.view.page_model import StackMark
from jaxmeter.reporting.view.reasons import MOST_NOTES
from jaxmeter.reporting.view.sections.memory import MOST_BUFFERS, MOST_PROGRAMS
from tests import samples
from tests.reporting.views import by_variant, headings, page_of, section, tables, texts

MIB = 2**20


def page_with(outcome, *, held=None, capacity=None, devices=1, **changes):
    planned = samples.planned_case(variants=("f:jit",), devices=devices)
    called = {} if held is None else {"measured_memory": samples.measured_memory(held)}
    run = samples.run(
        (planned, samples.record(planned, {"f:jit": {"memory": outcome, **called}})),
        **{"environment": samples.environment(device_memory_bytes=capacity), **changes},
    )
    return page_of(run)


def row_of(page):
    return by_variant(page, "memory")["f:jit"]


def test_what_is_planned_is_the_compiler_s_peak_and_no_sum_of_the_parts():
    assert row_of(page_with(samples.memory(4, 4, 4, more={"planned_peak_bytes": 10})))["Planned"] == "10 B"


def test_bars_are_bytes_relative_to_the_longest_of_all():
    (table, _) = tables(page_of(samples.watched_run()), "memory")
    group = next(group for group in table.groups if group.title.startswith("selu"))

    bars = [cell.mark.shares for row in group.rows for cell in row.cells if isinstance(cell.mark, StackMark)]

    longest = max(sum(cell.mark.shares) for row in table.rows for cell in row.cells if isinstance(cell.mark, StackMark))
    called = bars[0][3]
    assert longest == pytest.approx(1)
    assert bars == [
        (0, 0, 0, called),
        pytest.approx((4 / 14 * called, 4 / 14 * called, 2 / 14 * called, 0)),
        pytest.approx((4 / 14 * called, 4 / 14 * called, 2 / 14 * called, 0)),
    ]
    assert "one of full width is 10.5\u202fGiB" in table.caption


@pytest.mark.parametrize(("devices", "told"), [(1, "4.0× the plan"), (8, "4.0× one device's plan")])
def test_a_call_on_several_devices_is_set_against_the_plan_of_one(devices, told):
    outcome = samples.memory(4, 4, 4, more={"planned_peak_bytes": 10})

    assert row_of(page_with(outcome, held=40, devices=devices))["A call"] == f"40 B {told}"


@pytest.mark.parametrize(
    ("capacity", "text"),
    [(1000, "100 %"), (2000, "50 %"), (10**6, "0.1 %"), (2 * 10**6, "below 0.1 %"), (999, "100 %")],
)
def test_the_share_of_the_device_is_coarse_where_it_is_small(capacity, text):
    share = row_of(page_with(samples.memory(1000, 0, 0), capacity=capacity))["Of the device"]

    assert share.split(" needs ")[0] == text
    assert ("needs" in share) == (capacity < 1000)


def test_donation_that_saves_nothing_says_so():
    assert row_of(page_with(samples.memory(4, 4, 4, more={"donation_saves_bytes": 0})))["Donation saves"] == "nothing"


def test_why_a_number_of_memory_is_missing_is_told_once_with_who_lacks_it():
    planned = samples.planned_case(variants=("f:eager", "f:jit", "g:jit"))
    little = samples.measured_memory(notes=("too little to tell",))
    outcomes = {
        "f:eager": {"measured_memory": little},
        "f:jit": {"memory": samples.memory(1, 1, 1, notes=("slow to compile",))},
        "g:jit": {"memory": samples.memory(1, 1, 1), "measured_memory": little},
    }

    (part,) = section(page_of(samples.run((planned, samples.record(planned, outcomes)))), "memory").parts

    told = ("too little to tell", "slow to compile", "Not listed: 1 variant")
    assert all(words in note for words, note in zip(told, part.notes, strict=True))


def test_many_different_notes_are_cut_with_their_number():
    notes = tuple(f"compiling took {seconds} s" for seconds in range(MOST_NOTES + 3))

    (part,) = section(page_with(samples.memory(1, 1, 1, notes=notes)), "memory").parts

    assert len(part.notes) == MOST_NOTES + 1
    assert part.notes[-1] == "3 notes more, in the record."


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


@pytest.mark.parametrize("damaged", [-1, 10**400, 1e300, None])
def test_damaged_sizes_are_dashes(damaged):
    page = page_with(samples.memory(4, 4, 4, more={"planned_peak_bytes": damaged}), held=5, capacity=8)

    assert row_of(page)["Planned"] == "—"
    assert "Of the device" not in headings(page, "memory")


@pytest.mark.parametrize("damaged", [10**400, -(10**400), 1e300, None])
def test_a_damaged_saving_is_not_shown(damaged):
    page = page_with(samples.memory(4, 4, 4, more={"donation_saves_bytes": damaged}))

    assert "Donation saves" not in headings(page, "memory")


@pytest.mark.parametrize("damaged", [-1, 10**400, 0])
def test_a_damaged_capacity_gives_no_share(damaged):
    planned = samples.memory(4, 4, 4)
    environment = samples.environment(device_memory_bytes=damaged)

    assert "Of the device" not in headings(page_with(planned, environment=environment), "memory")


def test_damaged_buffers_are_last_and_have_dashes():
    damaged = samples.buffer(-1, values=-1, shape="", instruction="", operation=None, source=None, kind="")
    outcome = samples.memory(4, 4, 4, buffers=(damaged, samples.buffer(2048)))

    _, table = tables(page_with(outcome), "memory")

    assert [texts(row)[1] for row in table.rows] == ["2.00 KiB", "—"]
    assert texts(table.rows[1]) == ["—"] * 5


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
