from dataclasses import replace

import msgspec
import pytest

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.record import CompilationDetails, Outcome, Status
from jaxmeter.harness.record.environment import OwnPackage
from jaxmeter.harness.record.outcomes import Trap
from jaxmeter.reporting.compare.verdicts import TIME, WHOLE, LoneNote, Verdict, merge
from jaxmeter.reporting.view.changes import LONE_NOTES, describe_comparison, describe_exact, write_lone_notes
from tests import samples
from tests.reporting.compare import changed
from tests.reporting.compare.changed import (
    AFTER,
    BEFORE,
    compare,
    in_lock_step,
    plain,
    replayed,
    run,
    tell,
    time_of,
    with_fusions,
)

NEWER = samples.environment(packages={"jax": "0.10.0", "jaxlib": "0.10.1", "numpy": "2.0.0"})
OTHER_NUMPY = samples.environment(packages={"jax": "0.10.0", "jaxlib": "0.10.0", "numpy": "2.1.0"})
ANOTHER_PROGRAM = {"fingerprint": "bb", "source": "1" * 16}
UNTIMED = {"selu:jit": {"numerics": changed.checked()}}
UNTIMED_BEFORE = run(BEFORE, (changed.case(), UNTIMED))


def with_isolated(made, **alone_s):
    """The run, with what each variant takes alone."""

    def change(timing, name):
        seconds = alone_s["before" if name.endswith("before") else "now"]
        return samples.with_values(timing, isolated_s=(seconds, seconds, seconds, None, None))

    return samples.change_timings(made, change)


def slowed(made, factor):
    """The run, with all of its times longer, as where Python's part of a call takes longer."""

    def change(timing, name):
        return samples.with_values(timing, execution_s=tuple(factor * s for s in timing.values["execution_s"]))

    return samples.change_timings(made, change)


CALLS_BACK = Outcome(
    status=Status.OK, details=CompilationDetails(traps=(Trap(kind="callbacks", evidence="pure_callback"),))
)

