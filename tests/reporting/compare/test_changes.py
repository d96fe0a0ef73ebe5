from functools import partial

import msgspec
import pytest

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.record import CompilationDetails, Outcome, Status
from jaxmeter.harness.record.environment import OwnPackage
from jaxmeter.harness.record.outcomes import Trap
from jaxmeter.reporting.compare.verdicts import TIME, WHOLE, LoneNote, Verdict, merge
from jaxmeter.reporting.view.changes import LONE_NOTES, describe_comparison, describe_exact
from tests import samples
from tests.reporting.compare import changed
from tests.reporting.compare.changed import (
    AFTER,
    BEFORE,
    compare,
    counting,
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


CALLS_BACK = {
    "compilation": Outcome(
        status=Status.OK, details=CompilationDetails(traps=(Trap(kind="callbacks", evidence="pure_callback"),))
    )
}
SLOWER, SAME, SUSPECTED = Verdict.SLOWER, Verdict.SAME, Verdict.SUSPECTED_SLOWER
SAME_PROGRAM, INCONCLUSIVE = Verdict.SAME_PROGRAM, Verdict.INCONCLUSIVE
EARLIER = plain(BEFORE)


def scattering(name, time_s, scatter=30, **more):
    """A run whose processes scatter."""
    return plain(name, probes={"timing": changed.timed(time_s, scatter=scatter), **more.pop("probes", {})}, **more)


def once_more(time_s, **details):
    """A later run of another program."""
    return plain(AFTER, probes={"timing": changed.timed(time_s, **details)}, **ANOTHER_PROGRAM)


def on(**facts):
    """Where a later run was made."""
    return {"environment": samples.environment(**facts)}


NEWER_JAXLIB = {"environment": NEWER}
DISTURBED = with_isolated(replayed(1.5), before=1e-4, now=1.02e-4)
SINCE_EARLIER = {
    "another calibration": (once_more(2e-4, calibration="alu 2"), Verdict.NOT_COMPARABLE, "no normalised time"),
    "a longer call of the same program": (plain(AFTER, 1.5e-4), SUSPECTED, "the whole call, with the same program"),
    "the same program as fast": (plain(AFTER), SAME, "the same program"),
    "a replay as fast and a longer call": (slowed(replayed(1.001), 1.5), SUSPECTED, "its compiled program alone: same"),
    "a faster program and a longer call": (slowed(replayed(0.5), 10), SUSPECTED, "its compiled program alone: faster"),
    "a slower program and a longer call within its bounds": (replayed(1.5), SLOWER, ""),
    "a slower program and a far longer call": (slowed(replayed(1.1), 100), SLOWER, "whole call, by stored times: 110"),
    "the same program, another jaxlib": (plain(AFTER, 2e-4, **NEWER_JAXLIB), SUSPECTED, "jaxlib 0.10.0 → 0.10.1"),
    "a replay under another jaxlib": (replayed(1.5, **NEWER_JAXLIB), SUSPECTED, "jaxlib"),
    "an equal replay and a longer call, another jaxlib": (
        slowed(replayed(1.001, **NEWER_JAXLIB), 1.5),
        SUSPECTED,
        "as fast under what there is today",
    ),
    "a replay beside another package of suites alone": (replayed(1.5, environment=OTHER_NUMPY), SLOWER, ""),
    "a replay under another driver": (replayed(1.5, **on(platform_version="driver 2")), SUSPECTED, ""),
    "a replay on another device": (replayed(1.5, **on(device_name="Other")), SUSPECTED, ""),
    "a kept program that compiles to another": (replayed(1.5, of_replay="cc"), SUSPECTED, "compiles to another"),
    "a time that is no more taken": (run(AFTER, (changed.case(), UNTIMED)), Verdict.GONE, "only the earlier run timed"),
    "a contended run": (once_more(2e-4, contended=5), SUSPECTED, "contended in the later run"),
    "programs that disturb each other and are equal alone": (DISTURBED, SUSPECTED, "+2.0"),
}
"""A later run, what is found of its time since the earlier one, and what is said of it."""
NO_PROGRAM = {"fingerprint": None}
TIMES = {
    "no calibration": (
        plain(BEFORE, probes={"timing": samples.timing(1e-4)}),
        plain(AFTER, probes={"timing": samples.timing(2e-4)}, **ANOTHER_PROGRAM),
        SUSPECTED,
        "raw times",
    ),
    "a doubled time": (scattering(BEFORE, 1e-4, 60), scattering(AFTER, 2.1e-4, 60), SUSPECTED, "the whole call"),
    "the same program": (
        scattering(BEFORE, 1e-4),
        scattering(AFTER, 1.1e-4),
        SAME_PROGRAM,
        "the same program; the call",
    ),
    "the same code": (
        scattering(BEFORE, 1e-4, **NO_PROGRAM),
        scattering(AFTER, 1.1e-4, **NO_PROGRAM),
        SAME_PROGRAM,
        "the same recorded code; the call is at most",
    ),
    "other code": (scattering(BEFORE, 1e-4), scattering(AFTER, 1.1e-4, **ANOTHER_PROGRAM), INCONCLUSIVE, ""),
    "a call surely a little slower": (
        scattering(BEFORE, 1e-4, 0.1),
        scattering(AFTER, 1.15e-4, 0.1),
        INCONCLUSIVE,
        "the same program",
    ),
    "the same program with callbacks": (
        plain(BEFORE, probes=CALLS_BACK, source="1" * 16),
        scattering(AFTER, 1.1e-4, probes=CALLS_BACK),
        INCONCLUSIVE,
        "",
    ),
    "a program on another machine, with a call that nobody compared": (
        plain(BEFORE, machine="lab 1"),
        slowed(replayed(1.001, machine="lab 2"), 100),
        SAME,
        "the whole call was not compared: another machine: lab 1 → lab 2",
    ),
    "a program of another run than the baseline": (plain("x"), replayed(1.5), SUSPECTED, ""),
    "neither code nor versions changed where no program tells": (
        plain(BEFORE, **NO_PROGRAM),
        plain(AFTER, 1.5e-4, **NO_PROGRAM),
        SUSPECTED,
        "the whole call, with the same recorded code",
    ),
    "two machines": (
        plain(BEFORE, machine="lab 1"),
        plain(AFTER, machine="lab 2"),
        Verdict.NOT_COMPARABLE,
        "another machine: lab 1 → lab 2",
    ),
    "nothing timed before, in lock-step": (UNTIMED_BEFORE, in_lock_step(1.5, **NEWER_JAXLIB), SLOWER, ""),
}
"""The same of two runs."""
TIMES |= {rule: (EARLIER, *row) for rule, row in SINCE_EARLIER.items()}


@pytest.mark.parametrize(("before", "after", "verdict", "words"), TIMES.values(), ids=TIMES)
def test_what_two_runs_tell_of_a_time(before, after, verdict, words):
    found = time_of(compare(before, after))

    assert found.verdict is verdict
    assert words in found.reason


@pytest.mark.parametrize(("ratio", "verdict"), [(1.5, SLOWER), (1 / 1.5, Verdict.FASTER), (1.001, SAME), (1.02, SAME)])
@pytest.mark.parametrize(
    ("make", "cores"), [(replayed, None), (partial(in_lock_step, environment=NEWER), 1)], ids=["kept", "environment"]
)
def test_an_earlier_program_or_environment_that_ran_beside_todays_confirms_what_changed(make, cores, ratio, verdict):
    found = time_of(compare(EARLIER, make(ratio)))

    assert found.verdict is verdict
    assert (found.replayed, found.cores, found.processes) == (True, cores, 5)
    assert found.effect.estimate == pytest.approx(ratio, rel=1e-2)
    assert found.effect.decisive.low < found.effect.estimate < found.effect.decisive.high
    assert found.smallest >= 0.03


def test_processes_that_scatter_by_more_than_they_differ_decide_nothing():
    found = time_of(compare(EARLIER, replayed(1.05, scatter=8)))

    assert found.verdict is INCONCLUSIVE
    assert found.smallest > 0.05


def test_a_difference_below_the_minimum_effect_is_no_finding_even_where_it_is_sure():
    assert time_of(compare(EARLIER, replayed(1.04, scatter=0.05))).verdict is SLOWER
    assert time_of(compare(EARLIER, replayed(1.04, scatter=0.05), minimum_effect=0.1)).verdict is SAME


def test_stored_times_raise_a_suspicion_and_no_more():
    found = time_of(compare(EARLIER, plain(AFTER, 2e-4, fingerprint="bb", source="1" * 16)))

    assert found.verdict is SUSPECTED
    assert not found.replayed
    assert "two runs stored" in found.reason
    assert found.cause.split("; ") == ["the code of selu has changed", "another program"]
    assert (found.before, found.after) == (pytest.approx(1e-4, rel=1e-2), pytest.approx(2e-4, rel=1e-2))


@pytest.mark.parametrize(
    ("calibrations_s", "verdict"),
    [((1e-3,) * 5, SUSPECTED), ((1e-3, 1e-3, 1e-3, 1e-3, 2e-3), INCONCLUSIVE)],
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

    found = time_of(compare(EARLIER, after))

    assert found.verdict in (SAME, INCONCLUSIVE)
    assert found.after == pytest.approx(1e-4, rel=1e-2)


@pytest.mark.parametrize(
    "changes", [{"driver": "2"}, {"device_name": "another"}, {"allowed_cores": 7}, {"processor": "another"}]
)
def test_no_environment_brings_its_device_with_it(changes):
    newer = msgspec.structs.replace(NEWER, **changes)

    found = time_of(compare(EARLIER, in_lock_step(1.5, environment=newer)))

    assert found.verdict is SUSPECTED
    assert "jaxlib" not in found.reason


@pytest.mark.parametrize(
    ("outcome", "verdict"),
    [
        (Outcome(status=Status.FAILED, reason="its process has ended"), Verdict.FAILED),
        (Outcome(status=Status.SKIPPED, reason="peers are not"), INCONCLUSIVE),
    ],
    ids=["could not run", "was not asked for"],
)
def test_what_the_earlier_environment_could_not_run_is_not_passed_over(outcome, verdict):
    after = samples.change_timings(
        in_lock_step(1.5, environment=NEWER), lambda timing, name: outcome if name.endswith("before") else timing
    )

    found = time_of(compare(UNTIMED_BEFORE, after))

    assert found.verdict is verdict
    assert found.reason.endswith(": its process has ended") is (verdict is Verdict.FAILED)


def test_programs_that_ran_beside_each_other_on_another_machine_are_suspected_and_exact_numbers_compared():
    before = plain(BEFORE, machine="lab 1", probes={"memory": samples.memory(0, 0, 100)})
    faster_machine = samples.environment(processor="Sample Processor 2", allowed_cores=4)
    after = replayed(1.5, machine="lab 2", environment=faster_machine)

    assert time_of(compare(before, after)).verdict is SUSPECTED
    larger = plain(AFTER, machine="lab 2", probes={"memory": samples.memory(0, 0, 200)})
    assert ("selu:jit", "planned_peak_bytes", Verdict.MORE) in tell(compare(before, larger))


def test_a_run_that_only_confirms_has_lost_no_case_and_looks_at_its_own_alone():
    timed = {name: {f"{name}:jit": {"numerics": changed.checked(), "timing": changed.timed(1e-4)}} for name in "ab"}
    before = changed.run(BEFORE, *((changed.case(name), outcomes) for name, outcomes in timed.items()))

    confirming, later = (compare(before, replayed(1.5, name="a", confirms=confirms)) for confirms in (True, False))

    assert not confirming.having(Verdict.GONE)
    assert [one.case for one in later.having(Verdict.GONE)] == ["b[dtype=float32,n=10000]"]
    assert (confirming.timed, later.timed) == (1, 2)


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        *((status, Verdict.FAILED) for status in (Status.FAILED, Status.WRONG, Status.TIMED_OUT, Status.KILLED)),
        *((status, Verdict.GONE) for status in (Status.TOO_LARGE, Status.UNSUPPORTED, Status.SKIPPED)),
    ],
)
def test_a_variant_that_ran_before_has_failed_or_is_gone(status, verdict):
    ended = {"numerics": Outcome(status=status, reason="no luck")}

    (found,) = compare(EARLIER, run(AFTER, (changed.case(), {"selu:jit": ended}))).entries

    assert (found.verdict, found.reason) == (verdict, f"{status.value}: no luck")


