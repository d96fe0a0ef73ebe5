import pytest
from msgspec import structs

from jaxmeter.document import terminal
from jaxmeter.document.model import Document
from jaxmeter.harness.record import Correctness, NumericsDetails, Outcome, Status
from jaxmeter.harness.record.outcomes import OWN_FAULT
from jaxmeter.harness.results import (
    MOST_LINES,
    MOST_SCATTERED,
    describe_own_faults,
    describe_precision,
    describe_results,
    list_results,
)
from tests import samples
from tests.golden_texts import check_golden_text
from tests.harness.metrics.test_precision import run_of
from tests.odd_run import odd_run


def lines_of(run):
    """The end of a run in lines, with plain spaces: each case, its rows, and what to doubt."""
    lines = []
    for part in describe_results(run):
        for group in (group for table in part.tables for group in table.groups):
            lines.append(f"{group.title}  {group.detail}")
            lines += ["  ".join(filter(None, (t for c in row.cells for t in (c.text, c.detail)))) for row in group.rows]
        lines += [item.text for item in part.items]
    return [line.replace("\u202f", " ").rstrip() for line in lines]


def described(*pairs):
    return lines_of(samples.run(*pairs))


def test_a_speedup_that_is_none_and_processes_too_few_for_bounds_are_told():
    planned = samples.planned_case(variants=("f:eager", "f:jit", "g:jit"))
    outcomes = {
        "f:eager": {"timing": samples.timing(1e-3)},
        "f:jit": {"timing": samples.timing(1e-3, baseline_s=1e-3)},
        "g:jit": {"timing": samples.timing(2.0, baseline_s=1e-3, processes=2)},
    }

    _, _, even, few = described((planned, samples.record(planned, outcomes)))

    assert even.endswith("1.00×  [0.99, 1.01]  no confirmed difference")
    assert few == "g:jit  2.01 s  0.00050×"


def test_a_long_reason_is_there_once_and_the_other_variants_of_the_implementation_refer_to_it():
    reason = "at index (4, 211): got {}, reference -8.557361; error 0.046 of the largest entry, allowed 2e-05"
    outcomes = {
        name: {"numerics": Outcome(status=Status.WRONG, reason=reason.format(number))}
        for name, number in (("f:eager", -8.25), ("f:jit", -8.125), ("g:jit", -8.25))
    }
    planned = samples.planned_case(variants=tuple(outcomes))

    _, *lines = described((planned, samples.record(planned, outcomes)))

    whole = f"wrong  {reason.format(-8.25)}"
    assert lines == [f"f:eager  {whole}", "f:jit  wrong  as f:eager", f"g:jit  {whole}"]


def test_a_case_that_the_run_did_not_reach_is_lost_and_not_left_out():
    planned = samples.planned_case()
    run = samples.run((planned, None), ended=None)

    assert [(one["variant"], one["status"], one["execution_s"]) for one in list_results(run)] == [
        ("selu:eager", "lost", None),
        ("selu:jit", "lost", None),
    ]
    assert [line.split() for line in lines_of(run)[1:]] == [["selu:eager", "lost"], ["selu:jit", "lost"]]


def test_own_faults_are_listed_once_with_all_their_variants_however_many_there_are():
    fault = f"{OWN_FAULT}: cannot determine what loops cost: KeyError: 'num_consts'"
    names = tuple(f"f{index}:jit" for index in range(MOST_LINES + 1))
    planned = samples.planned_case(variants=names)
    outcome = Outcome(status=Status.OK, notes=("another note", fault))
    run = samples.run((planned, samples.record(planned, {name: {"numerics": outcome} for name in names[:2]})))

    (line,) = describe_own_faults(run)

    assert line == f"{planned.name} f0:jit, {planned.name} f1:jit: {fault}"
    assert [each["own_faults"] for each in list_results(run)] == [(fault,)] * 2 + [()] * (MOST_LINES - 1)


