"""Every command that the documentation shows is one that the command line accepts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from typer import Exit

from jaxmeter.cli.app import VERBS, load_verb
from jaxmeter.launch.backends import BACKENDS
from jaxmeter.launch.bisect import read_bisect_request
from jaxmeter.launch.command_line import read_backend, read_request
from jaxmeter.launch.doctor.examination import read_asked
from jaxmeter.launch.gate import read_gate_request
from jaxmeter.launch.nightly import read_nightly_request
from jaxmeter.launch.schedule import read_schedule_request
from jaxmeter.launch.upgrade import read_upgrade_request
from jaxmeter.reporting.compare.budgets import TIME_BUDGET

CHECKOUT = Path(__file__).parents[1]
PAGES = [
    CHECKOUT / "README.md",
    CHECKOUT / "CONTRIBUTING.md",
    CHECKOUT / "examples" / "README.md",
    CHECKOUT / "benchmarks" / "README.md",
    *sorted(page for page in (CHECKOUT / "docs").rglob("*.md") if "_build" not in page.parts),
]
SHELLS = ("sh", "console")
ABSENT = ("no run;", "no such file;")
"""How the launcher begins to complain about a reader's own file, which is not here."""

CONNECTORS = {"&&", "||", "|", ";"}
ALL_VERBS = {verb for verbs in VERBS.values() for verb in verbs}
SESSIONS = set(
    re.findall(r"^@nox\.session.*\ndef (\w+)", (CHECKOUT / "noxfile.py").read_text(encoding="utf8"), re.MULTILINE)
)


README, LOCK_STEP, CLOUD = "end_to_end/test_readme.py", "end_to_end/test_lock_step.py", "cloud/test_nights.py"
RUN_BY = {
    **dict.fromkeys(("nox -s cpu", "nox -s doctor", "nox -s report", "nox -s compare", "nox -s gate"), README),
    **dict.fromkeys(("jaxmeter list", "jaxmeter run", "jaxmeter report", "jaxmeter diff", "jaxmeter compare"), README),
    "jaxmeter trace": README,
    "nox -s tests": README,
    "nox -s upgrade": LOCK_STEP,
    "nox -s bisect": LOCK_STEP,
    "nox -s nightly": CLOUD,
    "nox -s schedule": "cloud/test_schedules.py",
    "nox -s self-test": "end_to_end/test_self_test.py",
}
"""By the program and session of README and the tutorials: the file with the test that really runs it."""

NOT_RUN = ("nox -s gpu", "nox -s tpu")
"""What has never run, which README says: untested."""


@dataclass(frozen=True)
class Command:
    """A command that a page shows; `is_whole` is false where running text only mentions it."""

    words: Sequence[str]
    is_whole: bool


def list_commands(page: Path) -> Iterator[Command]:
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text(encoding="utf8")):
        if token.type == "fence" and token.info in SHELLS:
            for line in token.content.replace("\\\n", " ").splitlines():
                yield from split_line(line.removeprefix("$ "), is_whole=True)
        for child in token.children or ():
            if child.type == "code_inline":
                yield from split_line(child.content, is_whole=False)


def split_line(line: str, *, is_whole: bool) -> Iterator[Command]:
    if "…" in line or "..." in line or not re.search(r"\b(jaxmeter|nox) ", line):
        return
    try:
        words = shlex.split(line.replace(";", " ; "), comments=True)
    except ValueError:  # a part of a line
        return
    command: list[str] = []
    for word in [*words, "&&"]:
        if word in CONNECTORS:
            if command[:1] == ["jaxmeter"] or command[:2] == ["nox", "-s"]:
                yield Command(command, is_whole)
            command = []
        else:
            command.append(word)


def check_verb(words: Sequence[str], *, is_whole: bool = True) -> None:
    """Parse the words after `jaxmeter`; of a mere mention only the names of the options."""
    verb, *arguments = words
    command = load_verb(verb)
    assert verb in ALL_VERBS
    for word in arguments[:1]:
        if word in getattr(command, "commands", {}):
            command, arguments = command.commands[word], arguments[1:]
    if is_whole:
        try:
            command.make_context(verb, list(arguments))
        except Exit:  # --help
            return
    names = {name for param in command.params for name in (*param.opts, *param.secondary_opts)} | {"--help"}
    assert {word.split("=")[0] for word in arguments if word.startswith("--")} <= names