@pytest.mark.parametrize(
    "change",
    [{"definition": "1" * 16}, {"config": {"jax_default_matmul_precision": "highest"}}, {"devices": 2}, {}],
    ids=str,
)
def test_another_definition_setting_or_format_of_numbers_is_not_lined_up(change):
    environment = samples.environment(x64=not change)
    after = run(AFTER, (msgspec.structs.replace(changed.case(), **change), UNTIMED), environment=environment)

    assert tell(compare(EARLIER, after)) == [("", WHOLE, Verdict.NOT_COMPARABLE)]


def test_no_version_of_jax_makes_another_librarys_code_slower():
    """Stored times alone say so; a machine that has changed is likelier."""

    def numpys(name, time_s, **facts):
        planned = samples.planned_case(variants=("numpy:native",))
        outcomes = {"numpy:native": {"numerics": changed.checked(None), "timing": changed.timed(time_s)}}
        return run(name, (planned, outcomes), environment=samples.environment(**facts))

    def found(**facts):
        return time_of(compare(numpys(BEFORE, 1e-4), numpys(AFTER, 2e-4, **facts)))

    for facts in ({"packages": NEWER.packages}, {"variables": {"XLA_FLAGS": "--a"}}):
        of_jax = found(**facts)
        assert (of_jax.verdict, of_jax.cause) == (SUSPECTED, "nothing known")
        assert "with the same recorded code" in of_jax.reason
    newer = found(packages={**NEWER.packages, "numpy": "3.0.0"})
    assert (newer.verdict, newer.cause) == (SUSPECTED, "numpy 2.0.0 → 3.0.0")
    assert "jaxlib" not in newer.reason
    assert found(threads={"OMP_NUM_THREADS": "1"}).verdict is SUSPECTED


