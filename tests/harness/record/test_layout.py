from pathlib import Path

import pytest

from jaxmeter.harness.record import RunFolder
from jaxmeter.harness.record.files import name_replaced

RUN = RunFolder(Path("results/2026"))
CASE = RUN.case("selu-1")


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (RUN.manifest, "manifest.json"),
        (RUN.mark, "run.json"),
        (RUN.stop, "stopped.json"),
        (RUN.cases, "cases"),
        (CASE.path, "cases/selu-1"),
        (CASE.record, "cases/selu-1/case.json"),
        (CASE.next_process("check"), "cases/selu-1/processes/0000-check.json.gz"),
        (CASE.programs("selu:jit"), "cases/selu-1/programs/selu-jit"),
        (CASE.trace("selu:jit"), "cases/selu-1/trace/selu-jit"),
        (CASE.trace("../../x"), "cases/selu-1/trace/..-..-x"),
        (CASE.programs(".."), "cases/selu-1/programs/-.."),
        (CASE.programs(""), "cases/selu-1/programs/-"),
    ],
    ids=str,
)
def test_everything_has_its_place_in_the_run_folder(path, expected):
    assert path == Path("results/2026") / expected


def test_processes_are_numbered_in_their_order_and_a_replaced_one_is_none_of_them(tmp_path):
    case = RunFolder(tmp_path).case("selu-1")
    for name in ("0000-check", "0001-timing", "0001-timing.replaced", "00", "00-numpy-native"):
        (case.path / "processes").mkdir(parents=True, exist_ok=True)
        (case.path / "processes" / f"{name}.json.gz").touch()

    assert [path.name for path in case.processes()] == ["0000-check.json.gz", "0001-timing.json.gz"]
    assert [path.name for path in case.processes("timing")] == ["0001-timing.json.gz"]
    assert case.next_process("trace").name == "0002-trace.json.gz"
    assert name_replaced(case.processes("timing")[0]).exists()
