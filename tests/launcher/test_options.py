import pytest

from launcher.options import UsageError, take_flag, take_option, take_options


@pytest.mark.parametrize("written", [["--out", "there"], ["--out=there"]])
def test_an_option_may_be_written_with_a_space_or_an_equals_sign(written):
    assert take_option(["--quick", *written, "--full"], "--out") == ("there", ["--quick", "--full"])


def test_the_last_of_repeated_options_counts():
    assert take_option(["--out", "first", "--out=last"], "--out") == ("last", [])


def test_all_values_of_an_option_that_may_be_repeated_are_kept_in_their_order():
    arguments = ["--suites", "b.py", "--quick", "--suites=a.py", "--suites", "b.py"]

    assert take_options(arguments, "--suites") == (["b.py", "a.py", "b.py"], ["--quick"])


def test_an_absent_option_has_no_value_and_leaves_the_arguments_as_they_are():
    assert take_option(["--select", "selu*", "--quick"], "--out") == (None, ["--select", "selu*", "--quick"])
    assert take_options(["--select", "selu*", "--quick"], "--out") == ([], ["--select", "selu*", "--quick"])


def test_reading_the_same_arguments_again_finds_the_same():
    first = take_options(["--suites", "a.py"], "--suites")

    assert take_options(["--suites", "a.py"], "--suites") == first


def test_an_option_that_begins_like_the_wanted_one_is_another_option():
    assert take_option(["--run", "x", "--run-ids=y"], "--run-id") == (None, ["--run", "x", "--run-ids=y"])


@pytest.mark.parametrize("arguments", [["--out"], ["--out", "--quick"]])
def test_an_option_without_its_value_is_an_error_that_names_it(arguments):
    with pytest.raises(UsageError, match="--out needs a value"):
        take_option(arguments, "--out")


def test_an_empty_value_is_a_value():
    assert take_option(["--out=", "--quick"], "--out") == ("", ["--quick"])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--quick", "--privileged"], (True, ["--quick"])),
        (["--privileged", "--quick", "--privileged"], (True, ["--quick"])),
        (["--quick"], (False, ["--quick"])),
        (["--privileged-not"], (False, ["--privileged-not"])),
    ],
)
def test_a_flag_is_there_or_not_and_is_taken_out(arguments, expected):
    assert take_flag(arguments, "--privileged") == expected
