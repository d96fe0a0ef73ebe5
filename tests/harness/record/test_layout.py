from pathlib import Path

import pytest

from jaxmeter.harness.record import CaseFolder, RunFolder
from jaxmeter.harness.record.layout import PROGRAM_TEXTS

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
        (CASE.process(0), "cases/selu-1/processes/00.json.gz"),
        (CASE.process(12), "cases/selu-1/processes/12.json.gz"),
        (CASE.process(3, "numpy:native"), "cases/selu-1/processes/03-numpy-native.json.gz"),
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


def test_a_program_s_texts_go_from_what_jax_traced_to_what_xla_compiled():
    assert list(PROGRAM_TEXTS.items()) == [
        ("jaxpr", "jaxpr.txt"),
        ("stablehlo", "stablehlo.mlir"),
        ("hlo", "hlo.txt"),
    ]


def test_case_records_are_those_that_are_there_by_the_case_s_id(tmp_path):
    run = RunFolder(tmp_path)
    for name in ("b", "a"):
        run.case(name).path.mkdir(parents=True)
        run.case(name).record.write_text("{}")
    run.case("without a record").path.mkdir()

    assert list(run.case_records()) == [run.case("a").record, run.case("b").record]


def test_a_run_without_cases_has_no_records(tmp_path):
    assert list(RunFolder(tmp_path / "none").case_records()) == []


def test_the_folder_of_a_case_is_that_of_its_run():
    assert CaseFolder(RUN.cases / "selu-1") == CASE
