import random
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from jaxmeter.harness.notebook import state as module
from jaxmeter.harness.notebook.state import StateError, UserState


class Trainer:
    def __init__(self):
        self.weights = jnp.ones(3)
        self.log = []
        self.options = {"rate": 0.1}
        self.names = {"a"}

    def step(self, batch):
        self.weights = self.weights - batch
        self.log.append(1)
        self.options["rate"] = 0.2
        self.options["new"] = 1
        self.names.add("b")
        self.extra = 1


class Slotted:
    __slots__ = ("late", "value")

    def __init__(self):
        self.value = jnp.ones(3)


def keep(function, *args, **kwargs):
    state = UserState.of_calls([(function, args, kwargs)])
    state.keep()
    return state


def test_the_object_of_a_method_is_put_back():
    trainer = Trainer()
    weights, log = trainer.weights, trainer.log
    state = keep(trainer.step, jnp.ones(3))

    trainer.step(jnp.ones(3))
    state.put_back()

    assert trainer.weights is weights
    assert (trainer.log is log, log, trainer.options, trainer.names) == (True, [], {"rate": 0.1}, {"a"})
    assert not hasattr(trainer, "extra")


def test_slots_are_put_back_also_those_that_were_empty():
    item = Slotted()
    value = item.value
    state = keep(lambda item: None, item)

    item.value, item.late = None, 1
    state.put_back()

    assert item.value is value
    assert not hasattr(item, "late")


@pytest.mark.parametrize("make", [np.zeros, lambda size: jax.new_ref(jnp.zeros(size))], ids=["NumPy", "JAX"])
def test_numbers_of_numpy_and_references_of_jax_are_put_back_in_their_own_memory(make):
    array = make(3)
    state = keep(lambda array: None, array)

    array[...] = jnp.ones(3)
    state.put_back()

    assert array[...].tolist() == [0, 0, 0]


def test_a_model_and_its_optimizer_are_put_back():
    model = nnx.Linear(2, 2, rngs=nnx.Rngs(0))
    kernel = model.kernel[...]
    state = keep(lambda model: None, model)

    model.kernel[...] = jnp.zeros((2, 2))
    model.added = nnx.Param(jnp.ones(1))
    state.put_back()

    assert model.kernel[...] is kernel
    assert not hasattr(model, "added")


def test_variables_of_a_function_and_of_those_that_it_calls_are_put_back():
    history, counts = [], {"calls": 0}

    def inner():
        counts["calls"] += 1

    def outer():
        history.append(1)
        inner()

    state = keep(outer)
    outer()
    state.put_back()

    assert (history, counts) == ([], {"calls": 0})


def test_what_is_unchanged_is_not_touched():
    class Watched(dict):
        def clear(self):
            raise AssertionError("touched")

    item = Watched(a=1)

    keep(lambda item: None, item).put_back()

    assert item == {"a": 1}


def test_changes_are_listed_by_name():
    trainer = Trainer()
    state = keep(trainer.step)

    trainer.weights = jnp.zeros(3)
    trainer.log.append(1)

    assert [name for _, name, _ in state.list_changed()] == ["Trainer.weights", "Trainer.log"]


