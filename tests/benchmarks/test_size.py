"""What counts as a line of code."""

import subprocess
import sys

from benchmarks.size import CHECKOUT, count_imports, count_lines, find_twins, read_parts

SOURCE = '''"""Of the module,

in two lines.
"""

import os  # a comment behind code

LIMIT = 1
"""Of a constant."""


def call(
    x,
):
    """Of a function."""
    # alone
    return f"""{x}
    of a text"""
'''


def test_blank_lines_comments_and_docstrings_do_not_count():
    assert count_lines(SOURCE) == len(["import", "LIMIT", "def", "x", "):", "return", "of a text"])


def test_each_part_is_counted_once(tmp_path):
    for path in ("jaxmeter/one.py", "jaxmeter/suites/two.py", "tests/three.py", "noxfile.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text("pass\n")

    words = [sys.executable, "-m", "benchmarks.size", "--checkout", str(tmp_path)]
    printed = subprocess.run(words, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout

    assert {line.split()[0]: int(line.split()[3]) for line in printed.splitlines()[:-1]} == {
        "product": 2,
        "suites": 1,
        "tests": 1,
        "benchmarks": 0,
    }


def test_an_import_takes_all_of_its_lines_also_inside_a_function():
    assert count_imports("from a import (\n    b,\n    c,\n)\n\n\ndef f():\n    import d\n    return d\n") == 5


def test_class_names_that_several_files_define_are_found():
    assert find_twins(["class A: ...\nclass B: ...", "class A: ...", "class C:\n    class B: ..."]) == ["A"]


def test_jaxmeter_does_not_grow_unnoticed():
    """A change that raises a limit says in a commit of its own what it buys; what makes room lowers its limit."""
    sources = read_parts(CHECKOUT)
    product, lines = sources["product"], {part: sum(map(count_lines, own)) for part, own in sources.items()}

    assert len(product) <= 285
    assert lines["product"] <= 40_800
    assert lines["tests"] <= 43_600
    assert sum(map(count_imports, product)) <= 0.11 * lines["product"]
    assert len(find_twins(product)) <= 3
