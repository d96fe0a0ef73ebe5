import hashlib
import io
from collections import Counter

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console
from typer.testing import CliRunner

from harness.record import Artifact, Outcome, RunFolder, Status, write_bytes
from harness.record.layout import PROGRAM_TEXTS
from reporting import diff_terminal
from reporting.commands import app
from reporting.compare import Difference, program_counts
from reporting.compare.pairs import Pair, find_pairs
from reporting.compare.program_diff import MemoryChange, compare_programs
from reporting.compare.programs import NothingToCompareError, Program
from reporting.compare.surroundings import find_changed_code, find_surroundings
from reporting.load import LoadedRun
from tests import samples

JAXPR = """{ lambda ; a:f32[8]. let
    b:f32[8] = mul a 2.0:f32[]
  in (b,) }"""

STABLEHLO = """module @jit_f {
  func.func public @main(%arg0: tensor<8xf32>) -> tensor<8xf32> {
    %0 = stablehlo.multiply %arg0, %arg0 : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
"""

HLO = """HloModule jit_f, entry_computation_layout={(f32[8,2]{1,0})->f32[8,2]{1,0}}

%inner (p: f32[8,2]) -> f32[8,2] {
  %p = f32[8,2]{1,0} parameter(0)
  %b = f32[8,2]{1,0} multiply(%p, %p)
  ROOT %t = f32[8,2]{1,0} tanh(%b)
}

ENTRY %main (x: f32[8,2]) -> f32[8,2] {
  %x = f32[8,2]{1,0} parameter(0), metadata={op_name="x"}
  %n = f32[8,2]{1,0} negate(%x), metadata={op_name="jit(f)/neg"}
  ROOT %f = f32[8,2]{1,0} fusion(%n), kind=kLoop, calls=%inner, \
metadata={op_name="jit(f)/tanh" source_file="/home/somebody/suites/selu.py" source_line=12}
}
"""

TEXTS = {"jaxpr": JAXPR, "stablehlo": STABLEHLO, "hlo": HLO}
OTHER = {
    "jaxpr": JAXPR.replace("mul a 2.0:f32[]", "add a 2.0:f32[]"),
    "stablehlo": STABLEHLO.replace("multiply", "add"),
    "hlo": HLO.replace("multiply", "add"),
}
PLANNED = {"peak_bytes": 1200, "argument_bytes": 64, "output_bytes": 64, "temp_bytes": 1072, "alias_bytes": 0}


def program(texts=TEXTS, *, memory=PLANNED, fingerprints=(), source="0", definition="0"):
    return Program(texts, memory, fingerprints, source, definition)


def compared(a, b):
    """Two programs, or two optimised texts."""
    a, b = (program({"hlo": one}) if isinstance(one, str) else one for one in (a, b))
    return compare_programs(Pair("selu[n=1]", "selu:jit", a, b))


def recorded(folder, texts=TEXTS, *, case=None, memory=PLANNED, change=lambda artifact: artifact, **changes):
    """A run on disk whose only case keeps these texts for `selu:jit`, or for each of the variants that they are of."""
    planned = case or samples.planned_case(params={"n": 1})
    artifacts = []
    for variant, kept in (texts if "hlo" not in texts and "jaxpr" not in texts else {"selu:jit": texts}).items():
        for kind, text in kept.items():
            place = RunFolder(folder).case(planned.id)
            path = place.programs(variant) / PROGRAM_TEXTS[kind]
            write_bytes(path, text.encode(), lasting=False)
            digest = hashlib.sha256(text.encode()).hexdigest()
            artifacts.append(
                change(
                    Artifact(
                        kind=kind,
                        variant=variant,
                        path=str(path.relative_to(place.path)),
                        size_bytes=len(text),
                        sha256=digest,
                    )
                )
            )
    outcome = Outcome(status=Status.OK, values={name: (value,) for name, value in memory.items()})
    outcomes = {variant.name: {"memory": outcome} for variant in planned.variants}
    ended = samples.record(planned, outcomes, artifacts=tuple(artifacts))
    run = samples.run((planned, ended), run_id=folder.name, **changes)
    samples.write_run(folder, run)
    return LoadedRun(run, RunFolder(folder))


