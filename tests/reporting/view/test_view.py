import msgspec
import pytest

from jaxmeter.harness.metrics.trust import describe_in_short, describe_self_test
from jaxmeter.harness.record import Outcome, ProcessWarning, Status
from jaxmeter.reporting.view.page_model import IntervalMark, Tone
from tests import samples
from tests.reporting.views import by_variant, page_of, section, tables, texts


def test_the_title_starts_with_the_finding():
    assert page_of(samples.run()).title == ("1 of 1 case measured on cpu: Sample Processor 1 – jaxmeter")


def test_what_went_wrong_comes_first():
    page = page_of(samples.troubled_run())

    assert page.finding == (
        "1 variant wrong, 1 failed, 1 killed, 1 timed out, 3 lost; 0 of 2 cases measured on cpu: Sample Processor 1"
    )


def test_runs_of_several_places_are_counted_together():
    assert page_of(samples.run(), samples.gpu_run()).finding == "3 of 3 cases measured at 2 machines"


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

    assert page_of(run).finding == "2 of 3 cases measured on cpu: Sample Processor 1, 1 skipped"
    lost = page_of(samples.run((one, samples.fast_case(one)), (skipped, None))).finding
    assert lost.endswith("1 of 2 cases measured on cpu: Sample Processor 1")


def test_a_case_that_was_too_slow_for_the_budget_was_to_be_run():
    planned = samples.planned_case()
    too_slow = Outcome(status=Status.SKIPPED, reason="too slow for the budget")
    outcomes = {name: {"timing": too_slow} for name in ("selu:eager", "selu:jit")}

    assert "skipped" not in page_of(samples.run((planned, samples.record(planned, outcomes)))).finding


def test_the_summary_counts_cases_and_variants_by_status():
    assert page_of(samples.troubled_run()).summary == (
        "A difference of 6.7\u202f% shows in its one speedup; 1 of 3 times is contended.",
        "Of 11 variants: 3 measured, 1 skipped, 3 lost, 1 timed out, 1 killed, 1 failed, 1 wrong.",
        "Checks of the data: 1 warning.",
        "How often the numbers of this machine err has not been measured; nox -s self-test does that.",
    )


def test_the_last_line_of_the_summary_says_whom_to_believe_by_the_newest_run():
    tested = samples.self_test()
    older, newer = samples.run(self_test=tested), samples.gpu_run(self_test=samples.self_test(machine="lab 3"))

    assert page_of(older).summary[-1] == describe_in_short(tested)
    assert page_of(older, newer).summary[-1].startswith("On this machine (lab 3) the self-test of ")
    assert (
        page_of(older, samples.gpu_run()).summary[-1]
        == "How often the numbers of this machine err has not been measured; nox -s self-test does that."
    )


def test_the_method_tells_all_that_the_self_test_of_each_run_found():
    page = page_of(samples.run(self_test=samples.self_test()), samples.gpu_run())

    notes = {part.title: part.notes for part in section(page, "method").parts}

    told = describe_self_test(samples.self_test())
    assert notes["What the intervals rest on · ● cpu"][-len(told) :] == told
    assert (
        notes["What the intervals rest on · ■ gpu"][-1]
        == "How often the numbers of this machine err has not been measured; nox -s self-test does that."
    )


def speed_of(*pairs):
    """What the section on speed says first."""
    return section(page_of(samples.run(*pairs)), "speed").answer


def test_a_pair_that_the_interval_does_not_tell_apart_is_undecided():
    planned = samples.planned_case()
    even = samples.fast_case(planned, eager_s=1e-4, jit_s=1e-4)

    assert speed_of((planned, even)).startswith(
        "jit against eager in 1 pair, compiling apart: 0 faster, 0 slower, 1 undecided (median 1.00× [0.99, 1.01])"
    )


