"""Wraps lines that have become longer than 120 characters: comments, docstrings and string literals."""

import io, re, subprocess, sys, tokenize, ast

LIMIT = 120


def long_lines():
    out = subprocess.run(
        ["ruff", "check", "--select", "E501", "--output-format", "concise", *sys.argv[1:]],
        capture_output=True,
        text=True,
    ).stdout
    found = {}
    for line in out.splitlines():
        m = re.match(r"(.+?):(\d+):\d+: E501", line)
        if m:
            found.setdefault(m[1], set()).add(int(m[2]))
    return found


def kinds(text):
    comment, inside = set(), {}
    for t in tokenize.generate_tokens(io.StringIO(text).readline):
        if t.type == tokenize.COMMENT:
            comment.add(t.start[0])
        if t.type == tokenize.STRING and t.start[0] != t.end[0]:
            for n in range(t.start[0], t.end[0] + 1):
                inside[n] = t
    return comment, inside


def fix(path, numbers):
    done = 0
    for number in sorted(numbers, reverse=True):
        text = open(path, encoding="utf8").read()
        lines = text.split("\n")
        comment, inside = kinds(text)
        line = lines[number - 1]
        stripped = line.lstrip()
        indent = line[: len(line) - len(stripped)]
        if number in inside or (number in comment and stripped.startswith("#")):
            lead = "# " if number in comment and number not in inside else ""
            i = number - 1
            hang = indent
            if not lead and re.match(r"[\w, *]+: ", stripped) and len(indent) >= 6:
                hang = indent + "  "
            while len(lines[i]) > LIMIT:
                cut = lines[i].rfind(" ", 0, LIMIT + 1)
                if cut <= len(indent):
                    break
                rest = lines[i][cut + 1 :]
                head = lines[i][:cut]
                closing = rest.endswith('"""') and not lead
                lines[i] = head
                nxt = lines[i + 1] if i + 1 < len(lines) else ""
                ns = nxt.lstrip()
                nind = nxt[: len(nxt) - len(ns)]
                same = (lead and ns.startswith("# ") and nind == indent) or (
                    not lead
                    and not closing
                    and ns
                    and (nind == hang or (nind == indent and i != number - 1))
                    and (i + 2) in inside
                    and not ns.startswith(('"""', "- ", "Args:", "Returns:", "Raises:", "Source:", ">>>", "```", "|"))
                    and not (re.match(r"[\w, ]+: ", ns) and hang == indent and len(indent) >= 6)
                )
                if not lead and stripped.startswith('"""') and i == number - 1 and closing:
                    body = rest[:-3]
                    lines[i + 1 : i + 1] = [indent + body, indent + '"""'] if False else [indent + rest]
                elif same:
                    lines[i + 1] = nind + (lead if lead else "") + rest + " " + (ns[2:] if lead else ns)
                else:
                    lines.insert(i + 1, hang + lead + rest)
                i += 1
            new = "\n".join(lines)
        else:
            new = None
            toks = [
                t
                for t in tokenize.generate_tokens(io.StringIO(text).readline)
                if t.type == tokenize.STRING and t.start[0] == t.end[0] == number
            ]
            for t in reversed(toks):
                if t.end[1] <= 100 and len(toks) > 1:
                    continue
                m = re.match(r"([rRfFbB]*)([\"'])(?!\2\2)", t.string)
                if not m:
                    continue
                body = t.string[len(m[0]) : -1]
                room = LIMIT - 2 - t.start[1] - len(m[0])
                cut = -1
                for c in range(min(room, len(body) - 1), 5, -1):
                    if body[c] == " " and body[:c].count("{") == body[:c].count("}"):
                        cut = c
                        break
                if cut < 0:
                    continue
                a = m[0] + body[: cut + 1] + m[2]
                b = m[0] + body[cut + 1 :] + m[2]
                cand = line[: t.start[1]] + "(" + a + " " + b + ")" + line[t.end[1] :]
                cand2 = line[: t.start[1]] + a + "\n" + " " * t.start[1] + b + line[t.end[1] :]
                for option in (cand2, cand):
                    trial = lines[: number - 1] + option.split("\n") + lines[number:]
                    try:
                        if ast.dump(ast.parse("\n".join(trial))) == ast.dump(ast.parse(text)):
                            new = "\n".join(trial)
                            break
                    except SyntaxError:
                        continue
                if new:
                    break
        if new and new != text:
            try:
                ast.parse(new)
            except SyntaxError:
                continue
            open(path, "w", encoding="utf8").write(new)
            done += 1
    return done


total = 0
for path, numbers in long_lines().items():
    total += fix(path, numbers)
print("wrapped", total)
