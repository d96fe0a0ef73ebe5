import pytest
from msgspec import structs

from jaxmeter.harness.metrics.aa_test import describe_in_short
from jaxmeter.harness.record import Outcome, Status
from jaxmeter.harness.record.outcomes import OWN_FAULT
from jaxmeter.reporting.view.figures.points import list_jit_speedups
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.view.page_text import write_row
from tests.reporting.views import grown, page_of, section, tables, texts


def test_a_case_of_which_nothing_was_to_be_run_here_is_skipped_and_not_measured():
    one = samples.planned_case()
    variants = [samples.planned_variant(name, skip="needs 2 devices") for name in ("pmap:mixed", "shard_map:jit")]
    reasons = {variant.name: {} for variant in variants}
    skipped = samples.pair(reasons, params={"n": 1}, variants=variants)
    partly = samples.pair(
        {**reasons, "selu:jit": samples.timing(1e-5)}, params={"n": 2}, variants=(*variants, "selu:jit")
    )
    too_slow = Outcome(status=Status.SKIPPED, reason="too slow for the budget")

    finding = page_of(samples.run((one, samples.fast_case(one)), skipped, partly)).finding

    assert finding.startswith("2 of 3 cases measured")
    assert finding.endswith(", 1 skipped")
    assert "skipped" not in page_of(samples.run((one, samples.fast_case(one)), (skipped[0], None))).finding
    assert "skipped" not in page_of(samples.one_case(both(too_slow))).finding


def test_the_heading_counts_variants_where_some_cases_lack_one():
    wrong = Outcome(status=Status.WRONG, reason="at index 1: got 2, reference 3")
    good = {"numerics": samples.numerics(), "timing": samples.timing(1e-3)}
    whole, half = ({"f:jit": good, "g:jit": one} for one in (good, {"numerics": wrong}))

    finding = page_of(samples.run(samples.pair(whole, workload="a"), samples.pair(half, workload="b"))).finding

    assert finding.startswith("1 variant wrong; 3 of 4 variants measured on cpu")
    assert finding.endswith(", 1 of 2 cases complete")


def test_wrong_results_of_an_implementation_share_an_item_of_what_needs_attention():
    outcomes = {
        name: {"numerics": Outcome(status=Status.WRONG, reason=f"at index 1: got {number}, reference 3")}
        for name, number in (("f:eager", 2.5), ("f:jit", 2.25), ("g:jit", 7))
    }

    first, second = page_of(samples.one_case(outcomes, {"workload": "a"})).attention

    assert " · f:eager, f:jit · " in first.text
    assert " · g:jit · " in second.text


def test_the_last_line_of_the_summary_says_whom_to_believe_by_the_newest_run():
    tested = samples.self_test()
    older, newer = samples.run(self_test=tested), samples.gpu_run(self_test=samples.self_test(machine="lab 3"))

    assert page_of(older).summary[-1] == describe_in_short(tested)
    assert page_of(older, newer).summary[-1] == describe_in_short(newer.manifest.self_test)
    assert page_of(older, samples.gpu_run()).summary[-1] == describe_in_short(None)


def test_jit_is_compared_with_eager_pair_by_pair_when_the_baseline_is_another():
    times = {"base:jit": (1e-3, None), "f:eager": (1e-2, 1e-3), "f:jit": (2e-3, 1e-3)}
    outcomes = {name: samples.timing(one, baseline_s=baseline) for name, (one, baseline) in times.items()}

    ((speedup, *_),) = list_jit_speedups(page_of(samples.one_case(outcomes)).cases)

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
    affected = {"compilation": structs.replace(usual, notes=(*usual.notes, FAULT)), "timing": samples.timing(1e-3)}
    probes = {"f:jit": affected, "g:jit": affected, "h:jit": {"compilation": usual}}

    page = page_of(samples.one_case(probes, settings=samples.settings(notes=("jax 99 is newer than 98",))))

    found = {item.label: item.text for item in page.warnings}
    assert found["run"].endswith(": jax 99 is newer than 98")
    assert found["jaxmeter"].startswith(f"2 variants affected by {FAULT}")
    assert "f:jit, g:jit" in found["jaxmeter"]
    assert "h:jit" not in found["jaxmeter"]
    assert page.summary[2] == f"Checks of the data: {len(page.warnings)} warnings."


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
        "jit pays": samples.one_case(paying),
        "jit is slower": samples.run((usual, samples.fast_case(usual, eager_s=1e-5, jit_s=1e-4))),
        "jit is as fast": samples.run((usual, samples.fast_case(usual, eager_s=1e-4, jit_s=0.99e-4))),
        "a contended variant": samples.one_case(dict(zip(peer, contended, strict=True))),
        "one device": samples.run((on_one_device, samples.fast_case(on_one_device))),
        "items, and a bandwidth above the peak": samples.run(
            (counted, samples.fast_case(counted)), environment=samples.environment(**peaks)
        ),
        "a wrong baseline": samples.one_case(wrong, usual),
        "a half-width just beyond the target": samples.one_case({"f:jit": samples.timing(1e-3, spread=1.24)}),
        "not timed": samples.one_case(both({"numerics": samples.numerics()})),
        "not to be timed": samples.one_case(
            both({"numerics": samples.numerics()}), settings=samples.settings(probes=("numerics",))
        ),
        "processes without values": samples.one_case(both(Outcome(status=Status.OK, values=none))),
        "values that nothing can have measured": samples.one_case(both(Outcome(status=Status.OK, values=impossible))),
        "one process": samples.one_case(alone),
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
        "variants that failed alike": page_of(
            samples.one_case(dict.fromkeys(("f:eager", "f:jit", "f:aot", "g:jit"), failed))
        ),
    }

    def lines(page):
        yield " | ".join(column.title for column in page.matrix.columns)
        yield from map(write_row, page.matrix.rows)
        yield from filter(None, (page.matrix_note,))
        yield from (f"{item.label}: {item.text}" for item in page.attention)
        yield f"{len(tables(page, 'speed')[0].groups)} groups of speeds"

    check_golden_scenes("matrix", {rule: list(lines(page)) for rule, page in pages.items()})


