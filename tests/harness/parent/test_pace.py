"""What processes took tells what those to come will take."""

from harness.parent.pace import Coming, Pace
from harness.plan.launches import Launch


def launch(
    kind: str = "timing", *variants: str, case: str = "a", index: int = 0, regime: str = "", without: str = ""
) -> Coming:
    names = variants or ("f:jit",)
    planned = Launch(case=case, kind=kind, looks={kind: names}, round=index, regime=regime)
    return Coming(planned, tuple(name for name in names if name != without))


def test_a_launch_takes_the_mean_of_those_like_it_in_earlier_rounds():
    pace = Pace()
    pace.add(launch(), 1.0)
    pace.add(launch(index=1), 4.0)

    assert pace.predict_s([launch(index=2)]) == 2.5
    assert pace.predict_s([launch(index=2), launch(index=3)]) == 5.0


def test_launches_are_alike_by_case_process_regime_and_variant():
    pace = Pace()
    pace.add(launch("compilation", "f:jit"), 1.0)
    pace.add(launch("compilation", "g:jit"), 10.0)
    pace.add(launch("caching", "f:jit", regime="cold"), 100.0)
    pace.add(launch("caching", "f:jit", regime="warm"), 1000.0)
    pace.add(launch("compilation", "f:jit", case="b"), 10_000.0)

    assert pace.predict_s([launch("compilation", "f:jit", index=1)]) == 1.0
    assert pace.predict_s([launch("compilation", "g:jit", index=1)]) == 10.0
    assert pace.predict_s([launch("caching", "f:jit", index=1, regime="cold")]) == 100.0
    assert pace.predict_s([launch("caching", "f:jit", index=1, regime="warm")]) == 1000.0
    assert pace.predict_s([launch("compilation", "f:jit", case="b", index=1)]) == 10_000.0


def test_a_launch_that_lost_a_variant_takes_less_by_what_that_took():
    pace = Pace()
    pace.add(launch("timing", "f:eager", "f:jit"), 8.0)
    pace.add_variant("a", "f:eager", 6.0)

    assert pace.predict_s([launch("timing", "f:eager", "f:jit", index=1, without="f:eager")]) == 2.0


def test_once_it_ran_without_a_variant_only_that_tells():
    pace = Pace()
    pace.add(launch("timing", "f:eager", "f:jit"), 8.0)
    pace.add_variant("a", "f:eager", 6.0)
    pace.add(launch("timing", "f:eager", "f:jit", index=1, without="f:eager"), 3.0)

    assert pace.predict_s([launch("timing", "f:eager", "f:jit", index=2, without="f:eager")]) == 3.0


def test_a_process_takes_no_less_than_nothing():
    pace = Pace()
    pace.add(launch("timing", "f:eager", "f:jit"), 8.0)
    pace.add_variant("a", "f:eager", 9.0)

    assert pace.predict_s([launch("timing", "f:eager", "f:jit", index=1, without="f:eager")]) == 0.0


def test_a_launch_like_none_before_takes_the_mean_of_its_kind_and_one_of_a_new_kind_nothing():
    pace = Pace()
    pace.add(launch("timing", case="a"), 1.0)
    pace.add(launch("timing", case="b"), 2.0)

    assert pace.predict_s([launch("timing", case="c")]) == 1.5
    assert pace.predict_s([launch("trace", case="a")]) == 0.0


def test_what_a_variant_takes_of_a_launch_is_that_of_the_last():
    pace = Pace()
    pace.add_variant("a", "f:eager", 1.0)
    pace.add_variant("a", "f:eager", 2.0)

    assert pace.predict_variant_s("a", "f:eager") == 2.0
    assert pace.predict_variant_s("b", "f:eager") == 0.0