def invoke(*arguments):
    return CliRunner().invoke(app, ["diff", *map(str, arguments)])


def shown(*diffs, encoding="utf-8", width=100, around=()):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    diff_terminal.show(diff_terminal.Sheet("a", "b", diffs, around), Console(file=file, width=width))
    file.seek(0)
    return file.read()


def test_equal_programs_are_the_same_whatever_their_names_and_lines():
    diff = compared(HLO, HLO.replace("%inner", "%fused").replace("source_line=12", "source_line=20"))

    assert diff.verdict == "same program"
    assert diff.gone == diff.new == diff.layouts == ()


def test_another_program_tells_what_is_gone_and_what_is_new():
    more = HLO.replace("  ROOT %t =", "  %s = f32[8,2]{1,0} sine(%p)\n  ROOT %t =")

    diff = compared(HLO, more)

    assert diff.verdict == "different program: 1 fusion gone, 1 new, +1 instruction"


def test_the_verdict_tells_how_the_planned_peak_changed():
    diff = compared(program(), program(memory={**PLANNED, "peak_bytes": 3 * 2**20}))

    assert diff.verdict.replace("\u202f", " ") == "same program; planned peak 1.17 KiB → 3.00 MiB"
    assert diff.memory == (MemoryChange("peak_bytes", 1200, 3 * 2**20),)


def test_a_change_of_an_attribute_alone_is_another_program():
    diff = compared(
        HLO, HLO.replace("entry_computation_layout={(f32[8,2]{1,0})", "entry_computation_layout={(f32[8,2])")
    )

    assert diff.verdict == "different program: other shapes, values, order or attributes"


def test_large_constants_are_told_apart_by_the_recorded_fingerprints():
    elided = {"hlo": HLO.replace("negate(%x)", "constant({...})")}

    assert compared(program(elided, fingerprints=("1",)), program(elided, fingerprints=("2",))).verdict == (
        "different program: only the values of large constants differ"
    )
    assert compared(program(elided, fingerprints=("1", "2")), program(elided, fingerprints=("2",))).same is True
    assert compared(program(elided), program(elided, fingerprints=("2",))).same is True
    assert compared(program(fingerprints=("1",)), program(fingerprints=("2",))).same is True


def test_a_variant_that_compiled_to_several_programs_is_noted():
    assert compared(program(fingerprints=("1", "2")), program()).notes == (
        "A compiled 2 different programs in its processes; the text is one of them",
    )


def test_counts_that_differ_are_listed_largest_change_first_and_the_others_counted():
    two = HLO.replace("  %n =", "  %c = f32[8,2]{1,0} sqrt(%x)\n  %d = f32[8,2]{1,0} sqrt(%x)\n  %n =")

    (counted,) = compared(HLO, two.replace("tanh(", "sine(")).counts

    assert (counted.title, counted.unchanged) == ("HLO opcodes", 4)
    assert counted.rows == (("sqrt", 0, 2), ("sine", 0, 1), ("tanh", 1, 0))


def test_every_level_of_the_program_is_counted():
    titles = {one.title: one.rows for one in compared(program(), program(OTHER)).counts}

    assert titles == {
        "jaxpr primitives": (("add", 0, 1), ("mul", 1, 0)),
        "StableHLO operations": (("stablehlo.add", 0, 1), ("stablehlo.multiply", 1, 0)),
        "HLO opcodes": (("add", 0, 1), ("multiply", 1, 0)),
    }


def test_fusions_are_matched_by_what_they_do():
    diff = compared(HLO, HLO.replace("%b = ", "%renamed = ").replace("(%b)", "(%renamed)").replace("multiply", "add"))

    (gone,), (new,) = diff.gone, diff.new
    assert (gone.kind, gone.shape, gone.fuses, gone.count) == ("kLoop", "f32[8,2]{1,0}", "multiply+tanh", 1)
    assert (gone.operation, gone.source) == ("jit(f)/tanh", "/home/somebody/suites/selu.py:12")
    assert new.fuses == "add+tanh"


