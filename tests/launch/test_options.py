import pytest

from jaxmeter.launch.options import UsageError, read_options


def test_the_last_of_repeated_options_counts_and_all_are_kept_in_their_order():
    given = read_options(["--suites", "b.py", "--quick", "--suites=a.py"], "--suites", "--out")

    assert (given.values["--suites"], given.get("--suites"), given.rest) == (["b.py", "a.py"], "a.py", ["--quick"])
    assert ("--out" in given, given.get("--out")) == (False, None)


def test_an_option_that_begins_like_the_wanted_one_is_another_option():
    assert read_options(["--run", "x", "--run-ids=y"], "--run-id").rest == ["--run", "x", "--run-ids=y"]


@pytest.mark.parametrize("arguments", [["--out"], ["--out", "--quick"]])
def test_an_option_without_its_value_is_an_error_that_names_it(arguments):
    with pytest.raises(UsageError, match="--out needs a value"):
        read_options(arguments, "--out")


@pytest.mark.parametrize(
    ("arguments", "is_there", "rest"),
    [
        (["--quick", "--privileged"], True, ["--quick"]),
        (["--privileged", "--quick", "--privileged"], True, ["--quick"]),
        (["--quick"], False, ["--quick"]),
        (["--privileged-not"], False, ["--privileged-not"]),
    ],
)
def test_a_flag_is_there_or_not_and_is_taken_out(arguments, is_there, rest):
    given = read_options(arguments, flags=["--privileged"])

    assert ("--privileged" in given, given.rest) == (is_there, rest)


def test_a_flag_with_a_value_is_an_error_that_names_it():
    with pytest.raises(UsageError, match="--open takes no value"):
        read_options(["--open=1"], flags=["--open"])


@pytest.mark.parametrize("arguments", [["--resume"], ["--resume=a"], ["--quick", "--resume", "a"]])
def test_an_option_that_cannot_be_given_is_named_with_the_reason(arguments):
    with pytest.raises(UsageError, match="--resume: it measures anew"):
        read_options(arguments, refused={"--resume": "it measures anew"})


def test_options_are_passed_on_in_the_order_that_is_asked_for():
    words = ["--budgets", "b.toml", "--exact", "--min-effect=2%"]
    given = read_options(words, "--min-effect", "--budgets", flags=["--exact"])

    passed_on = given.list_words("--exact", "--min-effect", "--budgets", "--other")
    assert passed_on == ["--exact", "--min-effect", "2%", "--budgets", "b.toml"]
