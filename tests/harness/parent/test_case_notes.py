import pytest

from tests.harness.parent.made_up import settings


@pytest.mark.parametrize(
    ("config", "noted"),
    [({"jax_debug_nans": True}, ["jax_debug_nans is True"]), ({"jax_enable_x64": True}, []), ({}, [])],
    ids=["a setting that changes what is timed", "one that is the program", "none"],
)
def test_a_case_that_declares_a_setting_that_changes_what_is_timed_has_a_note(measured, config, noted):
    record, _ = measured(settings(), config=config)

    assert [note.partition(":")[0] for note in record.notes] == noted
