import pytest

from jaxmeter.launch.options import UsageError
from jaxmeter.launch.schedule import read_cron


@pytest.mark.parametrize(
    ("text", "calendar"),
    [
        ("0 3 * * *", "*-*-* 03:00:00 UTC"),
        ("  30  22 * * 1-5 ", "Mon,Tue,Wed,Thu,Fri *-*-* 22:30:00 UTC"),
        ("0 3 * * 0", "Sun *-*-* 03:00:00 UTC"),
        ("0 3 * * 7", "Sun *-*-* 03:00:00 UTC"),
        ("0 3 1,15 * *", "*-*-01,15 03:00:00 UTC"),
        ("*/20 1-3/2 * 2 *", "*-02-* 01,03:00,20,40:00 UTC"),
        ("5/20 * * * *", "*-*-* *:05,25,45:00 UTC"),
    ],
)
def test_five_fields_are_the_same_times_to_systemd(text, calendar):
    assert read_cron(text).to_calendar() == calendar


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "give five fields, minute, hour, day of the month, month, day of the week"),
        ("0 3 * *", "give five fields"),
        ("@daily", "give five fields"),
        ("60 3 * * *", "'60' is no minute, which is a number from 0 to 59"),
        ("0 24 * * *", "'24' is no hour"),
        ("0 3 0 * *", "'0' is no day of the month, which is a number from 1 to 31"),
        ("0 3 * * 8", "'8' is no day of the week"),
        ("0 3 * * MON", "'MON' is no day of the week"),
        ("0 5-3 * * *", "'5-3' is no hour"),
        ("*/0 3 * * *", "'*/0' is no minute"),
        ("0 3 * * 1,", "'' is no day of the week"),
        ("٣ 3 * * *", "'٣' is no minute"),
    ],
)
def test_what_is_no_time_is_said(text, words):
    with pytest.raises(UsageError) as raised:
        read_cron(text)

    assert words in str(raised.value)
    assert text in str(raised.value)


def test_both_kinds_of_days_are_refused_for_systemd_to_which_they_mean_something_else():
    with pytest.raises(UsageError, match="names days of the month and of the week; for systemd name one of them"):
        read_cron("0 3 1 * 1").to_calendar()
