"""Callables of users, measured as they are, with their objects as before."""

import dataclasses
import queue
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx
from flax.training import train_state
from jax.experimental import checkify

import jaxmeter
from jaxmeter.harness.notebook.calls import CarryError
from jaxmeter.harness.notebook.tracing import RETURN_CHANGES
from jaxmeter.harness.record import Status


def names_of(measurement):
    return [variant.name.rpartition(":")[2] for variant in measurement.record.variants]


def statuses_of(measurement):
    return {
        variant.name.rpartition(":")[2]: variant.outcomes["numerics"].status for variant in measurement.record.variants
    }


def all_right(measurement):
    return set(statuses_of(measurement).values()) == {Status.OK} and all(
        measurement.value(variant.name, "execution_s") > 0 for variant in measurement.record.variants
    )


class Net(nnx.Module):
    def __init__(self):
        self.first = nnx.Linear(4, 8, rngs=nnx.Rngs(0))
        self.second = nnx.Linear(8, 4, rngs=nnx.Rngs(1))

    def __call__(self, x):
        return self.second(nnx.relu(self.first(x)))


def train(model, optimizer, x):
    loss, gradient = nnx.value_and_grad(lambda model: ((model(x) - x) ** 2).mean())(model)
    optimizer.update(model, gradient)
    return loss


def make_model():
    model = Net()
    return model, nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param), jnp.ones((2, 4))


@pytest.mark.parametrize("options", [{}, {"donate_argnums": (0, 1)}])
def test_an_nnx_step_is_called_as_it_is_and_leaves_the_model_as_it_was(options):
    model, optimizer, x = make_model()
    before = [np.asarray(leaf) for leaf in jax.tree.leaves(nnx.state((model, optimizer)))]

    measure = jaxmeter.measure.with_options(modes=("as given", "eager"))
    measurement = measure(nnx.jit(train, **options), model, optimizer, x)

    after = [np.asarray(leaf) for leaf in jax.tree.leaves(nnx.state((model, optimizer)))]
    assert all(map(np.array_equal, before, after))
    assert names_of(measurement) == ["as_given", "eager"]
    assert all_right(measurement)
    assert measurement.value("as_given", "compile_s") > 0


class Counting(Net):
    def __init__(self):
        super().__init__()
        self.count = nnx.Variable(jnp.array(0))

    def __call__(self, x):
        self.count[...] += 1
        return super().__call__(x)


def test_a_step_with_a_cached_model_is_called_as_it_is_and_leaves_the_model_as_it_was():
    model = Counting()
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)
    before = [np.asarray(leaf) for leaf in jax.tree.leaves(nnx.state((model, optimizer)))]
    step = nnx.cached_partial(nnx.jit(train), model, optimizer)

    measurement = jaxmeter.measure.with_options(modes=("as given", "eager"))(step, jnp.ones((2, 4)))

    after = [np.asarray(leaf) for leaf in jax.tree.leaves(nnx.state((model, optimizer)))]
    assert all(map(np.array_equal, before, after))
    assert names_of(measurement) == ["as_given", "eager"]
    assert all_right(measurement)
    step(jnp.ones((2, 4)))  # it works as before
    assert model.count[...] == 1


def test_changes_in_place_that_jit_would_lose_are_refused_by_name():
    measurement = jaxmeter.measure(train, *make_model())

    assert statuses_of(measurement) == {"eager": Status.OK, "jit": Status.UNSUPPORTED, "aot": Status.UNSUPPORTED}
    reason = measurement.record.variants[1].outcomes["numerics"].reason
    assert "train changes model.first.bias" in reason
    assert "measure nnx.jit(train)" in reason


class Trainer:
    def __init__(self):
        self.weights, self.steps = jnp.ones((4, 4)), 0

    def step(self, batch):
        self.weights = self.weights - 0.1 * jax.grad(lambda w: ((batch @ w) ** 2).mean())(self.weights)
        self.steps += 1
        return (self.weights**2).sum()


def test_state_in_self_is_put_back_and_holds_no_tracer():
    trainer = Trainer()
    weights = trainer.weights

    measurement = jaxmeter.measure(trainer.step, jnp.ones((2, 4)))

    assert (trainer.weights is weights, trainer.steps) == (True, 0)
    assert statuses_of(measurement) == {"eager": Status.OK, "jit": Status.UNSUPPORTED, "aot": Status.UNSUPPORTED}
    reason = measurement.record.variants[1].outcomes["numerics"].reason
    assert "step changes Trainer.weights in place" in reason
    assert "nnx" not in reason  # its transformations are of no use for an object that is not nnx's
    assert reason.endswith(RETURN_CHANGES)


