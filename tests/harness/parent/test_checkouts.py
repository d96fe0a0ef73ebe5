"""Which folder takes the place of which, and which code it has to hold."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from jaxmeter.harness.parent.against import Checkout, check_code, find_checkout
from jaxmeter.harness.parent.prepare_run import UsageError
from jaxmeter.harness.plan.cases import add_lock_step
from jaxmeter.harness.plan.messages import Seen, SeenCase
from jaxmeter.harness.record import Outcome, Status
from tests import samples

SUITE = Path("bench/step.py")


@pytest.fixture(autouse=True)
def both(tmp_path, monkeypatch):
    """Today's checkout, in which the command is given, and the earlier one next to it."""
    for name in ("new", "base"):
        (tmp_path / name / ".git").mkdir(parents=True)
        (tmp_path / name / "bench").mkdir()
        (tmp_path / name / SUITE).touch()
    monkeypatch.chdir(tmp_path / "new")
    return tmp_path


@pytest.mark.parametrize("form", ["bench/step.py", "./bench/../bench/step.py", "{new}/bench/step.py"])
def test_a_suite_has_its_counterpart_at_the_same_place(both, form):
    found = find_checkout(Path("../base"), [form.format(new=both / "new")])

    assert (found.today, found.then) == (both / "new", both / "base")
    assert found.suites == (str(both / "base" / SUITE),)


def test_a_module_keeps_its_name_and_is_found_by_the_folder_that_its_process_starts_in(both):
    assert find_checkout(Path("../base"), ["bench", "team.bench"]).suites == ("bench", "team.bench")


def test_the_place_is_that_of_the_suites_own_repository_where_the_command_is_given_elsewhere(both, monkeypatch):
    (both / "elsewhere").mkdir()
    monkeypatch.chdir(both / "elsewhere")

    found = find_checkout(both / "base", [str(both / "new" / SUITE)])

    assert (found.today, found.suites) == (both / "new", (str(both / "base" / SUITE),))


def test_a_checkout_may_lie_in_todays_checkout_or_around_it(both, monkeypatch):
    (both / "base").rename(both / "new" / "base")
    assert find_checkout(Path("base"), [str(SUITE)]).suites == (str(both / "new" / "base" / SUITE),)

    (both / "new" / "base").rename(both / "base")
    (both / "new").rename(both / "base" / "new")
    monkeypatch.chdir(both / "base" / "new")
    assert find_checkout(Path(".."), [str(SUITE)]).today == both / "base" / "new"


@pytest.mark.parametrize(
    ("given", "suite", "words"),
    [
        ("../gone", SUITE, "--baseline-checkout ../gone: no such folder; make it: git worktree add ../gone COMMIT"),
        ("bench/step.py", SUITE, "not a folder"),
        (".", SUITE, "this folder holds the current code"),
        ("../new", SUITE, "this folder holds the current code"),
        ("../base", "bench/new.py", "--baseline-checkout ../base has no bench/new.py"),
        ("../base", "../base/bench/step.py", "name the suite of the current checkout"),
        ("../base", "../loose.py", "lies outside the current folder and in no repository"),
        ("../base", "jaxmeter.suites", "jaxmeter's own suites"),
        ("../base", "jaxmeter.suites.selu", "jaxmeter's own suites"),
    ],
)
def test_what_has_no_counterpart_is_refused(given, suite, words):
    with pytest.raises(UsageError) as raised:
        find_checkout(Path(given), [str(suite)])

    assert words in str(raised.value)


def test_suites_of_two_checkouts_have_not_one_counterpart(both):
    other = both / "other"
    (other / ".git").mkdir(parents=True)
    (other / "bench").mkdir()
    (other / SUITE).touch()

    with pytest.raises(UsageError, match="several checkouts"):
        find_checkout(Path("../base"), [str(SUITE), str(other / SUITE)])


def look(**changed: object) -> tuple[list, Seen]:
    """A case with an earlier variant, and what the checkout has of it."""
    before = samples.planned_case(variants=("selu:eager", "selu:jit"))
    record = samples.record(before, {one.name: {"numerics": Outcome(status=Status.OK)} for one in before.variants})
    case = add_lock_step(before, before, record, "base", from_checkout=True)
    sources = {one.name: one.source for one in before.variants}
    seen = SeenCase(definition=before.definition, sources=sources)
    return [case], Seen(cases={case.id: msgspec.structs.replace(seen, **changed)}, strangers={})


def check(cases: list, seen: Seen, revision: str | None = "a1b2c3d") -> None:
    manifest = samples.manifest(cases)
    environment = msgspec.structs.replace(manifest.environment, git_revision=revision)
    manifest = msgspec.structs.replace(manifest, run_id="base", environments={manifest.backend: environment})
    check_code(Checkout(Path("../base"), Path("/new"), Path("/base"), ()), cases, seen, manifest)


def test_the_code_that_the_earlier_run_measured_is_accepted():
    check(*look())


@pytest.mark.parametrize("revision", ["a1b2c3d", None])
@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"sources": {"selu:eager": "0" * 16, "selu:jit": "other"}}, "the code of selu in"),
        ({"sources": {"selu:jit": "0" * 16}}, "the code of selu in"),
        ({"definition": "other"}, "inputs, reference or cost of"),
    ],
)
def test_other_code_than_the_earlier_run_measured_is_refused_with_its_commit(changed, words, revision):
    with pytest.raises(UsageError) as raised:
        check(*look(**changed), revision)

    assert "--baseline-checkout ../base: not what run base measured" in str(raised.value)
    assert words in str(raised.value)
    assert ("check out the commit a1b2c3d" in str(raised.value)) == (revision is not None)


def test_a_module_of_todays_checkout_is_refused_with_its_file():
    cases, seen = look()
    strangers = {"team.inner": "/new/team/inner.py", "team": "/new/team/__init__.py"}

    with pytest.raises(UsageError, match=r"team is loaded from /new/team/__init__.py and not from this checkout"):
        check(cases, msgspec.structs.replace(seen, strangers=strangers))
