import pytest

from jaxmeter.cli.arguments import ArgumentsError, expand, refuse_other_bytes


def test_a_file_right_after_the_command_stands_for_its_lines(tmp_path):
    path = tmp_path / "measure"
    path.write_text("--machine\na box, 2 cores\n--select\n\n")

    assert expand(["run", f"@{path}", "--quiet"]) == ["run", "--machine", "a box, 2 cores", "--select", "", "--quiet"]


@pytest.mark.parametrize("words", [[], ["@run"], ["run", "--select", "@sign"]])
def test_other_words_stay_as_they_are_but_must_be_text(words):
    assert expand(words) == words
    refuse_other_bytes(words)
    with pytest.raises(ArgumentsError, match=r"^'\?\.py' is not valid UTF-8; choose a name that is$"):
        refuse_other_bytes([*words, "\udcff.py"])


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ArgumentsError, match=r"@.*none: the file of arguments cannot be read: No such file"):
        expand(["run", f"@{tmp_path / 'none'}"])
