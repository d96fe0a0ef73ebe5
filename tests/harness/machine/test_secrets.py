"""Secrets in texts that are recorded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.machine.secrets import SHORTEST_SECRET, hide_in_text

NAMES = st.sampled_from(["MY_TOKEN", "API", "DB_PASSWORD", "SSH_KEY", "credentials"])


@given(name=NAMES, value=st.text(min_size=SHORTEST_SECRET), before=st.text(), after=st.text())
def test_the_value_of_a_secret_variable_is_nowhere_in_a_text(name, value, before, after):
    hidden = hide_in_text(f"{before}{value}{after}", {name: value})

    assert value not in hidden or value in "***" * len(value)


def test_of_two_secrets_the_longer_one_goes_first():
    assert hide_in_text("a: abcdef-ghi", {"A_KEY": "abcdef", "B_KEY": "abcdef-ghi"}) == "a: ***"


@pytest.mark.parametrize("value", ["", "1", "true", "short"])
def test_switches_and_short_values_stay(value):
    assert hide_in_text(f"x{value}y", {"MY_KEY": value}) == f"x{value}y"


def test_values_of_other_variables_stay():
    assert hide_in_text("in /usr/bin:/bin", {"PATH": "/usr/bin:/bin"}) == "in /usr/bin:/bin"


@pytest.mark.parametrize(
    ("text", "hidden"),
    [
        ("GET https://anna:s3cr3t@host/a failed", "GET https://***@host/a failed"),
        ("url?part=1&X-Amz-Signature=abcdef0123", "url?part=1&X-Amz-Signature=***"),
        ("url?sv=2&sig=abcdef0123", "url?sv=2&sig=***"),
        ("connect(password='s3cr3t-word')", "connect(password='***')"),
        ("api_key=sk-0123456789", "api_key=***"),
        ("{'token': 'abcdef0123', 'n': 3}", "{'token': '***', 'n': 3}"),
        ("Authorization: Bearer abcdef0123", "Authorization: Bearer ***"),
        ("aws_secret_access_key = abcdef0123", "aws_secret_access_key = ***"),
    ],
)
def test_what_a_text_calls_a_secret_is_hidden(text, hidden):
    assert hide_in_text(text, {}) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "TypeError: step() got key=Array((2,), dtype=uint32)",
        "max_tokens=4096, vocabulary of 50257",
        "return x@w + b",
        "%token.1 = token[] after-all()",
        "dot_general requires contracting dimensions of equal size: got 3 and 4",
        "unexpected token: )",
        'File "jaxmeter/suites/selu.py", line 3, in selu',
    ],
)
def test_words_about_programs_stay(text):
    assert hide_in_text(text, {}) == text


@pytest.mark.parametrize("part", ["password", "token=", "://", "a@", " ", "secret ", "?sig"])
def test_a_long_text_costs_no_more_time_than_it_is_long(part):
    assert hide_in_text(part * 10**5, {})  # squared, this would be minutes