def test_jit_is_compared_with_eager_pair_by_pair_when_the_baseline_is_another():
    planned = samples.planned_case(variants=("base:jit", "f:eager", "f:jit"))
    record = samples.record(
        planned,
        {
            "base:jit": {"timing": samples.timing(1e-3)},
            "f:eager": {"timing": samples.timing(1e-2, baseline_s=1e-3)},
            "f:jit": {"timing": samples.timing(2e-3, baseline_s=1e-3)},
        },
    )

    assert speed_of((planned, record)).startswith(
        "jit against eager in 1 pair, compiling apart: 1 faster, 0 slower, 0 undecided (median 5.0× [5.000, 5.000])"
    )


def test_attention_lists_the_worst_first_and_a_lost_case_once():
    items = page_of(samples.troubled_run()).attention

    assert [item.label for item in items] == ["wrong", "failed", "killed", "timed out", "lost", "lost"]
    assert items[0].text.endswith("wrong:jit · ● cpu (numerics): largest error 0.5, allowed 1e-05")


def test_variants_alike_in_case_and_reason_share_an_item():
    planned = samples.planned_case(variants=("f:eager", "f:jit", "f:aot", "g:jit"))
    failed = samples.Outcome(status=Status.FAILED, reason="exited with code 1")
    outcomes = {variant.name: {"numerics": failed, "memory": failed} for variant in planned.variants}

    page = page_of(samples.run((planned, samples.record(planned, outcomes))))

    assert [item.text for item in page.attention] == [
        "selu[dtype=float32,n=10000] · f:eager, f:jit, f:aot and 1 more · ● cpu (numerics): exited with code 1"
    ]
    assert by_variant(page)["f:jit"]["Notes"] == "numerics, memory failed: exited with code 1"


def test_every_link_of_the_attention_list_leads_to_a_row():
    page = page_of(samples.troubled_run(), samples.run(ended=None))

    ids = [row.id for section in page.sections for part in section.parts for table in part.tables for row in table.rows]

    assert {item.target for item in page.attention} <= set(ids)
    assert len([one for one in ids if one]) == len({one for one in ids if one})


def test_data_warnings_name_files_contention_versions_and_uncommitted_changes():
    dirty = samples.gpu_run(environment=samples.environment(packages={"jax": "0.10.1"}, git_dirty=True))

    page = page_of(samples.troubled_run(), dirty, warnings=["results/x: damaged"])

    assert [item.label for item in page.warnings] == ["file", "contended", "versions", "git"]
    assert page.warnings[0].text == "results/x: damaged"
    assert page.warnings[2].text == "differ between the runs: jax 0.10.0, 0.10.1"


def test_contention_is_told_of_the_variants_that_have_it_as_the_table_marks_them():
    planned = samples.planned_case(variants=("selu:eager", "selu:jit", "numpy:native"))
    timings = {
        "selu:eager": samples.timing(1e-3, contended=3),
        "selu:jit": samples.timing(1e-4, baseline_s=1e-3),
        "numpy:native": samples.timing(1e-4, baseline_s=1e-3),
    }
    outcomes = {name: {"numerics": samples.numerics(), "timing": timing} for name, timing in timings.items()}

    page = page_of(samples.run((planned, samples.record(planned, outcomes))))

    assert next(item.text for item in page.warnings if item.label == "contended") == (
        "1 variant had too few quiet processes (selu[dtype=float32,n=10000] · selu:eager · ● cpu): "
        "a time marked ! is not to be trusted; a speedup is, since both of its sides met the same interference, "
        "unless it is marked ! too"
    )
    rows = by_variant(page)
    assert {name: row["Time"].startswith("! ") for name, row in rows.items()} == {
        "selu:eager": True,
        "selu:jit": False,
        "numpy:native": False,
    }
    assert {name: row["Speedup"].startswith("! ") for name, row in rows.items()} == {
        "selu:eager": False,
        "selu:jit": False,
        "numpy:native": True,
    }


def test_a_fast_case_leads_with_the_paired_speedup():
    row = by_variant(page_of(samples.run()))["selu:jit"]

    assert row["Speedup"] == "10× [9.9, 10.1]"
    assert row["Time"] == "50.0 µs [49.2, 50.8]"
    assert row["n"] == "5"
    assert row["Max error"] == "1.2e−7"
    assert row["jit pays"] == "1 call no interval"
    assert row["Notes"] == ""


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


