import msgspec
import pytest
from msgspec import structs

from jaxmeter.harness.metrics.aa_test import describe_in_short, describe_self_test
from jaxmeter.harness.record import Outcome, Status
from jaxmeter.harness.record.outcomes import OWN_FAULT
from jaxmeter.reporting.view.figures.points import list_jit_speedups
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.view.page_text import write_row
from tests.reporting.views import grown, page_of, section, tables, texts


def test_a_case_of_which_nothing_was_to_be_run_here_is_skipped_and_not_measured():
    two, one = "needs 2 devices, found 1", samples.planned_case()
    variants = [samples.planned_variant(name, skip=two) for name in ("pmap:mixed", "shard_map:jit")]
    skipped, partly = (
        samples.planned_case(params={"n": n}, variants=(*variants, *more)) for n, more in [(1, ()), (2, ("selu:jit",))]
    )
    reasons = {variant.name: {} for variant in variants}
    measured = {**reasons, "selu:jit": {"timing": samples.timing(1e-5)}}
    run = samples.run(
        (one, samples.fast_case(one)),
        (skipped, samples.record(skipped, reasons)),
        (partly, samples.record(partly, measured)),
    )

    lost = samples.run((one, samples.fast_case(one)), (skipped, None))

    assert page_of(run).finding.startswith("2 of 3 cases measured")
    assert page_of(run).finding.endswith(", 1 skipped")
    assert "skipped" not in page_of(lost).finding


def test_the_heading_counts_variants_where_some_cases_lack_one():
    wrong = Outcome(status=Status.WRONG, reason="at index 1: got 2, reference 3")
    good = {"numerics": samples.numerics(), "timing": samples.timing(1e-3)}
    half = {"f:jit": good, "g:jit": {"numerics": wrong}}
    pairs = [
        (planned := samples.planned_case(name, variants=("f:jit", "g:jit")), samples.record(planned, outcomes))
        for name, outcomes in (
            ("a", {"f:jit": good, "g:jit": good}),
            ("b", half),
        )
    ]

    finding = page_of(samples.run(*pairs)).finding

    assert finding.startswith("1 variant wrong; 3 of 4 variants measured on cpu")
    assert finding.endswith(", 1 of 2 cases complete")


def test_wrong_results_of_an_implementation_share_an_item_of_what_needs_attention():
    planned = samples.planned_case("a", variants=("f:eager", "f:jit", "g:jit"))
    outcomes = {
        name: {"numerics": Outcome(status=Status.WRONG, reason=f"at index 1: got {number}, reference 3")}
        for name, number in (("f:eager", 2.5), ("f:jit", 2.25), ("g:jit", 7))
    }

    items = page_of(samples.run((planned, samples.record(planned, outcomes)))).attention

    assert [(" · f:eager, f:jit · " in item.text, " · g:jit · " in item.text) for item in items] == [
        (True, False),
        (False, True),
    ]


def test_a_case_that_was_too_slow_for_the_budget_was_to_be_run():
    planned = samples.planned_case()
    too_slow = Outcome(status=Status.SKIPPED, reason="too slow for the budget")
    outcomes = {name: {"timing": too_slow} for name in ("selu:eager", "selu:jit")}

    assert "skipped" not in page_of(samples.run((planned, samples.record(planned, outcomes)))).finding


def test_the_last_line_of_the_summary_says_whom_to_believe_by_the_newest_run():
    tested = samples.self_test()
    older, newer = samples.run(self_test=tested), samples.gpu_run(self_test=samples.self_test(machine="lab 3"))

    assert page_of(older).summary[-1] == describe_in_short(tested)
    assert page_of(older, newer).summary[-1] == describe_in_short(newer.manifest.self_test)
    assert page_of(older, samples.gpu_run()).summary[-1] == describe_in_short(None)


def test_the_method_tells_all_that_the_self_test_of_each_run_found():
    page = page_of(samples.run(self_test=samples.self_test()), samples.gpu_run())

    notes = {part.title: part.notes for part in section(page, "method").parts}

    told = describe_self_test(samples.self_test())
    assert notes["What the intervals rest on · ● cpu"][-len(told) :] == told
    assert notes["What the intervals rest on · ■ gpu"][-1:] == describe_self_test(None)


def test_jit_is_compared_with_eager_pair_by_pair_when_the_baseline_is_another():
    planned = samples.planned_case(variants=("base:jit", "f:eager", "f:jit"))
    times = {"base:jit": (1e-3, None), "f:eager": (1e-2, 1e-3), "f:jit": (2e-3, 1e-3)}
    outcomes = {name: {"timing": samples.timing(one, baseline_s=baseline)} for name, (one, baseline) in times.items()}

    ((speedup, *_),) = list_jit_speedups(page_of(samples.run((planned, samples.record(planned, outcomes)))).cases)

    assert (speedup.low, speedup.estimate, speedup.high) == pytest.approx((5, 5, 5))


