import re

import msgspec
import pytest

from jaxmeter.harness.metrics.aa_text import describe_in_short, describe_self_test
from jaxmeter.harness.record import Outcome, Status
from jaxmeter.reporting.view.jit_speedups import compare_jit_with_eager
from jaxmeter.reporting.view.page_model import Tone
from tests import samples
from tests.reporting.views import by_variant, page_of, section, tables, texts


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

    ((pair, _),) = compare_jit_with_eager(page_of(samples.run((planned, samples.record(planned, outcomes)))).cases)

    assert (pair.low, pair.estimate, pair.high) == pytest.approx((5, 5, 5))


def test_variants_alike_in_case_and_reason_share_an_item():
    planned = samples.planned_case(variants=("f:eager", "f:jit", "f:aot", "g:jit"))
    failed = samples.Outcome(status=Status.FAILED, reason="exited with code 1")
    outcomes = {variant.name: {"numerics": failed, "memory": failed} for variant in planned.variants}

    (item,) = page_of(samples.run((planned, samples.record(planned, outcomes)))).attention

    assert item.label == "failed"


def test_every_link_of_the_attention_list_leads_to_a_row():
    page = page_of(samples.troubled_run(), samples.run(ended=None))

    ids = [row.id for section in page.sections for part in section.parts for table in part.tables for row in table.rows]

    assert {item.target for item in page.attention} <= set(ids)
    assert len([one for one in ids if one]) == len({one for one in ids if one})


def test_data_warnings_name_files_contention_versions_and_uncommitted_changes():
    dirty = samples.gpu_run(environment=samples.environment(packages={"jax": "0.10.1"}, git_dirty=True))

    page = page_of(samples.troubled_run(), dirty, warnings=["results/x: damaged"])

    assert [item.label for item in page.warnings] == ["file", "contended", "versions", "git"]


def test_contention_is_told_of_the_variants_that_have_it_as_the_table_marks_them():
    planned = samples.planned_case(variants=("selu:eager", "selu:jit", "numpy:native"))
    timings = {
        "selu:eager": samples.timing(1e-3, contended=3),
        "selu:jit": samples.timing(1e-4, baseline_s=1e-3),
        "numpy:native": samples.timing(1e-4, baseline_s=1e-3),
    }
    outcomes = {name: {"numerics": samples.numerics(), "timing": timing} for name, timing in timings.items()}

    page = page_of(samples.run((planned, samples.record(planned, outcomes))))

    (warning,) = page.warnings
    rows = by_variant(page)
    assert [name for name in rows if name in warning.text] == ["selu:eager"]
    assert [name for name, row in rows.items() if row["Time"].startswith("! ")] == ["selu:eager"]
    assert [name for name, row in rows.items() if row["Speedup"].startswith("! ")] == ["numpy:native"]


def test_the_baseline_variant_is_the_first_row_and_has_no_speedup():
    planned = samples.planned_case(baseline="selu:jit")
    rows = by_variant(page_of(samples.run((planned, samples.fast_case(planned)))))

    assert list(rows) == ["selu:jit", "selu:eager"]
    assert rows["selu:jit"]["Speedup"] == "baseline"


def test_jit_pays_after_the_calls_that_earn_its_compilation_back():
    planned = samples.planned_case()
    record = samples.record(
        planned,
        {
            "selu:eager": {"timing": samples.timing(2e-3), "compilation": samples.compilation(0.01)},
            "selu:jit": {
                "timing": samples.timing(1e-3, baseline_s=2e-3),
                "compilation": samples.compilation(0.01, 0.01, 0.08, 0.01),
            },
        },
    )

    assert by_variant(page_of(samples.run((planned, record))))["selu:jit"]["jit pays"] == "102 calls no interval"


@pytest.mark.parametrize(("eager_s", "jit_s", "pays"), [(1e-5, 1e-4, "never"), (1e-4, 0.99e-4, "no difference")])
def test_jit_that_is_not_faster_pays_never_or_is_not_told_apart(eager_s, jit_s, pays):
    planned = samples.planned_case()
    run = samples.run((planned, samples.fast_case(planned, eager_s=eager_s, jit_s=jit_s)))

    assert by_variant(page_of(run))["selu:jit"]["jit pays"] == pays


def test_a_peer_s_speedup_over_a_contended_baseline_is_marked_and_leads_nothing():
    planned = samples.planned_case(variants=("selu:eager", "numpy:native"))
    record = samples.record(
        planned,
        {
            "selu:eager": {"numerics": samples.numerics(), "timing": samples.timing(1e-3, contended=3)},
            "numpy:native": {"numerics": samples.numerics(), "timing": samples.timing(1e-4, baseline_s=1e-3)},
        },
    )

    page = page_of(samples.run((planned, record)))

    assert by_variant(page)["numpy:native"]["Speedup"].startswith("! 10×")
    assert "Largest speedup" not in " ".join(section.answer for section in page.sections)