def test_jit_that_is_slower_never_pays():
    planned = samples.planned_case()

    row = by_variant(page_of(samples.run((planned, samples.fast_case(planned, eager_s=1e-5, jit_s=1e-4)))))["selu:jit"]

    assert row["Speedup"].startswith("0.10×")
    assert row["jit pays"] == "never"


def test_where_jit_and_eager_do_not_differ_nothing_is_said_of_when_jit_pays():
    planned = samples.planned_case()

    row = by_variant(page_of(samples.run((planned, samples.fast_case(planned, eager_s=1e-4, jit_s=0.99e-4)))))[
        "selu:jit"
    ]

    assert row["jit pays"] == "no difference"


def test_a_peer_s_speedup_over_a_contended_baseline_is_marked_and_leads_nothing():
    planned = samples.planned_case(
        variants=(samples.planned_variant("selu:eager"), samples.planned_variant("numpy:native"))
    )
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


def test_a_rate_comes_from_the_declared_cost():
    planned = samples.planned_case(cost=samples.Cost(flops=50_000, bytes=80_000))

    row = by_variant(page_of(samples.run((planned, samples.fast_case(planned)))))["selu:jit"]

    assert row["Rate"] == "1.00 GFLOP/s 1.60 GB/s"


def test_a_collective_has_the_bandwidths_of_nccl_s_tests_and_no_other_rate():
    cost = samples.Cost(flops=7_000, bytes=80_000, message_bytes=4_000_000, bus_bytes=7_000_000)
    planned = samples.planned_case(cost=cost, devices=8)

    page = page_of(samples.run((planned, samples.fast_case(planned))))

    (group,) = tables(page, "speed")[0].groups
    assert by_variant(page)["selu:jit"]["Rate"] == "80.0 GB/s algorithm 140 GB/s bus"
    assert "8 devices · 7 000 FLOP and 78.1 KiB · message of 3.81 MiB" in group.detail.replace("\u202f", " ")


def test_one_device_sends_nothing_and_has_no_bus_bandwidth():
    planned = samples.planned_case(cost=samples.Cost(message_bytes=4_000_000, bus_bytes=0))

    page = page_of(samples.run((planned, samples.fast_case(planned))))

    (group,) = tables(page, "speed")[0].groups
    assert by_variant(page)["selu:jit"]["Rate"] == "80.0 GB/s algorithm"
    assert "devices" not in group.detail


def test_a_wrong_variant_has_no_speed_although_it_was_timed():
    row = by_variant(page_of(samples.troubled_run()))["wrong:jit"]

    assert (row["Speedup"], row["Time"], row["Rate"]) == ("—", "—", "—")
    assert row["Notes"] == "numerics wrong: largest error 0.5, allowed 1e-05"


def test_a_wrong_baseline_gives_no_speedup():
    planned = samples.planned_case()
    record = samples.fast_case(planned)
    wrong = samples.Outcome(status=Status.WRONG, reason="nan", values={})
    outcomes = {variant.name: {**variant.outcomes} for variant in record.variants}
    outcomes["selu:eager"]["numerics"] = wrong

    row = by_variant(page_of(samples.run((planned, samples.record(planned, outcomes)))))["selu:jit"]

    assert row["Speedup"] == "—"
    assert row["Time"] == "50.0 µs [49.2, 50.8]"
    assert row["Notes"] == "no speedup: the baseline variant has no time"


def test_contention_and_an_unreached_target_stand_beside_the_number():
    rows = by_variant(page_of(samples.troubled_run()))

    assert rows["a:eager"]["Time"].startswith("! 1.00 ms")
    assert rows["a:eager"]["Notes"] == "contended: 3 of 5 processes were contended"
    assert rows["ok:jit"]["Notes"].startswith("target ±2 % not reached: ±6")
    assert rows["torch:native"]["Notes"] == (
        "speedup not to be trusted: a peer is timed in a process of its own, and what disturbed the two met them "
        "unlike; "
        "no interval: 2 processes"
    )


