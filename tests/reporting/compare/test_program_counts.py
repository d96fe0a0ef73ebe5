from collections import Counter

import pytest

from jaxmeter.harness.traces import hlo
from jaxmeter.reporting.compare import program_diff
from tests.reporting.recorded_programs import HLO, JAXPR


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
    assert program_diff.count_primitives(jaxpr) == primitives


def test_stablehlo_is_counted_at_all_levels_and_by_its_long_names():
    text = (
        '%1 = "stablehlo.case"(%0) ({\n  stablehlo.return %2 : tensor<f32>\n}) : x\n'
        "%r:2, %i = chlo.top_k(%a, k = 3)\n%4 = call @f(%8) : x\n  %5 = func.call @g()\n"
        "%6 = stablehlo.reduce(%5 init: %c) applies stablehlo.add across dimensions = [0]\nreturn %1 : x\n"
    )

    assert program_diff.count_stablehlo_operations(text) == {
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

    assert program_diff.count_primitives(str(traced.jaxpr)) == names


def parts(params):
    """Jaxprs among an equation's params."""
    values = [one for value in params.values() for one in (value if isinstance(value, tuple) else (value,))]
    return [value for value in values if hasattr(value, "jaxpr")]


def test_custom_calls_are_counted_by_target_and_collectives_once_with_their_done():
    line = "  %{0} = f32[8,2]{{1,0}} {1}\n"
    calls = ('custom-call(%x), custom_call_target="a\\"b"', "custom-call(%x)", "all-reduce-start(%x)", "sine(%x)")
    lines = "".join(line.format(f"c{index}", call) for index, call in enumerate(calls))
    lines += line.format("d", "all-reduce-done(%c2)")

    module = hlo.parse(HLO.replace("  %n =", f"{lines}  %n ="))

    assert program_diff.count_custom_calls(module) == {'a\\"b': 1, "unnamed": 1}
    assert program_diff.count_collectives(module) == {"all-reduce": 1}
    assert program_diff.count_opcodes(module)["custom-call"] == 2