TIMES = {
    "two runs with another calibration": (
        plain(BEFORE),
        plain(AFTER, probes={"timing": changed.timed(2e-4, calibration="alu 2")}, **ANOTHER_PROGRAM),
        (Verdict.NOT_COMPARABLE, "no normalised time"),
    ),
    "two runs without a calibration": (
        plain(BEFORE, probes={"timing": samples.timing(1e-4)}),
        plain(AFTER, probes={"timing": samples.timing(2e-4)}, **ANOTHER_PROGRAM),
        (Verdict.SUSPECTED_SLOWER, "raw times"),
    ),
    "a longer call of the same program": (
        plain(BEFORE),
        plain(AFTER, 1.5e-4),
        (Verdict.SUSPECTED_SLOWER, "the whole call, with the same program"),
    ),
    "a doubled time whose processes scatter": (
        plain(BEFORE, probes={"timing": changed.timed(1e-4, scatter=60)}),
        plain(AFTER, probes={"timing": changed.timed(2.1e-4, scatter=60)}),
        (Verdict.SUSPECTED_SLOWER, "the whole call"),
    ),
    "the same program whose processes scatter": (
        plain(BEFORE, probes={"timing": changed.timed(1e-4, scatter=30)}),
        plain(AFTER, probes={"timing": changed.timed(1.1e-4, scatter=30)}),
        (Verdict.SAME_PROGRAM, "the same program; the call is at most"),
    ),
    "the same code whose processes scatter": (
        plain(BEFORE, fingerprint=None, probes={"timing": changed.timed(1e-4, scatter=30)}),
        plain(AFTER, fingerprint=None, probes={"timing": changed.timed(1.1e-4, scatter=30)}),
        (Verdict.SAME_PROGRAM, "the same recorded code; the call is at most"),
    ),
    "other code whose processes scatter": (
        plain(BEFORE, probes={"timing": changed.timed(1e-4, scatter=30)}),
        plain(AFTER, probes={"timing": changed.timed(1.1e-4, scatter=30)}, **ANOTHER_PROGRAM),
        (Verdict.INCONCLUSIVE, ""),
    ),
    "the same program as fast": (plain(BEFORE), plain(AFTER), (Verdict.SAME, "the same program")),
    "the same program with a call that is surely a little slower": (
        plain(BEFORE, probes={"timing": changed.timed(1e-4, scatter=0.1)}),
        plain(AFTER, probes={"timing": changed.timed(1.15e-4, scatter=0.1)}),
        (Verdict.INCONCLUSIVE, "the same program"),
    ),
    "the same program with callbacks": (
        plain(BEFORE, probes={"compilation": CALLS_BACK}, source="1" * 16),
        plain(AFTER, 1.1e-4, probes={"compilation": CALLS_BACK, "timing": changed.timed(1.1e-4, scatter=30)}),
        (Verdict.INCONCLUSIVE, ""),
    ),
    "a replay that is as fast and a longer call": (
        plain(BEFORE),
        slowed(replayed(1.001), 1.5),
        (Verdict.SUSPECTED_SLOWER, "its compiled program alone: same"),
    ),
    "a faster program and a longer call": (
        plain(BEFORE),
        slowed(replayed(0.5), 10),
        (Verdict.SUSPECTED_SLOWER, "its compiled program alone: faster"),
    ),
    "a slower program and a longer call within its bounds": (
        plain(BEFORE),
        replayed(1.5),
        (Verdict.SLOWER, ""),
    ),
    "a program on another machine, with a call that nobody compared": (
        plain(BEFORE, machine="lab 1"),
        slowed(replayed(1.001, machine="lab 2"), 100),
        (Verdict.SAME, "the whole call was not compared: another machine: lab 1 → lab 2"),
    ),
    "a slower program and a far longer call": (
        plain(BEFORE),
        slowed(replayed(1.1), 100),
        (Verdict.SLOWER, "the whole call, by stored times: 110"),
    ),
    "the same program under another jaxlib": (
        plain(BEFORE),
        plain(AFTER, 2e-4, environment=NEWER),
        (Verdict.SUSPECTED_SLOWER, "jaxlib 0.10.0 → 0.10.1"),
    ),
    "a replay under another jaxlib": (
        plain(BEFORE),
        replayed(1.5, environment=NEWER),
        (Verdict.SUSPECTED_SLOWER, "jaxlib"),
    ),
    "a replay beside another package of suites alone": (
        plain(BEFORE),
        replayed(1.5, environment=OTHER_NUMPY),
        (Verdict.SLOWER, ""),
    ),
    "a replay under another driver": (
        plain(BEFORE),
        replayed(1.5, environment=samples.environment(platform_version="driver 2")),
        (Verdict.SUSPECTED_SLOWER, ""),
    ),
    "a replay on another device": (
        plain(BEFORE),
        replayed(1.5, environment=samples.environment(device_name="Other")),
        (Verdict.SUSPECTED_SLOWER, ""),
    ),
    "a kept program that compiles to another than was measured": (
        plain(BEFORE),
        replayed(1.5, of_replay="cc"),
        (Verdict.SUSPECTED_SLOWER, "compiles to another"),
    ),
    "a program of another run than the baseline": (plain("x"), replayed(1.5), (Verdict.SUSPECTED_SLOWER, "")),
    "neither code nor versions changed where no program tells": (
        plain(BEFORE, fingerprint=None),
        plain(AFTER, 1.5e-4, fingerprint=None),
        (Verdict.SUSPECTED_SLOWER, "the whole call, with the same recorded code"),
    ),
    "two machines": (
        plain(BEFORE, machine="lab 1"),
        plain(AFTER, machine="lab 2"),
        (Verdict.NOT_COMPARABLE, "another machine: lab 1 → lab 2"),
    ),
    "a time that is no more taken": (
        plain(BEFORE),
        run(AFTER, (changed.case(), UNTIMED)),
        (Verdict.GONE, "only the earlier run timed it"),
    ),
    "a contended run": (
        plain(BEFORE),
        plain(AFTER, probes={"timing": changed.timed(2e-4, contended=5)}, **ANOTHER_PROGRAM),
        (Verdict.SUSPECTED_SLOWER, "contended in the later run"),
    ),
    "an earlier run that timed nothing, in lock-step": (
        UNTIMED_BEFORE,
        in_lock_step(1.5, environment=NEWER),
        (Verdict.SLOWER, ""),
    ),
    "programs that disturb each other and are equal alone": (
        plain(BEFORE),
        with_isolated(replayed(1.5), before=1e-4, now=1.02e-4),
        (Verdict.SUSPECTED_SLOWER, "+2.0"),
    ),
}
"""Two runs, what is found of their time, and what is said of it."""


@pytest.mark.parametrize(("before", "after", "expected"), TIMES.values(), ids=TIMES)
def test_what_two_runs_tell_of_a_time(before, after, expected):
    found = time_of(compare(before, after))

    verdict, words = expected
    assert found.verdict is verdict
    assert words in found.reason


