"""What jaxmeter reads of JAX's internals is there, in the installed release, by the names of the table."""

import itertools
import pkgutil
import re
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxmeter.harness.machine import jax_internals as internals
from jaxmeter.harness.machine.jax_internals import INTERNALS, NEWEST_TESTED, Internal, Name, read_release
from jaxmeter.harness.machine.own_fault import OwnFaultError, ReleaseLacksError
from jaxmeter.harness.programs.program import walk_equations as walk

INSTALLED = read_release(jax.__version__)
CHECKOUT = Path(__file__).parents[3]


@pytest.fixture
def release(monkeypatch):
    return lambda text: monkeypatch.setattr(internals, "version", lambda name: text)


def test_the_newest_tested_release_is_the_newest_locked_one():
    locks = (CHECKOUT / "docker/locks/dev.txt").read_text(encoding="utf8")
    locked = re.findall(r"^jax==([\d.]+)", locks, re.MULTILINE)

    assert max(locked, key=read_release) == NEWEST_TESTED


@pytest.mark.parametrize("row", INTERNALS.values(), ids=INTERNALS)
def test_the_names_of_a_row_follow_each_other_without_a_gap(row):
    """A release has at most one of them, and none returns."""
    assert row.what
    assert row.unknown
    for newer, older in itertools.pairwise(row.names):
        assert older.until == newer.since
        assert older.since < newer.since


def test_a_release_that_lacks_it_by_the_table_has_a_known_limit_and_any_other_is_our_own_fault(release):
    row = Internal("the shape of a box", "how large it is", (Name("box", since=(0, 7)), Name("case", until=(0, 6))))

    for version, kind in {"0.5.3": OwnFaultError, "0.6.2": ReleaseLacksError, "0.7.0": OwnFaultError}.items():
        release(version)
        with pytest.raises(kind, match=re.escape(f"jax {version} has no box or case")) as raised:
            row.find({})
        assert type(raised.value) is kind
        assert raised.value.unknown == "how large it is"


def test_a_release_newer_than_the_newest_tested_may_have_lost_anything_and_that_is_our_own_fault(release):
    release("99.0")

    with pytest.raises(OwnFaultError):
        Internal("a", "b", (Name("gone", until=(0, 6)),)).find({})


def test_the_newest_name_that_is_there_counts_in_mappings_objects_and_modules():
    row = Internal("a", "b", (Name("json.decoder.absent"), Name("json.decoder.JSONDecoder")))
    of_holder = Internal("a", "b", (Name("newer"), Name("older")))

    assert row.load() is pkgutil.resolve_name("json.decoder.JSONDecoder")
    assert of_holder.find({"older": 1}) == of_holder.find(SimpleNamespace(older=1)) == 1
    assert of_holder.find({"older": 1, "newer": 2}) == 2


@pytest.mark.parametrize(
    ("installed", "is_untested"),
    [(NEWEST_TESTED, False), ("0.4.31", False), ("0.12.0.2", True), ("0.13.0rc1", True), ("0.13.0.dev20261101", True)],
)
def test_a_jax_newer_than_the_newest_tested_is_a_note(installed, is_untested):
    note = internals.describe_untested({"jax": installed})

    assert bool(note) is is_untested
    assert not is_untested or (installed in note and NEWEST_TESTED in note)


# In the installed release


def program(x, w):
    total, _ = jax.lax.scan(lambda c, row: (c + row + w.sum(), c * row), x[0], x)
    total = jax.lax.while_loop(lambda s: s < 10, lambda s: s + total * total + 1, total)
    total = jax.lax.cond(total > 3, lambda s: s * 2, lambda s: s + 1, total)
    image = w[None, None]
    return total + jax.jit(lambda m: (m @ m).sum())(w) + jax.lax.conv(image, image, (1, 1), "SAME").sum()


ARGUMENTS = (np.ones(4, np.float32), np.ones((3, 3), np.float32))
OF_PRIMITIVES = {
    "scan": ("SCAN_BODY", "SCAN_LENGTH", "SCAN_REVERSE", "SCAN_COUNTS"),
    "while": ("WHILE_CONDITION", "WHILE_CONDITION_COUNT", "WHILE_BODY", "WHILE_BODY_COUNT"),
    "cond": ("BRANCHES",),
    "jit": ("CALL_BODY", "DONATED"),
    "dot_general": ("DIMENSIONS", "PRECISION"),
    "conv_general_dilated": ("DIMENSIONS", "PRECISION"),
}


@pytest.mark.parametrize("primitive", OF_PRIMITIVES)
def test_primitives_have_the_parameters_of_the_table(primitive):
    equations = {each.primitive.name: each for each in walk(jax.make_jaxpr(program)(*ARGUMENTS).jaxpr)}

    for name in OF_PRIMITIVES[primitive]:
        INTERNALS[name].find(equations[primitive].params)


