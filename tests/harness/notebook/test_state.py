import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from harness.notebook import state as module
from harness.notebook.state import State, StateError


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
    state = State.of_call([function], args, kwargs)
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


def test_numbers_of_numpy_are_put_back_in_their_own_memory():
    array = np.zeros(3)
    state = keep(lambda array: None, array)

    array += 1
    state.put_back()

    assert array.tolist() == [0, 0, 0]


def test_a_reference_of_jax_is_put_back():
    ref = jax.new_ref(jnp.zeros(3))
    state = keep(lambda ref: None, ref)

    ref[...] = jnp.ones(3)
    state.put_back()

    assert ref[...].tolist() == [0, 0, 0]


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

    with pytest.raises(StateError, match=r"the function uses 'table'.* more than 1 MB; nothing was run"):
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