@pytest.mark.parametrize(
    ("ratio", "verdict"),
    [(1.5, Verdict.SLOWER), (1 / 1.5, Verdict.FASTER), (1.001, Verdict.SAME), (1.02, Verdict.SAME)],
)
def test_a_program_that_was_kept_and_ran_beside_todays_confirms_what_changed(ratio, verdict):
    found = time_of(compare(plain(BEFORE), replayed(ratio)))

    assert found.verdict is verdict
    assert (found.replayed, found.cores) == (True, None)
    assert found.processes == 5
    assert found.effect.estimate == pytest.approx(ratio, rel=1e-2)
    assert found.effect.decisive.low < found.effect.estimate < found.effect.decisive.high
    assert found.smallest >= 0.03


def test_processes_that_scatter_by_more_than_they_differ_decide_nothing():
    found = time_of(compare(plain(BEFORE), replayed(1.05, scatter=8)))

    assert found.verdict is Verdict.INCONCLUSIVE
    assert found.smallest > 0.05


def test_a_difference_below_the_minimum_effect_is_no_finding_even_where_it_is_sure():
    assert time_of(compare(plain(BEFORE), replayed(1.04, scatter=0.05))).verdict is Verdict.SLOWER
    assert time_of(compare(plain(BEFORE), replayed(1.04, scatter=0.05), minimum_effect=0.1)).verdict is Verdict.SAME


def test_stored_times_raise_a_suspicion_and_no_more():
    found = time_of(compare(plain(BEFORE), plain(AFTER, 2e-4, fingerprint="bb", source="1" * 16)))

    assert found.verdict is Verdict.SUSPECTED_SLOWER
    assert not found.replayed
    assert "two runs stored" in found.reason
    assert found.cause.split("; ") == ["the code of selu has changed", "another program"]
    assert (found.before, found.after) == (pytest.approx(1e-4, rel=1e-2), pytest.approx(2e-4, rel=1e-2))


@pytest.mark.parametrize(
    ("calibrations_s", "verdict"),
    [((1e-3,) * 5, Verdict.SUSPECTED_SLOWER), ((1e-3, 1e-3, 1e-3, 1e-3, 2e-3), Verdict.INCONCLUSIVE)],
    ids=["constant", "varied"],
)
def test_where_the_machines_speed_varied_two_runs_may_differ_by_a_tenth(calibrations_s, verdict):
    def timed(time_s):
        # The times follow the calibration loop, so that normalised all processes agree.
        times = tuple(time_s * calibration_s / 1e-3 for calibration_s in calibrations_s)
        told = changed.timed(time_s, calibration_s=calibrations_s)
        return msgspec.structs.replace(told, values={**told.values, "execution_s": times})

    before = plain(BEFORE, probes={"timing": timed(1e-4)})
    after = plain(AFTER, probes={"timing": timed(1.1e-4)}, fingerprint="bb", source="1" * 16)

    assert time_of(compare(before, after)).verdict is verdict


def test_stored_times_are_brought_to_one_speed_of_the_machine():
    half_speed = changed.timed(2e-4, calibration_s=(2e-3,) * 5)
    after = plain(AFTER, probes={"timing": half_speed}, fingerprint="bb", source="1" * 16)

    found = time_of(compare(plain(BEFORE), after))

    assert found.verdict in (Verdict.SAME, Verdict.INCONCLUSIVE)
    assert found.after == pytest.approx(1e-4, rel=1e-2)


@pytest.mark.parametrize(
    ("before", "after", "cause"),
    [
        (plain(BEFORE), plain(AFTER, 2e-4, environment=NEWER), "jaxlib 0.10.0 → 0.10.1"),
        (
            plain(BEFORE, fingerprint=None),
            plain(AFTER, 2e-4, fingerprint=None, environment=OTHER_NUMPY),
            "numpy 2.0.0 → 2.1.0",
        ),
    ],
    ids=["the same program under another jaxlib", "a peer of another version"],
)
def test_another_version_may_be_the_cause(before, after, cause):
    found = time_of(compare(before, after))

    assert (found.verdict, found.cause) == (Verdict.SUSPECTED_SLOWER, cause)


@pytest.mark.parametrize(("ratio", "verdict"), [(1.5, Verdict.SLOWER), (1 / 1.5, Verdict.FASTER), (1.0, Verdict.SAME)])
def test_the_earlier_runs_own_environment_confirms_under_another_jaxlib(ratio, verdict):
    found = time_of(compare(plain(BEFORE), in_lock_step(ratio, environment=NEWER)))

    assert found.verdict is verdict
    assert found.replayed
    assert found.cores == 1


