"""What of a record is followed, and what a person has to name."""

import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jaxmeter.harness.parent.against import (
    check_same_baseline,
    choose_data,
    choose_lock_step,
    choose_suites,
    is_own_suite,
    replace_paths,
)
from jaxmeter.harness.parent.prepare_run import UsageError
from jaxmeter.harness.record import OtherEnvironment
from tests import samples

RUN = Path("results/run")
ELSEWHERE = OtherEnvironment(python="results/run/python", version="3.11.2", packages={}, variables={})


def manifest(lock_step=None, against="before"):
    plain = samples.manifest([samples.planned_case()])
    settings = msgspec.structs.replace(plain.settings, lock_step=lock_step)
    return msgspec.structs.replace(plain, settings=settings, against=against)


@pytest.mark.parametrize("recorded", [("jaxmeter.suites",), ("jaxmeter.suites.selu", "jaxmeter.suites.matmul"), ()])
def test_jaxmeters_own_suites_are_taken_from_a_record(recorded):
    assert choose_suites((), recorded, RUN, "--against") == recorded


@pytest.mark.parametrize(
    "name",
    [
        "results/run/evil.py",
        "~/evil.py",
        "evil",
        "os",
        "jaxmeter/suites/../evil",
        "jaxmeter.suites.selu/../../evil",
        "jaxmeter.suites..selu",
        "suites.selu",
        "jaxmeter.suites.selu\n",
        ".jaxmeter.suites",
        "",
    ],
)
@pytest.mark.parametrize("option", ["--against", "--resume"])
def test_other_suites_have_to_be_named_by_a_person(name, option):
    with pytest.raises(UsageError, match=rf"(?s)^{option} results/run: its suites are .*--suites PATH"):
        choose_suites((), ("jaxmeter.suites.selu", name), RUN, option)


@given(st.text())
def test_only_names_of_modules_below_suites_are_own(name):
    parts = name.split(".")

    assert not is_own_suite(name) or (parts[:2] == ["jaxmeter", "suites"] and all(map(str.isidentifier, parts)))


def test_suites_that_were_given_are_used_whatever_the_record_says(tmp_path):
    assert choose_suites(("mine.py",), ("evil.py",), tmp_path / "run", "--resume") == ("mine.py",)


def test_a_suite_inside_the_run_is_refused_though_a_person_names_it(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    (run / "evil.py").touch()
    (tmp_path / "link.py").symlink_to(run / "evil.py")

    for name in (run / "evil.py", run, tmp_path / "link.py"):
        with pytest.raises(UsageError, match="lies inside the run"):
            choose_suites((str(name),), (), run, "--against")


def test_a_folder_of_data_has_to_be_named_by_a_person():
    assert choose_data(None, None, RUN, "--against") is None
    assert choose_data(Path("mine"), "theirs", RUN, "--against") == Path("mine")
    with pytest.raises(UsageError, match="--data DIR"):
        choose_data(None, "theirs", RUN, "--against")


def test_the_python_of_another_environment_has_to_be_named_by_a_person():
    assert choose_lock_step(None, manifest(), RUN) is None
    chosen = choose_lock_step("mine/bin/python", manifest(ELSEWHERE), RUN)
    assert chosen == msgspec.structs.replace(ELSEWHERE, python="mine/bin/python")
    with pytest.raises(UsageError, match="--lock-step PYTHON"):
        choose_lock_step(None, manifest(ELSEWHERE), RUN)
    with pytest.raises(UsageError, match="measures in one environment"):
        choose_lock_step("mine/bin/python", manifest(), RUN)


def test_a_run_that_goes_on_next_to_another_checkout_needs_its_folder_again():
    base, recorded = Path("../base"), msgspec.structs.replace(ELSEWHERE, checkout="evil")

    chosen = choose_lock_step(None, manifest(recorded), RUN, base)
    assert (chosen.python, chosen.checkout) == (sys.executable, "../base")
    assert choose_lock_step("mine/bin/python", manifest(recorded), RUN, base).python == "mine/bin/python"
    with pytest.raises(UsageError, match="jaxmeter loads no code from a recorded path"):
        choose_lock_step("mine/bin/python", manifest(recorded), RUN)
    for other in (manifest(), manifest(ELSEWHERE)):
        with pytest.raises(UsageError, match=r"--baseline-checkout \.\./base: .* measures one checkout"):
            choose_lock_step(None, other, RUN, base)


def test_a_run_goes_on_next_to_the_run_that_it_began_with(tmp_path):
    earlier = samples.write_run(tmp_path / "earlier", samples.run())
    run_id = samples.run().manifest.run_id

    check_same_baseline(manifest(against=run_id), earlier)
    check_same_baseline(manifest(), None)
    for against in ("another", None):
        with pytest.raises(UsageError, match="was begun next to"):
            check_same_baseline(manifest(against=against), earlier)
    with pytest.raises(UsageError, match="give the folder of a run"):
        check_same_baseline(manifest(), tmp_path / "nothing")


def test_the_record_of_a_run_that_goes_on_names_what_was_given(monkeypatch):
    monkeypatch.setenv("HOME", "/home/anna")
    settings = samples.manifest([]).settings

    found = replace_paths(settings, ("/home/anna/mine.py",), Path("/home/anna/data"), ELSEWHERE)

    assert (found.suites, found.data, found.lock_step) == (("~/mine.py",), "~/data", ELSEWHERE)
