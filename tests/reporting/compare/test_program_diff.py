import pytest

from tests.reporting.recorded_programs import HLO, compared, program


def test_equal_programs_are_the_same_whatever_their_names_and_lines():
    diff = compared(HLO, HLO.replace("%inner", "%fused").replace("source_line=12", "source_line=20"))

    assert diff.same
    assert diff.gone == diff.new == diff.layouts == ()


def test_another_program_tells_what_is_gone_and_what_is_new():
    more = HLO.replace("  ROOT %t =", "  %s = f32[8,2]{1,0} sine(%p)\n  ROOT %t =")

    diff = compared(HLO, more)

    assert (diff.same, len(diff.gone), len(diff.new), diff.instructions) == (False, 1, 1, 1)


def test_large_constants_are_told_apart_by_the_recorded_fingerprints():
    elided = {"hlo": HLO.replace("negate(%x)", "constant({...})")}

    other = compared(program(elided, fingerprints=("1",)), program(elided, fingerprints=("2",)))

    assert (other.same, other.constants_only) == (False, True)
    assert compared(program(elided, fingerprints=("1", "2")), program(elided, fingerprints=("2",))).same is True
    assert compared(program(elided), program(elided, fingerprints=("2",))).same is True
    assert compared(program(fingerprints=("1",)), program(fingerprints=("2",))).same is True


def test_counts_that_differ_are_listed_by_the_size_of_their_change_and_the_others_counted():
    def adding(**operations):
        names = [name for name, count in operations.items() for _ in range(count)]
        lines = "".join(f"  %o{index} = f32[8,2]{{1,0}} {name}(%x)\n" for index, name in enumerate(names))
        return HLO.replace("  %n =", lines + "  %n =")

    (counted,) = compared(adding(sine=5), adding(sine=6, sqrt=2).replace("tanh(", "cosine(")).counts

    assert (counted.title, counted.unchanged) == ("HLO opcodes", 4)
    assert counted.rows == (("sqrt", 0, 2), ("cosine", 0, 1), ("sine", 5, 6), ("tanh", 1, 0))


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