@pytest.mark.parametrize(
    "changes", [{"driver": "2"}, {"device_name": "another"}, {"allowed_cores": 7}, {"processor": "another"}]
)
def test_no_environment_brings_its_device_with_it(changes):
    newer = msgspec.structs.replace(NEWER, **changes)

    found = time_of(compare(plain(BEFORE), in_lock_step(1.5, environment=newer)))

    assert found.verdict is Verdict.SUSPECTED_SLOWER
    assert "jaxlib" not in found.reason


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (Outcome(status=Status.FAILED, reason="its process has ended"), Verdict.FAILED),
        (Outcome(status=Status.SKIPPED, reason="peers are not"), Verdict.INCONCLUSIVE),
    ],
    ids=["could not run", "was not asked for"],
)
def test_what_the_earlier_environment_could_not_run_is_not_passed_over(outcome, verdict):
    after = samples.change_timings(
        in_lock_step(1.5, environment=NEWER),
        lambda timing, name: outcome if name.endswith("before") else timing,
    )

    found = time_of(compare(UNTIMED_BEFORE, after))

    assert found.verdict is verdict
    assert found.reason.endswith(": its process has ended") is (verdict is Verdict.FAILED)


@pytest.mark.parametrize(
    ("facts", "word"), [({"x64": True}, "x64"), ({"matmul_precision": "highest"}, "matmul precision")]
)
def test_numbers_of_another_format_are_not_lined_up(facts, word):
    changes = compare(plain(BEFORE), plain(AFTER, environment=samples.environment(**facts)))

    assert [(one.metric, one.verdict) for one in changes.entries] == [(WHOLE, Verdict.NOT_COMPARABLE)]
    assert word in changes.entries[0].reason


def test_programs_that_ran_beside_each_other_on_another_machine_are_suspected_and_exact_numbers_compared():
    before = plain(BEFORE, machine="lab 1", probes={"memory": samples.memory(0, 0, 100)})
    faster_machine = samples.environment(processor="Sample Processor 2", allowed_cores=4)
    after = replayed(1.5, machine="lab 2", environment=faster_machine)

    assert time_of(compare(before, after)).verdict is Verdict.SUSPECTED_SLOWER
    larger = plain(AFTER, machine="lab 2", probes={"memory": samples.memory(0, 0, 200)})
    assert ("selu:jit", "planned_peak_bytes", Verdict.MORE) in tell(compare(before, larger))


def test_cases_are_joined_from_both_sides():
    before = changed.run(BEFORE, (changed.case("old"), {}), (changed.case("both"), {"both:jit": {}}))
    after = changed.run(AFTER, (changed.case("both"), {"both:jit": {}}), (changed.case("new"), {}))

    found = {(one.case.partition("[")[0], one.verdict) for one in compare(before, after).entries}

    assert {("old", Verdict.GONE), ("new", Verdict.NEW)} <= found


def test_a_run_that_only_confirms_has_lost_no_case():
    before = changed.run(
        BEFORE,
        (changed.case(), {"selu:jit": {"numerics": changed.checked(), "timing": changed.timed(1e-4)}}),
        (changed.case("other"), {"other:jit": {"numerics": changed.checked()}}),
    )

    assert not compare(before, replayed(1.5, confirms=True)).having(Verdict.GONE)
    assert [one.case for one in compare(before, replayed(1.5)).having(Verdict.GONE)] == ["other[dtype=float32,n=10000]"]


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        *((status, Verdict.FAILED) for status in (Status.FAILED, Status.WRONG, Status.TIMED_OUT, Status.KILLED)),
        *((status, Verdict.GONE) for status in (Status.TOO_LARGE, Status.UNSUPPORTED, Status.SKIPPED)),
    ],
)
def test_a_variant_that_ran_before_has_failed_or_is_gone(status, verdict):
    ended = {"numerics": Outcome(status=status, reason="no luck")}

    (found,) = compare(plain(BEFORE), run(AFTER, (changed.case(), {"selu:jit": ended}))).entries

    assert (found.verdict, found.reason) == (verdict, f"{status.value}: no luck")


@pytest.mark.parametrize(
    "change",
    [{"definition": "1" * 16}, {"config": {"jax_default_matmul_precision": "highest"}}, {"devices": 2}],
    ids=str,
)
def test_another_definition_setting_or_number_of_devices_is_another_case(change):
    after = run(AFTER, (msgspec.structs.replace(changed.case(), **change), UNTIMED))

    assert tell(compare(plain(BEFORE), after)) == [("", WHOLE, Verdict.NOT_COMPARABLE)]


