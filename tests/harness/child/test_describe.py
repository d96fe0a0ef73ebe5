import sys

import jax
import pytest

from jaxmeter.harness.child.worker import describe
from jaxmeter.harness.declare.catalogue import SuiteError
from jaxmeter.harness.declare.declaration import DeclarationError
from jaxmeter.harness.machine.platforms import BACKENDS
from jaxmeter.harness.plan.messages import Describe, Description, SuiteProblem

SUITE = """from jaxmeter import {names}


def square(*, n):
    if n > 1:
        raise ValueError("too many")
    return n


@workload(
    inputs=lambda key, *, n: n,
    reference=len,
    params={{"n": 2}},
    {option}
)
def f(x):
    return x
"""


@pytest.fixture
def refused(tmp_path, monkeypatch):
    """Describes a suite with an option, and returns what was said against it."""
    monkeypatch.setattr(sys, "path", list(sys.path))

    def refused(option: str) -> str:
        path = tmp_path / "one_that_is_refused.py"
        path.write_text(SUITE.format(option=option, names="Caching, Needs, Skip, levels, workload"))
        asked = Describe(suites=(str(path),), platform=BACKENDS["cpu"], level="quick", devices=False, result="")
        try:
            with pytest.raises((SuiteError, DeclarationError)) as caught:
                describe(asked)
        finally:
            sys.modules.pop("user_suites.one_that_is_refused", None)
        return str(caught.value)

    return refused


@pytest.mark.parametrize(
    ("option", "line", "said"),
    [
        ("needs=Needs(devices=square)", 6, "ValueError: too many"),
        ("cost=lambda *, n: 1 / 0", 14, "ZeroDivisionError"),
        ("cost=lambda *, n: n", 10, "ValidationError: Expected `object | null`, got `int`"),
        ("caching=Caching(new_shape=lambda *, n: {'m': n})", 10, "what is to be tried as new names 'm'"),
    ],
    ids=["a function raises", "a lambda raises", "a value of another type", "a name that is not there"],
)
def test_what_is_found_out_when_cases_are_planned_names_the_users_line(refused, option, line, said):
    words = refused(option)

    assert f"one_that_is_refused.py:{line}: " in words
    assert said in words


@pytest.mark.parametrize("option", ["representative={'n': levels(quick=(1, 2j))}", "limit=Skip(because='slow')"])
def test_an_option_that_is_refused_names_its_line(refused, option):
    assert "one_that_is_refused.py:14: " in refused(option)


def test_a_run_under_a_setting_that_changes_what_is_timed_is_refused_before_it_begins(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    path = tmp_path / "one_that_is_fine.py"
    path.write_text(SUITE.format(option="", names="workload"))
    asked = Describe(suites=(str(path),), platform=BACKENDS["cpu"], level="quick", devices=True, result="")
    listed = Describe(suites=(str(path),), platform=BACKENDS["cpu"], level="quick", devices=False, result="")

    with jax.log_compiles(True):
        refused, shown = describe(asked), describe(listed)

    assert isinstance(refused, SuiteProblem)
    assert "jax_log_compiles is True" in refused.message
    assert isinstance(shown, Description)
