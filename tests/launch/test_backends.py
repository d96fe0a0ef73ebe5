"""The table of backends agrees with the locks, and each option belongs to those who have it."""

from jaxmeter.launch.backends import BACKENDS, DEFAULT_BACKEND, OPTIONS
from jaxmeter.launch.images import LOCKS, SMALLEST_LOCK, STORES_LOCK


def test_backends_and_their_options_name_every_lock_but_that_of_stores():
    chosen = {lock for option in OPTIONS.values() for lock in (*option.locks.values(), option.lock)}

    assert {needs.lock for needs in BACKENDS.values()} | chosen - {None} == LOCKS.keys() - {STORES_LOCK}


def test_an_option_that_chooses_a_lock_cannot_be_given_beside_an_image_and_says_why():
    choosing = {name for name, option in OPTIONS.items() if option.locks or option.lock}

    assert {name for name, option in OPTIONS.items() if option.beside_image} == choosing


def test_what_is_taken_where_nothing_is_named_is_there():
    assert DEFAULT_BACKEND in BACKENDS
    assert LOCKS[SMALLEST_LOCK].disk_bytes == min(lock.disk_bytes for lock in LOCKS.values())
