"""What processes took tells what those to come will take."""

import pytest

from jaxmeter.harness.parent.rounds import Coming, Pace
from jaxmeter.harness.plan.processes import ISOLATED, QUEUE, SIDE_PROCESSES, PlannedProcess


def process(
    kind: str = "timing", *variants: str, case: str = "a", index: int = 0, cache_state: str = "", without: str = ""
) -> Coming:
    names = variants or ("f:jit",)
    planned = PlannedProcess(case=case, kind=kind, assignments={kind: names}, round=index, cache_state=cache_state)
    return Coming(planned, tuple(name for name in names if name != without))


def test_a_process_takes_the_mean_of_those_like_it_in_earlier_rounds_or_else_of_its_kind():
    pace = Pace()
    pace.add(process(), 1.0)
    pace.add(process(index=1), 4.0)
    pace.add(process(case="b"), 2.0)

    assert pace.predict_s([process(index=2)]) == 2.5
    assert pace.predict_s([process(case="c")]) == pytest.approx(7 / 3)
    assert pace.predict_s([process("compilation", index=2)]) == 0.0


def test_rounds_that_take_other_side_times_take_as_long_as_their_like_and_the_first_of_them_as_the_last_round():
    pace = Pace()
    alone, queued, late = SIDE_PROCESSES[ISOLATED], SIDE_PROCESSES[QUEUE], SIDE_PROCESSES[QUEUE] + 1
    assert 1 < alone < queued
    pace.add(process(index=0), 4.0)
    pace.add(process(index=1), 5.0)

    assert pace.predict_s([process(index=alone)]) == pace.predict_s([process(index=late)]) == 5.0
    pace.add(process(index=alone), 3.0)
    pace.add(process(index=queued), 2.0)
    assert pace.predict_s([process(index=1)]) == 4.5
    assert pace.predict_s([process(index=alone)]) == 3.0
    assert pace.predict_s([process(index=late)]) == 2.0


def test_processes_are_alike_by_case_process_cache_state_and_variant():
    pace = Pace()
    kinds = {
        1.0: (("compilation", "f:jit"), {}),
        10.0: (("compilation", "g:jit"), {}),
        100.0: (("caching", "f:jit"), {"cache_state": "cold"}),
        1000.0: (("caching", "f:jit"), {"cache_state": "warm"}),
        10_000.0: (("compilation", "f:jit"), {"case": "b"}),
    }
    for took_s, (words, options) in kinds.items():
        pace.add(process(*words, **options), took_s)

    assert [pace.predict_s([process(*words, **options, index=1)]) for words, options in kinds.values()] == list(kinds)


@pytest.mark.parametrize(("took_s", "left_s"), [(6.0, 2.0), (9.0, 0.0)])
def test_a_process_that_lost_a_variant_takes_less_by_what_that_took_until_it_ran_without_it(took_s, left_s):
    pace, without = Pace(), {"without": "f:eager"}
    pace.add(process("timing", "f:eager", "f:jit"), 8.0)
    pace.add_variant("a", "f:eager", took_s)
    assert pace.predict_s([process("timing", "f:eager", "f:jit", index=1, **without)]) == left_s

    pace.add(process("timing", "f:eager", "f:jit", index=1, **without), 3.0)
    assert pace.predict_s([process("timing", "f:eager", "f:jit", index=2, **without)]) == 3.0


def test_what_a_variant_takes_of_a_process_is_that_of_the_last():
    pace = Pace()
    pace.add_variant("a", "f:eager", 1.0)
    pace.add_variant("a", "f:eager", 2.0)

    assert pace.predict_variant_s("a", "f:eager") == 2.0
    assert pace.predict_variant_s("b", "f:eager") == 0.0