def test_every_link_of_the_attention_list_leads_to_a_row():
    page = page_of(samples.troubled_run(), samples.run(ended=None))

    ids = [row.id for section in page.sections for part in section.parts for table in part.tables for row in table.rows]

    assert {item.target for item in page.attention} <= set(ids)
    assert len([one for one in ids if one]) == len({one for one in ids if one})


def test_data_warnings_name_files_contention_versions_and_uncommitted_changes():
    dirty = samples.gpu_run(environment=samples.environment(packages={"jax": "0.10.1"}, git_dirty=True))

    page = page_of(samples.troubled_run(), dirty, warnings=["results/x: damaged"])

    assert [item.label for item in page.warnings] == ["file", "contended", "versions", "git"]


FAULT = f"{OWN_FAULT}: cannot determine what loops cost: KeyError: 'num_consts'"


def test_own_faults_are_warnings_each_once_with_the_variants_and_so_are_notes_of_a_run():
    usual = samples.compilation(0.01)
    affected = structs.replace(usual, notes=(*usual.notes, FAULT))
    probes = {name: {"compilation": affected, "timing": samples.timing(1e-3)} for name in ("f:jit", "g:jit")} | {
        "h:jit": {"compilation": usual}
    }
    run = run_of(probes, settings=samples.settings(notes=("jax 99 is newer than 98",)))

    page = page_of(run)

    found = {item.label: item.text for item in page.warnings}
    assert found["run"].endswith(": jax 99 is newer than 98")
    assert found["jaxmeter"].startswith(f"2 variants affected by {FAULT}")
    assert "f:jit, g:jit" in found["jaxmeter"]
    assert "h:jit" not in found["jaxmeter"]
    assert page.summary[2] == f"Checks of the data: {len(page.warnings)} warnings."


def run_of(outcomes, *, planned=None, **changes):
    """A run of one case; a timing alone is the variant's only outcome."""
    planned = planned or samples.planned_case(variants=tuple(outcomes))
    probes = {name: one if isinstance(one, dict) else {"timing": one} for name, one in outcomes.items()}
    return samples.run((planned, samples.record(planned, probes)), **changes)


def both(outcome):
    return dict.fromkeys(("selu:eager", "selu:jit"), outcome)


def rows_of_speeds():
    """Runs of one case each, by what is odd about them."""
    usual, peer = samples.planned_case(), ("selu:eager", "selu:jit", "numpy:native")
    fast = samples.fast_case(usual)
    wrong = {one.name: {**one.outcomes} for one in fast.variants}
    wrong["selu:eager"]["numerics"] = Outcome(status=Status.WRONG, reason="nan", values={})
    contended = (samples.timing(1e-3, contended=3), *[samples.timing(1e-4, baseline_s=1e-3)] * 2)
    on_one_device = samples.planned_case(cost=samples.Cost(message_bytes=4_000_000, bus_bytes=0))
    counted = samples.planned_case(cost=samples.Cost(flops=2_000_000, bytes=4_000_000), items=64, items_unit="tokens")
    peaks = {"peak_flops": {"float32": 80e9}, "peak_bytes_per_s": 70e9}
    none = {"execution_s": (None, None), "log_ratio": (None, None)}
    impossible = {"execution_s": (0.0, -1.0, 10**400, 1e300), "log_ratio": (1e9, -1e9, 10**400, 0)}
    paying = {
        "selu:eager": {"timing": samples.timing(2e-3), "compilation": samples.compilation(0.01)},
        "selu:jit": {
            "timing": samples.timing(1e-3, baseline_s=2e-3),
            "compilation": samples.compilation(0.01, 0.01, 0.08, 0.01),
        },
    }
    alone = {
        "selu:eager": samples.timing(1e-3, processes=1),
        "selu:jit": samples.timing(1e-4, baseline_s=1e-3, processes=1),
    }
    return {
        "another baseline": samples.run((samples.planned_case(baseline="selu:jit"), fast)),
        "jit pays": run_of(paying),
        "jit is slower": samples.run((usual, samples.fast_case(usual, eager_s=1e-5, jit_s=1e-4))),
        "jit is as fast": samples.run((usual, samples.fast_case(usual, eager_s=1e-4, jit_s=0.99e-4))),
        "a contended variant": run_of(dict(zip(peer, contended, strict=True))),
        "one device": samples.run((on_one_device, samples.fast_case(on_one_device))),
        "items, and a bandwidth above the peak": samples.run(
            (counted, samples.fast_case(counted)), environment=samples.environment(**peaks)
        ),
        "a wrong baseline": run_of(wrong, planned=usual),
        "a half-width just beyond the target": run_of({"f:jit": samples.timing(1e-3, spread=1.24)}),
        "not timed": run_of(both({"numerics": samples.numerics()})),
        "not to be timed": run_of(
            both({"numerics": samples.numerics()}), settings=samples.settings(probes=("numerics",))
        ),
        "processes without values": run_of(both(Outcome(status=Status.OK, values=none))),
        "values that nothing can have measured": run_of(both(Outcome(status=Status.OK, values=impossible))),
        "one process": run_of(alone),
    }