def test_where_a_replay_finds_nothing_under_another_jaxlib_the_stored_times_are_looked_at():
    found = time_of(compare(plain(BEFORE), slowed(replayed(1.001, environment=NEWER), 1.5)))

    assert found.verdict is Verdict.SUSPECTED_SLOWER
    assert "as fast under what there is today" in found.reason
    assert "jaxlib 0.10.0 → 0.10.1" in found.reason


def test_no_version_of_jax_makes_another_librarys_code_slower():
    """Stored times alone say so; a machine that has changed is likelier."""

    def numpys(name, time_s, **facts):
        run = plain(name, time_s, fingerprint=None, environment=samples.environment(**facts))
        (planned,), (record,) = run.manifest.cases, run.cases
        own = msgspec.structs.replace(planned.variants[0], name="numpy:native", mode="native", implementation="numpy")
        variant = msgspec.structs.replace(record.variants[0], name="numpy:native")
        manifest = msgspec.structs.replace(
            run.manifest, cases=(msgspec.structs.replace(planned, variants=(own,), baseline="numpy:native"),)
        )
        return msgspec.structs.replace(
            run, manifest=manifest, cases=(msgspec.structs.replace(record, variants=(variant,)),)
        )

    def found(**facts):
        return time_of(compare(numpys(BEFORE, 1e-4), numpys(AFTER, 2e-4, **facts)))

    for facts in ({"packages": NEWER.packages}, {"variables": {"XLA_FLAGS": "--a"}}):
        of_jax = found(**facts)
        assert (of_jax.verdict, of_jax.cause) == (Verdict.SUSPECTED_SLOWER, "nothing known")
        assert "with the same recorded code" in of_jax.reason
    newer = found(packages={**NEWER.packages, "numpy": "3.0.0"})
    assert (newer.verdict, newer.cause) == (Verdict.SUSPECTED_SLOWER, "numpy 2.0.0 → 3.0.0")
    assert "jaxlib" not in newer.reason
    assert found(threads={"OMP_NUM_THREADS": "1"}).verdict is Verdict.SUSPECTED_SLOWER


def test_a_lost_case_has_failed_and_one_that_was_lost_before_is_new():
    lost = changed.run(AFTER, (changed.case(), None))

    assert [one.verdict for one in compare(plain(BEFORE), lost).entries] == [Verdict.FAILED]
    before = changed.run(BEFORE, (changed.case(), None))
    assert [one.verdict for one in compare(before, plain(AFTER)).entries] == [Verdict.NEW]


@pytest.mark.parametrize(
    ("metric", "probe", "verdict"),
    [
        ("planned_peak_bytes", "memory", Verdict.MORE),
        ("compiles", "compilation", Verdict.MORE),
        ("counted_flops", "compilation", Verdict.CHANGED),
        ("hlo_instructions", "compilation", Verdict.MORE),
    ],
)
def test_what_follows_from_the_program_alone_is_compared_exactly(metric, probe, verdict):
    runs = [
        plain(name, probes={probe: Outcome(status=Status.OK, values={metric: (value,)})})
        for name, value in ((BEFORE, 100), (AFTER, 101))
    ]

    found = next(one for one in compare(*runs).entries if one.metric == metric)

    assert (found.verdict, found.before, found.after) == (verdict, 100, 101)
    assert found.effect == Interval(1.01, 1.01, 1.01, 1)
    back = next(one for one in compare(*runs[::-1]).entries if one.metric == metric)
    assert back.verdict is (verdict if verdict is Verdict.CHANGED else Verdict.LESS)


def test_equal_counts_are_no_finding_and_unequal_processes_decide_nothing():
    def with_peak(name, *values):
        return plain(name, probes={"memory": Outcome(status=Status.OK, values={"planned_peak_bytes": values})})

    assert tell(compare(with_peak(BEFORE, 100), with_peak(AFTER, 100))) == []
    assert tell(compare(with_peak(BEFORE, 100), with_peak(AFTER, 101, 100))) == [
        ("selu:jit", "planned_peak_bytes", Verdict.INCONCLUSIVE)
    ]


def test_what_there_was_none_of_is_more_and_has_no_ratio():
    runs = [
        plain(name, probes={"compilation": Outcome(status=Status.OK, values={"recompiles": (value,)})})
        for name, value in ((BEFORE, 0), (AFTER, 2))
    ]

    (found,) = (one for one in compare(*runs).entries if one.metric == "recompiles")
    (back,) = (one for one in compare(*runs[::-1]).entries if one.metric == "recompiles")

    assert (found.verdict, found.before, found.after, found.effect) == (Verdict.MORE, 0, 2, None)
    assert (back.verdict, back.effect) == (Verdict.LESS, Interval(0, 0, 0, 1))


