import sys

import jax
import pytest

from jaxmeter.harness.declare.catalogue import SuiteError, find_suites

SUITE = """
from jaxmeter import Needs, workload


@workload(inputs=lambda key: 1, reference=len{option})
def {name}(x):
    return x
"""
X64 = "import jax\n\njax.config.update('jax_enable_x64', True)\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Writes a suite below another text; what it imports is forgotten afterwards."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])

    def write(path: str, before: str = "", option: str = "") -> str:
        file = tmp_path / path
        file.parent.mkdir(exist_ok=True)
        file.write_text(before + SUITE.format(name=file.stem.lstrip("_"), option=option))
        return str(file)

    yield write
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def configurations(*files):
    """By workload: what its cases set in jax.config."""
    return {each.name: each.find_config({}) for suite in find_suites(files) for each in suite.workloads}


def test_what_an_import_changes_holds_for_its_own_cases_alone(write):
    before = dict(jax.config.values)
    files = write("first.py", X64), write("second.py")

    assert configurations(*files) == {"first": {"jax_enable_x64": True}, "second": {}}
    assert dict(jax.config.values) == before


def test_a_suite_that_was_imported_before_has_the_same_configuration(write):
    file = write("first.py", X64)

    assert configurations(file) == configurations(file) == {"first": {"jax_enable_x64": True}}


def test_an_import_that_changes_something_is_described_once_with_what_to_write(write):
    first, second = find_suites([write("first.py", X64), write("second.py")])

    (said,) = first.warnings
    assert said.startswith("importing suite 'first' sets jax_enable_x64 to True: its own cases have that, other")
    assert said.endswith("declare it with needs=Needs(config={'jax_enable_x64': True})")
    assert second.warnings == ()


def test_what_is_declared_as_well_is_not_described_and_goes_before(write):
    declared = ", needs=Needs(config={'jax_enable_x64': %s})"
    (same,) = find_suites([write("same.py", X64, declared % True)])
    (other,) = find_suites([write("other.py", X64, declared % False)])

    assert same.warnings == ()
    assert len(other.warnings) == 1
    assert other.workloads[0].find_config({}) == {"jax_enable_x64": False}


@pytest.mark.parametrize(
    "line",
    ["from _shared_settings import shared_settings\n", "import _shared_settings\n", "import _between_settings\n"],
)
def test_suites_that_share_a_module_that_changes_something_all_have_it(write, line):
    write("_shared_settings.py", X64)
    write("_between_settings.py", "from _shared_settings import *\n")
    files = write("first.py", line), write("second.py", line), write("third.py")

    found = configurations(*files)

    assert found == {"first": {"jax_enable_x64": True}, "second": {"jax_enable_x64": True}, "third": {}}


def test_suites_of_a_package_have_what_the_package_changes(write):
    write("settled/__init__.py", X64)
    write("settled/a.py", "from . import b\n")
    write("settled/b.py")

    assert configurations("settled")["a"] == configurations("settled")["b"] == {"jax_enable_x64": True}
    assert not jax.config.values["jax_enable_x64"]


def test_a_suite_that_fails_to_import_leaves_the_configuration_as_it_was(write):
    with pytest.raises(SuiteError):
        find_suites([write("broken.py", X64 + "raise ValueError('broken')\n")])

    assert not jax.config.values["jax_enable_x64"]


def test_the_cache_of_the_run_is_nothing_that_an_import_can_change(write):
    file = write("first.py", "import jax\n\njax.config.update('jax_compilation_cache_dir', '/elsewhere')\n")

    (suite,) = find_suites([file])

    assert suite.workloads[0].find_config({}) == {}
    assert suite.warnings[0].startswith("importing suite 'first' sets jax_compilation_cache_dir, which no case can")
    assert jax.config.values["jax_compilation_cache_dir"] != "/elsewhere"


def test_an_option_with_named_values_is_recorded_by_its_word(write):
    file = write("first.py", "import jax\n\njax.config.update('jax_numpy_dtype_promotion', 'strict')\n")

    assert configurations(file) == {"first": {"jax_numpy_dtype_promotion": "strict"}}