def test_equal_fusions_are_counted_against_each_other():
    twice = HLO.replace("  ROOT %f =", "  %e = f32[8,2]{1,0} fusion(%n), kind=kLoop, calls=%inner\n  ROOT %f =")

    diff = compared(HLO, twice)

    assert diff.gone == ()
    assert [fusion.count for fusion in diff.new] == [1]
    assert diff.verdict == "different program: 1 fusion new, +1 instruction"


def test_layouts_that_changed_are_told_by_place_and_by_name():
    turned = HLO.replace("%n = f32[8,2]{1,0}", "%n = f32[8,2]{0,1}").replace("%x = f32[8,2]{1,0}", "%x = f32[8,2]{0,1}")

    diff = compared(HLO, turned)

    assert [(one.what, one.a, one.b) for one in diff.layouts] == [
        ("parameter 0", "f32[8,2]{1,0}", "f32[8,2]{0,1}"),
        ("negate jit(f)/neg", "f32[8,2]{1,0}", "f32[8,2]{0,1}"),
    ]
    assert diff.verdict == "different program: 2 layouts changed"


def test_each_value_is_matched_with_one_other():
    line = '  %{0} = f32[{1}]{{{2}}} copy(%x), metadata={{op_name="jit(f)/copy"}}\n'
    before = HLO.replace("  %n =", line.format("c", "8,2", "1,0") + line.format("d", "8,2", "1,0") + "  %n =")
    after = HLO.replace("  %n =", line.format("c", "8,2", "0,1") + line.format("d", "9,2", "0,1") + "  %n =")

    assert [one.what for one in compared(before, after).layouts] == ["copy jit(f)/copy"]


def test_another_shape_is_no_change_of_layout():
    assert compared(HLO, HLO.replace("[8,2]", "[9,2]")).layouts == ()


def test_collectives_and_custom_calls_are_counted_by_what_they_are():
    line = '  %{0} = f32[8,2]{{1,0}} {1}(%x), custom_call_target="cublas"\n  %n ='
    calling = HLO.replace("  %n =", line.format("c", "custom-call"))
    reducing = HLO.replace("  %n =", line.format("r", "all-reduce-start"))

    collectives, targets = compared(reducing, calling).calls

    assert collectives.rows == (("all-reduce", 1, 0),)
    assert targets.rows == (("cublas", 0, 1),)


def test_what_a_program_lacks_is_noted_and_the_rest_compared():
    diff = compared(program({"jaxpr": JAXPR, "hlo": HLO}), program({"jaxpr": OTHER["jaxpr"]}))

    assert diff.same is None
    assert diff.verdict == "optimised programs not compared; jaxpr primitives differ"
    assert diff.notes == ("no stablehlo of A", "no stablehlo of B", "no hlo of B")


def test_a_text_that_is_not_hlo_is_noted():
    diff = compared(program(), program({**TEXTS, "hlo": "HloModule m\n\nnonsense"}))

    assert diff.same is None
    assert diff.notes[0].startswith("hlo of B cannot be read: line 3: 'nonsense' should begin a computation")


def test_a_fusion_whose_body_is_not_in_the_text_is_compared_by_its_shape():
    assert compared(HLO.replace("calls=%inner", "calls=%none"), HLO).new[0].fuses == "multiply+tanh"


def test_what_differs_around_the_programs_may_explain_it():
    machine = samples.environment(variables={"XLA_FLAGS": "--x"}, packages={"jax": "0.10.1"}, x64=True)
    manifests = (samples.manifest([]), samples.manifest([], environment=machine))

    told = {one.what: (one.a, one.b) for one in find_surroundings(*manifests)}

    assert told == {
        "variable XLA_FLAGS": (None, "--x"),
        "package jax": ("0.10.0", "0.10.1"),
        "package jaxlib": ("0.10.0", None),
        "package numpy": ("2.0.0", None),
        "x64": ("off", "on"),
    }


def test_code_that_changed_is_told_by_its_hash():
    pair = Pair("selu[n=1]", "selu:jit", program(), program(source="1", definition="1"))

    assert find_changed_code(pair) == ("the code of selu has changed", "the definition of selu[n=1] has changed")
    assert find_changed_code(Pair("selu[n=1]", "selu:jit", program(), program())) == ()


