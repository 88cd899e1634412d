"""A function's signature, docstring and first line, broken so that JupyterLab beside its file browser cuts nothing off.

The library's lines may be 120 characters wide. A code cell does not wrap: at 1280 pixels it shows about 105.
"""

import ast
import re
import textwrap

WIDTH = 100

ENTRY = re.compile(r"[\w*][\w*, `]*: ")
"""How an argument's line begins in a docstring: "rank: " or "left, right: "."""
QUOTES = '"""'
KEPT = ("- ", "* ", "|", ">>>", "::", "$$")
"""Lines that begin so are tables, lists or code: they stay as they are."""


def narrow(source: str) -> str:
    """The same function, with no line of its head above `WIDTH` characters; the body behind the docstring stays.

    Args:
        source: the text of one function.
    """
    lines = source.splitlines()
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    body = function.body[0]
    signature = lines[: body.lineno - 1]
    if len(signature[-1]) > WIDTH and signature[-1].startswith("def "):
        signature[-1:] = broken_signature(signature[-1])
    if ast.get_docstring(function) is None:
        return "\n".join([*signature, *map(broken_turn, lines[body.lineno - 1 :])])
    docstring = refilled(lines[body.lineno - 1 : body.end_lineno])
    return "\n".join([*signature, *docstring, *map(broken_turn, lines[body.end_lineno :])])


def broken_signature(line: str) -> list[str]:
    """A signature on one line, with its parameters on a line of their own, or each on one where they are many."""
    close = line.rindex(")", 0, line.rindex(" -> ") if " -> " in line else len(line))
    head, inside, tail = line[: line.index("(") + 1], line[line.index("(") + 1 : close], line[close:]
    if len(inside) + 4 <= WIDTH:
        return [head, f"    {inside}", tail]
    return [head, *(f"    {parameter}," for parameter in parameters(inside)), tail]


def parameters(inside: str) -> list[str]:
    """What stands between a signature's brackets, cut at the commas that are in no bracket."""
    found, depth = [""], 0
    for letter in inside:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            found.append("")
        else:
            found[-1] += letter
    return [parameter.strip() for parameter in found]


def broken_turn(line: str) -> str:
    """The line that says what to do, in three where it is too long."""
    match = re.fullmatch(r'( +raise NotImplementedError\()(".*")\)', line)
    if len(line) <= WIDTH or match is None:
        return line
    return f"{match[1]}\n        {match[2]}\n    )"


def refilled(docstring: list[str]) -> list[str]:
    """A docstring's lines; a paragraph with a line that is too long is filled anew."""
    filled: list[str] = []
    for paragraph in paragraphs(docstring):
        if all(len(line) <= WIDTH for line in paragraph) or paragraph[0].lstrip().startswith(KEPT):
            filled += paragraph
            continue
        first = indent_of(paragraph[0])
        then = indent_of(paragraph[1]) if len(paragraph) > 1 else first + 4 * entry(paragraph[0])
        text = " ".join(line.strip() for line in paragraph)
        look = {"break_long_words": False, "break_on_hyphens": False}
        filled += textwrap.wrap(text, WIDTH, initial_indent=" " * first, subsequent_indent=" " * then, **look)
    return filled


def paragraphs(lines: list[str]) -> list[list[str]]:
    """The lines, grouped: an empty line, an argument's entry, another indent or what stays as it is begins anew."""
    found: list[list[str]] = []
    for line in lines:
        before = found[-1] if found else []
        goes_on = (
            bool(before)
            and bool(line.strip() and before[-1].strip())
            and not before[0].rstrip().endswith(":")
            and not entry(line)
            and line.strip() != QUOTES
            and not line.lstrip().startswith(KEPT)
            and (indent_of(line) == indent_of(before[-1]) or (len(before) == 1 and entry(before[0])))
        )
        if goes_on:
            before.append(line)
        else:
            found.append([line])
    return found


def entry(line: str) -> bool:
    """Whether an argument's description begins on a line: "        rank: of this process"."""
    return indent_of(line) >= 8 and ENTRY.match(line.lstrip()) is not None


def indent_of(line: str) -> int:
    """How many spaces a line begins with."""
    return len(line) - len(line.lstrip())
