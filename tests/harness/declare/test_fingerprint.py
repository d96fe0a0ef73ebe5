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
    ("old", "new"),
    [
        ("# the helper first", "# in two steps"),
        ("    # the helper first\n", ""),
        ('    """Scales."""\n', ""),
        ('"""Scales."""', '"""Multiplies."""'),
        ("FACTOR * helper(x) ** power", "(FACTOR * (helper( x )\n        ** power))"),
        ("def scaled(x, power=3):", "def scaled(\n    x,\n    power=3,\n):"),
        ("def scaled", "\n\n\nUNUSED = 1\n\n\ndef scaled"),
        ("FACTOR = 2.0\n", "FACTOR = 2.0\n\n\ndef another(x):\n    return -x\n"),
        ("    return x + 1", "    # one more\n    return x + 1"),
    ],
    ids=[
        "a comment",
        "no comment",
        "no docstring",
        "another docstring",
        "the layout",
        "the signature's layout",
        "its place",
        "another function",
        "a helper's comment",
    ],
)
def test_what_does_not_change_the_computation_does_not_change_the_fingerprint(module_of: Import, old, new):
    assert old in ORIGINAL

    before, after = module_of(ORIGINAL), module_of(ORIGINAL.replace(old, new))

    assert fingerprint(before.scaled) == fingerprint(after.scaled)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("FACTOR = 2.0", "FACTOR = 2.5"),
        ("x + 1", "x + 2"),
        ("x + 1", "x - 1"),
        ("FACTOR *", "FACTOR /"),
        ("power=3", "power=4"),
        ("** power", "** -power"),
    ],
    ids=["a constant", "a helper", "a helper's operator", "an operator", "a default", "the body"],
)
def test_what_changes_the_computation_changes_the_fingerprint(module_of: Import, old, new):
    assert old in ORIGINAL

    before, after = module_of(ORIGINAL), module_of(ORIGINAL.replace(old, new))

    assert fingerprint(before.scaled) != fingerprint(after.scaled)


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


def test_what_a_partial_computes_changes_its_fingerprint(module_of: Import):
    before, after = module_of(ORIGINAL), module_of(ORIGINAL.replace("return x + 1", "return x + 2"))

    assert fingerprint(partial(before.scaled, power=2)) != fingerprint(partial(after.scaled, power=2))


def test_a_partial_counts_by_its_function_and_arguments():
    def power(x, exponent):
        return x**exponent

    def product(x, exponent):
        return x * exponent

    different = {fingerprint(partial(power, exponent=2)), fingerprint(partial(power, exponent=3))}
    different.add(fingerprint(partial(product, exponent=2)))

    assert len(different) == 3


def test_the_docstring_of_an_inner_function_does_not_count(module_of: Import):
    text = "def f(x):\n    def step(y):\n        '''{words}'''\n        return y\n    return step(x)\n"

    assert fingerprint(module_of(text.format(words="One.")).f) == fingerprint(module_of(text.format(words="Two.")).f)


def another_process(folder: Path, seed: int) -> str:
    """The fingerprint of `names.f`, where hashes and addresses are others."""
    code = (
        "x = [object()] * {seed}0000; import names; from jaxmeter.harness.declare.fingerprint import fingerprint; "
        "print(fingerprint(names.f))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code.replace("{seed}", str(seed))],
        env={**os.environ, "PYTHONPATH": f"{CHECKOUT}:{folder}", "PYTHONHASHSEED": str(seed)},
        capture_output=True,
        text=True,
        check=True,
    )
    return ended.stdout


@pytest.mark.parametrize(
    "text",
    [
        "NAMES = frozenset({'a', 'b', 'c', 'd', 'e'})\ndef f(x): return x in NAMES\n",
        "def f(x, names=frozenset({'a', 'b', 'c', 'd', 'e'})): return x in names\n",
        pytest.param(
            "NAMES = ((1, frozenset({'a', 'b', 'c', 'd', 'e'})),)\ndef f(x): return x in NAMES\n",
        ),
        pytest.param(
            "def g(x): return x\nSTEPS = (g, g)\ndef f(x): return STEPS[0](x)\n",
        ),
        pytest.param(
            "def g(x): return x\ndef f(x, *, step=g): return step(x)\n",
        ),
        pytest.param(
            "from functools import partial\ndef g(x, step): return x\nf = partial(g, step=g)\n",
        ),
    ],
    ids=["a set", "a set as default", "a set in a tuple", "functions in a tuple", "a keyword default", "a partial"],
)
def test_another_process_gives_the_same_fingerprint(tmp_path, text):
    (tmp_path / "names.py").write_text(text)

    assert len({another_process(tmp_path, seed) for seed in (1, 2, 3)}) == 1


def test_a_value_that_a_function_closes_over_counts():
    def scaled_by(factor):
        return lambda x: factor * x

    assert fingerprint(scaled_by(2)) == fingerprint(scaled_by(2))
    assert fingerprint(scaled_by(2)) != fingerprint(scaled_by(3))


def test_two_lambdas_on_one_line_differ():
    double, square = (lambda x: 2 * x), (lambda x: x * x)

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