def test_a_lost_case_has_failed_and_one_that_was_lost_before_is_new():
    lost = changed.run(AFTER, (changed.case(), None))

    assert [one.verdict for one in compare(EARLIER, lost).entries] == [Verdict.FAILED]
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
    runs = [counting(name, probe=probe, **{metric: value}) for name, value in ((BEFORE, 100), (AFTER, 101))]

    found = next(one for one in compare(*runs).entries if one.metric == metric)

    assert (found.verdict, found.before, found.after) == (verdict, 100, 101)
    assert found.effect == Interval(1.01, 1.01, 1.01, 1)
    back = next(one for one in compare(*runs[::-1]).entries if one.metric == metric)
    assert back.verdict is (verdict if verdict is Verdict.CHANGED else Verdict.LESS)


def test_equal_counts_are_no_finding_and_unequal_processes_decide_nothing():
    assert tell(compare(counting(BEFORE, compiles=100), counting(AFTER, compiles=100))) == []
    assert tell(compare(counting(BEFORE, compiles=100), counting(AFTER, compiles=(101, 100)))) == [
        ("selu:jit", "compiles", INCONCLUSIVE)
    ]


def test_what_there_was_none_of_is_more_and_has_no_ratio():
    runs = counting(BEFORE, recompiles=0), counting(AFTER, recompiles=2)

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
    before, after = with_fusions(EARLIER, 3), with_fusions(plain(AFTER, 2e-4, fingerprint="bb"), 14)

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
    assert [one.only_after for one in compare(after, before).exact_counts] == [0, 0, 0, 1]
    assert (changes.exact, compare(before, plain(AFTER, fingerprint=None)).exact) == (2, 0)


