"""Values that JSON holds and the reader's own encodings do not: such a record is named, the others are read."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.reporting.load import load
from jaxmeter.reporting.render import html
from jaxmeter.reporting.view import build
from tests import samples

DEEP = 100_000
TOO_LARGE = {
    "an integer of 41 digits": str(10**40),
    "a negative one": str(-(10**40)),
    "2^64": str(2**64),
    "below -2^63": str(-(2**63) - 1),
    "an integer of 5000 digits": "9" * 5000,
    "a number beyond a float": "1e999",
    "NaN": "NaN",
    "infinity": "Infinity",
    "half of a pair": r'"\ud800"',
    "deep lists": "[" * DEEP + "]" * DEEP,
}
HELD = {"2^64 - 1": str(2**64 - 1), "-2^63": str(-(2**63)), "a long text of digits": f'"{10**40}"', "1e308": "1e308"}

PLATFORMS = ("params", "values", "allowed_cores")


def write_with(folder: Path, place: str, token: str, run_id: str = "strange") -> Path:
    """A run with a token of JSON in the place of a number."""
    run = json.loads(msgspec.json.encode(samples.run(run_id=run_id)))
    marker = f"@{place}@"
    if place == "allowed_cores":
        run["manifest"]["environments"]["cpu"]["allowed_cores"] = marker
    elif place == "params":
        run["manifest"]["cases"][0]["params"]["n"] = marker
    else:
        outcomes = run["cases"][0]["variants"][0]["outcomes"]
        values = next(one["values"] for one in outcomes.values() if one["values"])
        values["strange"] = [marker]
    (folder / "cases").mkdir(parents=True)
    for name, record in (("manifest.json", run["manifest"]), ("run.json", run)):
        (folder / name).write_text(json.dumps(record).replace(f'"{marker}"', token))
    return folder


@pytest.mark.parametrize("place", PLATFORMS)
@pytest.mark.parametrize("token", TOO_LARGE.values(), ids=TOO_LARGE)
def test_such_a_record_is_named_and_the_others_are_read(tmp_path, place, token):
    good = [samples.write_run(tmp_path / name, samples.run(run_id=name)) for name in ("a", "b", "c")]
    strange = write_with(tmp_path / "strange", place, token)

    loaded = load([*good, strange], only_newest=True)

    assert [one for one in (run.manifest.run_id for run in loaded.runs) if one != "strange"] == ["a", "b", "c"]
    assert any(str(strange) in warning for warning in loaded.warnings)


def test_the_page_of_the_others_is_written(tmp_path):
    good = [samples.write_run(tmp_path / name, samples.run(run_id=name)) for name in ("a", "b", "c")]
    strange = write_with(tmp_path / "strange", "params", str(10**40))
    page = tmp_path / "page.html"

    ended = CliRunner().invoke(app, ["report", *map(str, (*good, strange)), "--out", str(page)])

    assert ended.exit_code == 0, ended.output
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert "left out" in ended.output


def test_what_was_wrong_what_is_allowed_and_what_to_do_is_said(tmp_path):
    strange = write_with(tmp_path / "strange", "params", str(10**40))

    (warning,) = load([strange]).warnings

    assert "an integer of 133 bits" in warning
    assert "from -2^63 to 2^64 - 1; correct it, or leave this run out" in warning


@pytest.mark.parametrize("command", ["report", "export", "history", "compare", "diff", "gc", "push"])
def test_no_command_takes_such_a_record_for_a_fault_of_its_own(tmp_path, command):
    good = samples.write_run(tmp_path / "good", samples.run(run_id="good"))
    strange = write_with(tmp_path / "strange", "params", str(10**40))
    more = {"push": [f"file://{tmp_path}/store"], "diff": ["--case", "selu*"]}.get(command, [])
    runs = {"push": [strange], "gc": [tmp_path]}.get(command, [good, strange])

    ended = CliRunner().invoke(app, [command, *map(str, (*runs, *more))])

    assert not isinstance(ended.exception, Exception), ended.exception
    assert "fault of jaxmeter" not in ended.output


@pytest.mark.parametrize("token", HELD.values(), ids=HELD)
def test_the_largest_values_that_records_hold_are_read(tmp_path, token):
    strange = write_with(tmp_path / "strange", "params", token)

    loaded = load([strange], only_newest=True)

    assert [one.manifest.run_id for one in loaded.runs] == ["strange"]
    assert "</html>" in html.render(build(loaded))


@settings(deadline=None, max_examples=30)
@given(place=st.sampled_from(PLATFORMS), number=st.integers(min_value=-(2**80), max_value=2**80))
@example(place="params", number=2**63)
def test_any_integer_is_read_or_refused_and_never_a_crash(place, number):
    with TemporaryDirectory() as name:
        strange = write_with(Path(name) / "strange", place, str(number))

        loaded = load([strange], only_newest=True)

        assert bool(loaded.warnings) == (not -(2**63) <= number < 2**64)
        assert loaded.runs or place != "values"  # which the manifest does not hold
        if loaded.runs:
            assert "</html>" in html.render(build(loaded))
