import ast
import io
import json
import re
import zipfile

import msgspec
import pytest
from typer.testing import CliRunner

from jaxmeter.cli.app import app
from jaxmeter.harness.metrics.reading import Run
from jaxmeter.harness.record import Outcome, Status
from jaxmeter.harness.record.files import EXPORTED
from jaxmeter.reporting.reproduce import NothingToReproduceError, find_subject, make_zip
from tests import samples
from tests.reporting.recorded_programs import TEXTS, recorded

SHARED = "read it before you share the zip"
KEPT = {"selu:jit": {**TEXTS, EXPORTED: "the program"}}


def zipped(loaded, pattern="selu*", variant=None, warnings=None):
    """(the folder's name, the files in it by name) of a zip."""
    subject = find_subject(loaded, pattern, variant)
    found = [] if warnings is None else warnings
    with zipfile.ZipFile(io.BytesIO(make_zip(subject, found))) as archive:
        assert archive.testzip() is None
        files = {name: archive.read(name) for name in archive.namelist()}
    assert warnings is not None or all(one.endswith(SHARED) for one in found)
    (folder,) = {name.partition("/")[0] for name in files}
    return folder, {name.partition("/")[2]: data for name, data in files.items()}


def refused(loaded, pattern="selu*", variant=None):
    with pytest.raises(NothingToReproduceError) as caught:
        find_subject(loaded, pattern, variant)
    return str(caught.value)


def with_environment(loaded, **changes):
    here = msgspec.structs.replace(loaded.record.manifest.environment, **changes)
    manifest = msgspec.structs.replace(loaded.record.manifest, environments={"cpu": here})
    return Run(msgspec.structs.replace(loaded.record, manifest=manifest), loaded.folder)


def settings_of(script):
    """(variables, config) that a script sets."""
    calls = [one for one in ast.walk(ast.parse(script)) if isinstance(one, ast.Call)]
    variables = [ast.literal_eval(one.args[0]) for one in calls if ast.unparse(one.func) == "os.environ.update"]
    config = [one.args for one in calls if ast.unparse(one.func) == "jax.config.update"]
    return variables, {ast.literal_eval(name): ast.literal_eval(value) for name, value in config}


@pytest.mark.parametrize(
    ("path", "warned"),
    [("/data/team/suite.py", ["/data/team/suite.py"]), ("~/team/suite.py", []), ("suites/selu.py", [])],
)
def test_a_path_outside_home_in_a_program_is_said_before_anybody_shares_the_zip(tmp_path, path, warned):
    kept = {"selu:jit": {"hlo": f'1 "{path}"', EXPORTED: "the program"}}
    warnings = []

    zipped(recorded(tmp_path / "a", kept), warnings=warnings)

    assert warnings == [f"hlo.txt holds paths of source files, such as {one}: {SHARED}" for one in warned]


def test_a_zip_holds_the_program_the_script_the_texts_and_the_numbers(tmp_path):
    loaded = recorded(tmp_path / "a", KEPT)
    folder, files = zipped(loaded)

    assert folder.startswith("selu-n=1-selu-jit-")
    texts = ["jaxpr.txt", "stablehlo.mlir", "hlo.txt"]
    assert list(files) == ["README.md", "reproduce.py", "program.jaxexport", *texts, "numbers.json"]
    assert files["program.jaxexport"] == b"the program"
    assert files["hlo.txt"].decode() == TEXTS["hlo"]
    (row,) = (row for row in json.loads(files["numbers.json"]) if row["metric"] == "planned_peak_bytes")
    assert (row["value"], row["variant"]) == (1200, "selu:jit")
    assert all(f"`{name}`: " in files["README.md"].decode() for name in files if name != "README.md")
    assert make_zip(find_subject(loaded, "selu*"), []) == make_zip(find_subject(loaded, "selu*"), [])


def test_the_readme_says_what_was_measured_and_where_what_to_install_and_what_went_wrong(tmp_path):
    packages = {"jax": "0.10.0", "jaxlib": "0.10.1", "jax-cuda13-plugin": "0.10.0", "torch": "2", "jaxtyping": "1"}
    loaded = with_environment(recorded(tmp_path / "a", KEPT), packages=packages, driver="580.1")
    wrong = {"numerics": Outcome(status=Status.WRONG, reason="largest error 0.5 | `rm`")}
    run = samples.change_outcomes(loaded.record, lambda outcomes, *_: {**outcomes, **wrong})

    text, of_wrong = (zipped(one)[1]["README.md"].decode() for one in (loaded, Run(run, loaded.folder)))

    assert "    pip install jax==0.10.0 jax-cuda13-plugin==0.10.0 jaxlib==0.10.1 flatbuffers\n" in text
    assert re.search(r"\| planned peak memory \| 1\.17.KiB \|", text)
    assert "| driver | 580.1 |" in text
    assert "| device | Sample Processor 1 |" in text
    assert "What went wrong" not in text
    assert r"- wrong: largest error 0.5 &#124; \`rm\`" in of_wrong.partition("## What went wrong")[2]


def test_the_script_sets_what_was_set_where_it_was_measured(tmp_path):
    def settings_on(platform, name, **facts):
        config = {"jax_enable_x64": False} if facts else {}
        case = samples.planned_case(params={"n": 1}, devices=4, config=config, platform=platform)
        loaded = recorded(tmp_path / name, KEPT, case=case, backend=platform)
        return settings_of(
            zipped(with_environment(loaded, **{"variables": {}, **facts}), warnings=[])[1]["reproduce.py"]
        )

    variables = {"XLA_FLAGS": "--a=b", "OMP_NUM_THREADS": "2"}
    hidden = {"JAX_A": "'b'\n\"c\"", "JAX_COMPILATION_CACHE_DIR": "theirs", "LD_PRELOAD": "mine.so"}
    set_there = settings_on("cpu", "a", x64=True, matmul_precision="highest", variables={**variables, **hidden})

    precision = {"jax_enable_x64": False, "jax_default_matmul_precision": "highest"}
    assert set_there == ([variables], {**precision, "jax_num_cpu_devices": 4})
    assert settings_on("cpu", "b") == ([], {"jax_num_cpu_devices": 4})


