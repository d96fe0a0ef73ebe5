import io
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.parent.progress import Lines, list_troubles, printable
from harness.record import Outcome, Status
from tests import samples

PLANNED = samples.planned_case("selu", params={"n": 4})


def failed(reason: str) -> Outcome:
    return Outcome(status=Status.FAILED, reason=reason)


def lines_of(*cases, lost=()) -> list[str]:
    stream = io.StringIO()
    watcher = Lines(stream)
    watcher.run_started(samples.manifest([PLANNED], run_id="it"), Path("results/it"), len(cases) + len(lost), 600.0)
    for case in cases:
        watcher.case_ended(case, 12.4)
    for case, reason in lost:
        watcher.case_lost(case, reason)
    return stream.getvalue().splitlines()


def test_a_case_is_one_line():
    assert lines_of(samples.fast_case(PLANNED)) == [
        "run it: 1 case on cpu (1 x cpu), into results/it",
        "[1/1] ok        selu[n=4]  1.0 s, 5 launches; 12 of 600 s used",
    ]


def test_a_trouble_is_a_line_below_its_case():
    case = samples.record(PLANNED, {"a:jit": {"numerics": failed("no luck")}})

    assert lines_of(case)[1:] == [
        "[1/1] failed    selu[n=4]  1.0 s, 5 launches; 12 of 600 s used",
        "    a:jit: failed: no luck",
    ]


def test_a_lost_case_says_why():
    assert lines_of(lost=[(PLANNED, "the budget is used up")])[1:] == [
        "[1/1] lost      selu[n=4]: the budget is used up"
    ]


def test_a_trouble_that_several_probes_had_is_told_once_and_what_is_expected_is_none():
    record = samples.record(
        PLANNED,
        {
            "a:jit": {"numerics": failed("no luck"), "memory": failed("no luck")},
            "b:jit": {"numerics": samples.numerics(), "memory": Outcome(status=Status.UNSUPPORTED, reason="eager")},
            "c:jit": {"numerics": Outcome(status=Status.SKIPPED, reason="not today")},
        },
    )

    assert list_troubles(record) == ["a:jit: failed: no luck"]


def test_what_was_too_large_to_be_run_is_told_though_nothing_went_wrong():
    too_large = Outcome(status=Status.TOO_LARGE, reason="needs 3 GiB of 2 GiB")
    record = samples.record(PLANNED, {"a:jit": {"numerics": too_large}})

    assert list_troubles(record) == ["a:jit: does not fit: needs 3 GiB of 2 GiB"]


@given(text=st.text())
def test_a_suites_words_are_one_line_and_cannot_steer_the_terminal(text):
    shown = printable(text)

    assert len(shown) == len(text)
    assert shown.isprintable()


def test_what_is_printable_stays_as_it_is():
    assert printable("é 中 ×\n\x1b[31m") == "é 中 × ?[31m"
