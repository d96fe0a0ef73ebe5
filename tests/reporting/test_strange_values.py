"""Values that JSON holds and the reader's own encodings do not: such a record is named, the others are read."""

import contextlib
import json
import warnings
from pathlib import Path

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
from tests.odd_run import odd_run

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


@pytest.mark.parametrize("place", ["params", "values", "allowed_cores"])
@pytest.mark.parametrize("token", TOO_LARGE.values(), ids=TOO_LARGE)
def test_such_a_record_is_named_and_the_others_are_read(tmp_path, place, token):
    good = [samples.write_run(tmp_path / name, samples.run(run_id=name)) for name in ("a", "b", "c")]
    strange = write_with(tmp_path / "strange", place, token)

    loaded = load([*good, strange], only_newest=True)

    assert [one for one in (run.manifest.run_id for run in loaded.runs) if one != "strange"] == ["a", "b", "c"]
    assert any(str(strange) in warning for warning in loaded.warnings)


def test_the_page_of_the_others_is_written_and_what_is_allowed_is_said(tmp_path):
    good = [samples.write_run(tmp_path / name, samples.run(run_id=name)) for name in ("a", "b", "c")]
    strange = write_with(tmp_path / "strange", "params", str(10**40))
    page = tmp_path / "page.html"

    ended = CliRunner().invoke(app, ["report", *map(str, (*good, strange)), "--out", str(page)])

    assert ended.exit_code == 0, ended.output
    assert page.read_text().startswith("<!DOCTYPE html>")
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


RUN = json.loads(msgspec.json.encode(odd_run(run_id="strange")))
OTHERS = [odd_run(run_id=f"other {day}", started=f"2026-01-0{day}T03:04:05Z") for day in range(3, 7)]
SMALLEST, LARGEST = 5e-324, 1e308
EXTREMES = {
    bool: (True, False),
    int: (0, 1, -1, 2**63 - 1, -(2**63), 2**64 - 1),
    float: (0.0, -0.0, SMALLEST, -1.0, LARGEST, -LARGEST),
    str: ("", "\x00", "a\x1b[31m", "2026-01-01T10:00:00", "0001-01-01T00:00:00+00:00", "../x", "[*", "A" * 300),
    type(None): (0, 0.0, "", LARGEST, 2**64 - 1),
    list: ([], [None]),
    dict: ({},),
}
"""By the type of a value, those of its type that arithmetic, comparisons, names or paths may not expect."""

VERBS = {
    "report": ["report", "strange", "--out", "page.html", "--markdown", "page.md"],
    "compare": ["compare", "other 3", "strange"],
    "gate": ["gate", "other 3", "strange"],
    "exact gate": ["gate", "strange", "other 3", "--exact"],
    "history": ["history", "strange", *(one.manifest.run_id for one in OTHERS)],
    "gc": ["gc", "."],
    "export": ["export", "strange", "--out", "a.csv"],
    "google-benchmark": ["export", "strange", "--to", "google-benchmark", "--out", "a.json"],
    "operations": ["export", "strange", "--to", "json", "--table", "operations", "--out", "a.json"],
    "reproduce": ["reproduce", "strange", "--case", "trapped*", "--variant", "f:jit", "--out", "a.zip"],
    "diff": ["diff", "other 3", "strange", "--case", "trapped*"],
    "trace": ["trace", "strange"],
}


def list_places(node, path=()):
    """Yield the path of every value below a node of JSON."""
    for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield (*path, key)
        yield from list_places(node[key], (*path, key))


def name_place(path):
    """The last two names of a path, `values.trace_s[]` of the items of a list: many values have them."""
    return ".".join([key for key in path if isinstance(key, str)][-2:]) + "[]" * isinstance(path[-1], int)


def put(run, path, choice):
    """Replace a value by an extreme one of its type; return whether it was there."""
    try:
        for key in path[:-1]:
            run = run[key]
        extremes = EXTREMES[type(run[path[-1]])]
    except (KeyError, IndexError, TypeError):
        return
    run[path[-1]] = msgspec.json.decode(msgspec.json.encode(extremes[choice % len(extremes)]))


PLACES = list(list_places(RUN))
NAMES = sorted({name_place(path) for path in PLACES})


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """A folder with the runs that nobody has changed, in which the verbs are called."""
    folder = tmp_path_factory.mktemp("others")
    for one in OTHERS:
        samples.write_run(folder / one.manifest.run_id, one)
    return folder


@settings(deadline=None, max_examples=settings.default.max_examples * 3 // 5)
@given(
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3),
    everywhere=st.booleans(),
    choice=st.integers(0, 119),
    verb=st.sampled_from(list(VERBS)),
)
@example(names=["manifest.started"], everywhere=True, choice=3, verb="gc")  # without a time zone
@example(names=["cases.id"], everywhere=True, choice=2, verb="reproduce")  # with a character of control
@example(
    names=["values.trace_s[]", "values.lower_s[]", "values.compile_s[]", "values.first_call_s[]"],
    everywhere=True,
    choice=0,
    verb="report",
)
def test_no_value_that_the_schema_allows_ends_a_verb_with_a_traceback(others, names, everywhere, choice, verb):
    run = msgspec.json.decode(msgspec.json.encode(RUN))
    for name in names:
        paths = [path for path in PLACES if name_place(path) == name]
        for path in paths if everywhere else paths[choice % len(paths) :][:1]:
            put(run, path, choice)
    folder = others / "strange"
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_bytes(msgspec.json.encode(run))
    (folder / "manifest.json").write_bytes(msgspec.json.encode(run.get("manifest")))

    with contextlib.chdir(others), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of numpy, about numbers near the largest
        ended = CliRunner().invoke(app, VERBS[verb])

    assert not isinstance(ended.exception, Exception), (ended.exception, ended.exc_info)
    assert ended.exit_code in (0, 1, 2, 3)
