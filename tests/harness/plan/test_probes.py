import inspect
import typing
from importlib import import_module
from pathlib import Path

import msgspec
import pytest

from jaxmeter.harness.machine.platforms import PLATFORMS
from jaxmeter.harness.metrics.table import METRICS
from jaxmeter.harness.plan.probes import (
    CACHE_STATES,
    PROBES,
    group_by_allocator,
    group_by_library,
    group_each,
    group_peers_apart,
    in_all_rounds,
    in_cold_rounds,
    list_cache_states,
    list_cached,
    list_compiled,
    list_measurable,
    list_of_jax,
    list_resident,
    list_runnable,
    list_traced,
)
from jaxmeter.harness.plan.settings import make_settings
from jaxmeter.harness.probes import find_probe
from jaxmeter.harness.probes.caching import CACHE_STATES as KNOWN
from jaxmeter.harness.record import Answer, Details, Figure, PlannedCase, Published
from jaxmeter.harness.record.files import name_file
from tests import samples

PROBE_FILES = Path(inspect.getfile(find_probe)).parent


def case(suite: str, name: str, variants: tuple = ("a:jit",)) -> PlannedCase:
    return samples.planned_case(name.partition("[")[0], suite=suite, name=name, id=name_file(name), variants=variants)


def names(variants) -> tuple[str, ...]:
    return tuple(item.name for item in variants)


def figure(metric: str) -> Published:
    """A claim by itself."""
    return Published(source="s", device="d", timed="t", figure=Figure("a:jit", 2.0, metric=metric))


RESTING = [
    ({}, False),
    ({"answer": Answer("?", "a:jit")}, False),
    ({"answer": Answer("?", "a:jit", metric="temp_bytes")}, False),
    ({"answer": samples.ABOUT_COMPILING}, True),
    ({"published": (figure("execution_s"),)}, False),
    ({"published": (figure("compiles"),)}, False),
    ({"published": (figure("return_s"), figure("compile_total_s"))}, True),
    ({"answer": Answer("?", "a:jit"), "published": (figure("cached_s"),)}, True),
    ({"published": (figure("compile_exponent"),)}, True),
    ({"published": (figure("no_such_metric"),)}, False),
]
"""What a case is there to tell, and whether cold processes tell it."""


@pytest.mark.parametrize(
    ("changes", "rests"),
    [(changes, rests and changes.get("answer") is samples.ABOUT_COMPILING) for changes, rests in RESTING],
)
def test_caches_are_looked_at_where_an_answer_rests_on_compiling_or_in_all_cases_if_asked(changes, rests):
    jitted = samples.planned_case(variants=("a:jit", "b:eager", "numpy:native", "a:aot", "c:jit"), **changes)
    by_itself, asked = (make_settings("default", probes=probes, suites=(), run_id="a") for probes in ((), ("caching",)))

    assert names(list_cached(jitted, by_itself)) == (("a:jit",) if rests else ())
    assert names(list_cached(jitted, asked)) == ("a:jit", "c:jit")


@pytest.mark.parametrize(("changes", "rests"), RESTING)
@pytest.mark.parametrize(
    ("level", "options", "usual", "resting"),
    [
        ("quick", {}, 1, 1),
        ("default", {}, 1, 3),
        ("default", {"probes": ("compilation",)}, 3, 3),
        ("default", {"probes": ("caching",)}, 3, 3),
        ("default", {"probes": ("timing",)}, 1, 3),
        ("default", {"processes": 2}, 2, 2),
        ("full", {}, 5, 5),
    ],
)
def test_a_program_is_compiled_as_often_as_its_time_matters(changes, rests, level, options, usual, resting):
    settings = make_settings(level, suites=(), run_id="a", **options)

    assert in_cold_rounds(samples.planned_case(**changes), settings) == (resting if rests else usual)


@pytest.mark.parametrize(
    ("level", "processes", "cold", "timed"),
    [("quick", None, 3, 8), ("default", None, 3, 8), ("full", None, 5, 8), ("default", 2, 2, 2), ("quick", 7, 7, 7)],
)
def test_where_compiling_is_what_is_measured_every_case_has_an_interval_of_it_and_few_timing_processes(
    level, processes, cold, timed
):
    settings = make_settings(level, processes=processes, suites=(), run_id="a")
    case = samples.planned_case(measures="compilation")

    assert (in_cold_rounds(case, settings), in_all_rounds(case, settings)) == (cold, timed)
    assert in_all_rounds(samples.planned_case(), settings) == settings.most_rounds


@pytest.mark.parametrize(
    ("level", "asked", "represents_workload", "looks"),
    [
        ("default", False, True, True),
        ("default", False, False, False),
        ("default", True, False, True),
        ("full", False, False, True),
    ],
)
@pytest.mark.parametrize(("probe", "choose"), [("memory", list_resident), ("trace", list_traced)])
def test_one_case_of_each_workload_is_traced_and_its_memory_measured_or_all_if_asked(
    level, asked, represents_workload, looks, probe, choose
):
    case = samples.planned_case(variants=("f:jit",), represents_workload=represents_workload)

    found = choose(case, make_settings(level, probes=(probe,) if asked else (), suites=(), run_id="a"))

    assert names(found) == (("f:jit",) if looks else ())


