"""Renames words of the code base by the tables in scripts/names.py: `python scripts/rename.py [--check]`.

Names in code are mapped part by part (`find_launch_gap`, `LaunchRecord`, `FEWEST_LAUNCHES`), text word by word.
"""

from __future__ import annotations

import fnmatch
import io
import keyword
import re
import subprocess
import sys
import tokenize
from functools import lru_cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import names

WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
LIST_OF_NAMES = re.compile(r"[a-z_][a-z0-9_]*(?:, ?[a-z_][a-z0-9_]*)*")
OWN = ("scripts/",)
DOTTED = re.compile(
    r"(?<![\w/.])(?:harness|reporting|launcher|tests|benchmarks)(?:(?:\.[a-z_0-9]+)+|(?:/[a-z_0-9]+)+(?:\.py)?)"
)


def main() -> int:
    check = "--check" in sys.argv
    listed = subprocess.check_output(["git", "ls-files"], text=True).splitlines()
    files = [path for path in listed if is_text(path)]
    clashes = 0
    for path in files:
        before = Path(path).read_text(encoding="utf8")
        after, produced = rewrite(path, before)
        own = set()
        if path.endswith(".py"):
            own = {
                one.string
                for one in tokenize.generate_tokens(io.StringIO(before).readline)
                if one.type == tokenize.NAME
            }
        for old, new in sorted(produced):
            if old in own and new in own:
                print(f"{path}: {old} -> {new}, which is there already")
                clashes += 1
        if not check and after != before:
            Path(path).write_text(after, encoding="utf8")
    if not check:
        for path in listed:
            target = rename_path(path)
            if target != path:
                Path(target).parent.mkdir(parents=True, exist_ok=True)
                subprocess.check_call(["git", "mv", "-k", path, target])
    return clashes


def is_text(path: str) -> bool:
    if path.startswith(OWN) or path.startswith(names.LEFT_ALONE):
        return False
    return path.endswith(
        (
            ".py",
            ".md",
            ".j2",
            ".js",
            ".css",
            ".toml",
            ".ipynb",
            ".yaml",
            ".sh",
            ".service",
            ".timer",
            "Dockerfile",
            ".ci/run",
        )
    )


@lru_cache(None)
def rename_dotted(word: str) -> str:
    """The path of a module, with dots or slashes, as it will be called; as it is where that is none."""
    mark = "/" if "/" in word else "."
    parts = word.removesuffix(".py").split(mark)
    for count in range(len(parts), 1, -1):
        path = "/".join(parts[:count]) + ".py"
        if Path(path).exists():
            new = rename_path(path).removesuffix(".py").split("/")
            return mark.join([*new, *parts[count:]]) + (".py" if word.endswith(".py") else "")
        if (Path(path).with_suffix("") / "__init__.py").exists():
            new = rename_path("/".join([*parts[:count], "__init__.py"])).split("/")[:-1]
            return mark.join([*new, *parts[count:]]) + (".py" if word.endswith(".py") else "")
    return word


def rename_path(path: str) -> str:
    if path in names.PATHS:
        return names.PATHS[path]
    if not path.endswith(".py") or path.startswith((*names.KEPT_PATHS, *OWN)):
        return path
    *folders, stem = path.removesuffix(".py").split("/")
    return (
        "/".join(
            [*(find_name("noxfile.py" if one == "launcher" else path, one) for one in folders), find_name(path, stem)]
        )
        + ".py"
    )


def rewrite(path: str, text: str) -> tuple[str, set[tuple[str, str]]]:
    text = DOTTED.sub(lambda found: rename_dotted(found[0]), text)
    for glob, table in names.IN_FILES:
        if fnmatch.fnmatch(path, glob):
            for pattern, replacement in table:
                text = re.sub(pattern, replacement, text)
    produced: set[tuple[str, str]] = set()
    if path.endswith(".py"):
        return rewrite_python(path, text, produced), produced
    if path.endswith((".j2", ".js", ".css")):
        return WORD.sub(lambda found: name(path, found[0], produced), prose(path, text)), produced
    return map_names_in_text(path, prose(path, text), produced), produced


def rewrite_python(path: str, text: str, produced: set) -> str:
    lines = text.splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    out, at = [], 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in (tokenize.NAME, tokenize.STRING, tokenize.COMMENT):
            continue
        begin = starts[token.start[0] - 1] + token.start[1]
        end = starts[token.end[0] - 1] + token.end[1]
        out.append(text[at:begin])
        at = end
        if token.type == tokenize.NAME:
            out.append(token.string if keyword.iskeyword(token.string) else name(path, token.string, produced))
        elif token.type == tokenize.COMMENT:
            out.append(map_names_in_text(path, prose(path, token.string), produced))
        else:
            out.append(string(path, token.string, produced))
    out.append(text[at:])
    return "".join(out)


