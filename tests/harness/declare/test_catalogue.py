import importlib
import re
import statistics
import sys
import sysconfig
from pathlib import Path

import jax  # noqa: F401  here as in every process that finds suites
import pytest

import jaxmeter
from jaxmeter.harness.declare.catalogue import SuiteError, find_suites
from jaxmeter.harness.declare.fingerprint import is_of_user

WORKLOAD = '''"""{title}"""

from jaxmeter import workload


@workload(inputs=lambda key: 1, reference=lambda x: x, modes=("jit",))
def {name}(x):
    """Does nothing."""
    return x
'''


@pytest.fixture(autouse=True)
def clean_imports(monkeypatch, tmp_path):
    """Finding suites imports modules and extends the path; afterwards both are as before."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


@pytest.fixture
def write(tmp_path):
    """Writes a file of a suite; its text is a workload of the file's name unless given."""

    def write(path: str, text: str | None = None) -> str:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(WORKLOAD.format(name=file.stem, title=f"The {file.stem}.") if text is None else text)
        return str(file)

    return write


def test_a_file_is_a_suite_with_its_workloads(write):
    text = WORKLOAD.format(name="first", title="Two workloads.\n\nMore about them.") + WORKLOAD.format(
        name="second", title="Not a docstring."
    )

    (suite,) = find_suites([write("pair.py", text)])

    assert (suite.name, suite.description) == ("pair", "Two workloads.")
    assert [workload.name for workload in suite.workloads] == ["first", "second"]


def test_a_folder_is_all_its_files_but_those_with_an_underscore(write, tmp_path):
    write("own/b.py")
    write("own/a.py")
    write("own/_helper.py", "raise RuntimeError")
    write("own/notes.txt", "no Python")
    write("own/without_any.py", "X = 1")

    assert [suite.name for suite in find_suites([str(tmp_path / "own")])] == ["a", "b"]


def test_a_package_is_all_its_modules(write, tmp_path):
    write("family/__init__.py", "")
    write("family/a.py")
    write("family/_helper.py", "raise RuntimeError")
    sys.path.insert(0, str(tmp_path))

    assert [suite.name for suite in find_suites(["family"])] == ["a"]
    assert [suite.name for suite in find_suites(["family.a"])] == ["a"]


def test_a_file_that_was_imported_is_not_run_again(write):
    path = write("once.py")

    first, again = (find_suites([path])[0] for _ in range(2))

    assert first.workloads == again.workloads


def test_a_folder_that_is_a_module_too_is_imported_as_one(write, tmp_path, monkeypatch):
    write("household/__init__.py", "")
    write("household/a.py")
    monkeypatch.chdir(tmp_path)
    names = ["household"]

    (as_folder,) = find_suites(names)
    sys.path.insert(0, str(tmp_path))
    (as_module,) = find_suites(names)

    assert [suite.workloads[0].module for suite in (as_folder, as_module)] == ["user_suites.a", "household.a"]


@pytest.mark.parametrize(
    "text", ["import not_there_at_all\n", "raise ModuleNotFoundError('no such data')\n"], ids=["a module", "its own"]
)
def test_a_module_that_misses_another_is_there_all_the_same(write, tmp_path, text):
    write("short_of_another.py", text)
    sys.path.insert(0, str(tmp_path))

    with pytest.raises(SuiteError, match=r"suite 'short_of_another' fails to import: .*:1: ModuleNotFoundError: "):
        find_suites(["short_of_another"])


def test_a_suite_may_import_its_neighbours(write):
    write("neighbour_of_a.py", "X = 1")
    path = write("a.py", "from neighbour_of_a import X\n" + WORKLOAD.format(name="a", title="A."))

    assert find_suites([path])[0].name == "a"


def test_a_suite_named_like_a_standard_module_takes_nobodys_place(write):
    path = write("statistics.py")

    (suite,) = find_suites([path])

    assert suite.name == "statistics"
    assert sys.modules["statistics"] is statistics
    del sys.modules["statistics"]
    try:
        import statistics as imported_later

        assert hasattr(imported_later, "median")
    finally:
        sys.modules["statistics"] = statistics


