"""The table of backends: its rows agree with the locks, and each option belongs to those who have it."""

import pytest

from jaxmeter.launch.backends import BACKENDS, DEFAULT_BACKEND, OPTIONS
from jaxmeter.launch.command_line import read_request
from jaxmeter.launch.engines import Engine
from jaxmeter.launch.host import Host
from jaxmeter.launch.locks import LOCKS, SMALLEST_LOCK, STORES_LOCK
from jaxmeter.launch.nvidia import NVIDIA_GPUS

every_backend = pytest.mark.parametrize("backend", BACKENDS)


@every_backend
def test_a_row_is_found_by_its_name_and_names_locks_that_there_are(backend):
    needs = BACKENDS[backend]

    named = {needs.lock, *(lock for option in needs.options for lock in (*option.locks.values(), option.lock) if lock)}

    assert needs.name == backend
    assert named <= LOCKS.keys()


def test_every_lock_but_that_of_stores_is_the_lock_of_some_backend():
    rows = BACKENDS.values()
    chosen = {lock for option in OPTIONS.values() for lock in (*option.locks.values(), option.lock)}

    assert {needs.lock for needs in rows} | chosen - {None} == LOCKS.keys() - {STORES_LOCK}


def test_an_option_that_chooses_a_lock_cannot_be_given_beside_an_image_and_says_why():
    choosing = {name for name, option in OPTIONS.items() if option.locks or option.lock}

    assert {name for name, option in OPTIONS.items() if option.beside_image} == choosing


def test_what_is_taken_where_nothing_is_named_is_there():
    assert DEFAULT_BACKEND in BACKENDS
    assert LOCKS[SMALLEST_LOCK].disk_bytes == min(lock.disk_bytes for lock in LOCKS.values())


def test_only_the_containers_of_gpus_are_for_nvidias_hook():
    named = {name for name, needs in BACKENDS.items() if "NVIDIA_VISIBLE_DEVICES" in needs.devices.container_variables}

    assert named == {"gpu"}
    assert BACKENDS["gpu"].devices is NVIDIA_GPUS


def test_a_processor_is_there_without_looking_and_needs_nothing():
    devices, request = BACKENDS["cpu"].devices, read_request("cpu", [], {})
    engine = Engine("docker", "docker", "28")

    assert devices.describe is None
    assert devices.find_problems(request, Host(), engine) == devices.find_warnings(Host(), False) == []
    assert devices.container_arguments(engine, request, Host()) == ()