@pytest.mark.parametrize(
    ("jaxpr", "primitives"),
    [
        (JAXPR, {"mul": 1}),
        ("{ lambda ; e:f32[4]. let f:f32[4] = mul e 3.0:f32[] in (f,) }", {"mul": 1}),
        (
            "{ lambda ; a:i32[]. let\n    b:f32[] c:f32[2]{V:i} = scan[\n      jaxpr=j\n    ] a\n  in (b,) }",
            {"scan": 1},
        ),
        ("    _:f32[2] d:Ref{f32[2]} = while[x=1] a\n", {"while": 1}),
        ("    debug_callback[\n      effect=Debug\n    ] d\n", {"debug_callback": 1}),
        ("{ lambda ; . let print[fmt=x] in () }", {"print": 1}),
        (
            "    d:f32[] <- c[1]\n    f:f32[], c[0] <- c[0], e\n    c[0] <- e\n    c[0] += e\n",
            {"get": 1, "swap": 2, "addupdate": 1},
        ),
    ],
)
def test_equations_are_counted_however_they_are_written(jaxpr, primitives):
    assert program_counts.count_primitives(jaxpr) == primitives


def test_stablehlo_is_counted_at_all_levels_and_by_its_long_names():
    text = (
        '%1 = "stablehlo.case"(%0) ({\n  stablehlo.return %2 : tensor<f32>\n}) : x\n'
        "%r:2, %i = chlo.top_k(%a, k = 3)\n%4 = call @f(%8) : x\n  %5 = func.call @g()\n"
        "%6 = stablehlo.reduce(%5 init: %c) applies stablehlo.add across dimensions = [0]\nreturn %1 : x\n"
    )

    assert program_counts.count_stablehlo_operations(text) == {
        "stablehlo.case": 1,
        "stablehlo.return": 1,
        "chlo.top_k": 1,
        "func.call": 2,
        "stablehlo.reduce": 1,
        "stablehlo.add": 1,
        "func.return": 1,
    }


def test_counts_of_a_real_program_are_those_of_jax():
    import jax
    import jax.numpy as jnp

    def function(x):
        jax.debug.print("{}", x[0])
        return jax.lax.scan(lambda c, t: (c + t, jax.lax.cond(t > 0, jnp.sin, jnp.cos, c)), 0.0, x)

    traced = jax.jit(function).trace(jnp.ones(4))
    inside = [traced.jaxpr.jaxpr]
    names = Counter()
    for jaxpr in inside:
        names.update(equation.primitive.name for equation in jaxpr.eqns)
        inside += [part.jaxpr for equation in jaxpr.eqns for part in parts(equation.params)]

    assert program_counts.count_primitives(str(traced.jaxpr)) == names


def parts(params):
    """Jaxprs among an equation's params."""
    values = [one for value in params.values() for one in (value if isinstance(value, tuple) else (value,))]
    return [value for value in values if hasattr(value, "jaxpr")]


def test_every_variant_with_a_program_in_both_runs_is_compared(tmp_path):
    case = samples.planned_case(params={"n": 1}, variants=("a:jit", "b:jit", "c:jit", "d:eager"))
    a = recorded(tmp_path / "a", {"a:jit": TEXTS, "b:jit": TEXTS}, case=case)
    b = recorded(tmp_path / "b", {"b:jit": OTHER, "c:jit": TEXTS}, case=case)

    found = find_pairs(a, b, "selu[n=1]")

    assert [(pair.case, pair.variant) for pair in found.pairs] == [("selu[n=1]", "b:jit")]
    assert found.pairs[0].a.texts == TEXTS
    assert found.pairs[0].b.memory == PLANNED
    assert found.warnings == (
        f"case selu[n=1]: a:jit has a program in {tmp_path / 'a'} only",
        f"case selu[n=1]: c:jit has a program in {tmp_path / 'b'} only",
    )