def test_speeds_read_as_their_golden_text():
    def lines(page):
        yield from (f"{group.title} {group.detail}" for group in tables(page, "speed")[0].groups)
        yield from map(write_row, tables(page, "speed")[0].rows)
        yield from section(page, "speed").parts[0].notes
        yield from (f"warning: {item.label}: {item.text}" for item in page.warnings)

    check_golden_scenes("speeds", {rule: list(lines(page_of(run))) for rule, run in rows_of_speeds().items()})


def test_the_matrix_of_many_runs_and_places_reads_as_its_golden_text():
    failed = {"numerics": Outcome(status=Status.FAILED, reason="exited with code 1")}
    pages = {
        "two devices that ran different cases": page_of(samples.troubled_run(), samples.gpu_run()),
        "thirty runs of one place": page_of(*(samples.run(run_id=f"run-{index:02d}") for index in range(30))),
        "more places than fit": page_of(*(samples.run(run_id=f"r{n}", machine=f"lab {n}") for n in range(9))),
        "variants that failed alike": page_of(run_of(dict.fromkeys(("f:eager", "f:jit", "f:aot", "g:jit"), failed))),
    }

    def lines(page):
        yield " | ".join(column.title for column in page.matrix.columns)
        yield from map(write_row, page.matrix.rows)
        yield from filter(None, (page.matrix_note,))
        yield from (f"{item.label}: {item.text}" for item in page.attention)
        yield f"{len(tables(page, 'speed')[0].groups)} groups of speeds"

    check_golden_scenes("matrix", {rule: list(lines(page)) for rule, page in pages.items()})


def test_every_planned_variant_of_every_case_has_a_row():
    run = samples.troubled_run()

    rows = tables(page_of(run), "speed")[0].rows

    assert len(rows) == sum(len(case.variants) for case in run.manifest.cases)


def test_runs_of_one_machine_are_told_apart_by_their_ids():
    first, second = samples.run(run_id="first"), samples.run(run_id="second", started="2026-02-01T00:00:00Z")

    groups = tables(page_of(first, second), "speed")[0].groups

    assert [group.title.partition(" · ")[2] for group in groups] == ["● cpu · first", "● cpu · second"]


def test_every_row_of_the_matrix_names_one_case_and_leads_to_it_and_to_its_suite():
    page = page_of(samples.run(), samples.gpu_run())

    names = {case.id: case.name for suite in page.suites for case in suite.cases}

    for row in page.matrix.rows:
        first, *others = row.cells
        assert {names[cell.target] for cell in others} == {first.detail}
        assert first.target == f"suite={first.text}"


def test_n_is_swept_first_then_devices_then_the_others_each_with_the_rest_the_same():
    sizes = ((10, 1), (100, 1), (1000, 1), (10, 2), (10, 4))
    cases = []
    for width in (16, 32, 64):
        for n, devices in sizes:
            planned = samples.planned_case(params={"width": width, "n": n, "devices": devices}, variants=("f:jit",))
            cases.append((planned, samples.record(planned, {"f:jit": {"timing": samples.timing(1e-6 * n)}})))

    titles = [part.title.removesuffix(" · ● cpu") for part in section(page_of(samples.run(*cases)), "sweeps").parts]

    assert titles == [
        *(f"selu [devices=1, width={width}] over n" for width in (16, 32, 64)),
        *(f"selu [n=10, width={width}] over devices" for width in (16, 32, 64)),
        *(
            f"selu [devices={devices}, n={n}] over width"
            for n, devices in ((10, 1), (100, 1), (1000, 1), (10, 2), (10, 4))
        ),
    ]


def test_each_implementation_is_shown_in_the_mode_that_compiles_most_of_it():
    cases = []
    for n in (10, 100, 1000):
        names = ("a:eager", "a:jit", "b:eager", "b:mixed", "c:eager")
        planned = samples.planned_case(params={"n": n}, variants=names)
        outcomes = {name: {"timing": samples.timing(index * 1e-3)} for index, name in enumerate(names, start=1)}
        cases.append((planned, samples.record(planned, outcomes)))

    curves = grown(page_of(samples.run(*cases)), "execution_s")

    first = [(points[0].mark.variant, points[0].mark.estimate.value) for points in curves.values()]
    assert first == [
        ("a:jit", pytest.approx(2e-3, rel=1e-3)),
        ("b:mixed", pytest.approx(4e-3, rel=1e-3)),
        ("c:eager", pytest.approx(5e-3, rel=1e-3)),
    ]


