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
    planned = samples.planned_case("a\x00b")
    failed = samples.Outcome(status=samples.Status.FAILED, reason="one\ntwo", stderr="one\n\x1b[31mtwo")
    record = samples.record(planned, {"selu:jit": {"timing": failed}})

    shown = visible_record(samples.run((planned, record)))

    assert shown.manifest.cases[0].workload == r"a\x00b"
    assert shown.cases[0].variants[0].outcomes["timing"].reason == r"one\ntwo"
    assert shown.cases[0].variants[0].outcomes["timing"].stderr == "one\n\\x1b[31mtwo"


def test_a_long_text_is_cut_with_an_ellipsis():
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("abcd", 4) == "abcd"


@pytest.mark.parametrize(
    ("count", "shown"), [(0, "0 entries"), (1, "1 entry"), (2, "2 entries")], ids=["none", "one", "several"]
)
def test_a_count_agrees_with_its_noun(count, shown):
    assert counted(count, "entry", "entries") == shown
    assert counted(count, "case") == shown.replace("entries", "cases").replace("entry", "case")


def test_line_breaks_stay_in_what_has_a_block_of_its_own():
    assert visible("one\n\ttwo\x1b", multi_line=True) == "one\n\ttwo\\x1b"


@given(st.text())
def test_a_record_is_walked_only_where_a_text_in_it_changes(text):
    record = samples.planned_variant("f:jit")
    named = msgspec.structs.replace(record, description=text)

    assert visible_record(named).description == visible(text)
    assert (visible_record(named) is named) <= (visible(text) == text)