def test_a_half_width_just_beyond_the_target_reads_so():
    planned = samples.planned_case(variants=("f:jit",))
    record = samples.record(planned, {"f:jit": {"timing": samples.timing(1e-3, spread=1.24)}})

    assert by_variant(page_of(samples.run((planned, record))))["f:jit"]["Notes"] == ("target ±2 % not reached: ±2.02 %")


def test_every_planned_variant_of_every_case_has_a_row_with_its_status():
    run = samples.troubled_run()

    rows = tables(page_of(run), "speed")[0].rows

    assert len(rows) == sum(len(case.variants) for case in run.manifest.cases)
    notes = by_variant(page_of(run))
    assert notes["skipped:jit"]["Notes"] == "skipped: needs 2 devices, found 1"
    assert notes["gone:jit"]["Notes"] == "lost: no record of this variant in its case"
    assert notes["selu:jit"]["Notes"] == "lost"


def test_a_missing_time_says_whether_it_was_asked_for():
    planned = samples.planned_case()
    record = samples.record(planned, {name: {"numerics": samples.numerics()} for name in ("selu:eager", "selu:jit")})
    asked = samples.run((planned, record))
    not_asked = samples.run((planned, record), settings=samples.settings(probes=("numerics",)))

    assert by_variant(page_of(asked))["selu:jit"]["Notes"] == "no time recorded"
    assert by_variant(page_of(not_asked))["selu:jit"]["Notes"] == "not timed: the run was not asked to"


def test_an_interval_mark_lies_on_the_axis_of_its_table():
    (row,) = [row for row in tables(page_of(samples.run()), "speed")[0].rows if row.cells[0].text == "selu:jit"]
    (mark,) = [cell.mark for cell in row.cells if isinstance(cell.mark, IntervalMark)]

    assert mark.origin < mark.low < mark.point <= mark.high <= 1


def test_the_matrix_shows_one_case_of_each_suite_on_every_device():
    page = page_of(samples.run(), samples.gpu_run())
    matrix = page.matrix

    assert [(column.title, column.detail) for column in matrix.columns[1:]] == [
        ("■ gpu", "Sample GPU · 2026-01-03T03-04-05Z-gpu-0000000"),
        ("● cpu", "Sample Processor 1 · 2026-01-02T03-04-05Z-cpu-0000000"),
    ]
    assert texts(matrix.rows[0]) == [
        "selu selu[dtype=float32,n=10000]",
        "10.0 µs · 20× [19.8, 20.1] selu:jit",
        "50.0 µs · 10× [9.9, 10.1] selu:jit",
    ]
    assert page.matrix_note == "Times of different backends are not ranked: precision and hardware differ."


def test_the_matrix_shows_the_metric_that_answers():
    planned = samples.planned_case(answer=samples.Answer("What is the first call?", "selu:jit", metric="first_call_s"))

    (row,) = page_of(samples.run((planned, samples.fast_case(planned)))).matrix.rows

    assert texts(row)[1] == "1.00 ms first call selu:jit"


def test_the_matrix_says_what_has_no_time():
    matrix = page_of(samples.troubled_run(), samples.gpu_run()).matrix

    assert {row.cells[0].text: [cell.text.split(" ·")[0] for cell in row.cells[1:]] for row in matrix.rows} == {
        "odd": ["not run", "900\u202fµs"],
        "lost": ["not run", "lost"],
        "selu": ["10.0\u202fµs", "not run"],
    }


def test_what_a_device_did_not_run_stands_in_one_line():
    note = page_of(samples.troubled_run(), samples.gpu_run()).matrix_note

    assert note.startswith("■ gpu did not run the case of lost, odd. ● cpu did not run the case of selu. Times of")


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


def test_compilation_shows_every_stage_and_what_eager_code_has_instead():
    rows = by_variant(page_of(samples.run()), "compilation")

    assert list(rows["selu:eager"].values())[1:6] == ["—", "—", "—", "80.0 ms", "80.0 ms"]
    assert list(rows["selu:jit"].values())[1:7] == ["4.00 ms", "6.00 ms", "50.0 ms", "1.00 ms", "61.0 ms", "6"]
    assert section(page_of(samples.run()), "compilation").answer.startswith(
        "Of the cold time of 1 compiled variant, 82\u202f% is compile."
    )