@pytest.mark.parametrize("pattern", ["selu[n=1]", "selu", "sel*", "*[n=?]"])
def test_a_case_is_named_in_full_or_by_a_pattern_in_which_brackets_are_themselves(tmp_path, pattern):
    a, b = recorded(tmp_path / "a"), recorded(tmp_path / "b")

    assert [pair.variant for pair in find_pairs(a, b, pattern).pairs] == ["selu:jit"]


@pytest.mark.parametrize(
    ("pattern", "variant", "message"),
    [
        ("selu[n=2]", None, "no case matches --case 'selu[n=2]'; nearest: 'selu[n=1]'"),
        ("sel[un]", None, "no case matches --case 'sel[un]'; nearest: 'selu"),
        ("selu", "jit", "case selu[n=1] has no variant 'jit'; nearest: 'selu:jit'"),
        ("selu", "selu:eager", "case selu[n=1] keeps no program of 'selu:eager'; nearest: 'selu:jit'"),
    ],
)
def test_what_is_not_there_is_an_error_that_names_the_nearest(tmp_path, pattern, variant, message):
    a, b = recorded(tmp_path / "a"), recorded(tmp_path / "b")

    with pytest.raises(NothingToCompareError) as raised:
        find_pairs(a, b, pattern, variant)

    assert message in str(raised.value)


def test_a_run_without_programs_says_how_to_get_them(tmp_path):
    a, b = recorded(tmp_path / "a"), recorded(tmp_path / "b", {"selu:jit": {}})

    ended = invoke(a.folder.path, b.folder.path, "--case", "selu")

    assert ended.exit_code == 2
    assert "the run keeps no programs; measure again with --probe compilation" in ended.stderr


def test_a_case_that_was_lost_is_an_error(tmp_path):
    a = recorded(tmp_path / "a")
    lost = LoadedRun(samples.run((a.run.manifest.cases[0], None)), RunFolder(tmp_path / "b"))

    with pytest.raises(NothingToCompareError, match="was lost; complete it with --resume"):
        find_pairs(a, lost, "selu")


@pytest.mark.parametrize("path", ["/etc/passwd", "../../../secret.txt", "programs/../../x/../../secret.txt"])
def test_a_path_out_of_the_case_is_not_read(tmp_path, path):
    secret = tmp_path / "secret.txt"
    secret.write_text("secret")
    digest = hashlib.sha256(b"secret").hexdigest()

    def outside(artifact):
        return msgspec.structs.replace(artifact, path=path, sha256=digest) if artifact.kind == "jaxpr" else artifact

    found = find_pairs(recorded(tmp_path / "a", change=outside), recorded(tmp_path / "b"), "selu")

    assert set(found.pairs[0].a.texts) == {"stablehlo", "hlo"}
    assert f"its path {path!r} leads out of the case's folder; left out" in found.warnings[0]


def test_a_link_out_of_the_case_is_not_read(tmp_path):
    a, b = recorded(tmp_path / "a"), recorded(tmp_path / "b")
    path = next(a.folder.path.rglob("jaxpr.txt"))
    (tmp_path / "elsewhere").write_bytes(path.read_bytes())
    path.unlink()
    path.symlink_to(tmp_path / "elsewhere")

    assert "leads out of the case's folder" in find_pairs(a, b, "selu").warnings[0]


def test_a_case_whose_id_is_a_path_is_not_read(tmp_path):
    case = samples.planned_case(params={"n": 1}, id="../outside")

    with pytest.raises(NothingToCompareError, match="leads out of the case's folder"):
        find_pairs(recorded(tmp_path / "a", case=case), recorded(tmp_path / "b"), "selu")


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda path: path.unlink(), "no file 'programs/selu-jit/stablehlo.mlir'"),
        (lambda path: path.write_text("other"), "'programs/selu-jit/stablehlo.mlir' is not what was recorded"),
    ],
)
def test_a_file_that_is_missing_or_damaged_is_left_out_and_the_rest_compared(tmp_path, damage, problem):
    a, b = recorded(tmp_path / "a"), recorded(tmp_path / "b")
    damage(next(a.folder.path.rglob("stablehlo.mlir")))

    ended = invoke(a.folder.path, b.folder.path, "--case", "selu")

    assert ended.exit_code == 0
    assert f"stablehlo of selu[n=1] selu:jit: {problem}" in ended.stderr
    assert "selu:jit: same program" in ended.stdout


