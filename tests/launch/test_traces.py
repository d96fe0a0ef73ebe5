from pathlib import Path

import pytest

from jaxmeter.launch.options import UsageError
from jaxmeter.launch.sessions.traces import DEFAULT_PORT, TraceRequest, copy_captures, read_trace_request


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["results/a"], TraceRequest(Path("results/a"), DEFAULT_PORT, "")),
        (["results/a", "--port", "80"], TraceRequest(Path("results/a"), 80, "")),
        (["--select=selu", "results/a"], TraceRequest(Path("results/a"), DEFAULT_PORT, "selu")),
    ],
)
def test_a_run_is_named_with_a_port_and_cases(arguments, expected):
    assert read_trace_request(arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "name one run: nox -s traces -- results/RUN"),
        (["a", "b"], "name one run"),
        (["--help"], "name one run"),
        (["a", "--port", "0"], "--port '0' is none"),
        (["a", "--port", "65536"], "--port '65536' is none"),
        (["a", "--port", "²"], "--port '²' is none"),
    ],
)
def test_what_names_no_run_or_port_is_an_error(arguments, message):
    with pytest.raises(UsageError) as raised:
        read_trace_request(arguments)

    assert message in str(raised.value)


@pytest.fixture
def run(tmp_path):
    """A run with three captures of two cases."""
    folder = tmp_path / "results" / "it"
    for case, variant in (("selu-n=1", "f-jit"), ("selu-n=1", "f-eager"), ("matmul-n=1", "g-jit")):
        capture = folder / "cases" / case / "trace" / variant / "plugins" / "profile" / "capture"
        capture.mkdir(parents=True)
        (capture / "host.xplane.pb").write_bytes(variant.encode())
    (folder / "manifest.json").write_text("{}")
    return folder


def files_of(folder):
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_captures_are_copied_and_the_run_stays_as_it_is(run, tmp_path):
    before = files_of(run)

    assert copy_captures(TraceRequest(run, 1, ""), tmp_path / "copies") == 3

    assert files_of(tmp_path / "copies") == {
        "selu-n=1/f-jit/plugins/profile/capture/host.xplane.pb",
        "selu-n=1/f-eager/plugins/profile/capture/host.xplane.pb",
        "matmul-n=1/g-jit/plugins/profile/capture/host.xplane.pb",
    }
    assert files_of(run) == before


def test_only_the_selected_cases_are_copied(run, tmp_path):
    assert copy_captures(TraceRequest(run, 1, "matmul"), tmp_path / "copies") == 1
    assert {path.partition("/")[0] for path in files_of(tmp_path / "copies")} == {"matmul-n=1"}


@pytest.mark.parametrize(
    ("select", "message"),
    [("cnn", "no captured profile of a case that begins with 'cnn'"), ("", "it: no captured profile; capture some:")],
)
def test_a_run_without_captures_says_how_to_get_some(run, tmp_path, select, message):
    if not select:
        for path in run.glob("cases/*/trace"):
            path.rename(path.parent / "other")

    with pytest.raises(UsageError) as raised:
        copy_captures(TraceRequest(run, 1, select), tmp_path / "copies")

    assert message in str(raised.value)
    assert "--probe trace" in str(raised.value)


def test_a_folder_that_is_no_run_is_an_error(tmp_path):
    with pytest.raises(UsageError, match="no run; give a folder"):
        copy_captures(TraceRequest(tmp_path, 1, ""), tmp_path / "copies")
