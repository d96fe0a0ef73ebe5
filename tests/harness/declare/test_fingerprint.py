import math
import operator
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from jaxmeter.harness.declare.fingerprint import fingerprint
from tests.harness.conftest import Import

CHECKOUT = Path(__file__).parents[3]

ORIGINAL = '''
FACTOR = 2.0

def helper(x):
    return x + 1

def scaled(x, power=3):
    """Scales."""
    # the helper first
    return FACTOR * helper(x) ** power
'''


@pytest.mark.parametrize(
    ("old", "new", "same"),
    [
        ("# the helper first", "# in two steps", True),
        ("    # the helper first\n", "", True),
        ('    """Scales."""\n', "", True),
        ('"""Scales."""', '"""Multiplies."""', True),
        ("FACTOR * helper(x) ** power", "(FACTOR * (helper( x )\n        ** power))", True),
        ("def scaled(x, power=3):", "def scaled(\n    x,\n    power=3,\n):", True),
        ("def scaled", "\n\n\nUNUSED = 1\n\n\ndef scaled", True),
        ("FACTOR = 2.0\n", "FACTOR = 2.0\n\n\ndef another(x):\n    return -x\n", True),
        ("    return x + 1", "    # one more\n    return x + 1", True),
        ("FACTOR = 2.0", "FACTOR = 2.5", False),
        ("x + 1", "x + 2", False),
        ("x + 1", "x - 1", False),
        ("FACTOR *", "FACTOR /", False),
        ("power=3", "power=4", False),
        ("** power", "** -power", False),
    ],
)
def test_a_fingerprint_changes_with_the_computation_and_with_nothing_else(module_of: Import, old, new, same):
    assert old in ORIGINAL

    before, after = module_of(ORIGINAL), module_of(ORIGINAL.replace(old, new))

    assert (fingerprint(before.scaled) == fingerprint(after.scaled)) is same


@pytest.mark.parametrize(
    "text",
    [
        "K = {value}\ndef f(x, k=K):\n    return k * x\n",
        "K = {value}\ndef f(x, *, k=K):\n    return k * x\n",
        "import jax\n\n@jax.jit\ndef helper(x):\n    return x + {value}\n\ndef f(x):\n    return helper(x)\n",
        "K = {value}\ndef f(x):\n    def step(y):\n        return K * y\n    return step(x)\n",
        "def f(n):\n    return n == 0 or odd(n - 1)\n\ndef odd(n):\n    return n != {value} and f(n - 1)\n",
    ],
    ids=["a default", "a keyword default", "a jitted helper", "inside an inner function", "functions of each other"],
)
def test_a_constant_counts_wherever_it_is_used(module_of: Import, text):
    assert fingerprint(module_of(text.format(value=1)).f) != fingerprint(module_of(text.format(value=2)).f)


def test_a_partial_counts_by_its_function_with_what_it_computes_and_its_arguments(module_of: Import):
    before, after = module_of(ORIGINAL), module_of(ORIGINAL.replace("return x + 1", "return x + 2"))
    partials = [partial(one.scaled, power=power) for one in (before, after) for power in (2, 3)]

    assert len({fingerprint(one) for one in (*partials, partial(before.helper, power=2))}) == 5


def test_the_docstring_of_an_inner_function_does_not_count(module_of: Import):
    text = "def f(x):\n    def step(y):\n        '''{words}'''\n        return y\n    return step(x)\n"

    assert fingerprint(module_of(text.format(words="One.")).f) == fingerprint(module_of(text.format(words="Two.")).f)


TEXTS = """
from functools import partial
NAMES = frozenset({'a', 'b', 'c', 'd', 'e'})
INSIDE = ((1, NAMES),)
def g(x): return x
STEPS = (g, g)
def set_(x): return x in NAMES
def set_as_default(x, names=NAMES): return x in names
def set_in_a_tuple(x): return x in INSIDE
def functions_in_a_tuple(x): return STEPS[0](x)
def keyword_default(x, *, step=g): return step(x)
partial_ = partial(lambda x, step: x, step=g)
ALL = (set_, set_as_default, set_in_a_tuple, functions_in_a_tuple, keyword_default, partial_)
"""


def another_process(folder: Path, seed: int) -> str:
    """The fingerprints of `texts.ALL`, where hashes and addresses are others."""
    code = (
        f"x = [object()] * {seed}0000; import texts; from jaxmeter.harness.declare.fingerprint import fingerprint; "
        "print(*map(fingerprint, texts.ALL))"
    )
    variables = {**os.environ, "PYTHONPATH": f"{CHECKOUT}:{folder}", "PYTHONHASHSEED": str(seed)}
    words = [sys.executable, "-c", code]
    return subprocess.run(words, env=variables, capture_output=True, text=True, check=True).stdout


def test_another_process_gives_the_same_fingerprints(tmp_path):
    (tmp_path / "texts.py").write_text(TEXTS)

    first, second, third = (another_process(tmp_path, seed).split() for seed in (1, 2, 3))

    assert first == second == third
    assert len(set(first)) == 6


def test_a_value_that_a_function_closes_over_counts_and_two_lambdas_on_one_line_differ():
    def scaled_by(factor):
        return lambda x: factor * x

    double, square = (lambda x: 2 * x), (lambda x: x * x)

    assert fingerprint(scaled_by(2)) == fingerprint(scaled_by(2))
    assert fingerprint(scaled_by(2)) != fingerprint(scaled_by(3))
    assert fingerprint(double) != fingerprint(square)


def test_a_lambda_is_the_same_wherever_it_stands(module_of: Import):
    alone = module_of("f = lambda x: 2 * x\n")
    among_others = module_of("g, f, h = (lambda x: x), (lambda x: 2 * x), (lambda x: 3 * x)\n")

    assert fingerprint(alone.f) == fingerprint(among_others.f)


def test_a_decorator_of_the_harness_does_not_count(module_of: Import):
    plain = module_of("def f(x):\n    return x + 1\n")
    decorated = module_of(
        "from jaxmeter import workload\n\n"
        "@workload(inputs=lambda key: 1, reference=lambda x: x,\n          modes=('jit',))\n"
        "def f(x):\n    return x + 1\n"
    )

    assert fingerprint(plain.f) == fingerprint(decorated.f.function)


def test_functions_without_source_count_by_their_names():
    namespace: dict = {}
    exec("def typed_in(x):\n    return x", namespace)

    prints = [fingerprint(function) for function in (len, sum, math.sqrt, operator.add, dict, namespace["typed_in"])]

    assert len(set(prints)) == len(prints)


def test_several_functions_count_in_their_order_and_none_counts_too():
    assert len({fingerprint(len, sum), fingerprint(sum, len), fingerprint(len, None), fingerprint(len)}) == 4


def test_a_callable_object_has_a_fingerprint():
    class Model:
        def __call__(self, x):
            return x

    assert fingerprint(Model()) == fingerprint(Model())