def test_one_device_sends_nothing_and_has_no_bus_bandwidth():
    planned = samples.planned_case(cost=samples.Cost(message_bytes=4_000_000, bus_bytes=0))

    page = page_of(samples.run((planned, samples.fast_case(planned))))

    (group,) = tables(page, "speed")[0].groups
    assert by_variant(page)["selu:jit"]["Rate"] == "80.0 GB/s algorithm"
    assert "devices" not in group.detail


def test_a_wrong_variant_has_no_speed_although_it_was_timed():
    row = by_variant(page_of(samples.troubled_run()))["wrong:jit"]

    assert (row["Speedup"], row["Time"], row["Rate"]) == ("—", "—", "—")


def test_a_wrong_baseline_gives_no_speedup():
    planned = samples.planned_case()
    record = samples.fast_case(planned)
    wrong = samples.Outcome(status=Status.WRONG, reason="nan", values={})
    outcomes = {variant.name: {**variant.outcomes} for variant in record.variants}
    outcomes["selu:eager"]["numerics"] = wrong

    row = by_variant(page_of(samples.run((planned, samples.record(planned, outcomes)))))["selu:jit"]

    assert row["Speedup"] == "—"
    assert row["Time"].startswith("50.0 µs")


def test_a_half_width_just_beyond_the_target_reads_so():
    planned = samples.planned_case(variants=("f:jit",))
    record = samples.record(planned, {"f:jit": {"timing": samples.timing(1e-3, spread=1.24)}})

    assert by_variant(page_of(samples.run((planned, record))))["f:jit"]["Notes"] == ("target ±2 % not reached: ±2.02 %")


def test_every_planned_variant_of_every_case_has_a_row():
    run = samples.troubled_run()

    rows = tables(page_of(run), "speed")[0].rows

    assert len(rows) == sum(len(case.variants) for case in run.manifest.cases)


def test_a_missing_time_says_whether_it_was_asked_for():
    planned = samples.planned_case()
    record = samples.record(planned, {name: {"numerics": samples.numerics()} for name in ("selu:eager", "selu:jit")})
    asked = samples.run((planned, record))
    not_asked = samples.run((planned, record), settings=samples.settings(probes=("numerics",)))

    assert by_variant(page_of(asked))["selu:jit"]["Notes"] == "no time recorded"
    assert by_variant(page_of(not_asked))["selu:jit"]["Notes"].startswith("not timed: ")


def test_the_matrix_says_what_has_no_time():
    matrix = page_of(samples.troubled_run(), samples.gpu_run()).matrix

    assert {row.cells[0].text: [cell.text.split(" ·")[0] for cell in row.cells[1:]] for row in matrix.rows} == {
        "odd": ["not run", "900\u202fµs"],
        "lost": ["not run", "lost"],
        "selu": ["10.0\u202fµs", "not run"],
    }


def test_what_a_device_did_not_run_stands_in_one_line():
    note = page_of(samples.troubled_run(), samples.gpu_run()).matrix_note

    assert re.findall("(gpu|cpu) did not run .*? of (.*?)[.]", note) == [("gpu", "lost, odd"), ("cpu", "selu")]


def test_runs_of_one_machine_are_told_apart_by_their_ids():
    first, second = samples.run(run_id="first"), samples.run(run_id="second", started="2026-02-01T00:00:00Z")

    groups = tables(page_of(first, second), "speed")[0].groups

    assert [group.title.partition(" · ")[2] for group in groups] == ["● cpu · first", "● cpu · second"]


def test_thirty_runs_are_all_in_the_tables_and_the_newest_in_the_matrix():
    runs = [samples.run(run_id=f"run-{index:02d}") for index in range(30)]

    page = page_of(*runs)

    assert [column.title for column in page.matrix.columns[1:]] == ["● cpu · run-29"]
    assert len(tables(page, "speed")[0].groups) == 30


def test_more_places_than_fit_are_counted():
    page = page_of(*(samples.run(run_id=f"run-{index:02d}", machine=f"lab {index}") for index in range(9)))

    assert len(page.matrix.columns) == 7
    assert page.matrix_note.startswith("+ 3 devices more, in the tables below.")


def test_every_row_of_the_matrix_names_one_case_and_leads_to_it():
    page = page_of(samples.run(), samples.gpu_run())

    names = {case.id: case.name for suite in page.suites for case in suite.cases}

    for row in page.matrix.rows:
        assert {names[cell.target] for cell in row.cells} == {row.cells[0].detail}


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

    (part,) = section(page_of(samples.run(*cases)), "sweeps").parts

    first = [(series.name, series.points[0].y) for series in part.plot.panels[0].series]
    assert first == [
        ("a:jit", pytest.approx(2e-3, rel=1e-3)),
        ("b:mixed", pytest.approx(4e-3, rel=1e-3)),
        ("c:eager", pytest.approx(5e-3, rel=1e-3)),
    ]


