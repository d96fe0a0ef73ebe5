import jax
import pytest

from jaxmeter.harness.machine.interference import OPTIONS, VARIABLES, describe_settings, find_settings, refuse_settings


def test_the_defaults_of_jax_change_nothing():
    assert describe_settings(jax.config.values, {}) == ()
    assert refuse_settings(jax.config.values, {"JAX_PLATFORMS": "cpu", "HOME": "/"}) is None


def test_most_options_of_the_table_are_those_of_this_jax():
    known = [setting.name for setting in OPTIONS if setting.name in jax.config.values]

    assert len(known) >= 0.8 * len(OPTIONS)


@pytest.mark.parametrize("name", [setting.name for setting in OPTIONS if setting.usual[0] is False])
def test_a_switch_that_is_on_is_named_with_its_value_and_effect(name):
    (said,) = describe_settings({**jax.config.values, name: True}, {})

    assert said.startswith(f"{name} is True: ")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jax_cpu_enable_async_dispatch", False),
        ("jax_dump_ir_to", "/somewhere"),
        ("jax_logging_level", "DEBUG"),
        ("jax_error_checking_behavior_nan", "raise"),
    ],
)
def test_an_option_with_another_value_than_usual_is_named(name, value):
    assert list(find_settings({name: value}, {})) == [name]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("jax_enable_x64", True),
        ("jax_default_matmul_precision", "highest"),
        ("jax_numpy_rank_promotion", "raise"),
        ("jax_transfer_guard", "disallow"),
    ],
)
def test_an_option_that_is_part_of_the_program_is_none(name, value):
    assert find_settings({**jax.config.values, name: value}, {}) == {}


def test_the_variable_that_has_set_an_option_is_named():
    variables = {"JAX_DEBUG_NANS": "1"}

    assert "by the variable JAX_DEBUG_NANS" in describe_settings({"jax_debug_nans": True}, variables)[0]
    assert describe_settings({"jax_debug_nans": False}, variables) == ()


@pytest.mark.parametrize("setting", VARIABLES, ids=lambda setting: setting.name)
def test_a_variable_that_changes_what_is_timed_is_named(setting):
    assert list(find_settings({}, {setting.name: "1" if setting.name != "PYTHONMALLOC" else "debug"})) == [setting.name]
    assert find_settings({}, {setting.name: setting.usual[0] or ""}) == {}


def test_a_run_that_is_refused_says_what_to_do():
    said = refuse_settings({"jax_debug_nans": True, "jax_log_compiles": False}, {"PYTHONDEVMODE": "1"})

    assert "jax_debug_nans is True" in said
    assert "PYTHONDEVMODE is '1'" in said
    assert said.endswith("declare it: needs=Needs(config={'jax_debug_nans': True})")
