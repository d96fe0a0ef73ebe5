import jax
import numpy as np
import pytest
from jax.experimental import checkify

from jaxmeter.harness.record import Status
from jaxmeter.suites import training_habits
from tests.suites.outcomes import outcome_of

WIDTH, STEPS, EVERY = 4, 6, 3
HABITS = training_habits.training_habits


@pytest.fixture(scope="module", autouse=True)
def few_steps():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_habits, "STEPS", STEPS)
        patch.setattr(training_habits, "EVERY", EVERY)
        yield


@pytest.fixture(scope="module")
def arguments():
    return jax.device_put(training_habits.inputs(jax.random.key(0), width=WIDTH))


@pytest.fixture(scope="module")
def results(arguments):
    return {item.name: item.function(*arguments) for item in HABITS.implementations}


def habit(name):
    return next(item.function for item in HABITS.implementations if item.name == name)


def broken(arguments):
    """The same arguments, with a NaN in a param."""
    (variables, memory), *batch = arguments
    params = dict(variables["params"])
    params["Dense_1"] = {**params["Dense_1"], "bias": params["Dense_1"]["bias"].at[0].set(np.nan)}
    return ({**variables, "params": params}, memory), *batch


def test_no_habit_changes_what_is_trained(results):
    expected = training_habits.stacked(results["waited_once"])

    for result in results.values():
        jax.tree.map(
            lambda ours, theirs: np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6),
            training_habits.stacked(result),
            expected,
        )
    assert expected[1]["loss"].shape == (STEPS,)


def test_the_learning_rate_falls_to_zero():
    rates = [float(training_habits.rate_at(step, np)) for step in range(STEPS + 1)]

    assert rates[0] == training_habits.RATE
    assert rates[-1] == pytest.approx(0)
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize(
    ("name", "on_host"),
    [
        ("waited_once", {"loss": 0, "slope": 0}),
        ("loss_each_step", {"loss": STEPS, "slope": 0}),
        ("metrics_each_step", {"loss": STEPS, "slope": STEPS}),
        ("metrics_every_50", {"loss": STEPS // EVERY, "slope": STEPS // EVERY}),
    ],
)
def test_each_habit_reads_its_metrics_as_often_as_it_says(name, on_host, results):
    _, history = results[name]

    read = {key: sum(not isinstance(metrics[key], jax.Array) for metrics in history) for key in on_host}

    assert read == on_host


def test_every_step_prints_a_line_and_none_of_them_leaves_the_loop(arguments, capfd, monkeypatch):
    written = []

    class Kept(training_habits.io.StringIO):
        def write(self, text):
            written.append(text)
            return super().write(text)

    monkeypatch.setattr(training_habits.io, "StringIO", Kept)

    habit("debug_print")(*arguments)

    assert "".join(written).count("loss ") == STEPS
    assert capfd.readouterr().out == ""


def test_the_callback_calls_python_in_every_step(arguments):
    program = training_habits.step_that_calls_back.lower(*arguments).as_text()

    assert "callback" in program
    assert "callback" not in training_habits.step.lower(*arguments).as_text()


@pytest.mark.parametrize(
    ("name", "error"), [("debug_nans", FloatingPointError), ("nan_checks", checkify.JaxRuntimeError)]
)
def test_a_check_raises_at_a_nan(name, error, arguments):
    with pytest.raises(error, match="nan"):
        habit(name)(*broken(arguments))


def test_an_update_that_is_not_finite_is_left_out(arguments):
    state, *batch = broken(arguments)

    (after, history) = habit("finite_updates")(state, *batch)
    (unguarded, _) = habit("waited_once")(state, *batch)

    jax.tree.map(np.testing.assert_array_equal, after, state)
    assert np.isnan([metrics["loss"] for metrics in history]).all()
    assert np.isnan(unguarded[0]["params"]["Dense_0"]["kernel"]).any()


# What is caught


def constant(*arguments):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(training_habits, "rate_at", lambda step, xp: training_habits.RATE)
        return training_habits.loop_in_numpy(*arguments)


def repeating(*arguments):
    state, history = training_habits.loop_in_numpy(*arguments)
    return state, [history[0]] * len(history)


def unmoved(state, *batch):
    (_, memory), history = training_habits.loop_in_numpy(state, *batch)
    return (state[0], memory), history


@pytest.mark.parametrize("loop", [training_habits.loop_in_numpy, constant, repeating, unmoved])
def test_a_loop_that_differs_is_wrong(loop):
    expected = Status.OK if loop is training_habits.loop_in_numpy else Status.WRONG
    assert outcome_of(HABITS, loop, width=WIDTH).status is expected