def test_nothing_that_can_be_read_is_an_error(tmp_path):
    a, b = recorded(tmp_path / "a", {"jaxpr": JAXPR}), recorded(tmp_path / "b")
    next(a.folder.path.rglob("jaxpr.txt")).write_text("other")

    ended = invoke(a.folder.path, b.folder.path, "--case", "selu")

    assert ended.exit_code == 2
    assert "is not what was recorded" in ended.stderr
    assert "no text of a program can be read in both runs" in ended.stderr


def test_a_folder_without_a_run_is_an_error(tmp_path):
    ended = invoke(tmp_path / "none", tmp_path / "none", "--case", "selu")

    assert ended.exit_code == 2
    assert "no such folder" in ended.stderr


def test_verdicts_come_first_then_explanations_then_tables(tmp_path):
    a = recorded(tmp_path / "a")
    machine = samples.environment(packages={"jax": "0.10.1"})
    b = recorded(tmp_path / "b", OTHER, memory={**PLANNED, "temp_bytes": 4096}, environment=machine)

    text = invoke(a.folder.path, b.folder.path, "--case", "selu[n=1]").stdout

    told = [
        "A: a · B: b",
        "selu[n=1]",
        "selu:jit: different program: 1 fusion gone, 1 new",
        "What may explain a difference (3)",
        "package jax: 0.10.0 → 0.10.1",
        "Jaxpr primitives",
        "StableHLO operations",
        "HLO opcodes",
        "Fusions only in A (1)",
        "kLoop f32[8,2]{1,0}: multiply+tanh",
        "suites/selu.py:12 · jit(f)/tanh",
        "Fusions only in B (1)",
        "Planned memory",
    ]
    places = [text.index(one) for one in told]
    assert places == sorted(places)
    assert "somebody" not in text


@pytest.mark.parametrize("width", [40, 100, 200])
def test_it_fits_a_hundred_columns(width):
    long = {kind: text.replace("tanh", "t" * 200).replace("mul", "m" * 200) for kind, text in TEXTS.items()}

    text = shown(compared(program(), program(long)), width=width)

    assert max(map(cell_len, text.splitlines())) <= min(width, 100)


def test_both_sides_of_a_long_difference_are_told_to_their_ends():
    flags = Difference("variable XLA_FLAGS", "--x " * 40 + "--last=1", "--x " * 40 + "--last=2")

    text = shown(compared(HLO, HLO), around=(flags,))

    assert "--last=1" in text
    assert "--last=2" in text


def test_an_output_that_takes_ascii_only_gets_likenesses():
    text = shown(compared(program(), program(OTHER, memory={"peak_bytes": 5})), encoding="ascii")

    assert text.isascii()
    assert "planned peak 1.17 KiB -> 5 B" in text


@pytest.mark.parametrize("text", samples.HOSTILE)
def test_hostile_text_is_only_text(tmp_path, text):
    name = "".join(sign for sign in text if sign.isprintable() and sign not in '"\\')[:30]
    hostile = {**OTHER, "hlo": OTHER["hlo"].replace("jit(f)/tanh", f"{name}\x1b[31m\u202e [red]x[/red]")}
    case = samples.planned_case(text, params={"n": 1}, variants=("selu:jit",), id="1")
    machine = samples.environment(variables={text: text})
    a = recorded(tmp_path / "a", case=case)
    b = recorded(tmp_path / "b", hostile, case=case, environment=machine)

    ended = invoke(a.folder.path, b.folder.path, "--case", "*")

    assert ended.exit_code == 0
    assert "\x1b" not in ended.stdout
    assert "\u202e" not in ended.stdout
    assert "different program" in ended.stdout


def test_long_tables_are_cut_and_say_so():
    lines = "".join(f"  %o{index} = f32[8,2]{{1,0}} opcode{chr(97 + index)}(%x)\n" for index in range(25))

    text = shown(compared(HLO, HLO.replace("  %n =", f"{lines}  %n =")))

    assert "+ 5 more" in text
