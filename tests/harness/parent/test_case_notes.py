import pytest

from jaxmeter.harness.parent.case import CaseProgress
from tests import samples


@pytest.mark.parametrize(
    ("config", "noted"),
    [({"jax_debug_nans": True}, ["jax_debug_nans is True"]), ({"jax_enable_x64": True}, []), ({}, [])],
    ids=["a setting that changes what is timed", "one that is the program", "none"],
)
def test_a_case_that_declares_a_setting_that_changes_what_is_timed_has_a_note(config, noted):
    record = CaseProgress(samples.planned_case(config=config), samples.settings(), ()).make_record()

    assert [note.partition(":")[0] for note in record.notes] == noted