def test_numbers_that_no_run_has_and_variants_that_none_shares_are_not_called_equal():
    times = [plain(name, fingerprint=None) for name in (BEFORE, AFTER)]
    apart = [
        changed.run(name, (changed.case(name), {f"{name}:jit": {"timing": changed.timed(1e-4)}}))
        for name in (BEFORE, AFTER)
    ]

    assert describe_exact(compare(*times)).startswith("In neither run: ")
    assert describe_exact(compare(*apart)) == ""


def test_a_confirmation_replaces_the_first_finding_and_stored_times_replace_stored_times_and_no_replay():
    first, again = compare(EARLIER, replayed(1.05, scatter=8)), compare(EARLIER, replayed(1.05))
    stored, later = compare(EARLIER, plain(AFTER, 1.5e-4)), compare(EARLIER, plain(AFTER))

    merged = merge(first, again)

    assert (time_of(first).verdict, time_of(merged).verdict) == (INCONCLUSIVE, SLOWER)
    assert [one for one in merged.entries if one.metric != TIME] == [one for one in first.entries if one.metric != TIME]
    assert time_of(merge(compare(EARLIER, replayed(1.5)), later)).verdict is SLOWER
    assert time_of(merge(stored, later)).verdict is SAME


def cold(name, total_s, processes=3, **changes):
    compilation = samples.compilation(total_s / 4, total_s / 4, total_s / 2, 1e-3, processes=processes)
    return plain(name, fingerprint=name, source=name, probes={"compilation": compilation}, **changes)