def test_a_workload_that_another_suite_imports_is_listed_once(write):
    write("origin_of_all.py")
    path = write("user.py", "from origin_of_all import origin_of_all\n" + WORKLOAD.format(name="own", title="Own."))

    (suite,) = find_suites([path])

    assert [workload.name for workload in suite.workloads] == ["own"]


LOOP = '''from functools import partial

from jaxmeter import workload


def scale(x, *, by):
    """Times a number."""
    return by * x


{loop}
'''
A = WORKLOAD.format(name="a", title="A.")
TWICE = "def make():\n    def same(x):\n        return x\n    return workload(inputs=len, reference=len)(same)\n"
ANSWER = "@workload(inputs=len, reference=len, answer=Answer('Is it?', '{name}:jit'))\ndef {name}(x):\n    return x\n"
FAILS = r"suite '.*broken\.py' fails to import: .*"
BROKEN = {
    "an error": ("import jax\n\nvalue = 1 / 0\n", FAILS + r"broken\.py:3: ZeroDivisionError: division by zero"),
    "a syntax error": ("def f(:\n", FAILS + r"broken\.py:1: SyntaxError: "),
    "a missing module": (
        "\nimport not_there_at_all\n",
        FAILS + r"broken\.py:2: ModuleNotFoundError: No module named 'not_there_at_all'",
    ),
    "a missing name": (
        "\n\nfrom jaxmeter import workloads\n",
        FAILS + r"broken\.py:3: ImportError: cannot import name 'workloads'",
    ),
    "an interrupt": ("raise KeyboardInterrupt\n", FAILS + r"broken\.py:1: KeyboardInterrupt"),
    "an exit": ("raise SystemExit(0)\n", FAILS + r"broken\.py:1: SystemExit: 0"),
    "an error in a function": (
        "def f():\n    raise ValueError('no data')\n\nf()\n",
        FAILS + r"broken\.py:2: ValueError: no data",
    ),
    "an error in a library": ("import json\n\njson.loads('{')\n", FAILS + r"broken\.py:3: JSONDecodeError"),
    "a relative import": ("from .neighbour import X\n", "in no package: write `import other`, without the dot"),
    "a declaration that cannot be": (
        A.replace('"jit"', '"jot"'),
        FAILS + r"broken\.py:6: DeclarationError: workload 'a': no mode 'jot'",
    ),
    # Params are refused where a dataclass is made, by code that Python generates and calls `<string>`.
    "a declaration that generated code refuses": (
        A.replace("modes=", "params={'n': (1, (2, 3))}, modes="),
        FAILS + r"broken\.py:6: DeclarationError: a param's value cannot be",
    ),
    "a declaration that is found out at its end": (
        A.replace("lambda key:", "lambda key, *, n:"),
        r"suite '.*broken': .*broken\.py:6: workload 'a': inputs\(\) asks for 'n'",
    ),
    "no workload": ("X = 1\n", r"no workload is declared in '.*broken\.py'; .* with @workload"),
    "two of one name": (A + A, r"two workloads are named 'a', in lines 6 and 15 of broken\.py; rename one"),
    "two of one name in two variables": (
        f"from jaxmeter import workload\n{TWICE}first, second = make(), make()\n",
        r"two workloads are named 'same', both in line 5 of broken\.py; rename one",
    ),
    "two of one name in a loop": (
        LOOP.replace("{loop}", "for by in (1, 2):\n    workload(inputs=len, reference=len, params={'by': by})(scale)"),
        r"two workloads are named 'scale', both in line 12 of broken\.py.*name='…'",
    ),
    "a partial without a name": (
        LOOP.replace("{loop}", "workload(inputs=len, reference=len)(partial(scale, by=2))"),
        r"broken\.py:11: .*functools\.partial has no name.*workload\(name='…'",
    ),
    "two answers": (
        f"from jaxmeter import Answer, workload\n{ANSWER.format(name='a')}{ANSWER.format(name='b')}",
        "a and b each have an answer; a suite has one question, so leave answer= at",
    ),
    **{
        f"the name {name!r}": (
            LOOP.replace("{loop}", f"workload(inputs=len, reference=len, name={name!r})(scale)"),
            re.escape(f"name is {name!r}; a name consists of letters, digits"),
        )
        for name in ("a[1]", "a:jit", "a,b", "", "a b", 7)
    },
}