def test_the_script_compiles_with_the_options_that_were_declared_but_those_that_may_name_a_file(tmp_path):
    options = {"xla_a": True, "xla_gpu_cuda_data_dir": "theirs"}
    variant = msgspec.structs.replace(samples.planned_variant("selu:jit"), compiler_options=options)
    case = samples.planned_case(params={"n": 1}, variants=("selu:eager", variant))
    warnings = []

    files = zipped(recorded(tmp_path / "a", KEPT, case=case), warnings=warnings)[1]

    script = files["reproduce.py"].decode()
    ast.parse(script)
    assert "jax.jit(program.call, compiler_options={'xla_a': True}).lower" in script
    assert "theirs" not in script
    assert r"| compiler options | xla\_a=True, xla\_gpu" in files["README.md"].decode()
    assert any("xla_gpu_cuda_data_dir may name a file; left out of reproduce.py" in one for one in warnings)


def test_what_may_name_a_file_is_left_out_of_the_script_and_of_the_command_and_told(tmp_path):
    case = samples.planned_case(params={"n": 1}, config={"jax_compilation_cache_dir": "theirs"})
    packages = {"jax": "0.10.1", "jaxlib": "0/../evil", "numpy": "2; touch x", "jax-x; touch x": "1"}
    variables = {"XLA_FLAGS": "--xla_gpu_cuda_data_dir=theirs"}
    loaded = with_environment(recorded(tmp_path / "a", KEPT, case=case), variables=variables, packages=packages)
    warnings = []

    _, files = zipped(loaded, warnings=warnings)

    assert settings_of(files["reproduce.py"]) == ([], {})
    assert "    pip install jax==0.10.1 flatbuffers\n" in files["README.md"].decode()
    assert any("XLA_FLAGS may name a file" in one for one in warnings)


def test_a_text_that_is_damaged_is_left_out_with_a_warning_and_a_damaged_program_is_no_report(tmp_path):
    loaded = recorded(tmp_path / "a", KEPT)
    next(loaded.folder.path.rglob("hlo.txt")).write_text("other")
    warnings = []
    _, files = zipped(loaded, warnings=warnings)

    assert "hlo.txt" not in files
    assert "stablehlo.mlir" in files
    (warning,) = warnings
    assert "is not what was recorded" in warning
    next(loaded.folder.path.rglob("program.jaxexport")).write_text("other")
    with pytest.raises(NothingToReproduceError, match="is not what was recorded"):
        make_zip(find_subject(loaded, "selu*"), [])


def test_of_several_programs_one_has_to_be_named(tmp_path):
    case = samples.planned_case(params={"n": 1}, variants=("selu:jit", "other:jit"))
    loaded = recorded(tmp_path / "a", {name: {EXPORTED: name} for name in ("selu:jit", "other:jit")}, case=case)

    assert refused(loaded).endswith("give --variant, one of selu:jit, other:jit")
    assert zipped(loaded, variant="other:jit")[1]["program.jaxexport"] == b"other:jit"


@pytest.mark.parametrize(
    ("pattern", "variant", "message"),
    [
        ("selo[n=1]", None, "no case matches --case 'selo[n=1]'; nearest: 'selu[n=1]'"),
        ("selu*", "selu:jot", "selu[n=1] has no variant 'selu:jot'; nearest: 'selu:jit'"),
        ("selu*", "selu:eager", "selu:eager is not one program: "),
    ],
)
def test_what_is_not_there_is_said_with_the_nearest_that_is(tmp_path, pattern, variant, message):
    assert message in refused(recorded(tmp_path / "a", KEPT), pattern, variant)


def test_where_there_is_no_one_program_the_reason_is_said(tmp_path):
    loaded = recorded(tmp_path / "a")
    refusal = {"export": Outcome(status=Status.UNSUPPORTED, reason="it has 40 MiB, most of it constants")}
    unsupported = Run(samples.change_outcomes(loaded.record, lambda *_: refusal), loaded.folder)
    cases = [samples.planned_case(params={"n": n}) for n in (1, 2)]
    two = Run(samples.run(*((case, samples.record(case, {})) for case in cases)), loaded.folder)

    assert "the run keeps no program of any variant; measure again" in refused(loaded)
    assert "the run keeps no program of selu:jit; measure again" in refused(loaded, variant="selu:jit")
    assert "it has 40 MiB, most of it constants" in refused(unsupported, variant="selu:jit")
    assert "2 cases match --case 'selu', and a report is about one: selu[n=1], selu[n=2]" in refused(two, "selu")


def test_the_command_writes_the_zip_and_says_where_or_ends_with_2(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path / "a", KEPT)
    recorded(tmp_path / "b")

    ended, failed = (CliRunner().invoke(app, ["reproduce", name, "--case", "selu*"]) for name in "ab")

    assert (ended.exit_code, zipfile.is_zipfile(tmp_path / ended.stdout.strip())) == (0, True)
    assert ended.stdout.startswith("reports/selu-n=1-selu-jit-")
    assert (failed.exit_code, failed.stderr.startswith("error: ")) == (2, True)
