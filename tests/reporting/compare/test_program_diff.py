import pytest

from jaxmeter.reporting.compare.program_diff import MemoryChange
from tests.reporting.recorded_programs import HLO, JAXPR, OTHER, PLANNED, TEXTS, compared, program


def test_equal_programs_are_the_same_whatever_their_names_and_lines():
    diff = compared(HLO, HLO.replace("%inner", "%fused").replace("source_line=12", "source_line=20"))

    assert diff.same
    assert diff.gone == diff.new == diff.layouts == ()


def test_another_program_tells_what_is_gone_and_what_is_new():
    more = HLO.replace("  ROOT %t =", "  %s = f32[8,2]{1,0} sine(%p)\n  ROOT %t =")

    diff = compared(HLO, more)

    assert (diff.same, len(diff.gone), len(diff.new), diff.instructions) == (False, 1, 1, 1)


def test_a_planned_peak_that_changed_is_told_of_the_same_program():
    diff = compared(program(), program(memory={**PLANNED, "planned_peak_bytes": 3 * 2**20}))

    assert diff.same
    assert diff.memory == (MemoryChange("planned_peak_bytes", 1200, 3 * 2**20),)
    # A size that only one program has is no change.
    assert compared(program(memory={"planned_peak_bytes": 1}), program(memory={})).memory == ()
    assert compared(program(memory={}), program(memory={"planned_peak_bytes": 1})).memory == ()


def test_a_change_of_an_attribute_alone_is_another_program():
    diff = compared(
        HLO, HLO.replace("entry_computation_layout={(f32[8,2]{1,0})", "entry_computation_layout={(f32[8,2])")
    )

    assert (diff.same, diff.gone, diff.new, diff.layouts, diff.instructions) == (False, (), (), (), 0)


def test_large_constants_are_told_apart_by_the_recorded_fingerprints():
    elided = {"hlo": HLO.replace("negate(%x)", "constant({...})")}

    other = compared(program(elided, fingerprints=("1",)), program(elided, fingerprints=("2",)))

    assert (other.same, other.constants_only) == (False, True)
    assert compared(program(elided, fingerprints=("1", "2")), program(elided, fingerprints=("2",))).same is True
    assert compared(program(elided), program(elided, fingerprints=("2",))).same is True
    assert compared(program(fingerprints=("1",)), program(fingerprints=("2",))).same is True


def test_a_variant_that_compiled_to_several_programs_is_noted():
    assert len(compared(program(fingerprints=("1", "2")), program()).notes) == 1
    assert compared(program(fingerprints=("1",)), program()).notes == ()


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
    # One whose body is not in the text is compared by its shape.
    assert compared(HLO.replace("calls=%inner", "calls=%none"), HLO).new[0].fuses == "multiply+tanh"


def test_equal_fusions_are_counted_against_each_other():
    twice = HLO.replace("  ROOT %f =", "  %e = f32[8,2]{1,0} fusion(%n), kind=kLoop, calls=%inner\n  ROOT %f =")

    diff = compared(HLO, twice)

    assert diff.gone == ()
    assert [fusion.count for fusion in diff.new] == [1]
    assert diff.instructions == 1


def test_layouts_that_changed_are_told_by_place_and_by_name():
    turned = HLO.replace("%n = f32[8,2]{1,0}", "%n = f32[8,2]{0,1}").replace("%x = f32[8,2]{1,0}", "%x = f32[8,2]{0,1}")

    diff = compared(HLO, turned)

    assert [(one.what, one.a, one.b) for one in diff.layouts] == [
        ("parameter 0", "f32[8,2]{1,0}", "f32[8,2]{0,1}"),
        ("negate jit(f)/neg", "f32[8,2]{1,0}", "f32[8,2]{0,1}"),
    ]


def test_each_value_is_matched_with_one_other():
    line = '  %{0} = f32[{1}]{{{2}}} copy(%x), metadata={{op_name="jit(f)/copy"}}\n'
    before = HLO.replace("  %n =", line.format("c", "8,2", "1,0") + line.format("d", "8,2", "1,0") + "  %n =")
    after = HLO.replace("  %n =", line.format("c", "8,2", "0,1") + line.format("d", "9,2", "0,1") + "  %n =")

    assert [one.what for one in compared(before, after).layouts] == ["copy jit(f)/copy"]
    assert compared(HLO, HLO.replace("[8,2]", "[9,2]")).layouts == ()  # another shape is no change of layout


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
    assert diff.notes == ("no stablehlo of A", "no stablehlo of B", "no hlo of B")


def test_a_text_that_is_not_hlo_is_noted():
    diff = compared(program(), program({**TEXTS, "hlo": "HloModule m\n\nnonsense"}))

    assert diff.same is None
    assert diff.notes[0].startswith("hlo of B cannot be read: line 3")


def test_the_largest_change_is_that_of_the_difference_not_of_the_numbers():
    line = "  %{0} = f32[8,2]{{1,0}} {1}(%x)\n"
    sines = "".join(line.format(f"s{index}", "sine") for index in range(5))
    roots = "".join(line.format(f"r{index}", "sqrt") for index in range(2))
    more = sines + roots + line.format("s5", "sine")

    (counted,) = compared(HLO.replace("  %n =", sines + "  %n ="), HLO.replace("  %n =", more + "  %n =")).counts

    assert counted.rows == (("sqrt", 0, 2), ("sine", 5, 6))


def test_a_text_that_only_one_program_has_is_not_counted():
    with_both, without = program(), program({"jaxpr": JAXPR, "hlo": HLO})

    assert [one.title for one in compared(with_both, without).counts] == ["jaxpr primitives", "HLO opcodes"]
    assert [one.title for one in compared(without, with_both).counts] == ["jaxpr primitives", "HLO opcodes"]


def test_of_programs_that_cannot_be_compared_nothing_is_told_to_differ():
    diff = compared(program(), program({"jaxpr": JAXPR}))

    assert (diff.same, diff.constants_only, diff.instructions) == (None, False, 0)
    assert (diff.calls, diff.gone, diff.new, diff.layouts) == ((), (), (), ())


@pytest.mark.parametrize(
    ("inside", "fuses"),
    [
        ("constant(2)|broadcast(%p)|multiply(%p, %p)|sine(%p)|multiply(%p, %p)", "multiply×2+sine"),
        ("broadcast(%p)|bitcast(%p)|broadcast(%p)", "broadcast×2+bitcast"),
    ],
    ids=["what tells something", "what says little, where there is nothing else"],
)
def test_a_fusion_is_named_by_what_it_computes(inside, fuses):
    lines = [f"  %i{index} = f32[8,2]{{1,0}} {one}" for index, one in enumerate(inside.split("|"))]
    start, end = HLO.index("  %b = "), HLO.index("}\n\nENTRY")
    body = "\n".join([*lines[:-1], lines[-1].replace("  %", "  ROOT %")])

    (new,) = compared(HLO, f"{HLO[:start]}{body}\n{HLO[end:]}").new

    assert new.fuses == fuses