def sweep_with(n, **changes):
    """A sweep of which one variant has other outcomes at one n."""

    def change(outcomes, name, params):
        return {**outcomes, **changes} if (params["n"], name) == (n, "scan:jit") else outcomes

    return samples.change_outcomes(samples.sweep_run(), change)


def scan(run, metric):
    return grown(page_of(run), metric)["scan"]


def test_scaling_of_compile_time_is_that_of_the_mean_over_cold_processes():
    outcome = samples.compilation(1.0, 1.0, 1.0, 1.0)
    values = {"trace_s": (1, 1, 1), "lower_s": (1, 1, 1), "compile_s": (2, 2, 6), "first_call_s": (1, 1, 1)}

    points = scan(sweep_with(64, compilation=msgspec.structs.replace(outcome, values=values)), "compile_total_s")

    found = points[1].mark.estimate
    assert found.value == pytest.approx((4 * 4 * 8) ** (1 / 3))
    assert found.low < 4 < 8 < found.high


def test_a_point_with_a_wide_interval_is_shown_and_fitted_like_any_other():
    values = {"trace_s": (1, 1, 1), "lower_s": (1, 1, 1), "compile_s": (1e-3, 1e3, 1), "first_call_s": (1, 1, 1)}
    run = sweep_with(64, compilation=samples.Outcome(status=Status.OK, values=values))

    (part,) = section(page_of(run), "sweeps").parts

    assert [point.x for point in scan(run, "compile_total_s")] == [16, 64, 256, 1024]
    assert texts(part.tables[0].rows[0])[1:3] != ["—", "—"]
    assert texts(part.tables[1].groups[0].rows[1])[1].count("[") == 1


def test_scaling_leads_with_the_first_measure_of_which_it_can_be_told():
    def change(outcomes, name, params):
        erratic = samples.compilation(0.1, 0.1, 1000.0 if params["n"] in (64, 1024) else 1.0, 0.1)
        return {**outcomes, "compilation": erratic} if "compilation" in outcomes else outcomes

    run = samples.sweep_run()
    told, erratic_told = (
        section(page_of(one), "sweeps").parts[0].notes[0] for one in (run, samples.change_outcomes(run, change))
    )

    assert told.startswith("Trace + lower + compile grows: scan:jit as n^")
    assert erratic_told.startswith("Execution time grows: scan:jit as n^")


def test_contended_points_of_a_pass_are_hollow_and_counted():
    run = sweep_with(64, timing=samples.timing(6.4e-6, contended=3))

    (part,) = section(page_of(run), "sweeps").parts

    hollow = {
        metric: [point.mark.estimate.is_doubtful for point in scan(run, metric)]
        for metric in ("execution_s", "compile_total_s")
    }
    assert hollow == {"execution_s": [False, True, False, False], "compile_total_s": [False] * 4}
    assert part.notes[-1].startswith("Execution time: 1 of 11 points")
    assert texts(part.tables[1].groups[0].rows[1])[2].startswith("! ")


def test_two_sizes_are_no_pass():
    assert section(page_of(samples.gpu_run()), "sweeps").parts == ()


def test_alike_reasons_known_beforehand_share_a_row():
    skipped = samples.planned_variant("selu:aot", skip="not here")
    pairs = [
        (planned, samples.fast_case(planned))
        for n in (1, 2, 3)
        for planned in [samples.planned_case(params={"n": n}, variants=("selu:eager", "selu:jit", skipped))]
    ]

    (table,) = tables(page_of(samples.run(*pairs)), "problems")

    assert texts(table.rows[0]) == ["skipped", "selu: 3 cases", "selu:aot", "all", "not here"]
    assert table.rows[0].cells[1].fold.splitlines() == [f"selu[n={n}] · ● cpu" for n in (1, 2, 3)]


@pytest.mark.parametrize(
    "run",
    [
        samples.manifest(()),
        samples.manifest([samples.planned_case()]),
        samples.manifest([samples.planned_case(variants=())]),
    ],
)
def test_a_run_without_any_record_is_a_page_of_reasons(run):
    page = page_of(samples.RunRecord(manifest=run, cases=(), ended=None))

    assert all(section.answer for section in page.sections)
    assert all(answer.text.startswith("No answer: ") for answer in page.answers)
