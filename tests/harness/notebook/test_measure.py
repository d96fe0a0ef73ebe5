import dataclasses
import itertools
import re

import jax
import jax.numpy as jnp
import pytest
from jax.experimental.compilation_cache import compilation_cache
from msgspec import structs

import jaxmeter
from jaxmeter.harness.metrics.derived import describe_bound_of, find_trace
from jaxmeter.harness.metrics.reading import read_case
from jaxmeter.harness.notebook import IN_PROCESS
from jaxmeter.harness.notebook.options import Budget
from jaxmeter.harness.programs.jax_events import watch_jax
from jaxmeter.harness.record import Status
from jaxmeter.harness.record.outcomes import NOT_COUNTED, list_own_faults


def scaled(x, *, factor):
    """Product with a factor."""
    return factor * x


@pytest.fixture(scope="module")
def measurement():
    return jaxmeter.measure(scaled, jnp.ones(1000), factor=3.0)


def test_one_function_is_measured_in_every_mode(measurement):
    assert [variant.name for variant in measurement.record.variants] == ["scaled:eager", "scaled:jit", "scaled:aot"]
    assert (measurement.record.status, measurement.record.processes) == (Status.OK, 1)
    assert IN_PROCESS in measurement.record.notes


def test_a_jax_newer_than_the_newest_tested_is_noted_with_the_numbers(monkeypatch):
    monkeypatch.setattr("jaxmeter.harness.machine.jax_internals.NEWEST_TESTED", "0.4.31")

    noted = jaxmeter.measure(scaled, jnp.ones(10), factor=3.0)

    assert f"jax {jax.__version__} is newer than 0.4.31" in noted.record.notes[0]
    assert noted.record.notes[0] in " ".join(str(noted).split())


def test_a_jitted_function_that_was_called_before_has_no_fault_of_ours():
    step = jax.jit(lambda x: jnp.sin(x) * 2)
    step(jnp.ones(10))

    measured = jaxmeter.measure(step, jnp.ones(10))

    assert [list_own_faults(variant.outcomes.values()) for variant in measured.record.variants] == [()] * len(
        measured.record.variants
    )


@pytest.mark.parametrize("mode", ["eager", "jit", "aot"])
def test_a_value_is_found_by_mode_and_metric(measurement, mode):
    assert measurement.value(mode, "execution_s") == measurement.value(f"scaled:{mode}", "execution_s") > 0
    assert (measurement.value(mode, "compile_s") is None) is (mode == "eager")


@pytest.mark.parametrize(
    ("variant", "metric", "message"),
    [
        ("jti", "execution_s", "no variant 'jti'; there are scaled:eager, scaled:jit, scaled:aot"),
        ("jit", "no_such_metric", "no metric 'no_such_metric'; there are max_error, execution_s, "),
        ("jit", "compile_exponent", "no metric 'compile_exponent'; nearest: "),
        ("jit", "counted_flop", "no metric 'counted_flop'; nearest: counted_flops"),
    ],
)
def test_what_there_is_not_is_an_error_that_names_what_there_is(measurement, variant, metric, message):
    with pytest.raises(KeyError) as raised:
        measurement.value(variant, metric)

    assert raised.value.args[0].startswith(message)
    if variant == "jti":
        with pytest.raises(KeyError, match="no variant 'jti'; there are scaled:eager"):
            measurement.find_speedup(variant)


def test_a_variant_as_given_is_found_as_it_is_shown_and_as_it_is_recorded():
    measurement = jaxmeter.measure.with_options(modes=("jit", "as given"))(jax.jit(lambda x: x + 1), jnp.ones(4))

    for name in ("as given", "as_given", "<lambda>:as given", "<lambda>:as_given"):
        assert measurement.value(name, "execution_s") > 0
        assert measurement.find_speedup(name) is not None


@pytest.mark.parametrize("name", [1, None, "", "a:b"])
def test_a_name_that_no_function_can_have_is_an_error(name):
    with pytest.raises(ValueError, match=f"a function's name must be a text without a colon, .*; got {name!r}"):
        jaxmeter.measure({name: scaled}, jnp.ones(4), factor=1.0)


def test_eager_code_has_the_hint_that_its_program_has_for_the_same_fault():
    functions = {
        "first": lambda x: jnp.argsort(x, stable=True),
        "last": lambda x: x.size - 1 - jnp.argsort(x[::-1], stable=True),
    }

    measurement = jaxmeter.measure.with_options(modes=("eager", "jit"))(functions, jnp.arange(100.0) % 7)

    eager, jitted = (variant.outcomes["numerics"] for variant in measurement.record.variants[2:])
    assert eager.status is Status.WRONG
    assert "another order of equal values" in eager.reason
    assert eager.reason == jitted.reason


