import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.record.wording import counted, shorten, visible
from jaxmeter.reporting.text import by_numbers, visible_record
from tests import samples


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("selu[n=10]", "selu[n=10]"),
        ("a\x00b", r"a\x00b"),
        ("two\nlines", r"two\nlines"),
        ("\x7f", r"\x7f"),
        ("\x85", r"\x85"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\ud800", r"\ud800"),
        ("שלום 👩‍🔬 <script>", "שלום 👩‍🔬 <script>"),
    ],
)
def test_what_cannot_be_seen_is_escaped(text, shown):
    assert visible(text) == shown


def test_numbers_in_a_text_are_ordered_as_numbers():
    assert sorted(["0.10.1", "0.9.2", "0.10", "unknown", "0.9"], key=by_numbers) == [
        "unknown",
        "0.9",
        "0.9.2",
        "0.10",
        "0.10.1",
    ]


@given(st.lists(st.text() | st.from_regex(r"[0-9.]{0,9000}", fullmatch=True), max_size=4))
def test_any_texts_can_be_ordered(texts):
    assert sorted(sorted(texts, key=by_numbers)) == sorted(texts)


@given(st.text())
def test_visible_text_stays_as_it_is_when_made_visible_again(text):
    assert visible(visible(text)) == visible(text)


def test_every_string_of_a_record_becomes_visible_and_stderr_keeps_its_lines():
    failed = samples.Outcome(status=samples.Status.FAILED, reason="one\ntwo", stderr="one\n\x1b[31mtwo")

    shown = visible_record(samples.one_case({"selu:jit": failed}, {"workload": "a\x00b"}))

    outcome = shown.cases[0].variants[0].outcomes["timing"]
    assert shown.manifest.cases[0].workload == r"a\x00b"
    assert (outcome.reason, outcome.stderr) == (r"one\ntwo", "one\n\\x1b[31mtwo")


@given(st.text())
def test_a_record_is_walked_only_where_a_text_in_it_changes(text):
    record = samples.planned_variant("f:jit")
    named = msgspec.structs.replace(record, description=text)

    assert visible_record(named).description == visible(text)
    assert (visible_record(named) is named) <= (visible(text) == text)


def test_words_are_shortened_counted_and_keep_their_lines_in_a_block_of_their_own():
    assert (shorten("abcdef", 4), shorten("abcd", 4)) == ("abc…", "abcd")
    assert [counted(count, "entry", "entries") for count in (0, 1, 2)] == ["0 entries", "1 entry", "2 entries"]
    assert [counted(count, "case") for count in (1, 2)] == ["1 case", "2 cases"]
    assert visible("one\n\ttwo\x1b", multi_line=True) == "one\n\ttwo\\x1b"