def test_state_is_put_back_after_an_exception():
    trainer = Trainer()
    weights = trainer.weights

    def broken(batch):
        trainer.step(batch)
        raise ValueError("no luck")

    with pytest.raises(ValueError, match="no luck"):
        jaxmeter.measure(broken, jnp.ones((2, 4)))

    assert trainer.weights is weights


def move(params, x):
    return jax.tree.map(lambda w: w - x.mean(), params)


moved_inside = jax.jit(move, donate_argnums=0)


@pytest.mark.parametrize(
    ("function", "note"),
    [
        (
            jax.jit(lambda params, x: (move(params, x), x.sum()), donate_argnums=0),
            "its result is the argument of the next call",
        ),
        (
            jax.jit(lambda params, x: params["w"].reshape(64) + x.sum(), donate_argnums=0),
            "each call gets copies made outside the clock",
        ),
        (lambda params, x: moved_inside(params, 2 * x), None),
    ],
    ids=["threaded", "copied where nothing replaces them", "donated by a function inside"],
)
def test_donated_arguments_are_threaded_or_copied_and_the_users_arrays_live(function, note):
    params = {"w": jnp.ones((8, 8))}

    measurement = jaxmeter.measure(function, params, jnp.ones(8))

    assert not params["w"].is_deleted()
    assert all_right(measurement)
    assert note is None or any(note in one for one in measurement.record.notes)
    if note is not None and "next call" in note:
        assert measurement.value("as_given", "alias_bytes") > 0


def test_a_donated_train_state_is_threaded_though_its_step_is_a_python_int_at_first():
    dense, x = linen.Dense(4), jnp.ones((2, 4))
    params = dense.init(jax.random.key(0), x)
    state = train_state.TrainState.create(apply_fn=dense.apply, params=params, tx=optax.adam(1e-3))

    def step(state, x):
        loss, gradient = jax.value_and_grad(lambda params: (state.apply_fn(params, x) ** 2).mean())(state.params)
        return state.apply_gradients(grads=gradient), loss

    measurement = jaxmeter.measure.with_options(modes=("as_given",))(jax.jit(step, donate_argnums=0), state, x)

    assert state.step == 0
    assert not any(leaf.is_deleted() for leaf in jax.tree.leaves(params))
    assert measurement.value("as_given", "execution_s") > 0
    assert any("its result is the argument of the next call" in note for note in measurement.record.notes)


def test_a_carry_goes_from_one_call_to_the_next():
    seen = queue.SimpleQueue()  # a list would be put back

    def step(x):
        jax.debug.callback(lambda value: seen.put(float(value)), x[0])
        return x + 1

    jaxmeter.measure.with_options(modes=("jit",), carry={"x": "result"}, most_calls=40)(step, jnp.zeros(3))
    jax.effects_barrier()

    assert {0.0, 1.0} <= {seen.get() for _ in range(seen.qsize())}


@pytest.mark.parametrize("carry", [{"params": 0}, {0: 0}])
def test_a_carry_of_a_donated_argument_is_threaded_in_every_mode_and_copies_nothing(carry):
    step = jax.jit(lambda params, x: (params - x, params + x), donate_argnums=0)

    given = jaxmeter.measure.with_options(carry=carry)(step, jnp.ones(8), jnp.ones(8))
    plain = jaxmeter.measure.with_options(carry=carry)(lambda params, x: (params - x, x), jnp.ones(8), jnp.ones(8))

    assert all_right(given)
    assert all_right(plain)
    assert not any("copies" in note for note in (*given.record.notes, *plain.record.notes))


@pytest.mark.parametrize(
    ("carry", "message"),
    [({"y": 0}, "names the argument 'y'; the call has x"), ({"x": 3}, "gives 'x' the output 3; outputs are 0 to 0")],
)
def test_a_carry_that_is_not_there_is_an_error(carry, message):
    with pytest.raises(CarryError, match=message):
        jaxmeter.measure.with_options(carry=carry)(lambda x: x + 1, jnp.zeros(3))