@pytest.mark.parametrize(("text", "said"), BROKEN.values(), ids=BROKEN)
def test_a_suite_that_cannot_be_used_is_named_with_its_line_and_the_error(write, text, said):
    with pytest.raises(SuiteError, match=said):
        find_suites([write("broken.py", text)])


@pytest.mark.parametrize("name", ["no_such_module", "no.such.module", "suites.no_such_suite", "absent.py"])
def test_a_suite_that_is_not_there_says_what_may_be_given(name):
    with pytest.raises(SuiteError) as caught:
        find_suites([name])

    assert str(caught.value) == (
        f"no suite module or file '{name}'; --suites takes a module name, a .py file or a folder"
    )


def test_two_workloads_of_one_name_are_named_with_their_suites(write):
    one = write("one.py", WORKLOAD.format(name="same", title=""))
    two = write("two.py", WORKLOAD.format(name="same", title=""))

    with pytest.raises(SuiteError, match="two workloads are named 'same', in suites 'one' and 'two'; rename one"):
        find_suites([one, two])


@pytest.mark.parametrize(
    "loop",
    [
        """for by in (1, 2, 3):
    workload(inputs=len, reference=len, name=f"by_{by}")(partial(scale, by=by))""",
        """for by in (1, 2, 3):
    one = workload(partial(scale, by=by), inputs=len, reference=len, name=f"by_{by}")""",
        """named = partial(workload, inputs=len, reference=len)
ALL = [named(partial(scale, by=by), name=f"by_{by}") for by in (1, 2, 3)]""",
        """named = partial(workload, inputs=len, reference=len)
ALL = {by: named(partial(scale, by=by), name=f"by_{by}") for by in (1, 2, 3)}""",
        """def declare():
    for by in (1, 2, 3):
        workload(inputs=len, reference=len, name=f"by_{by}")(partial(scale, by=by))


declare()""",
    ],
    ids=["bound to nothing", "bound to one name", "a list", "a dictionary", "in a function"],
)
def test_every_workload_is_found_whatever_it_is_bound_to(write, loop):
    (suite,) = find_suites([write("one.py", LOOP.replace("{loop}", loop))])

    assert [workload.name for workload in suite.workloads] == ["by_1", "by_2", "by_3"]
    assert {workload.description for workload in suite.workloads} == {"Times a number."}
    assert [workload(2) for workload in suite.workloads] == [2, 4, 6]


def test_workloads_that_a_helper_declares_belong_to_the_suite_that_calls_it(write):
    write(
        "_shared_by_two.py",
        "from jaxmeter import workload\n\n\n"
        "def declare(name):\n    workload(inputs=len, reference=len, name=name)(lambda x: x)\n",
    )
    files = [write(f"{name}.py", f"from _shared_by_two import declare\n\ndeclare('{name}')\n") for name in "ab"]

    suites = find_suites(files)

    assert [[workload.name for workload in suite.workloads] for suite in suites] == [["a"], ["b"]]


def test_a_suite_that_another_suite_imports_counts_its_workloads_once(write, tmp_path):
    write("kin/__init__.py", "")
    write("kin/a.py")
    write("kin/b.py", "from kin.a import a\n\nCOPY = a\n" + WORKLOAD.format(name="b", title="B."))
    sys.path.insert(0, str(tmp_path))

    as_package = find_suites(["kin"])
    as_files = find_suites([str(tmp_path / "kin" / f"{name}.py") for name in "ab"])

    for suites in (as_package, as_files):
        assert [[workload.name for workload in suite.workloads] for suite in suites] == [["a"], ["b"]]