def test_a_mode_that_needs_a_compiler_says_so_first_where_jit_is_disabled():
    with jax.disable_jit():
        measurement = jaxmeter.measure.with_options(modes=("jit", "aot"))(lambda x: x + 1, jnp.ones(4))

    aot = measurement.record.variants[1].outcomes["numerics"]
    assert aot.status is Status.UNSUPPORTED
    assert aot.reason.startswith("jax_disable_jit is True")


def test_a_table_without_a_count_does_not_say_why_there_is_none():
    measurement = jaxmeter.measure.with_options(modes=("jit",))(lambda x: jax.lax.top_k(x, 3), jnp.arange(100.0))

    notes = [note for outcome in measurement.record.variants[0].outcomes.values() for note in outcome.notes]
    assert any(note.startswith(NOT_COUNTED) for note in notes)
    assert NOT_COUNTED not in repr(measurement)


def with_timing(measurement, **details):
    """The measurement, whose first variant was timed as these details tell."""
    first, *others = measurement.record.variants
    timing = first.outcomes["timing"]
    timing = structs.replace(timing, details=structs.replace(timing.details, **details))
    first = structs.replace(first, outcomes={**first.outcomes, "timing": timing})
    return dataclasses.replace(measurement, record=structs.replace(measurement.record, variants=(first, *others)))


def test_a_noisy_time_is_said_in_the_terms_of_one_process(measurement):
    quiet, noisy = (repr(with_timing(measurement, contended=count)).splitlines() for count in (0, 1))
    line = next(line for line in noisy if line.startswith("scaled:eager") and "contended: " in line)

    assert "other work took much processor time" in line
    assert "processes" not in line
    assert not any(line.startswith("scaled:eager") and "contended" in line for line in quiet)


def test_a_notebook_shows_a_table_with_the_same_cells(measurement):
    html = measurement._repr_html_()

    cells = re.findall(r"<t[hd]>(.*?)</t[hd]>", html)
    assert len(cells) == 4 * 9
    assert [cell for cell in cells if cell.startswith("scaled:")] == ["scaled:eager", "scaled:jit", "scaled:aot"]
    text = " ".join(repr(measurement).split())
    assert all(" ".join(cell.split()) in text for cell in cells[9:])
    assert f"({IN_PROCESS})" in html


def test_hostile_text_is_text_in_a_notebook():
    def broken(x):
        if isinstance(x, jax.core.Tracer):
            raise ValueError("<script>alert(1)</script>")
        return x

    html = jaxmeter.measure(broken, jnp.ones(4))._repr_html_()

    assert "<script>" not in html
    assert "&lt;script&gt;" in html


def names_of(measurement):
    return [variant.name.rpartition(":")[2] for variant in measurement.record.variants]


@pytest.mark.parametrize(
    ("asked", "measured"),
    [
        (("jit",), ["jit"]),
        (("aot", "eager"), ["aot", "eager"]),
        (("jit", "as given"), ["jit", "as_given"]),
        (("as_given", "jit"), ["as_given", "jit"]),
    ],
)
def test_a_transformed_callable_is_measured_in_the_modes_that_are_named_and_compared_with_the_first(asked, measured):
    donating = jax.jit(lambda x: x + 1, donate_argnums=0)

    measurement = jaxmeter.measure.with_options(modes=asked)(donating, jnp.ones(4))

    assert names_of(measurement) == measured
    assert measurement.case.baseline == f"<lambda>:{measured[0]}"
    assert measurement.record.status is Status.OK
    compared = [note for note in measurement.record.notes if note.startswith("results are compared with")]
    reference = "eager" if "eager" in measured else measured[0].replace("_", " ")
    assert compared == [f"results are compared with those of <lambda>:{reference}"] * (len(measured) > 1)


@pytest.mark.parametrize(
    ("asked", "function", "measured", "words"),
    [
        (("jit", "eager"), scaled, ["jit", "eager"], "baseline"),
        (("as given",), scaled, ["eager"], "scaled has no transformation: as given, it is eager"),
        (None, jax.jit(lambda x, *, factor: x + factor), ["as_given", "eager", "jit"], "as given"),
    ],
    ids=["those that are asked for", "a plain function as given", "a jitted one as given and without its jit"],
)
def test_modes_are_those_that_are_asked_for_or_that_a_callable_has(asked, function, measured, words):
    measure = jaxmeter.measure if asked is None else jaxmeter.measure.with_options(modes=asked)

    measurement = measure(function, jnp.ones(4), factor=2.0)

    assert names_of(measurement) == measured
    assert measurement.record.status is Status.OK
    assert words in repr(measurement)
    assert measurement.value("eager", "speedup" if asked == ("jit", "eager") else "execution_s") > 0


