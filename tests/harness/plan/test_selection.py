import pytest

from jaxmeter.harness.plan.cases import SelectionError, choose_representatives, select, shuffle
from jaxmeter.harness.record import Answer, PlannedCase
from jaxmeter.harness.record.files import name_file
from tests import samples


def case(suite: str, name: str, variants: tuple = ("a:jit",)) -> PlannedCase:
    return samples.planned_case(name.partition("[")[0], suite=suite, name=name, id=name_file(name), variants=variants)


CASES = (
    case("selu", "selu[dtype=float32,n=10]"),
    case("selu", "selu[dtype=bfloat16,n=10]"),
    case("matmul", "matmul[n=10]"),
    case("matmul", "matmul[n=100]"),
    case("matmul", "matmul_int32[n=10]"),
)


def chosen(*patterns: str) -> list[str]:
    return [one.name for one in select(CASES, patterns)]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("selu", ["selu[dtype=float32,n=10]", "selu[dtype=bfloat16,n=10]"]),
        ("matmul[n=10]", ["matmul[n=10]"]),
        ("matmul[n=10*]", ["matmul[n=10]", "matmul[n=100]"]),
        ("matmul*[n=10]", ["matmul[n=10]", "matmul_int32[n=10]"]),
        ("*n=10?]", ["matmul[n=100]"]),
        ("matmul", ["matmul[n=10]", "matmul[n=100]", "matmul_int32[n=10]"]),
        ("matmul_int??", ["matmul_int32[n=10]"]),
        ("*[dtype=float32*", ["selu[dtype=float32,n=10]"]),
    ],
)
def test_a_pattern_stands_for_a_suite_a_workload_or_a_whole_name(pattern, expected):
    assert chosen(pattern) == expected


@pytest.mark.parametrize("pattern", ["[sm]*", "matmul[[]n=10]", "selu.*", "matmul[n=1", "SELU", ""])
def test_only_star_and_question_mark_mean_more_than_themselves(pattern):
    with pytest.raises(SelectionError):
        chosen(pattern)


def test_without_patterns_every_case_is_chosen():
    assert chosen() == [one.name for one in CASES]


def test_chosen_cases_keep_their_order_and_come_once():
    assert chosen("matmul[n=10]", "selu", "*n=10]") == chosen("*n=10]")


@pytest.mark.parametrize(("pattern", "nearest"), [("matmull", "; nearest: 'matmul'"), ("zzzzzzzz", "")])
def test_a_pattern_that_matches_nothing_names_the_nearest_and_the_list(pattern, nearest):
    with pytest.raises(SelectionError) as caught:
        chosen("selu", pattern)

    assert str(caught.value) == (
        f"no case of this level matches --select '{pattern}'{nearest}; list all: jaxmeter list --full"
    )


# Order


def test_cases_run_in_a_random_order_that_the_seed_decides():
    orders = [shuffle(CASES, seed) for seed in range(10)]

    assert all(sorted(one.id for one in order) == sorted(one.id for one in CASES) for order in orders)
    assert orders == [shuffle(CASES, seed) for seed in range(10)]
    assert len({tuple(one.id for one in order) for order in orders}) > 5


def test_one_case_stands_for_each_workload_the_first_where_the_declared_one_is_not_chosen():
    cases = [
        samples.planned_case(workload, id=f"{workload}{n}", suite=suite, represents_workload=n == 2)
        for workload, suite in (("a", "s"), ("b", "s"), ("c", "t"))
        for n in (1, 2)
    ]

    found = choose_representatives(cases)

    assert [one.id for one in found if one.represents_workload] == ["a2", "b2", "c2"]
    assert [one.id for one in choose_representatives(cases[:1]) if one.represents_workload] == ["a1"]


# Answers


def with_answer(answer, *sizes, workload="a", platform="cpu", represents=None):
    return [
        samples.planned_case(
            workload,
            id=f"{workload}{n}{platform}",
            suite="s",
            platform=platform,
            params={"n": n},
            represents_workload=n == represents,
            answer=answer,
        )
        for n in sizes
    ]


@pytest.mark.parametrize(
    ("at", "sizes", "represents", "stands"),
    [
        ({"n": 3}, (1, 2, 3), 1, "a3cpu"),
        ({"n": 3}, (1, 2), 2, "a2cpu"),
        ({}, (1, 2), 2, "a2cpu"),
        ({"n": 3}, (1, 2), None, "a1cpu"),
    ],
    ids=["as declared", "else the one for its workload", "which is usual", "or the first that was chosen"],
)
def test_one_case_keeps_the_answer_of_its_suite(at, sizes, represents, stands):
    answer = Answer("Is it fast?", "a:jit", at=at)
    cases = [*with_answer(None, 1, 2, workload="b"), *with_answer(answer, *sizes, represents=represents)]

    found = choose_representatives(cases)

    assert {one.id: one.answer for one in found if one.answer is not None} == {stands: answer}


def test_each_platform_has_its_own_answer():
    answer = Answer("Is it fast?", "a:jit")
    cases = [*with_answer(answer, 1, 2), *with_answer(answer, 1, 2, platform="tpu:v5e")]

    assert [one.id for one in choose_representatives(cases) if one.answer] == ["a1cpu", "a1tpu:v5e"]
