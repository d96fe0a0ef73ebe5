"""What each of a series of runs changed, as the page shows it."""

import itertools
from collections.abc import Mapping

from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.metrics.statistics import Interval
from jaxmeter.harness.record import Reported
from jaxmeter.reporting.compare.conditions import Conditions
from jaxmeter.reporting.compare.verdicts import TIME, Change, Changes, Here, JudgedReport, Verdict
from jaxmeter.reporting.view.comparisons import MeasuredPair
from jaxmeter.reporting.view.runs import label_runs
from jaxmeter.reporting.view.sections.releases import choose_reports, make_releases_view
from tests import samples
from tests.golden_texts import check_golden_scenes
from tests.reporting.view.page_text import write_text
from tests.reporting.views import kept

SLOWER, FASTER, SAME = Verdict.SLOWER, Verdict.FASTER, Verdict.SAME


def make_run(name: str, jax: str, started: str, **changes: str) -> Run:
    environment = samples.environment(packages={"jax": jax, "jaxlib": jax, "numpy": "2.0.0"}, **changes)
    record = samples.run(run_id=name, started=f"{started}Z", environment=environment)
    (run,) = label_runs(kept(record))
    return run


def make_change(case: str, verdict: Verdict, ratio: float) -> Change:
    effect = Interval(0.9 * ratio, ratio, 1.1 * ratio, 5)
    return Change(
        suite="suite", case=case, platform="cpu", variant="f:jit", metric=TIME, verdict=verdict, effect=effect
    )


def pair(before: Run, after: Run, ratios: Mapping[str, tuple[Verdict, float]]) -> MeasuredPair:
    found = tuple(make_change(case, verdict, ratio) for case, (verdict, ratio) in ratios.items())
    return MeasuredPair(before, after, Changes(before.name, after.name, Conditions(), 0.03, found))


RELEASES = tuple(
    make_run(jax, jax, f"2026-01-0{number}T03:00:00") for number, jax in enumerate(("0.9.2", "0.10.0", "0.10.1"), 1)
)


def make_series():
    """Comparisons of runs, by what is odd about them."""
    one, two, three = RELEASES
    last = make_run("0.10.2", "0.10.2", "2026-01-04T03:00:00")
    base, *nights = (make_run(f"run-{day}", "0.10.2", f"2026-01-0{day}T03:00:00") for day in (1, 2, 3))
    old, new = {"python": "3.11.7", "device_name": "A"}, {"python": "3.12.1", "device_name": "B"}
    first, second, third = (
        make_run(run.name, run.name, f"2026-01-0{day}T03:00:00", **old) for day, run in enumerate(RELEASES, 1)
    )
    again, before, after = (
        make_run(f"{jax}-again", jax, f"2026-02-0{day}T03:00:00", **new)
        for day, jax in enumerate(("0.10.1", "0.9.2", "0.11.0"), 1)
    )
    slower, same = {"f": (SLOWER, 2.0)}, {"f": (SAME, 1.0)}
    return {
        "releases in the order of their versions": [pair(two, three, {"f": (FASTER, 0.5)}), pair(one, two, slower)],
        "a total where neighbours are blank": [
            pair(one, two, {**slower, "g": (SLOWER, 3.0)}),
            pair(two, three, same),
            pair(one, three, {"f": (SAME, 1.9)}),
        ],
        "the release with most changes, without totals": [
            pair(one, two, {**slower, "g": (SAME, 1.0)}),
            pair(two, three, {"f": (FASTER, 0.5), "g": (SLOWER, 1.5)}),
            pair(one, three, {"f": (SLOWER, 9.0), "g": (SLOWER, 9.0)}),
        ],
        "nightly runs of one release": [pair(base, night, {"f": (SLOWER, 1.5)}) for night in nights],
        "a total that its steps contradict, and one that they do not": [
            pair(one, two, {**slower, "g": (SLOWER, 2.0)}),
            pair(two, three, {**same, "g": (SAME, 1.0)}),
            pair(one, three, {**same, "g": (SLOWER, 1.9)}),
        ],
        "a total over other releases than the steps": [
            pair(one, two, slower),
            pair(two, three, same),
            pair(one, last, same),
        ],
        # The last step was measured later and elsewhere, and the total of both beginnings.
        "several pythons and machines": [
            pair(first, second, slower),
            pair(second, third, same),
            pair(first, third, same),
            pair(again, after, slower),
            pair(before, after, same),
        ],
    }


def test_a_series_of_runs_reads_as_its_golden_text():
    check_golden_scenes(
        "releases", {rule: write_text(make_releases_view(pairs, {})) for rule, pairs in make_series().items()}
    )
    assert make_releases_view([pair(*RELEASES[:2], {"f": (SLOWER, 2.0)})], {}) is None


def test_both_pythons_of_a_pair_are_named_where_they_differ() -> None:
    before = make_run("0.9.2", "0.9.2", "2026-01-01T03:00:00", python="3.11.7")
    after = make_run("0.12.0", "0.12.0", "2026-01-02T03:00:00", python="3.12.1")

    assert pair(before, after, {}).python == "3.11.7 → 3.12.1"


def test_a_report_is_judged_by_the_pair_next_to_it_also_where_only_a_longer_span_has_a_number() -> None:
    report = Reported(source="jax issue 1", before="0.9.0", after="0.10.0", factor=2.0)

    def judge(ours: Interval | None, *names: str) -> JudgedReport:
        return JudgedReport(report, "case[n=1]", "case:jit", 2.0, ours, Here.UNDECIDED, releases=(names[0], names[1]))

    first, *_, last = RELEASES
    versions = [run.environment.packages["jax"] for run in RELEASES]
    next_to_it, span = judge(None, *versions[:2]), judge(Interval(0.3, 0.4, 0.5, 3, None), versions[0], versions[-1])
    steps = [pair(before, after, {}) for before, after in itertools.pairwise(RELEASES)]

    (chosen,) = choose_reports([*steps, pair(first, last, {})], (span, next_to_it))

    assert len(versions) > 2
    assert chosen is next_to_it