NOX = {"JAXMETER_RUNTIME": "auto"}
"""Variables that the noxfile sets."""


def check_measurement(backend: str) -> Callable[[Sequence[str]], None]:
    def check(words: Sequence[str]) -> None:
        request = read_request(backend, words, NOX)
        check_verb(["run", "--backend", backend, *request.arguments])

    return check


def check_report(words: Sequence[str]) -> None:
    check_verb(words if words[0] in ALL_VERBS else ["report", *words])


def check_self_test(words: Sequence[str]) -> None:
    backend, rest = read_backend(words)
    check_verb(["self-test", *read_request(backend, rest, NOX).arguments])


CHECKS: Mapping[str, Callable[[Sequence[str]], object]] = {
    **{backend: check_measurement(backend) for backend in BACKENDS},
    "self-test": check_self_test,
    "report": check_report,
    "compare": lambda words: check_verb(["compare", *words]),
    "gate": read_gate_request,
    "nightly": read_nightly_request,
    "upgrade": read_upgrade_request,
    "bisect": lambda words: read_bisect_request(words, TIME_BUDGET),
    "traces": lambda words: check_verb(["trace", "--open", *words]),
    "doctor": lambda words: read_asked(words, NOX),
    "schedule": read_schedule_request,
}
"""By session, what reads its words and raises at what it does not know."""


def check_session(words: Sequence[str], *, is_whole: bool) -> None:
    end = words.index("--") if "--" in words else len(words)
    for session in words[:end]:
        assert session in {*CHECKS, *SESSIONS}
        if is_whole and session in CHECKS and words[end + 1 :]:
            CHECKS[session](words[end + 1 :])


FORWARDING = ("gate", "upgrade", "bisect", "nightly")
"""Verbs that take the options of `run`, too."""


def is_of_two_runs(words: Sequence[str]) -> bool:
    """Return whether the words are of a gate that judges and measures nothing."""
    return words[0] == "gate" and len(words) > 2 and not words[2].startswith("-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_command_of_a_page_is_accepted(page):
    for command in list_commands(page):
        program, *words = command.words
        try:
            if program == "nox":
                check_session(words[1:], is_whole=command.is_whole)
            elif command.is_whole and words[:1] and words[0] in FORWARDING and not is_of_two_runs(words):
                CHECKS[words[0]](words[1:])
            elif words and words[0].islower():
                check_verb(words, is_whole=command.is_whole)
        except Exception as error:
            if not str(error).partition(": ")[2].startswith(ABSENT):
                raise AssertionError(f"{' '.join(command.words)}: {error}") from error


def test_every_command_of_readme_and_tutorials_is_run_by_a_test_or_said_to_be_untested():
    pages = [CHECKOUT / "README.md", *(CHECKOUT / "docs" / "tutorial").glob("*.md")]
    commands = [list(command.words) for page in pages for command in list_commands(page)]
    names = {" ".join(words[: 3 if words[0] == "nox" else 2]) for words in commands if len(words) > 1}

    assert names <= {*RUN_BY, *NOT_RUN}
    assert [file for file in RUN_BY.values() if not (CHECKOUT / "tests" / file).is_file()] == []
    readme = (CHECKOUT / "README.md").read_text(encoding="utf8")
    assert all(re.search(rf"untested: [^|]*`{name}", readme) for name in NOT_RUN)


def test_commands_are_found_in_blocks_and_in_running_text():
    commands = [command for page in PAGES for command in list_commands(page)]

    assert sum(command.is_whole for command in commands) > 50
    assert sum(not command.is_whole for command in commands) > 100


@pytest.mark.parametrize(
    ("line", "unknown"),
    [
        ("jaxmeter report --colour", "--colour"),
        ("jaxmeter nothing", "nothing"),
        ("nox -s cpu -- --quik", "--quik"),
        ("nox -s self-test -- --godo x", "--godo"),
    ],
)
def test_a_command_with_an_unknown_word_is_refused(line, unknown):
    (command,) = split_line(line, is_whole=True)
    program, *words = command.words

    with pytest.raises(Exception, match=unknown):
        check_session(words[1:], is_whole=True) if program == "nox" else check_verb(words)