def test_every_row_of_the_matrix_names_one_case_and_leads_to_it_and_to_its_suite():
    page = page_of(samples.run(), samples.gpu_run())

    names = {case.id: case.name for suite in page.suites for case in suite.cases}

    for row in page.matrix.rows:
        first, *others = row.cells
        assert {names[cell.target] for cell in others} == {first.detail}
        assert first.target == f"suite={first.text}"


def test_n_is_swept_first_then_devices_then_the_others_each_with_the_rest_the_same():
    sizes = ((10, 1), (100, 1), (1000, 1), (10, 2), (10, 4))
    cases = [
        samples.pair({"f:jit": samples.timing(1e-6 * n)}, params={"width": width, "n": n, "devices": devices})
        for width in (16, 32, 64)
        for n, devices in sizes
    ]

    titles = [part.title.removesuffix(" · ● cpu") for part in section(page_of(samples.run(*cases)), "sweeps").parts]

    assert titles == [
        *(f"selu [devices=1, width={width}] over n" for width in (16, 32, 64)),
        *(f"selu [n=10, width={width}] over devices" for width in (16, 32, 64)),
        *(f"selu [devices={devices}, n={n}] over width" for n, devices in sizes),
    ]


def test_each_implementation_is_shown_in_the_mode_that_compiles_most_of_it():
    names = ("a:eager", "a:jit", "b:eager", "b:mixed", "c:eager")
    times = {name: samples.timing(index * 1e-3) for index, name in enumerate(names, start=1)}
    run = samples.run(*(samples.pair(times, params={"n": n}) for n in (10, 100, 1000)))

    marks = [points[0].mark for points in grown(page_of(run), "execution_s").values()]

    assert [mark.variant for mark in marks] == ["a:jit", "b:mixed", "c:eager"]
    assert [mark.estimate.value for mark in marks] == pytest.approx([2e-3, 4e-3, 5e-3], rel=1e-3)


def sweep_with(n, **changes):
    """A sweep of which one variant has other outcomes at one n."""

    def change(outcomes, name, params):
        return {**outcomes, **changes} if (params["n"], name) == (n, "scan:jit") else outcomes

    return samples.change_outcomes(samples.sweep_run(), change)


def scan(run, metric):
    return grown(page_of(run), metric)["scan"]


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
    variants = ("selu:eager", "selu:jit", samples.planned_variant("selu:aot", skip="not here"))
    cases = [samples.planned_case(params={"n": n}, variants=variants) for n in (1, 2, 3)]

    (table,) = tables(page_of(samples.run(*((case, samples.fast_case(case)) for case in cases))), "problems")

    assert texts(table.rows[0]) == ["skipped", "selu: 3 cases", "selu:aot", "all", "not here"]
    assert table.rows[0].cells[1].fold.splitlines() == [f"selu[n={n}] · ● cpu" for n in (1, 2, 3)]


@pytest.mark.parametrize("cases", [(), [samples.planned_case()], [samples.planned_case(variants=())]])
def test_a_run_without_any_record_is_a_page_of_reasons(cases):
    page = page_of(samples.RunRecord(manifest=samples.manifest(cases), cases=(), ended=None))

    assert all(section.answer for section in page.sections)
    assert all(answer.text.startswith("No answer: ") for answer in page.answers)