def test_modes_that_a_callable_does_not_have_are_an_error_or_a_note():
    x = jnp.ones(4)
    compiled = jax.jit(lambda x: x + 1).lower(x).compile()

    with pytest.raises(ValueError, match="'program' has only the mode as given"):
        jaxmeter.measure.with_options(modes=("jit",))({"program": compiled}, x)
    measurement = jaxmeter.measure.with_options(modes=("as given", "jit"))({"program": compiled}, x)

    assert names_of(measurement) == ["as_given"]
    assert any(note.startswith("program is not measured in jit: ") for note in measurement.record.notes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"modes": ("jot",)}, "no mode 'jot'; modes are as given, eager, jit, aot"),
        ({"modes": "jit"}, "modes must be a list of some of as given, eager, jit, aot"),
        ({"modes": ()}, "modes must be a list of some of as given, eager, jit, aot"),
        ({"modes": ("jit", "jit")}, "modes names 'jit' twice"),
        ({"modes": ("as given", "as_given")}, "modes names 'as given' twice"),
        ({"modes": 3}, "modes must be a list of some of as given, eager, jit, aot; got 3"),
        ({"tolerance": -1}, "tolerance"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"most_calls": 0}, "most_calls must be an integer ≥ 1; got 0"),
        ({"most_calls": "a"}, "most_calls must be an integer ≥ 1; got 'a'"),
        ({"most_calls": float("inf")}, "most_calls must be an integer ≥ 1; got inf"),
        ({"tolerance": "a"}, "tolerance must be a number ≥ 0, .*; got 'a'"),
        ({"tolerance": True}, "tolerance must be a number ≥ 0, .*; got True"),
        ({"time_limit_s": "a"}, "time_limit_s must be a number of seconds ≥ 0; got 'a'"),
        ({"time_limit_s": -1}, "time_limit_s must be a number of seconds ≥ 0; got -1"),
        ({"time_limit_s": None}, "time_limit_s must be a number of seconds ≥ 0; got None"),
        ({"progress": "no"}, "progress must be True, False or None; got 'no'"),
        ({"progress": 0}, "progress must be True, False or None; got 0"),
        ({"comparable": 1}, "comparable must be True or False; got 1"),
        ({"carry": 0}, "carry must map an argument, .*; got 0"),
        ({"carry": {"x": 1.5}}, "carry names an output by its place or name; got 1.5"),
        ({"carry": {None: 0}}, "carry names an argument by its place or name; got None"),
    ],
)
def test_an_option_that_can_be_nothing_is_an_error(options, message):
    with pytest.raises(ValueError, match=message):
        jaxmeter.measure.with_options(**options)
    with pytest.raises(TypeError, match="no option 'mode'; options are modes, tolerance"):
        jaxmeter.measure.with_options(mode="jit")


def nearly(x):
    """Another answer by 1e-4 where it is traced."""
    return x * (1 + 1e-4) if isinstance(x, jax.core.Tracer) else x


@pytest.mark.parametrize(("tolerance", "status"), [(None, Status.WRONG), (1e-3, Status.OK), (1e-5, Status.WRONG)])
def test_a_tolerance_says_how_much_error_is_rounding(tolerance, status):
    measure = jaxmeter.measure.with_options(modes=("eager", "jit"), tolerance=tolerance)

    measurement = measure(nearly, jnp.ones(4))

    assert measurement.record.variants[1].outcomes["numerics"].status is status
    assert measurement.process is not None
    assert (measurement.find_speedup("jit") is not None) is (status is Status.OK)
    assert ("a larger tolerance= allows it" in repr(measurement)) is (status is Status.WRONG)


def test_after_its_limit_nothing_more_is_begun():
    measurement = jaxmeter.measure.with_options(time_limit_s=0)(lambda x: x + 1, jnp.ones(4))

    reasons = {variant.outcomes["numerics"].reason for variant in measurement.record.variants}
    assert reasons == {"the limit of 0 s was used up before it"}
    assert "skipped: the limit of 0 s was used up" in repr(measurement)


def test_a_limit_that_ends_while_modes_are_checked_leaves_them_untimed(monkeypatch):
    choose = Budget.choose_blocks

    def choose_late(budget, calls_s):
        budget._start -= 100.0
        return choose(budget, calls_s)

    monkeypatch.setattr(Budget, "choose_blocks", choose_late)

    measurement = jaxmeter.measure.with_options(time_limit_s=50)(lambda x: x + 1, jnp.ones(4))

    assert {one.outcomes["numerics"].status for one in measurement.record.variants} == {Status.OK}
    assert measurement.record.variants[1].outcomes["timing"].reason == (
        "the limit of 50 s was used up before it was timed"
    )