def test_large_arrays_that_nobody_passed_are_refused_by_name(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_REACHED_BYTES", 2**20)
    table = np.zeros(2**20)

    with pytest.raises(StateError, match=r"the function uses 'table'.* exceed 1 MB with it; nothing was run"):
        keep(lambda x: x + table[0], jnp.ones(3))


def test_large_arrays_that_are_passed_or_cannot_change_are_kept(monkeypatch):
    monkeypatch.setattr(module, "LARGEST_REACHED_BYTES", 2**20)
    frozen = np.zeros(2**20)
    frozen.flags.writeable = False
    fixed = jnp.zeros(2**20)

    state = keep(lambda x: x + frozen[0] + fixed[0], np.zeros(2**20))

    assert len(state.places) == 1


def test_too_many_objects_are_refused_by_name(monkeypatch):
    monkeypatch.setattr(module, "MOST_OBJECTS", 100)

    with pytest.raises(StateError, match="'rows' holds more than 100 objects"):
        keep(lambda rows: None, [[object()] for _ in range(200)])


def test_objects_that_hold_each_other_are_found_once():
    ring = []
    ring.append(ring)

    assert len(keep(lambda ring: None, ring).places) == 1


COUNT = 0
WEIGHTS = jnp.ones(3)


def rebind():
    global COUNT, WEIGHTS, CREATED  # noqa: PLW0603  that it rebinds them matters
    COUNT += 1
    WEIGHTS = WEIGHTS - 1
    CREATED = 1


def test_globals_that_a_function_inside_rebinds_are_put_back():
    weights = WEIGHTS

    def outer():
        return [rebind() for _ in range(2)]

    state = keep(outer)
    outer()
    changed = [name for _, name, _ in state.list_changed()]
    state.put_back()

    assert (COUNT, WEIGHTS is weights, "CREATED" in globals()) == (0, True, False)
    assert sorted(changed) == ["COUNT", "CREATED", "WEIGHTS"]


def test_cells_that_a_function_rebinds_are_put_back_also_those_that_were_empty():
    weights = first = jnp.ones(3)

    def outer():
        def inner():
            nonlocal weights, late
            weights = weights - 1
            late = 1

        inner()

    state = keep(outer)
    outer()
    state.put_back()

    assert weights is first
    with pytest.raises(NameError):
        _ = late  # noqa: F821  it has no value yet
    late = 0


def test_what_a_function_only_reads_is_not_bound_anew():
    state = keep(lambda: WEIGHTS + COUNT)

    assert state.places == []


def test_variables_of_a_users_module_are_put_back():
    module = types.ModuleType("settings")
    module.__file__ = "settings.py"
    module.steps, module.log = 0, []

    def count():
        module.steps += 1
        module.log.append(1)

    state = keep(count)
    count()
    state.put_back()

    assert (module.steps, module.log) == (0, [])


class Counted:
    count = 0
    cache = {}  # noqa: RUF012  that it is shared matters

    def step(self):
        type(self).count += 1
        self._remember()

    def _remember(self):
        global COUNT  # noqa: PLW0603  that it rebinds it matters
        COUNT += 1
        self.cache["a"] = 1
        type(self).added = 1


class Derived(Counted):
    pass


def test_class_attributes_are_put_back_and_what_a_method_inside_rebinds():
    item = Derived()
    state = keep(item.step)

    item.step()
    state.put_back()

    assert (Derived.count, Counted.cache, COUNT) == (0, {}, 0)
    assert not hasattr(Derived, "added")
    assert "count" not in vars(Derived)


def test_attributes_of_a_class_and_bytes_that_are_variables_are_put_back():
    item = bytearray(b"abc")

    def change():
        Counted.count += 1
        item[0] = 0
        item.append(1)

    state = keep(change)
    change()
    state.put_back()

    assert (Counted.count, item) == (0, b"abc")


def test_a_generator_of_the_operating_system_has_no_state_to_keep():
    generator = random.SystemRandom()

    assert keep(lambda: generator).places == []


@pytest.mark.parametrize(
    ("generator", "draw"),
    [
        (np.random.default_rng(0), lambda it: it.normal()),
        (np.random.Generator(np.random.MT19937(0)), lambda it: it.normal()),
        (np.random.RandomState(0), lambda it: it.normal()),
        (random.Random(0), lambda it: it.random()),
    ],
)
def test_random_generators_are_put_back(generator, draw):
    state = keep(lambda: generator)
    assert list(state.list_changed()) == []

    first = draw(generator)
    state.put_back()

    assert draw(generator) == first


def test_values_of_a_trace_are_dropped_within_the_trace():
    held, ref = {"last": None}, jax.new_ref(jnp.zeros(3))

    @jax.jit
    def function(x):
        held["last"], held["count"] = x, 1
        ref[...] = x
        state.drop_tracers()
        return held["last"]

    state = keep(lambda: (held, ref))
    result = function(jnp.ones(3))

    assert (result, held) == (None, {"last": None})
    assert ref[...].tolist() == [1, 1, 1]