def test_memory_adds_up_the_plan_without_what_is_shared():
    planned = samples.planned_case(variants=("step:jit",))
    record = samples.record(planned, {"step:jit": {"memory": samples.memory(4096, 2048, 1024, alias=2048, code=10)}})

    row = by_variant(page_of(samples.run((planned, record))), "memory")["step:jit"]

    assert list(row.values())[1:7] == ["4.00 KiB", "2.00 KiB", "1.00 KiB", "2.00 KiB", "10 B", "5.00 KiB"]


def test_memory_with_a_missing_part_is_not_listed_but_counted():
    (part,) = section(page_of(samples.run(), samples.troubled_run()), "memory").parts

    assert part.notes == ("Not listed: 12 variants without a memory analysis.",)


def test_a_pass_has_a_figure_and_the_exponents_with_their_intervals():
    (part,) = section(page_of(samples.sweep_run()), "sweeps").parts

    exponents = {row.cells[0].text: texts(row)[1:] for row in part.tables[0].rows}
    assert [panel.title for panel in part.plot.panels] == [
        "Trace + lower + compile",
        "Execution time",
        "Jaxpr equations",
    ]
    assert [series.name for series in part.plot.panels[0].series] == ["scan:jit", "loop:jit"]
    assert exponents["loop:jit"][0] == "1.00 1.00, 1.00"
    assert exponents["scan:jit"] == [
        "0.00 0.00, 0.00, 0.00",
        "[0.00, 0.00]",
        "1.00 1.00, 1.00, 1.00",
        "[1.00, 1.00]",
        "0.00 0.00, 0.00, 0.00",
        "exact",
    ]
    assert exponents["numpy:native"][:2] == ["—", "—"]


def test_a_case_says_which_data_it_uses_and_what_it_sets():
    planned = samples.planned_case(data="synthetic, seeded", config={"jax_enable_x64": True})
    run = samples.run((planned, samples.record(planned, {})))

    (group,) = tables(page_of(run), "speed")[0].groups

    assert "data: synthetic, seeded · jax_enable_x64=True" in group.detail


def test_data_that_were_asked_for_and_are_not_there_are_told_first_and_beside_the_case():
    planned = [
        samples.planned_case(name, data="synthetic", data_missing="digits' files (a.txt)") for name in ("one", "two")
    ]
    run = samples.run(*((case, samples.record(case, {})) for case in planned))

    page = page_of(run)

    assert next(item.text for item in page.warnings if item.label == "data") == (
        "--data has none of digits' files (a.txt); the inputs of 2 cases are synthetic"
    )
    (first, _) = tables(page, "speed")[0].groups
    assert "data: synthetic · --data has none of the files looked for" in first.detail


def test_cases_that_differ_in_their_devices_are_a_pass_of_devices():
    cases = []
    for devices in (1, 2, 4):
        params = {"devices": devices, "scaling": "strong"}
        planned = samples.planned_case("step", params=params, variants=("step:jit",), devices=devices)
        outcomes = {"step:jit": {"numerics": samples.numerics(), "timing": samples.timing(1e-3 / devices)}}
        cases.append((planned, samples.record(planned, outcomes)))

    (part,) = section(page_of(samples.run(*cases)), "sweeps").parts

    (panel,) = part.plot.panels
    assert part.title.startswith("step [scaling=strong] over devices")
    assert panel.x_label == "devices"
    assert [point.x for point in panel.series[0].points] == [1, 2, 4]
    assert "step:jit" in texts(part.tables[0].rows[0])
    assert "−1.00 −1.00, −1.00" in texts(part.tables[0].rows[0])