def test_progress_is_told_where_it_is_asked_for(capsys):
    jaxmeter.measure.with_options(modes=("jit",), progress=True)(lambda x: x + 1, jnp.ones(4))

    assert capsys.readouterr().err.splitlines() == [
        "jaxmeter.measure: calling <lambda>:jit, for comparison with the other results",
        "jaxmeter.measure: checking <lambda>:jit",
        "jaxmeter.measure: timing <lambda>:jit",
    ]
    # Without a person to look it is silent.
    jaxmeter.measure.with_options(modes=("jit",))(lambda x: x + 1, jnp.ones(4))
    assert capsys.readouterr().err == ""


def test_what_fails_in_every_look_is_said_once():
    measurement = jaxmeter.measure(lambda x: x if x.sum() > 0 else -x, jnp.ones(4))

    text = " ".join(repr(measurement).split())
    assert text.count("Attempted boolean conversion") == text.count("<lambda>:jit, <lambda>:aot: ") == 1


def test_what_gives_another_answer_each_time_is_wrong_and_has_no_speedup():
    numbers = itertools.count()

    def forgetful(x):
        return x + next(numbers)

    measurement = jaxmeter.measure(forgetful, jnp.ones(4))

    for variant in measurement.record.variants:
        assert variant.outcomes["numerics"].status is Status.WRONG
        assert measurement.find_speedup(variant.name) is None


@pytest.fixture
def own_cache(tmp_path):
    """A user's persistent cache that keeps everything."""
    wanted = {
        "jax_enable_compilation_cache": True,
        "jax_compilation_cache_dir": str(tmp_path),
        "jax_persistent_cache_min_compile_time_secs": 0,
        "jax_persistent_cache_min_entry_size_bytes": -1,
    }
    before = {name: getattr(jax.config, name) for name in wanted}
    for name, value in wanted.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()
    yield tmp_path
    for name, value in before.items():
        jax.config.update(name, value)
    compilation_cache.reset_cache()


def hyperbolic(x):
    return jnp.tanh(x) @ x


def test_what_is_measured_is_compiled_and_never_taken_from_the_users_own_cache_which_is_used_again_afterwards(
    own_cache,
):
    x = jnp.ones((3, 3))
    jax.block_until_ready(hyperbolic(x))  # eager operations are the user's own
    kept = set(own_cache.iterdir())

    with watch_jax() as events:
        jaxmeter.measure(hyperbolic, x)
        jaxmeter.measure(hyperbolic, x)

    assert (events.hits, set(own_cache.iterdir()) - kept) == (0, set())
    jax.jit(lambda x: jnp.tanh(x) - 17)(jnp.ones(5)).block_until_ready()
    assert jax.config.jax_enable_compilation_cache
    assert set(own_cache.iterdir()) - kept


def test_a_setting_that_changes_what_is_timed_stands_first_among_the_notes():
    with jax.debug_nans(True):
        measurement = jaxmeter.measure.with_options(modes=("jit",))(lambda x: x + 1, jnp.ones(4))

    assert measurement.record.notes[0].startswith("jax_debug_nans is True: every result is checked for NaN")


def test_with_trace_the_result_says_what_bounds_a_step_and_which_lines_take_its_time():
    x = jnp.ones((256, 256))

    found = jaxmeter.measure.with_options(trace=True, modes=("jit",), time_limit_s=60)(lambda x: x @ x @ x, x)

    (variant,) = read_case(found.case, found.record, found.environment, found.settings).variants
    assert [one.source.partition(":")[0] for one in find_trace(variant).operations[:1]] == [
        "tests/harness/notebook/test_measure.py"
    ]
    assert "of the device's time" in " ".join(repr(found).split())
    # Which one depends on how much tracing slows the step down here and now.
    assert describe_bound_of(variant).startswith(("bound by ", "no part dominates", "bound unknown: "))
    assert " ".join(describe_bound_of(variant).split()) in " ".join(repr(found).split())


def test_a_function_that_prints_is_not_captured_tens_of_times_more():
    def step(x):
        jax.debug.print("{}", x[0])
        return x + 1

    found = jaxmeter.measure.with_options(trace=True, modes=("jit",))(step, jnp.ones(8))

    (variant,) = found.record.variants
    assert variant.outcomes["trace"].status is Status.SKIPPED