def own(digest: str) -> dict[str, object]:
    """What the suite of a run imports."""
    return {"own_packages": (OwnPackage(name="mine", files={"step.py": digest}, suites=("selu",)),)}


def test_the_users_own_package_is_the_cause_and_what_it_did_to_the_program_follows():
    before = with_fusions(plain(BEFORE, **own("1")), 3)
    after = with_fusions(plain(AFTER, 2e-4, fingerprint="bb", **own("2")), 14)

    causes = {one.metric: one.cause for one in compare(before, after).entries}

    assert causes == {
        "program": "mine: step.py changed",
        "hlo_fusions": "mine: step.py changed",
        TIME: "mine: step.py changed; 11 fusions more in its program",
    }


def test_an_effect_is_no_cause():
    before, after = with_fusions(plain(BEFORE), 3), with_fusions(plain(AFTER, 2e-4, fingerprint="bb"), 14)

    assert time_of(compare(before, after)).cause == "nothing known; 11 fusions more in its program"


def test_a_confirmation_has_the_cause_that_the_run_which_it_confirms_knows():
    """A run that confirms has timed and looked at nothing else, so it knows no counts."""
    before = with_fusions(plain(BEFORE, **own("1")), 3)
    first, again = with_fusions(replayed(1.5, **own("2")), 14), replayed(1.5, processes=12, **own("2"))

    compared = time_of(compare(before, first))
    confirmed = time_of(compare(before, again, explained_by=Run(first)))

    assert confirmed.processes == 12
    assert confirmed.cause == compared.cause
    assert confirmed.cause == "the code of selu has changed; mine: step.py changed; 11 fusions more in its program"
    assert time_of(compare(before, again)).cause.endswith("; another program")


def test_equal_exact_numbers_are_counted_by_kind_and_so_are_those_of_one_run():
    memory = Outcome(status=Status.OK, values={"planned_peak_bytes": (100,)})
    before = with_fusions(plain(BEFORE, probes={"memory": memory}), 3)
    after = plain(AFTER, fingerprint="bb", probes={"memory": memory})

    changes = compare(before, after)

    assert {one.name: (one.equal, one.compared, one.only_before, one.only_after) for one in changes.exact_counts} == {
        "planned peak memory": (1, 1, 0, 0),
        "program": (0, 1, 0, 0),
        "number of compilations": (0, 0, 0, 0),
        "counts of the program": (0, 0, 1, 0),
    }
    assert describe_exact(changes) == (
        "Equal: planned peak memory in 1 of 1 variant, program in 0 of 1. "
        "Not compared, only in the earlier run: counts of the program of 1 variant. "
        "In neither run: number of compilations."
    )
    assert "only in the later run: counts of the program of 1 variant." in describe_exact(compare(after, before))


def test_numbers_that_no_run_has_and_variants_that_none_shares_are_not_called_equal():
    times = [plain(name, fingerprint=None) for name in (BEFORE, AFTER)]
    apart = [
        changed.run(name, (changed.case(name), {f"{name}:jit": {"timing": changed.timed(1e-4)}}))
        for name in (BEFORE, AFTER)
    ]

    assert describe_exact(compare(*times)) == (
        "In neither run: planned peak memory, program, number of compilations, counts of the program."
    )
    assert describe_exact(compare(*apart)) == ""


def test_each_exact_number_that_both_runs_tell_is_counted():
    counts = {"hlo_fusions": (3,), "counted_flops": (7,)}
    before = plain(BEFORE, probes={"compilation": Outcome(status=Status.OK, values={**counts, "compiles": (1,)})})
    after = plain(AFTER, probes={"compilation": Outcome(status=Status.OK, values=counts)})

    assert compare(before, after).exact == 3  # two counts, and the fingerprint
    assert compare(before, plain(AFTER, fingerprint=None)).exact == 0


def test_a_confirmation_replaces_the_first_finding():
    first, again = compare(plain(BEFORE), replayed(1.05, scatter=8)), compare(plain(BEFORE), replayed(1.05))

    merged = merge(first, again)

    assert time_of(first).verdict is Verdict.INCONCLUSIVE
    assert time_of(merged).verdict is Verdict.SLOWER
    assert [one for one in merged.entries if one.metric != TIME] == [one for one in first.entries if one.metric != TIME]


def test_stored_times_of_a_second_look_replace_stored_times_and_no_replay():
    first, again = compare(plain(BEFORE), replayed(1.5)), compare(plain(BEFORE), plain(AFTER))
    stored = compare(plain(BEFORE), plain(AFTER, 1.5e-4))

    assert time_of(merge(first, again)).verdict is Verdict.SLOWER
    assert time_of(merge(stored, again)).verdict is Verdict.SAME