def test_many_numbers_are_for_a_page():
    cases = [samples.planned_case(params={"n": n}) for n in range(MOST_LINES // 2 + 1)]
    pairs = [(case, samples.fast_case(case)) for case in cases]

    assert described(*pairs) == []
    assert len(described(*pairs[:-1])) == MOST_LINES + len(pairs) - 1
    assert len(list_results(samples.run(*pairs))) == 2 * len(pairs)


def test_a_run_says_what_it_can_detect_and_a_long_one_which_speedups_scatter():
    two = (1.0, 3.0, 1.01, 3.03, 0.99, 3.0, 1.0, 1.02)
    short, long, wilder = (
        run_of(*[two] * wild, cases=cases)
        for wild, cases in ((1, MOST_LINES // 2), (1, MOST_LINES), (MOST_SCATTERED + 2, 2 * MOST_LINES))
    )

    assert len(list(describe_precision(short))) == 1  # its variants have lines of their own
    assert any("has two speeds" in line for line in lines_of(short))
    first, *scattered = describe_precision(long)
    assert first.startswith(f"Smallest detectable difference of {MOST_LINES} speedups: ")
    assert [line.partition(":jit: ")[0] for line in scattered] == ["! selu[n=0] g"]
    *named, rest = list(describe_precision(wilder))[1:]
    assert len(named) == MOST_SCATTERED
    assert rest == "! the report explains the scatter of 2 more speedups"


def test_each_platform_of_a_run_has_a_smallest_difference_of_its_own():
    here, there = samples.planned_case(), samples.planned_case("mlp", platform="gpu")
    environments = {"cpu": samples.environment(), "gpu": samples.environment()}
    run = samples.run((here, samples.fast_case(here)), (there, samples.fast_case(there)), environments=environments)

    assert [line.partition(":")[0] for line in describe_precision(run)] == ["cpu", "gpu"]


def test_the_notes_of_a_case_stand_next_to_its_numbers():
    planned = samples.planned_case(variants=("f:eager",))
    record = samples.record(planned, {"f:eager": {"timing": samples.timing(1e-3)}})

    lines = described((planned, structs.replace(record, notes=("results are checked for NaN",))))

    assert lines[0].endswith(" note: results are checked for NaN")


def test_what_stands_against_a_speedup_and_compiling_in_every_call_are_said_in_the_row():
    planned = samples.planned_case(variants=("f:eager", "g:eager", "h:eager"))
    differs = Outcome(status=Status.OK, details=NumericsDetails(verdict=Correctness.DIFFERS))
    outcomes = {
        "f:eager": {"timing": samples.timing(1e-3)},
        "g:eager": {"numerics": differs, "timing": samples.timing(1e-3, baseline_s=1e-3)},
        "h:eager": {"timing": samples.timing(1e-3, baseline_s=1e-3, compiles_per_call=2)},
    }
    pair = planned, samples.record(planned, outcomes)

    _, baseline, other, compiling = described(pair)

    assert baseline.endswith("baseline")
    assert other.endswith("no speedup: its result differs from that of the baseline variant")
    assert compiling.endswith("each call compiles 2 programs")
    assert [(one["no_speedup"] is not None, one["compiles_per_call"]) for one in list_results(samples.run(pair))] == [
        (False, 0),
        (True, 0),
        (False, 2),
    ]


def test_declared_items_give_a_throughput_next_to_the_time():
    planned = samples.planned_case(variants=("f:eager", "f:jit"), items=32, items_unit="examples")
    outcomes = {"f:eager": {"timing": samples.timing(2.0)}, "f:jit": {"timing": samples.timing(1e-3, baseline_s=2.0)}}
    pair = planned, samples.record(planned, outcomes)

    _, slow, fast = described(pair)

    assert slow.endswith("baseline  16.0 examples/s")
    assert fast.endswith("  32 000 examples/s")
    assert [round(one["items_per_s"]["value"], -1) for one in list_results(samples.run(pair))] == [20, 32_000]


def test_where_the_baseline_variant_has_no_speedup_the_others_say_so():
    planned = samples.planned_case(variants=("f:eager", "f:jit"))
    wrong = Outcome(status=Status.OK, details=NumericsDetails(verdict=Correctness.DIFFERS))
    first = {"numerics": wrong, "timing": samples.timing(1e-3)}
    outcomes = {"f:eager": first, "f:jit": {"timing": samples.timing(1e-3, baseline_s=1e-3)}}

    assert described((planned, samples.record(planned, outcomes)))[-1].endswith("(f:eager)")


@pytest.mark.parametrize("run", [samples.run(), samples.troubled_run(), odd_run()], ids=["usual", "troubled", "odd"])
def test_the_end_of_a_run_reads_as_its_golden_text(run, request):
    shorter = structs.replace(run.manifest, cases=run.manifest.cases[: MOST_LINES // 4])
    parts = describe_results(structs.replace(run, manifest=shorter))

    check_golden_text(f"run-end-{request.node.callspec.id}", terminal.write(Document(parts=parts)))