def test_modules_have_what_the_table_names():
    loaded = [name for name, row in INTERNALS.items() if row.name.startswith(("jax.", "jax._src", "jaxlib."))]

    assert len(loaded) > 8
    for name in loaded:
        INTERNALS[name].load()


def test_jax_reports_the_events_of_the_table(tmp_path):
    from jaxmeter.harness.programs.jax_events import use_cache, watch_jax

    before = {
        name: jax.config.values[name] for name in ("jax_compilation_cache_dir", "jax_enable_compilation_cache")
    } | {name: jax.config.values[name] for name in jax.config.values if name.startswith("jax_persistent_cache_min")}
    use_cache(str(tmp_path))
    internals.RESET_CACHE.load()()  # another test may have decided that there is none
    try:
        with watch_jax() as events:
            for _ in range(2):
                jax.clear_caches()
                jax.jit(lambda x: jnp.cos(x) * 3)(ARGUMENTS[0]).block_until_ready()
    finally:
        for name, value in before.items():
            jax.config.update(name, value)
        internals.RESET_CACHE.load()()

    assert set(events.durations_s) >= {internals.TRACED.name, internals.LOWERED.name, internals.COMPILED.name}
    assert (events.hits, events.misses) >= (1, 1)


def test_an_event_that_jax_does_not_report_is_noticed(monkeypatch):
    from jaxmeter.harness.programs.jax_events import find_silent_events

    renamed = Internal("the event of a trace", "how often JAX traces", (Name("/jax/renamed"),))

    assert find_silent_events.__wrapped__() == ()
    monkeypatch.setattr(internals, "TRACED", renamed)
    assert find_silent_events.__wrapped__() == (renamed,)


@pytest.mark.parametrize(
    ("row", "function", "arguments"),
    [
        ("TRIP_COUNT", lambda x: jax.lax.fori_loop(0, 7, lambda _, c: jnp.sin(c) @ c, x), (np.ones((30, 30), "f4"),)),
        ("ELIDED", lambda x: x @ np.arange(1000.0, dtype="f4").reshape(10, 100), (np.ones((7, 10), "f4"),)),
        ("OUTPUT_ALIASES", jax.jit(lambda x: x + 1, donate_argnums=0), ARGUMENTS[:1]),
    ],
    ids=["trip_count", "elided", "output_aliases"],
)
def test_hlo_text_has_the_parts_of_the_table(row, function, arguments):
    jitted = function if hasattr(function, "lower") else jax.jit(function)
    text = jitted.lower(*arguments).compile().as_text()

    assert INTERNALS[row].name in text


def test_objects_have_the_attributes_of_the_table():
    jitted = jax.jit(program)

    internals.CACHE_SIZE.find(jitted)
    internals.BUFFERS.find(jitted.lower(*ARGUMENTS).compile().memory_analysis())


@pytest.mark.parametrize("grows", [False, True])
def test_a_scan_has_constants_carried_values_and_rows(grows):
    def loop(x, w, k):
        def step(carry, row):
            return {"a": carry["a"] + row["u"] + w.sum(), "b": (carry["b"][0] * k, carry["b"][1])}, carry["a"]

        return jax.lax.scan(step, {"a": x[0], "b": (x[1], x[2])}, {"u": x})

    function = jax.grad(lambda *args: loop(*args)[0]["a"]) if grows else loop
    scans = [
        each
        for each in walk(jax.make_jaxpr(function)(*ARGUMENTS, np.float32(2)).jaxpr)
        if each.primitive.name == "scan"
    ]

    assert scans
    for scan in scans:
        fixed, carried = internals.count_scan(scan.params, scan.invars)
        body = internals.SCAN_BODY.find(scan.params)
        shapes = [var.aval.shape for var in body.jaxpr.invars]
        given = [var.aval.shape for var in scan.invars]
        assert shapes == [*given[: fixed + carried], *(shape[1:] for shape in given[fixed + carried :])]


@pytest.mark.parametrize("primitive", ["jit", "custom_vjp_call", "scan", "scatter-add", "reduce_window", "cond"])
def test_primitives_of_which_the_functions_are_known_pass(primitive):
    internals.check_known(primitive)


def test_a_primitive_that_a_later_release_names_otherwise_is_our_own_fault():
    with pytest.raises(OwnFaultError, match="does not know the primitive scan_of_tomorrow"):
        internals.check_known("scan_of_tomorrow")


def test_a_scan_of_an_unknown_form_is_our_own_fault():
    parts = SimpleNamespace(unpack=lambda: ((), (None,)))

    with pytest.raises(OwnFaultError, match="has another form"):
        internals.count_scan({"ft_in": parts}, [1])
    with pytest.raises(OwnFaultError, match="ft_in or num_consts"):
        internals.count_scan({"counts": 1}, [1])
