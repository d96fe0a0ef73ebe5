import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.reporting.releases import BisectionAnswer, JudgedRelease, NoDifferenceError, bisect, describe_bisection

RELEASES = tuple(f"jax==0.{number}" for number in range(6))


def told(answer):
    return JudgedRelease(answer, f"it is {answer}")


class Judge:
    """Bad from an index on; what it was asked."""

    def __init__(self, first_bad, unusable=(), undecided=()):
        self.first_bad, self.unusable, self.undecided = first_bad, unusable, undecided
        self.asked = []

    def __call__(self, release):
        index = RELEASES.index(release)
        self.asked.append(index)
        if index in self.unusable:
            return told(BisectionAnswer.UNUSABLE)
        if index in self.undecided:
            return told(BisectionAnswer.UNDECIDED)
        return told(BisectionAnswer.BAD if index >= self.first_bad else BisectionAnswer.GOOD)


def ignore(words):
    """Nobody listens."""


@pytest.mark.parametrize("first_bad", range(1, len(RELEASES)))
def test_the_first_bad_release_is_found_with_the_good_one_before_it(first_bad):
    judge = Judge(first_bad)
    found = bisect(RELEASES, judge, ignore)

    assert (found.last_good, found.first_bad, found.skipped) == (RELEASES[first_bad - 1], RELEASES[first_bad], ())
    assert describe_bisection(found) == [f"first bad: {found.first_bad}; last good: {found.last_good}"]
    # The bad release is asked first, and the good one never.
    assert judge.asked[0] == 5
    assert 0 not in judge.asked
    of_two = Judge(1)
    assert bisect(RELEASES[:2], of_two, ignore).first_bad == RELEASES[1]
    assert of_two.asked == [1]


@pytest.mark.parametrize("answer", [BisectionAnswer.GOOD, BisectionAnswer.UNDECIDED, BisectionAnswer.UNUSABLE])
def test_where_the_bad_release_is_not_bad_there_is_nothing_to_find(answer):
    with pytest.raises(NoDifferenceError, match=rf"jax==0.5 is {answer}, compared with jax==0.0: it is {answer}"):
        bisect(RELEASES, lambda release: told(answer), ignore)


def test_an_undecided_release_is_left_between_and_named_and_every_answer_is_said():
    said = []

    found = bisect(RELEASES, Judge(3, undecided={2}), said.append)

    assert (found.last_good, found.first_bad) == ("jax==0.1", "jax==0.3")
    assert found.skipped == (("jax==0.2", "it is undecided"),)
    assert describe_bisection(found)[0] == "first bad: jax==0.3; last good: jax==0.1"
    assert "between them jax==0.2 could not be judged: it is undecided" in describe_bisection(found)
    assert said[0] == "jax==0.5 is bad: it is bad"
    assert [release for release, _ in found.judged] == [words.split()[0] for words in said]


@pytest.mark.parametrize("first_bad", [1, 30, 63, 64])
def test_releases_are_halved(first_bad):
    many = tuple(f"a=={number}" for number in range(65))
    asked = []

    def judge(release):
        asked.append(many.index(release))
        return told(BisectionAnswer.BAD if asked[-1] >= first_bad else BisectionAnswer.GOOD)

    assert bisect(many, judge, ignore).first_bad == many[first_bad]
    assert asked[:2] == [64, 32]
    assert len(asked) == 7


@given(data=st.data())
def test_whatever_cannot_be_judged_the_first_bad_release_lies_between(data):
    first_bad = data.draw(st.integers(1, len(RELEASES) - 1))
    unusable = data.draw(st.sets(st.integers(1, len(RELEASES) - 2)))
    judge = Judge(first_bad, unusable=unusable)

    found = bisect(RELEASES, judge, ignore)

    good, bad = RELEASES.index(found.last_good), RELEASES.index(found.first_bad)
    assert good < first_bad <= bad
    assert {RELEASES.index(release) for release, _ in found.skipped} == set(range(good + 1, bad)) <= unusable
    assert len(judge.asked) == len(set(judge.asked))


@pytest.mark.parametrize("answer", [BisectionAnswer.BAD, BisectionAnswer.UNUSABLE])
def test_a_good_release_that_is_not_good_ends_all_where_it_is_asked(answer):
    asked = []

    def judge(release):
        asked.append(release)
        return told(answer if release == RELEASES[0] else BisectionAnswer.BAD)

    with pytest.raises(NoDifferenceError, match=f"jax==0.0 is {answer}, though it is the good release: it is {answer}"):
        bisect(RELEASES, judge, ignore, asks_good=True)
    assert asked == ["jax==0.0"]


def test_a_good_release_that_is_good_is_asked_once_and_first():
    judge = Judge(3)

    assert bisect(RELEASES, judge, ignore, asks_good=True).first_bad == "jax==0.3"
    assert judge.asked[:2] == [0, 5]