@pytest.mark.parametrize(("metric", "traced"), [("flops_share", ("f:jit",)), ("execution_s", ())])
def test_a_case_that_answers_by_a_share_of_a_peak_is_traced_since_its_capture_says_whose_peak(metric, traced):
    case = samples.planned_case(variants=("f:jit",), answer=samples.Answer("?", "f:jit", metric=metric))

    assert names(list_traced(case, make_settings("quick", probes=(), suites=(), run_id="a"))) == traced


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ("cold", "cached", "warm")),
        ({"new_static": {"n": 2}}, ("cold", "cached", "warm", "new_static")),
        ({"new_shape": {"n": 2}, "new_static": {"n": 2}, "default_threshold": True}, tuple(KNOWN)),
    ],
)
def test_only_what_a_workload_names_is_tried_as_new_and_every_cache_state_is_known(changes, expected):
    planned = msgspec.structs.replace(case("s", "w[n=1]", ("a:jit",)), **changes)

    assert list_cache_states(planned) == expected
    assert set(KNOWN) == set(CACHE_STATES)


def test_what_raises_as_declared_is_checked_and_not_measured():
    erring = msgspec.structs.replace(samples.planned_variant("f:jit"), raises="TypeError")
    case = samples.planned_case(variants=(erring, samples.planned_variant("g:jit")))
    settings = make_settings("default", suites=(), run_id="it")

    assert names(list_runnable(case, settings)) == ("f:jit", "g:jit")
    assert names(list_resident(msgspec.structs.replace(case, represents_workload=True), settings)) == ("g:jit",)
    assert names(list_cached(msgspec.structs.replace(case, answer=samples.ABOUT_COMPILING), settings)) == ("g:jit",)


def test_what_donates_has_no_caching_cache_states():
    donating = msgspec.structs.replace(samples.planned_variant("f:jit"), donates=("state",))
    case = samples.planned_case(variants=(donating, samples.planned_variant("g:jit")))

    everywhere = make_settings("default", probes=("caching",), suites=(), run_id="it")

    assert names(list_cached(case, everywhere)) == ("g:jit",)


# Who looks at what


MIXED = ("a:eager", "a:jit", "a:aot", "b:mixed", "numpy:native")


@pytest.mark.parametrize(
    ("choose", "expected"),
    [
        (list_measurable, MIXED),
        (list_of_jax, ("a:eager", "a:jit", "a:aot", "b:mixed")),
        (list_compiled, ("a:jit", "a:aot")),
        (list_resident, ("a:eager", "a:jit", "b:mixed", "numpy:native")),
    ],
)
def test_a_probe_looks_at_the_modes_that_it_can_say_something_of(choose, expected):
    planned = samples.planned_case(
        variants=(*MIXED, samples.planned_variant("c:jit", skip="too small")), represents_workload=True
    )

    assert names(choose(planned, samples.settings())) == expected


@pytest.mark.parametrize(
    ("group", "where", "expected"),
    [
        (group_by_library, "cpu", [("a:eager", "a:jit"), ("numpy:native", "torch:native")]),
        (group_peers_apart, "gpu", [("a:eager", "a:jit"), ("numpy:native",), ("torch:native",)]),
        (group_each, "cpu", [("a:eager",), ("a:jit",), ("numpy:native",), ("torch:native",)]),
        (group_by_allocator, "cpu", [("a:eager", "a:jit", "numpy:native", "torch:native")]),
        (group_by_allocator, "gpu", [("a:eager",), ("a:jit",), ("numpy:native",), ("torch:native",)]),
    ],
)
def test_variants_share_a_process_where_they_do_not_disturb_each_other(group, where, expected):
    variants = tuple(map(samples.planned_variant, ("a:eager", "a:jit", "numpy:native", "torch:native")))

    assert [names(one) for one in group(variants, PLATFORMS[where])] == expected
    assert group((), PLATFORMS[where]) == []


# The table


def test_every_probe_has_a_file_of_its_name_that_can_look():
    files = {
        path.stem
        for path in PROBE_FILES.glob("*.py")
        if hasattr(import_module(f"jaxmeter.harness.probes.{path.stem}"), "probe_variants")
    }

    assert files == set(PROBES)
    assert all(list(inspect.signature(find_probe(name)).parameters) == ["variants", "context"] for name in PROBES)


def test_a_probe_goes_on_only_after_such_as_are_in_the_table_before_it():
    order = list(PROBES)

    assert all(order.index(before) < order.index(name) for name, probe in PROBES.items() for before in probe.after)


def test_the_metrics_and_details_of_a_probe_are_found_by_its_name():
    assert {metric.probe for metric in METRICS.values() if metric.probe} == set(PROBES) - {"export"}
    assert {kind.__struct_config__.tag for kind in typing.get_args(Details)} <= set(PROBES)


def test_probes_that_share_a_process_agree_on_how_it_is_launched():
    for process in {probe.process for probe in PROBES.values()}:
        sharing = [probe for probe in PROBES.values() if probe.process == process]

        how = {(one.group, one.rounds, one.cache_states, one.after, one.side_by_side) for one in sharing}
        assert len(how) == 1