class Scale:
    @partial(jax.jit, static_argnums=0)
    def apply(self, x):
        return 2 * x


@dataclasses.dataclass
class Result:
    value: jax.Array


SQUARE = jnp.ones((64, 64))


def takes_keywords_of_any_name(x, *, modes, tolerance, progress):
    return x * tolerance + modes


@pytest.mark.parametrize(
    ("function", "args", "keywords", "modes"),
    [
        (lambda *, a, b: a @ b, (), {"a": SQUARE, "b": SQUARE}, ["eager", "jit", "aot"]),
        (
            takes_keywords_of_any_name,
            (jnp.ones(3),),
            {"modes": 1, "tolerance": 2.0, "progress": "yes"},
            ["eager", "jit", "aot"],
        ),
        (Scale().apply, (jnp.ones(3),), {}, ["as_given"]),
        (jax.jit(lambda x: x + 1).lower(jnp.ones(3)).compile(), (jnp.ones(3),), {}, ["as_given"]),
    ],
    ids=["arrays by keyword", "keywords of any name", "a method whose self is static", "a compiled program"],
)
def test_what_users_call_is_measured_as_they_call_it(function, args, keywords, modes):
    measurement = jaxmeter.measure(function, *args, **keywords)

    assert names_of(measurement)[: len(modes)] == modes
    assert all_right(measurement)
    if "a" in keywords:
        assert measurement.value("jit", "argument_bytes") == 2 * SQUARE.nbytes


def test_a_result_that_only_python_knows_is_compared_by_its_fields():
    measurement = jaxmeter.measure(lambda x: Result(x + 1), jnp.ones(3))

    assert statuses_of(measurement)["eager"] is Status.OK


def test_static_arguments_by_position_are_static():
    def pool(x, how, shape, act):
        return act(jnp.zeros(shape) + (x.max() if how == "max" else x.sum()))

    measurement = jaxmeter.measure(pool, jnp.ones(3), "max", (2, 3), jnp.tanh)

    assert all_right(measurement)
    assert "pool:jit, pool:aot: shape[0], shape[1] are static: tracing it fails" in measurement.record.notes


def test_eager_is_not_called_where_it_is_not_asked_for():
    def only_traced(x):
        assert isinstance(x, jax.core.Tracer)
        return x + 1

    measurement = jaxmeter.measure.with_options(modes=("jit", "aot"))(only_traced, jnp.ones(3))

    assert names_of(measurement) == ["jit", "aot"]
    assert all_right(measurement)
    assert "results are compared with those of only_traced:jit" in measurement.record.notes


def test_an_error_of_checkify_is_compared_by_what_failed():
    def checking(least):
        def logarithm(x):
            checkify.check(x.sum() > least, "the sum is too small")
            return jnp.log(x)

        return jax.jit(checkify.checkify(logarithm))

    measure = jaxmeter.measure.with_options(modes=("as given", "jit"))

    measurement = measure({"ok": checking(0), "fails": checking(100)}, jnp.arange(1.0, 9.0))

    statuses = [variant.outcomes["numerics"].status for variant in measurement.record.variants]
    assert statuses == [Status.OK, Status.OK, Status.WRONG, Status.WRONG]


@nnx.jit
def attend(model, optimizer, x):
    loss, gradient = nnx.value_and_grad(lambda model: ((model(x) + x) ** 2).mean())(model)
    optimizer.update(model, gradient)
    return loss


@pytest.mark.slow
def test_an_optimizer_that_turns_rounding_into_steps_is_right_within_the_conditioning():
    # The gradient of an attention's key bias is zero in exact arithmetic, and Adam divides rounding by rounding.
    model = nnx.MultiHeadAttention(2, 16, decode=False, rngs=nnx.Rngs(0))
    optimizer = nnx.Optimizer(model, optax.adamw(1e-3), wrt=nnx.Param)

    measure = jaxmeter.measure.with_options(modes=("as given", "eager"))
    measurement = measure(attend, model, optimizer, jax.random.normal(jax.random.key(1), (2, 8, 16)))

    assert all_right(measurement)
    found = [one.outcomes["numerics"].details.conditioning for one in measurement.record.variants]
    (conditioning, *_) = [one for one in found if one is not None]
    assert conditioning.beyond >= 1
    assert "key" in conditioning.worst