def test_a_module_that_is_loaded_again_has_the_workloads_of_its_new_text(write, tmp_path):
    path = write("changing_suite.py")
    sys.path.insert(0, str(tmp_path))
    find_suites(["changing_suite"])
    write("changing_suite.py", "\n\n\n" + WORKLOAD.format(name="changing_suite", title="") + "\nMORE = 1\n")

    importlib.reload(sys.modules["changing_suite"])

    (suite,) = find_suites(["changing_suite"])
    assert [workload.location for workload in suite.workloads] == [f"{path}:9"]


def test_a_workload_that_is_declared_in_a_function_that_is_called_later_is_in_no_suite(write, tmp_path):
    write("calls_later.py", LOOP.replace("{loop}", "def later():\n    workload(inputs=len, reference=len)(len)\n"))
    sys.path.insert(0, str(tmp_path))
    module = importlib.import_module("calls_later")
    for _ in range(2):
        module.later()

    with pytest.raises(SuiteError, match="no workload is declared in 'calls_later'"):
        find_suites(["calls_later"])


def test_a_workload_may_have_the_name_of_one_that_is_imported(write):
    write("origin_of_all.py")
    text = WORKLOAD.format(name="origin_of_all", title="")
    path = write("user.py", "from origin_of_all import origin_of_all\n" + text)

    (suite,) = find_suites([path])

    assert [workload.module for workload in suite.workloads] == ["user_suites.user"]


@pytest.mark.parametrize("names", [("a.py", "b/a.py"), ("b", "a.py")], ids=["two files", "one of a folder and a file"])
def test_two_suites_of_one_name_are_refused_and_of_two_files_before_the_code_of_either_is_run(write, tmp_path, names):
    runs = f"from pathlib import Path\n\nPath({str(tmp_path / 'it ran')!r}).touch()\n"
    for path, name in (("a.py", "a"), ("b/a.py", "b")):
        write(path, runs + WORKLOAD.format(name=name, title=""))

    with pytest.raises(SuiteError, match="two suites are named 'a'; rename one file"):
        find_suites([str(tmp_path / name) for name in names])

    assert "b" in names or not (tmp_path / "it ran").exists()


LACKS_A_NAME = WORKLOAD.format(name="lacking", title="Lacks a name.") + "\n\nimportlib.name_of_another_release\n"


@pytest.mark.parametrize("release", ["0.4.31", "0.10.2"])
def test_a_suite_of_a_package_that_an_older_jax_lacks_something_for_is_left_out(write, tmp_path, monkeypatch, release):
    write("older_pack/__init__.py", "")
    write("older_pack/whole.py")
    write("older_pack/lacking.py", f"import importlib\n{LACKS_A_NAME}")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("jaxmeter.harness.machine.jax_internals._find_version", lambda name: release)

    if release == "0.10.2":
        with pytest.raises(SuiteError, match="name_of_another_release"):
            find_suites(["older_pack"])
        return
    found = {suite.name: suite for suite in find_suites(["older_pack"])}

    assert [workload.name for workload in found["whole"].workloads] == ["whole"]
    assert (found["lacking"].workloads, found["lacking"].is_left_out) == ((), True)
    assert found["lacking"].warnings[0].endswith("has no importlib.name_of_another_release")


@pytest.mark.parametrize(
    ("file", "is_user"),
    [("jaxmeter/suites/selu.py", True), ("jaxmeter/harness/results.py", False), ("jaxmeter/cli/run.py", False)],
)
def test_of_an_installed_jaxmeter_suites_alone_are_files_of_a_user(file, is_user, monkeypatch):
    root = Path(jaxmeter.__file__).parents[1]
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(root))

    assert is_of_user(str(root / file)) is is_user