def grown(n, **changes):
    """A sweep of which one variant has other outcomes at one n."""
    run = samples.sweep_run()
    cases = []
    for planned, case in zip(run.manifest.cases, run.cases, strict=True):
        variants = tuple(
            msgspec.structs.replace(one, outcomes={**one.outcomes, **changes})
            if (planned.params["n"], one.name) == (n, "scan:jit")
            else one
            for one in case.variants
        )
        cases.append(msgspec.structs.replace(case, variants=variants))
    return msgspec.structs.replace(run, cases=tuple(cases))


def scan(run, panel):
    (part,) = section(page_of(run), "sweeps").parts
    return part.plot.panels[panel].series[0].points


def test_scaling_of_compile_time_is_that_of_the_mean_over_cold_processes():
    outcome = samples.compilation(1.0, 1.0, 1.0, 1.0)
    values = {"trace_s": (1, 1, 1), "lower_s": (1, 1, 1), "compile_s": (2, 2, 6), "first_call_s": (1, 1, 1)}

    points = scan(grown(64, compilation=msgspec.structs.replace(outcome, values=values)), 0)

    assert points[1].y == pytest.approx((4 * 4 * 8) ** (1 / 3))
    assert points[1].bounds[0] < 4 < 8 < points[1].bounds[1]


def test_a_point_with_a_wide_interval_is_shown_and_fitted_like_any_other():
    values = {"trace_s": (1, 1, 1), "lower_s": (1, 1, 1), "compile_s": (1e-3, 1e3, 1), "first_call_s": (1, 1, 1)}
    run = grown(64, compilation=samples.Outcome(status=Status.OK, values=values))

    (part,) = section(page_of(run), "sweeps").parts

    assert [point.x for point in scan(run, 0)] == [16, 64, 256, 1024]
    assert texts(part.tables[0].rows[0])[1:3] != ["—", "—"]
    assert texts(part.tables[1].groups[0].rows[1])[1].count("[") == 1


def test_scaling_leads_with_the_first_measure_of_which_it_can_be_told():
    run = samples.sweep_run()
    cases = []
    for index, case in enumerate(run.cases):
        erratic = samples.compilation(0.1, 0.1, (1.0, 1000.0)[index % 2], 0.1)
        variants = tuple(
            msgspec.structs.replace(one, outcomes={**one.outcomes, "compilation": erratic})
            if "compilation" in one.outcomes
            else one
            for one in case.variants
        )
        cases.append(msgspec.structs.replace(case, variants=variants))

    told, erratic_told = (
        section(page_of(one), "sweeps").parts[0].notes[0]
        for one in (run, msgspec.structs.replace(run, cases=tuple(cases)))
    )

    assert told.startswith("Trace + lower + compile grows as")
    assert erratic_told.startswith("Execution time grows as")


def test_contended_points_of_a_pass_are_hollow_and_counted():
    run = grown(64, timing=samples.timing(6.4e-6, contended=3))

    (part,) = section(page_of(run), "sweeps").parts

    assert [point.doubtful for point in scan(run, 1)] == [False, True, False, False]
    assert not any(point.doubtful for point in scan(run, 0))
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
    assert section(page, "memory").answer == "No memory analysis was recorded."


def test_processes_without_values_are_missing_not_zero():
    planned = samples.planned_case()
    nothing = samples.Outcome(status=Status.OK, values={"execution_s": (None, None), "log_ratio": (None, None)})
    record = samples.record(planned, {name: {"timing": nothing} for name in ("selu:eager", "selu:jit")})

    row = by_variant(page_of(samples.run((planned, record))))["selu:jit"]

    assert (row["Speedup"], row["Time"], row["n"]) == ("—", "—", "—")


def test_one_process_gives_a_number_without_an_interval():
    planned = samples.planned_case()
    record = samples.record(
        planned,
        {
            "selu:eager": {"timing": samples.timing(1e-3, processes=1)},
            "selu:jit": {"timing": samples.timing(1e-4, baseline_s=1e-3, processes=1)},
        },
    )

    row = by_variant(page_of(samples.run((planned, record))))["selu:jit"]

    assert (row["Speedup"], row["Time"], row["Notes"]) == ("10× —", "100 µs —", "no interval: 1 process")


def test_values_that_nothing_can_have_measured_are_missing():
    planned = samples.planned_case()
    odd = samples.Outcome(
        status=Status.OK, values={"execution_s": (0.0, -1.0, 10**400, 1e300), "log_ratio": (1e9, -1e9, 10**400, 0)}
    )
    record = samples.record(planned, {name: {"timing": odd} for name in ("selu:eager", "selu:jit")})

    assert by_variant(page_of(samples.run((planned, record))))["selu:jit"]["Time"] == "—"


def test_a_speedup_is_coloured_only_beyond_the_smallest_effect_worth_a_verdict():
    planned = samples.planned_case()
    rows = {
        jit_s: tables(page_of(samples.run((planned, samples.fast_case(planned, eager_s=1e-4, jit_s=jit_s)))), "speed")[
            0
        ].rows
        for jit_s in (1e-5, 0.99e-4, 1e-3)
    }

    assert [rows[jit_s][1].cells[1].tone for jit_s in rows] == [Tone.GOOD, Tone.MUTED, Tone.WARN]