def cold(name, total_s, processes=3, **changes):
    compilation = samples.compilation(total_s / 4, total_s / 4, total_s / 2, 1e-3, processes=processes)
    return plain(name, fingerprint=name, source=name, probes={"compilation": compilation}, **changes)


def test_what_compiling_takes_is_suspected_where_enough_processes_tell():
    found = {one.metric: one for one in compare(cold(BEFORE, 0.1), cold(AFTER, 0.2)).entries}

    assert found["compile_total_s"].verdict is Verdict.SUSPECTED_SLOWER
    assert found["compile_total_s"].effect.estimate == pytest.approx(2)
    assert "two runs stored" in found["compile_total_s"].reason
    assert found["compile_total_s"].before == pytest.approx(0.1, rel=0.02)
    assert found["compile_total_s"].after == pytest.approx(0.2, rel=0.02)
    assert found["compile_total_s"].cause.split("; ") == ["the code of selu has changed", "another program"]
    assert found["compile_total_s"].smallest >= 0.03
    back = {one.metric: one.verdict for one in compare(cold(BEFORE, 0.2), cold(AFTER, 0.1)).entries}
    assert back["compile_total_s"] is Verdict.SUSPECTED_FASTER
    assert "compile_total_s" not in {one.metric for one in compare(cold(BEFORE, 0.1), cold(AFTER, 0.1001)).entries}
    few = {one.metric for one in compare(cold(BEFORE, 0.1, 1), cold(AFTER, 0.2, 1)).entries}
    assert not few & {"compile_total_s", "first_result_s"}


def test_compiling_the_same_program_again_is_not_compared():
    slow = samples.compilation(1, 1, 1, 1, processes=3)
    runs = [plain(BEFORE, probes={"compilation": samples.compilation(0.1, 0.1, 0.1, 0.1, processes=3)})]
    runs.append(plain(AFTER, probes={"compilation": slow}))

    assert {one.metric for one in compare(*runs).entries} == {TIME}


@pytest.mark.parametrize(
    ("alone", "verdict"),
    [
        ({"before": 1e-4, "now": 1.5e-4}, Verdict.SLOWER),
        ({"before": 0.7e-4, "now": 1.05e-4}, Verdict.SLOWER),
        ({"before": 1e-4, "now": 1.21e-4}, Verdict.SUSPECTED_SLOWER),
        ({"before": 1e-4, "now": 1.24e-4}, Verdict.SLOWER),
        ({"before": 1e-4, "now": 0.6e-4}, Verdict.SUSPECTED_SLOWER),
        ({"before": 2e-4, "now": 2.04e-4}, Verdict.SLOWER),
    ],
    ids=[
        *("as much alone", "as much alone and quicker", "less than half as much", "more than half as much"),
        *("quicker alone", "neither is slowed by the other"),
    ],
)
def test_a_interference_is_slower_beside_and_less_than_half_the_change_alone(alone, verdict):
    assert time_of(compare(plain(BEFORE), with_isolated(replayed(1.5), **alone))).verdict is verdict


def test_what_ran_beside_the_earlier_runs_variants_is_no_variant_of_it():
    made = replayed(1.0)
    earlier = msgspec.structs.replace(made.manifest, run_id=BEFORE, started="2026-03-01T00:00:00Z", against=None)

    found = compare(msgspec.structs.replace(made, manifest=earlier), plain(AFTER, fingerprint="bb", source="1" * 16))

    assert (found.having(Verdict.GONE), found.timed) == ((), 1)


def test_of_the_earlier_run_a_confirming_run_looks_at_its_own_cases_alone():
    other = (changed.case("other"), {"other:jit": {"numerics": changed.checked("cc"), "timing": changed.timed(1e-4)}})
    before = run(
        BEFORE,
        (changed.case(), {"selu:jit": {"numerics": changed.checked("aa"), "timing": changed.timed(1e-4)}}),
        other,
    )

    assert [compare(before, replayed(1.5, confirms=confirms)).timed for confirms in (False, True)] == [2, 1]