def string(path: str, text: str, produced: set) -> str:
    bare = text.strip("rbfRBF").strip("\"'")
    if bare in names.LABELS:
        return text.replace(bare, names.LABELS[bare])
    if bare in ("step", "steps"):
        return text
    if path.endswith("__init__.py") and re.fullmatch(r"[A-Za-z]+", bare):
        return WORD.sub(lambda found: name(path, found[0], produced), text)
    if LIST_OF_NAMES.fullmatch(bare) and not (" " in bare and "," not in bare):
        if bare in names.LABELS:
            return text.replace(bare, names.LABELS[bare])
        return (
            WORD.sub(lambda found: name(path, found[0], produced), text)
            if text[0] in "\"'"
            else text[0] + WORD.sub(lambda found: name(path, found[0], produced), text[1:])
        )
    if re.match(r"[rR]?[fF]", text):
        pieces = re.split(r"(\{[^{}]*\})", text)
        return "".join(
            WORD.sub(lambda found: name(path, found[0], produced), piece)
            if index % 2
            else map_names_in_text(path, prose(path, piece), produced)
            for index, piece in enumerate(pieces)
        )
    return map_names_in_text(path, prose(path, text), produced)


def map_names_in_text(path: str, text: str, produced: set) -> str:
    """Words that can only be names: with an underscore, with capitals inside, in backticks, or before a dot and a name."""

    def replace(found: re.Match[str]) -> str:
        word = found[0]
        looks_like_name = "_" in word.strip("_") or re.search(r"[a-z][A-Z]", word) or (word.isupper() and len(word) > 4)
        return name(path, word, produced) if looks_like_name else word

    text = WORD.sub(replace, text)
    return re.sub(
        r"(?<!`)`([^`\n]+)`(?!`)",
        lambda found: "`" + WORD.sub(lambda word: name(path, word[0], produced), found[1]) + "`",
        text,
    )


LABEL = re.compile(r"(?m)^( {6,})([a-z_]+(?:, [a-z_]+)*):(?= )")


def prose(path: str, text: str) -> str:
    if path.endswith(".py"):
        text = LABEL.sub(lambda found: found[1] + WORD.sub(lambda word: find_name(path, word[0]), found[2]) + ":", text)
    for glob, pattern, replacement in names.COMPILED_PROSE:
        if glob is None or any(fnmatch.fnmatch(path, one) for one in glob):
            text = pattern.sub(lambda found: _in_case(found, replacement), text)
    return text


def _in_case(found: re.Match[str], replacement: str) -> str:
    if found[0].isupper() and len(found[0]) > 1:
        return found[0]
    new = found.expand(replacement)
    return new[:1].upper() + new[1:] if found[0][:1].isupper() and not new[:1].isupper() else new


def name(path: str, word: str, produced: set) -> str:
    new = find_name(path, word)
    if new != word:
        produced.add((word, new))
    return new


@lru_cache(None)
def tables_of(path: str) -> tuple[dict[str, str], dict[str, str], frozenset[str]]:
    exact, parts, kept = dict(names.EXACT), dict(names.PARTS), set(names.KEPT)
    for globs, own_exact, own_parts, own_kept in names.BY_PATH:
        if any(fnmatch.fnmatch(path, glob) for glob in globs):
            exact.update(own_exact)
            parts.update(own_parts)
            kept |= set(own_kept)
    return exact, parts, frozenset(kept)


@lru_cache(None)
def find_name(path: str, word: str) -> str:
    exact, parts, kept = tables_of(path)
    if word in kept:
        return word
    if word in exact:
        return exact[word]
    stripped = word.lstrip("_")
    if stripped in kept:
        return word
    if stripped in exact:
        return word[: len(word) - len(stripped)] + exact[stripped]
    if any(re.search(pattern, word) for pattern in names.PROTECTED):
        return word
    pieces = re.split(r"(_+)", word)
    return "".join(_piece(piece, parts) for piece in pieces)


def _piece(piece: str, parts: dict[str, str]) -> str:
    if not piece or piece.startswith("_"):
        return piece

    def replace(found: re.Match[str]) -> str:
        part = found[0]
        new = parts.get(part.lower())
        if new is None:
            return part
        if part.isupper() and len(part) > 1:
            return new.upper()
        if part[0].isupper():
            return "".join(word.capitalize() for word in new.split("_"))
        return new

    return PARTS.sub(replace, piece)


if __name__ == "__main__":
    sys.exit(1 if main() and "--check" in sys.argv else 0)