def test_what_compiling_takes_is_suspected_where_enough_processes_tell():
    def found(before_s, after_s, processes=3):
        both = compare(cold(BEFORE, before_s, processes), cold(AFTER, after_s, processes))
        return {one.metric: one for one in both.entries}

    slower = found(0.1, 0.2)["compile_total_s"]

    assert slower.verdict is SUSPECTED
    assert slower.effect.estimate == pytest.approx(2)
    assert "two runs stored" in slower.reason
    assert (slower.before, slower.after) == (pytest.approx(0.1, rel=0.02), pytest.approx(0.2, rel=0.02))
    assert slower.cause.split("; ") == ["the code of selu has changed", "another program"]
    assert slower.smallest >= 0.03
    assert found(0.2, 0.1)["compile_total_s"].verdict is Verdict.SUSPECTED_FASTER
    assert "compile_total_s" not in found(0.1, 0.1001)
    assert not found(0.1, 0.2, 1).keys() & {"compile_total_s", "first_result_s"}


def test_compiling_the_same_program_again_is_not_compared():
    slow = samples.compilation(1, 1, 1, 1, processes=3)
    runs = [plain(BEFORE, probes={"compilation": samples.compilation(0.1, 0.1, 0.1, 0.1, processes=3)})]
    runs.append(plain(AFTER, probes={"compilation": slow}))

    assert {one.metric for one in compare(*runs).entries} == {TIME}


@pytest.mark.parametrize(
    ("alone", "verdict"),
    [
        ({"before": 1e-4, "now": 1.5e-4}, SLOWER),
        ({"before": 0.7e-4, "now": 1.05e-4}, SLOWER),
        ({"before": 1e-4, "now": 1.21e-4}, SUSPECTED),
        ({"before": 1e-4, "now": 1.24e-4}, SLOWER),
        ({"before": 1e-4, "now": 0.6e-4}, SUSPECTED),
        ({"before": 2e-4, "now": 2.04e-4}, SLOWER),
    ],
    ids=[
        *("as much alone", "as much alone and quicker", "less than half as much", "more than half as much"),
        *("quicker alone", "neither is slowed by the other"),
    ],
)
def test_a_interference_is_slower_beside_and_less_than_half_the_change_alone(alone, verdict):
    assert time_of(compare(EARLIER, with_isolated(replayed(1.5), **alone))).verdict is verdict


def test_what_ran_beside_the_earlier_runs_variants_is_no_variant_of_it():
    made = replayed(1.0)
    earlier = msgspec.structs.replace(made.manifest, run_id=BEFORE, started="2026-03-01T00:00:00Z", against=None)

    found = compare(msgspec.structs.replace(made, manifest=earlier), plain(AFTER, fingerprint="bb", source="1" * 16))

    assert (found.having(Verdict.GONE), found.timed) == ((), 1)


def test_an_ahead_of_time_program_is_told_by_that_of_jit():
    before, after = EARLIER, replayed(1.5)

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
    assert found["selu:aot"].verdict is SLOWER
    assert found["selu:aot"].effect == found["selu:jit"].effect
    other = {one.variant: one for one in compare(with_aot(before, 1e-4, "aa"), with_aot(after, 1.5e-4, "cc")).times}
    assert other["selu:aot"].verdict is SUSPECTED


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


def test_notes_that_differ_in_numbers_alone_or_are_of_a_probe_of_one_run_are_not_listed():
    memory = {"probe": "memory", "of": lambda: Outcome(status=Status.OK)}

    assert compare(noted(BEFORE, "takes 1.5 s"), noted(AFTER, "takes 21,000 s")).notes == ()
    assert compare(EARLIER, noted(AFTER, "a note", **memory)).notes == ()
    assert len(compare(noted(BEFORE, **memory), noted(AFTER, "a note", **memory)).notes) == 1


def test_a_note_of_one_run_is_part_of_the_comparison():
    found = compare(noted(BEFORE), noted(AFTER, LONE))

    (part,) = [part for part in describe_comparison(found, None).parts if part.title == LONE_NOTES]
    assert [item.text.startswith(f"later run: {LONE} (selu") for item in part.items] == [True]


@pytest.mark.parametrize(("digest", "verdict"), [("1", SAME), ("2", SUSPECTED)], ids=["equal", "edited"])
def test_lock_step_under_todays_imports_does_not_judge_a_package_that_changed(digest, verdict):
    later = slowed(in_lock_step(1.0, environment=NEWER, **own(digest)), 100)
    (planned,) = later.manifest.cases
    variants = tuple(msgspec.structs.replace(one, source="0" * 16) for one in planned.variants)
    cases = (msgspec.structs.replace(planned, variants=variants),)
    later = msgspec.structs.replace(later, manifest=msgspec.structs.replace(later.manifest, cases=cases))

    assert time_of(compare(plain(BEFORE, **own("1")), later)).verdict is verdict
