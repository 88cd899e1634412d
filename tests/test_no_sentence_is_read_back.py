"""No code reads a sentence of the course back: what decides is a value, and words are made at the edge.

The walk goes through every syntax tree and looks for text that is tested (`startswith`, `in`, a regular expression, …)
for words that some sentence of the course has in it.
"""

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
TESTS_OF_TEXT = {
    "startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "rsplit", "find",
    "index", "count", "replace",
}  # fmt: skip
PATTERNS = {"compile", "match", "search", "fullmatch", "sub", "split", "findall", "finditer"}
WORDS = 3
"""A literal of at least so many words, or a piece of an f-string with two, is taken for a piece of a sentence."""
NAMES_OF_SENTENCES = {
    "cause", "finding", "label", "line", "message", "reason", "report", "said", "sentence", "text", "title", "told",
    "trouble", "verdict", "why", "words", "wrong",
}  # fmt: skip
"""What holds a sentence, by its name: there, a single word counts as well."""
OTHERS_TEXT: dict[str, str] = {}
"""Where the words are another program's, though a sentence of ours has them too: "module: words" → whose text it is."""


class Reading(NamedTuple):
    """A place where text is tested for words."""

    module: str
    line: int
    words: str


def trees() -> Iterator[tuple[str, ast.Module]]:
    for folder in ("course_utils", "workshop"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            yield file.relative_to(ROOT).as_posix(), ast.parse(file.read_text(encoding="utf-8"))


def docstrings(tree: ast.Module) -> set[int]:
    """The nodes that are bare strings: of modules, classes, functions and constants."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and is_text(node.value)}


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def sentences(tree: ast.Module) -> Iterator[ast.Constant]:
    """Literals, and pieces of f-strings, that people read."""
    left_out = docstrings(tree)
    pieces = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if is_text(node) and id(node) not in left_out:
            words = re.findall(r"[A-Za-z]{2,}", node.value)
            if len(words) >= (2 if id(node) in pieces else WORDS):
                yield node


def readings(module: str, tree: ast.Module) -> Iterator[tuple[Reading, ast.AST]]:
    """Every literal, or constant of the module, that a text is tested for: two words, or one where it is a sentence."""
    named = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        for tested, subject in looked_for(node):
            tested = named.get(tested.id, tested) if isinstance(tested, ast.Name) else tested
            least = 1 if name_of(subject) in NAMES_OF_SENTENCES else 2
            for part in ast.walk(tested):
                if is_text(part):
                    for words in re.findall(r"[A-Za-z][A-Za-z ,';:-]+[A-Za-z:;]", part.value):
                        if len(words.split()) >= least:
                            yield Reading(module, node.lineno, words), part


def looked_for(node: ast.AST) -> list[tuple[ast.expr, ast.expr]]:
    """What is looked for, and in what."""
    match node:
        case ast.Call(ast.Attribute(ast.Name("re"), name), [first, *more]) if name in PATTERNS:
            return [(first, more[-1] if more else first)]
        case ast.Call(ast.Attribute(subject, name), [first, *_]) if name in TESTS_OF_TEXT:
            return [(first, subject)]
        case ast.Compare(left, [ast.In() | ast.NotIn()], [subject]) if is_text(left) or isinstance(left, ast.Name):
            return [(left, subject)]
    return []


def name_of(node: ast.expr) -> str:
    """The last name of what is tested: `trouble` of `outcome.attempt.trouble`."""
    match node:
        case ast.Attribute(_, name) | ast.Name(name):
            return name
        case ast.Call(ast.Attribute(inner, _), _) | ast.Call(ast.Name() as inner, _):
            return name_of(inner)
    return ""


def found() -> list[str]:
    every = dict(trees())
    written = "\n".join(node.value for tree in every.values() for node in sentences(tree))
    result = []
    for module, tree in every.items():
        for reading, node in readings(module, tree):
            is_ours = written.count(reading.words) > node.value.count(reading.words)
            if is_ours and f"{module}: {reading.words}" not in OTHERS_TEXT:
                result.append(f"{module}:{reading.line}: {reading.words!r}")
    return result


def test_no_code_reads_a_sentence_of_the_course_back() -> None:
    assert not (readings := found()), "\n".join(readings)


def test_the_walk_sees_what_it_looks_for() -> None:
    """Each way to read a sentence back, and none of the ways to look at something else."""
    reads = """
AGAIN = "not finished"
if text.startswith("deadlock: rank") or "the result is right" in text or AGAIN in text:
    text = text.removesuffix("then this cell")
re.search("no question was asked", text)
"""
    seen = [reading.words for reading, _ in readings("", ast.parse(reads))]
    assert sorted(seen) == sorted(
        ["deadlock: rank", "the result is right", "not finished", "then this cell", "no question was asked"]
    )
    assert not list(readings("", ast.parse("if name in known and key == 'value' and line.startswith('#'): pass")))
    assert [node.value for node in sentences(ast.parse("'''Of a module.'''\nsay(f'rank {r} took it', 'a-name')"))] == [
        " took it"
    ]


def test_every_exception_is_still_needed() -> None:
    present = {
        f"{reading.module}: {reading.words}" for module, tree in trees() for reading, _ in readings(module, tree)
    }
    assert set(OTHERS_TEXT) <= present
