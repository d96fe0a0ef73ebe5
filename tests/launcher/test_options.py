import pytest

from launcher.options import UsageError, take_option


@pytest.mark.parametrize("written", [["--out", "there"], ["--out=there"]])
def test_an_option_may_be_written_with_a_space_or_an_equals_sign(written):
    assert take_option(["--quick", *written, "--full"], "--out") == ("there", ["--quick", "--full"])


def test_the_last_of_repeated_options_counts():
    assert take_option(["--out", "first", "--out=last"], "--out") == ("last", [])


def test_an_absent_option_has_no_value_and_leaves_the_arguments_as_they_are():
    assert take_option(["--select", "selu*", "--quick"], "--out") == (None, ["--select", "selu*", "--quick"])


def test_an_option_that_begins_like_the_wanted_one_is_another_option():
    assert take_option(["--run", "x", "--run-ids=y"], "--run-id") == (None, ["--run", "x", "--run-ids=y"])


@pytest.mark.parametrize("arguments", [["--out"], ["--out", "--quick"]])
def test_an_option_without_its_value_is_an_error_that_names_it(arguments):
    with pytest.raises(UsageError, match="--out needs a value"):
        take_option(arguments, "--out")