def test_an_ahead_of_time_program_is_told_by_that_of_jit():
    before, after = plain(BEFORE), replayed(1.5)

    def with_aot(run, time_s, fingerprint):
        (planned,), (record,) = run.manifest.cases, run.cases
        aot = msgspec.structs.replace(planned.variants[0], name="selu:aot", mode="aot")
        outcomes = {"numerics": changed.checked(fingerprint), "timing": changed.timed(time_s)}
        planned = msgspec.structs.replace(planned, variants=(*planned.variants, aot))
        variants = (*record.variants, samples.VariantRecord(name="selu:aot", outcomes=outcomes))
        manifest = msgspec.structs.replace(run.manifest, cases=(planned,))
        return msgspec.structs.replace(
            run, manifest=manifest, cases=(msgspec.structs.replace(record, variants=variants),)
        )

    found = {
        one.variant: one
        for one in compare(with_aot(before, 1e-4, "aa"), with_aot(after, 1.5e-4, "bb")).entries
        if one.metric == TIME
    }
    assert found["selu:aot"].verdict is Verdict.SLOWER
    assert found["selu:aot"].effect == found["selu:jit"].effect
    other = {one.variant: one for one in compare(with_aot(before, 1e-4, "aa"), with_aot(after, 1.5e-4, "cc")).times}
    assert other["selu:aot"].verdict is Verdict.SUSPECTED_SLOWER


def test_a_time_counts_where_only_a_capture_failed():
    failed = {"trace": Outcome(status=Status.FAILED, reason="no capture")}

    changes = compare(plain(BEFORE, probes=failed), plain(AFTER, probes=failed))

    assert time_of(changes).verdict is not Verdict.FAILED
    assert not any(one.verdict is Verdict.FAILED for one in changes.entries)


def noted(run_id, *notes, probe="numerics", of=changed.checked):
    return plain(run_id, probes={probe: msgspec.structs.replace(of(), notes=notes)})


LONE = "cannot look"


@pytest.mark.parametrize(("before", "after"), [(("same",), ("same", LONE)), (("same", LONE), ("same",))])
def test_a_note_that_only_one_run_has_is_listed_with_its_side_and_variants(before, after):
    found = compare(noted(BEFORE, *before), noted(AFTER, *after))

    assert found.notes == (LoneNote(LONE, LONE in after, ("selu[dtype=float32,n=10000] selu:jit",)),)


def test_notes_that_differ_in_numbers_alone_are_the_same_note():
    assert compare(noted(BEFORE, "takes 1.5 s"), noted(AFTER, "takes 21,000 s")).notes == ()


def test_notes_of_a_probe_that_only_one_run_has_say_nothing_of_the_other():
    memory = {"probe": "memory", "of": lambda: Outcome(status=Status.OK)}

    assert compare(plain(BEFORE), noted(AFTER, "a note", **memory)).notes == ()
    assert len(compare(noted(BEFORE, **memory), noted(AFTER, "a note", **memory)).notes) == 1


def test_lone_notes_are_written_a_line_each_with_a_few_variants():
    variants = tuple(f"selu[n={n}] selu:jit" for n in range(5))
    notes = tuple(LoneNote(f"note {number}", True, variants) for number in range(10))
    lines = write_lone_notes(replace(compare(plain(BEFORE), plain(AFTER)), notes=notes))

    first = "later run: note 0 (selu[n=0] selu:jit, selu[n=1] selu:jit, selu[n=2] selu:jit and 2 more)"
    assert (lines[0], lines[-1], len(lines)) == (first, "2 more notes, in the records of both runs", 9)


def test_a_note_of_one_run_is_part_of_the_comparison():
    found = compare(noted(BEFORE), noted(AFTER, LONE))

    (part,) = [part for part in describe_comparison(found, None).parts if part.title == LONE_NOTES]
    assert [item.text.startswith(f"later run: {LONE} (selu") for item in part.items] == [True]


@pytest.mark.parametrize(
    ("changed_file", "verdict"), [(False, Verdict.SAME), (True, Verdict.SUSPECTED_SLOWER)], ids=["equal", "edited"]
)
def test_lock_step_under_todays_imports_does_not_judge_a_package_that_changed(changed_file, verdict):
    def with_package(made, digest):
        package = OwnPackage(name="mypkg", files={"step.py": digest}, suites=("selu",))
        return msgspec.structs.replace(made, manifest=msgspec.structs.replace(made.manifest, own_packages=(package,)))

    later = slowed(in_lock_step(1.0, environment=NEWER, name="selu"), 100)
    (planned,) = later.manifest.cases
    variants = tuple(msgspec.structs.replace(one, source="0" * 16) for one in planned.variants)
    cases = (msgspec.structs.replace(planned, variants=variants),)
    later = msgspec.structs.replace(later, manifest=msgspec.structs.replace(later.manifest, cases=cases))

    found = time_of(compare(with_package(plain(BEFORE), "a"), with_package(later, "b" if changed_file else "a")))

    assert found.verdict is verdict