def test_any_number_of_three_values_is_swept_and_memory_is_shown_where_it_is_planned():
    cases = []
    for length in (128, 1024, 4096):
        params = {"causal": True, "length": length}
        planned = samples.planned_case("attention", params=params, variants=("formula:jit",))
        outcomes = {"timing": samples.timing(length * 1e-6), "memory": samples.memory(0, 0, length**2)}
        cases.append((planned, samples.record(planned, {"formula:jit": outcomes})))

    (part,) = section(page_of(samples.run(*cases)), "sweeps").parts

    exponents, values = part.tables
    assert part.title == "attention [causal=True] over length · ● cpu"
    panels = [(panel.title, panel.unit) for panel in part.plot.panels]
    assert panels == [
        ("Execution time", "s"),
        ("Planned peak memory", "B"),
    ]
    assert texts(exponents.rows[0]) == ["formula:jit", "1.00 1.00, 1.00", "2.00 2.00, 2.00", "exact"]
    assert exponents.rows[0].cells[1].fold == "1.00 [0.99, 1.01]\n1.00 [0.99, 1.01]"
    assert [column.title for column in values.columns] == ["length", "Execution time", "Planned peak memory"]
    assert [texts(row)[0] for row in values.rows] == ["128", "1 024", "4 096"]
    assert [texts(row)[2] for row in values.rows] == ["16.0 KiB", "1.00 MiB", "16.0 MiB"]


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


def test_a_variant_that_a_pass_skips_is_listed_with_the_declared_reason():
    (part,) = section(page_of(samples.sweep_run()), "sweeps").parts

    assert texts(part.tables[1].groups[1].rows[-1]) == ["1 024", "—", "—", "—", "skipped: unrolled, minutes to compile"]


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
    assert part.notes[-1] == (
        "Execution time: 1 of 11 points is contended, hollow in the figure; the fits use it like the others."
    )
    assert texts(part.tables[1].groups[0].rows[1])[2] == "! 6.40 µs [6.30, 6.50] contended"


def test_a_pass_without_contended_points_has_no_note_on_them():
    (part,) = section(page_of(samples.sweep_run()), "sweeps").parts

    _, note = part.notes
    assert note.startswith(
        "Execution time: loop:jit is ahead of numpy:native up to n = 16 (3.2× [3.2, 3.2] at 16), behind from 64 on"
    )


def test_two_sizes_are_no_pass():
    assert section(page_of(samples.gpu_run()), "sweeps").parts == ()


def test_everything_that_is_not_ok_is_listed_with_its_reason_and_stderr():
    wrong, expected = tables(page_of(samples.troubled_run()), "problems")

    assert [row.cells[0].text for row in wrong.rows] == ["wrong", "failed", "killed", "timed out", "lost", "lost"]
    assert wrong.rows[1].cells[4].text == "XlaRuntimeError: out of memory"
    assert wrong.rows[1].cells[4].fold == "Traceback\n  line 2"
    assert [texts(row)[3:] for row in expected.rows] == [
        ["all", "needs 2 devices, found 1"],
        ["compilation", "native code has no stages"],
    ]


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


def test_the_environment_lists_what_libraries_warned_of_with_the_number_of_processes():
    warned = msgspec.structs.replace(
        samples.run(run_id="second"), warnings=(ProcessWarning(text="flags.cc:1] a retired flag", processes=3),)
    )

    warnings, _ = tables(page_of(warned), "environment")
    (everything,) = tables(page_of(samples.run()), "environment")

    assert [texts(row)[1:] for row in warnings.rows] == [["flags.cc:1] a retired flag", "3"]]
    assert everything.fold == "Everything recorded"


def test_the_environment_shows_what_differs_up_front_and_everything_in_a_fold():
    different, everything = tables(page_of(samples.run(), samples.gpu_run()), "environment")

    assert [row.cells[0].text for row in different.rows] == [
        "backend",
        "packages.jax",
        "packages.jaxlib",
        "packages.numpy",
        "device_kind",
        "device_name",
    ]
    assert different.fold == ""
    assert everything.fold == "Everything recorded"
    assert ["memory_bytes", "8.00 GiB", "8.00 GiB"] in [texts(row) for row in everything.rows]


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
