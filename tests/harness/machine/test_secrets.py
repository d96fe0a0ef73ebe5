"""Secrets in texts that are recorded."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.machine.environment import SHORTEST_SECRET, hide_in_text, hide_in_value, is_secret

KEY = "-----BEGIN PRIVATE KEY-----"
NAMES = st.sampled_from(["MY_TOKEN", "API", "DB_PASSWORD", "SSH_KEY", "credentials"])


@given(name=NAMES, value=st.text(min_size=SHORTEST_SECRET), before=st.text(), after=st.text())
def test_the_value_of_a_secret_variable_is_nowhere_in_a_text(name, value, before, after):
    hidden = hide_in_text(f"{before}{value}{after}", {name: value})

    assert value not in hidden or value in "***" * len(value)


def test_of_two_secrets_the_longer_one_goes_first_and_values_of_other_variables_stay():
    assert hide_in_text("a: abcdef-ghi", {"A_KEY": "abcdef", "B_KEY": "abcdef-ghi"}) == "a: ***"
    assert hide_in_text("in /usr/bin:/bin", {"PATH": "/usr/bin:/bin"}) == "in /usr/bin:/bin"


@pytest.mark.parametrize("value", ["", "1", "true", "short"])
def test_switches_and_short_values_stay(value):
    assert hide_in_text(f"x{value}y", {"MY_KEY": value}) == f"x{value}y"


SECRET_NAMES = (
    "JAX_MY_PAT XLA_PYTHON_CLIENT_COOKIE TPU_SESSION_ID NVIDIA_PWD DB_DSN MY_BEARER SLACK_WEBHOOK_URL X_SIGNATURE PAT_2"
)
OTHER_NAMES = (
    "PATH JAX_PATTERN JAX_DISPATCH DESIGN PWD OLDPWD XDG_SESSION_TYPE DESKTOP_SESSION SIGNALS JAX_COMPILATION_CACHE_DIR"
)


@pytest.mark.parametrize("name", [*SECRET_NAMES.split(), *OTHER_NAMES.split()])
def test_a_word_of_a_name_makes_a_variable_secret_and_a_part_of_a_word_does_not(name):
    assert is_secret(name, "abcdef0123") is (name in SECRET_NAMES.split())


@pytest.mark.parametrize("name", ["cookie", "session", "db_dsn", "my_pat"])
def test_a_setting_within_a_value_is_hidden_by_a_word_of_its_name(name):
    assert hide_in_value(f"--{name}=abcdef0123 --pattern=x") == f"--{name}=*** --pattern=x"


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
        ("cookie: sid0123456789", "cookie: ***"),
        ("got AKIAABCDEFGHIJ234567.", "got ***."),
        ("https://host/ghp_abcdefghijklmnop0123/x", "https://host/***/x"),
        ("'gho_abcdefghijklmnop0123', 1", "'***', 1"),
        ("github_pat_11ABCDEFG0_abcdefghijklmnop refused", "*** refused"),
        ("glpat-abcdefghij_0123456789", "***"),
        ("xoxb-0123456789-abcdef", "***"),
        ("key AIzaSyA-0123456789abcdefghijklmnopqrstu", "key ***"),
        ("A=1\\nhf_abcdefghijklmnopqrstuvwxyzABCD", "A=1\\n***"),
        ("sk-proj-abcdefghij0123456789", "***"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-def", "***"),
        ("Bearer abcdefghij0123456789", "***"),
        ("a -----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY----- b", "a *** b"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nMIIcut off", "a ***"),
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
        "a task-of-the-scheduler-2026-11-29 and a bearer of bad news in internationalisation",
        "metadata={op_name='jit(f)/mask-ghost_0123456789abcdef'}",
        "-----BEGIN CERTIFICATE-----",
    ],
)
def test_words_about_programs_stay(text):
    assert hide_in_text(text, {}) == text


PARTS = [
    "a@",
    "password",
    "token=",
    "://",
    " ",
    "secret ",
    "?sig",
    "eyJ",
    "eyJabcdefgh.",
    "sk-",
    "ghp_",
    "bearer ",
    KEY,
]


@pytest.mark.parametrize("part", PARTS)
def test_a_long_text_costs_no_more_time_than_it_is_long(part):
    assert hide_in_text(part * 10**5, {})  # squared, this would be minutes
