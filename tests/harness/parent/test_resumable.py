"""Which runs may go on: numbers of two different things never make one run."""

import re

import pytest

from jaxmeter.harness.parent.prepare_run import UsageError, check_resumable
from jaxmeter.harness.plan.messages import Description
from jaxmeter.version import __version__
from tests import samples

CASE = samples.planned_case("selu")
NOW = samples.settings(fewest_rounds=3, most_rounds=8)


def describe(*cases, **changes) -> Description:
    return Description(suites=(), cases=cases or (CASE,), environment=samples.environment(**changes))


def manifest(settings=NOW, version=__version__):
    return samples.manifest([CASE], settings=settings, tool_version=version)


def test_a_run_goes_on_where_it_was_begun():
    check_resumable(manifest(), describe())


@pytest.mark.parametrize(
    ("begun", "here", "words"),
    [
        (manifest(version="0.0.1"), describe(), "jaxmeter 0.0.1 began it"),
        (manifest(), describe(allowed_cores=64), "its allowed_cores was 2, here it is 64"),
        (manifest(), describe(samples.planned_case("selu", definition="other")), f"{CASE.name} has changed since"),
        (manifest(), describe(samples.planned_case("matmul")), f"{CASE.name} has changed since"),
    ],
)
def test_a_run_of_another_jaxmeter_machine_or_suite_does_not_go_on(begun, here, words):
    with pytest.raises(UsageError, match=f"cannot resume .*: {re.escape(words)}; start a new run"):
        check_resumable(begun, here)
