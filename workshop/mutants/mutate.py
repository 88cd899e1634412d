"""Mutants of a program: copies with one small mistake each, or two, made mechanically from its syntax tree.

Only bodies of functions are changed, never the exercise's signature, which is given to the learner. The package
`cosmic-ray` changes the files of a package and starts a command for each mutant; these programs are texts in
Markdown, and a check judges thousands of their mutants on one set of ranks.

Source: DeMillo, Lipton, Sayward 1978, "Hints on test data selection"; the operators follow Offutt et al. 1996.
"""

import ast
import copy
import io
import itertools
import operator
import random
import textwrap
import tokenize
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

LIBRARY = "library"
"""What a mutant of the course's own answer is a mutant of."""
Change = tuple[str, ast.AST]
"""What changes, in words, and the node that takes the place of the old one."""
SIGNS: dict[type, str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**"},
    **{ast.BitXor: "^", ast.And: "and", ast.Or: "or", ast.Is: "is", ast.IsNot: "is not", ast.In: "in"},
    **{ast.NotIn: "not in", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="},
}
KINDS = {sign: kind for kind, sign in SIGNS.items()}
OPERATORS: dict[str, tuple[str, ...]] = {
    **{"+": ("-",), "-": ("+",), "*": ("/", "+"), "/": ("*", "//"), "//": ("/", "*"), "%": ("//", "+")},
    **{"**": ("*", "^"), "and": ("or",), "or": ("and",), "is": ("is not",), "is not": ("is",)},
    **{"in": ("not in",), "not in": ("in",), "<": ("<=", ">"), "<=": ("<", ">"), ">": (">=", "<")},
    **{">=": (">", "<"), "==": ("!=",), "!=": ("==",)},
}

NAMES: dict[str, str] = {
    **{"SUM": "MAX", "MAX": "SUM", "MIN": "MAX", "PROD": "SUM", "AVG": "SUM"},
    **{"sum": "mean", "mean": "sum", "min": "max", "max": "min", "ceil": "floor", "floor": "ceil"},
    **{"zeros_like": "ones_like", "ones_like": "zeros_like", "zeros": "ones", "ones": "zeros"},
    **{"sqrt": "exp", "square": "abs", "double": "float", "int64": "int32", "float64": "float32"},
}
"""What an operation or a dtype becomes, where it is written as an attribute: `MPI.SUM`, `math.ceil`."""

SAFEGUARDS = ("strict", "rcond", "device")
"""Keywords that only warn of misuse, or name the device: the checks run on a CPU, which is where tensors are anyway."""
SYMMETRIC = ("max", "min", "maximum", "minimum", "gcd")
"""Functions whose arguments have no order."""


@dataclass(frozen=True)
class Edit:
    """One change that can be made: a node, what takes its place, and how that is told.

    Attributes:
        line: the text of the line that is changed, without its comment: "total = a + b".
        change: what is different in it: "+ became - in a + b"; what looks like an earlier one has its number: "… (2)".
    """

    node: ast.AST
    replacement: ast.AST
    line: str
    change: str


@dataclass(frozen=True)
class Mutant:
    """One mutated copy of a program.

    Attributes:
        name: of the function that the program defines.
        of: the program that is mutated: "library", or what it is called in the exercise's file.
        original: its source.
        parsed: the same as a tree.
        edits: where it is changed.
        names: the globals that it sees.
    """

    name: str
    of: str
    original: str
    parsed: ast.Module
    edits: tuple[Edit, ...]
    names: dict

    @property
    def line(self) -> str:
        """The text of the line that is changed, or of both."""
        return " … ".join(edit.line for edit in self.edits)

    @property
    def change(self) -> str:
        """What is different."""
        return "; ".join(edit.change for edit in self.edits)

    def __str__(self) -> str:
        return f"{self.of} | {self.line} | {self.change}"

    @cached_property
    def tree(self) -> ast.Module:
        """The mutated program."""
        replaced = {id(edit.node): edit.replacement for edit in self.edits}
        return ast.fix_missing_locations(_exchanged(self.parsed, replaced))

    @property
    def source(self) -> str:
        """The mutated program, as text."""
        return ast.unparse(self.tree)

    def function(self) -> Callable:
        """The mutated function itself; it belongs to no module that can be imported, so it travels by value."""
        names = {**self.names, "__name__": f"mutant_of_{self.name}"}
        exec(compile(self.tree, f"<mutant of {self.name}: {self.change}>", "exec"), names)
        return names[self.name]


def _exchanged(node: ast.AST, replaced: dict[int, ast.AST]) -> ast.AST:
    """A tree with other nodes at some places, known by their ids; it shares with the old one what does not change."""
    if id(node) in replaced:
        return replaced[id(node)]
    changed = {}
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.AST):
            new = _exchanged(value, replaced)
            if new is not value:
                changed[field] = new
        elif isinstance(value, list):
            new = [_exchanged(child, replaced) if isinstance(child, ast.AST) else child for child in value]
            if any(map(operator.is_not, new, value)):
                changed[field] = new
    if not changed:
        return node
    node = copy.copy(node)
    vars(node).update(changed)
    return node


def mutants_of(source: str, name: str, of: str = LIBRARY, names: dict | None = None) -> list[Mutant]:
    """All mutants of a program that defines the function `name`; `names` are the globals that it needs."""
    source, tree, edits = _edits(source)
    return [Mutant(name, of, source, tree, (edit,), names or {}) for edit in edits]


def pairs_of(source: str, name: str, of: str, number: int, seed: int = 0, names: dict | None = None) -> list[Mutant]:
    """This many mutants with two changes each, neither inside the other, drawn at random."""
    source, tree, edits = _edits(source)
    chance, found = random.Random(seed), {}
    for _ in range(20 * number if len(edits) > 1 else 0):
        first, other = sorted(chance.sample(range(len(edits)), 2))
        if len(found) < number and _disjoint(edits[first].node, edits[other].node):
            found[first, other] = Mutant(name, of, source, tree, (edits[first], edits[other]), names or {})
    return list(found.values())


def _edits(source: str) -> tuple[str, ast.Module, list[Edit]]:
    source = textwrap.dedent(source)
    tree, lines = ast.parse(source), _lines(source)
    found: list[Edit] = []
    seen: dict[tuple[str, str], int] = {}
    for node in sorted(_to_be_changed(tree), key=lambda node: (node.lineno, node.col_offset)):
        for words, replacement in _changes(node):
            line = lines[node.lineno]
            count = seen[line, words] = seen.get((line, words), 0) + 1
            change = words if count == 1 else f"{words} ({count})"
            found.append(Edit(node, ast.copy_location(replacement, node), line, change))
    return source, tree, found


def _to_be_changed(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes in the bodies of the program's functions and classes."""
    for definition in tree.body:
        if isinstance(definition, (ast.FunctionDef, ast.ClassDef)):
            for statement in definition.body[1:] if ast.get_docstring(definition) else definition.body:
                yield from _visible(statement)


def _disjoint(first: ast.AST, other: ast.AST) -> bool:
    return first not in ast.walk(other) and other not in ast.walk(first)


def _lines(source: str) -> dict[int, str]:
    """The lines of a source by number, from 1, each without its comment and with single spaces."""
    lines = dict(enumerate(source.splitlines(), start=1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            number, column = token.start
            lines[number] = lines[number][:column]
    return {number: " ".join(line.split()) for number, line in lines.items()}


def _visible(node: ast.AST, unordered: bool = False) -> Iterator[ast.AST]:
    """Every node with a place in the text, but not what is inside annotations and texts for people.

    Args:
        unordered: leave the node itself out, whose parts may stand in any order.
    """
    if isinstance(node, (ast.JoinedStr, ast.arguments)) or _prints(node) or _guards(node):
        return
    if hasattr(node, "lineno") and not unordered:
        yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "exc"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _visible(child, _is_looked_through(child, node))


def _is_looked_through(node: ast.AST, of: ast.AST) -> bool:
    """Whether a list or tuple stands right of `in`."""
    contains = isinstance(of, ast.Compare) and isinstance(of.ops[-1], (ast.In, ast.NotIn))
    return contains and isinstance(node, (ast.Tuple, ast.List)) and node is of.comparators[-1]


def _changes(node: ast.AST) -> Iterator[Change]:
    for kind, change in _BY_KIND:
        if isinstance(node, kind):
            yield from change(node)


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """A copy of a node with some of its fields changed."""
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def _text(node: ast.AST, limit: int = 60) -> str:
    text = " ".join(ast.unparse(node).split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def _operator(node: ast.BinOp | ast.AugAssign | ast.BoolOp) -> Iterator[Change]:
    end = "=" if isinstance(node, ast.AugAssign) else ""
    sign = SIGNS.get(type(node.op), "")
    for other in OPERATORS.get(sign, ()):
        yield f"{sign}{end} became {other}{end} in {_text(node)}", _with(node, op=KINDS[other]())


def _comparison(node: ast.Compare) -> Iterator[Change]:
    for index, sign in enumerate(SIGNS[type(operation)] for operation in node.ops):
        for other in OPERATORS[sign]:
            changed = [*node.ops[:index], KINDS[other](), *node.ops[index + 1 :]]
            yield f"{sign} became {other} in {_text(node)}", _with(node, ops=changed)


def _sign(node: ast.UnaryOp) -> Iterator[Change]:
    if isinstance(node.op, (ast.Not, ast.USub)):
        yield f"{_text(node)} became {_text(node.operand)}", copy.deepcopy(node.operand)


def _constant(node: ast.Constant) -> Iterator[Change]:
    if isinstance(node.value, bool):
        yield f"{node.value} became {not node.value}", ast.Constant(not node.value)
    elif isinstance(node.value, (int, float)):
        for other in (node.value + 1, node.value - 1):
            yield f"{node.value} became {other}", ast.Constant(other)


def _slice(node: ast.Slice) -> Iterator[Change]:
    for part in ("lower", "upper", "step"):
        if getattr(node, part) is not None:
            words = f"{part} {_text(getattr(node, part))} was dropped from the slice {_text(node)}"
            yield words, _with(node, **{part: None})


def _tuple(node: ast.Tuple | ast.List) -> Iterator[Change]:
    if isinstance(node.ctx, ast.Load):
        for index, (first, other) in enumerate(itertools.pairwise(node.elts)):
            if ast.dump(first) == ast.dump(other):
                continue
            swapped = [*node.elts[:index], other, first, *node.elts[index + 2 :]]
            yield f"{_text(first)} and {_text(other)} were swapped in {_text(node)}", _with(node, elts=swapped)


def _call(node: ast.Call) -> Iterator[Change]:
    called = getattr(node.func, "attr", getattr(node.func, "id", ""))
    for index, (first, other) in enumerate(() if called in SYMMETRIC else itertools.pairwise(node.args)):
        if ast.dump(first) != ast.dump(other) and not isinstance(other, ast.Starred):
            swapped = [*node.args[:index], other, first, *node.args[index + 2 :]]
            yield f"{_text(first)} and {_text(other)} were swapped", _with(node, args=swapped)
    for keyword in [argument for argument in node.keywords if not _guards(argument)]:
        rest = [other for other in node.keywords if other is not keyword]
        yield f"{_text(keyword)} was dropped from {_text(node.func)}", _with(node, keywords=rest)


def _name(node: ast.Attribute) -> Iterator[Change]:
    if node.attr in NAMES:
        yield f"{node.attr} became {NAMES[node.attr]} in {_text(node)}", _with(node, attr=NAMES[node.attr])


def _prints(node: ast.AST) -> bool:
    """Whether this is a line that only tells something: what an answer prints is nobody's business."""
    call = node.value if isinstance(node, ast.Expr) else None
    return isinstance(call, ast.Call) and ast.unparse(call.func) in ("print", "warnings.warn")


def _explains(node: ast.AST) -> bool:
    """Whether this is a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _only_moves_to_a_device(node: ast.stmt) -> bool:
    """Whether it is `x, y = x.to(device), y.to(device)`: on a CPU, where the checks run, they are there already."""
    if not isinstance(node, ast.Assign) or len(node.targets) != 1:
        return False
    return _text(node.value).replace(".to(device)", "") == _text(node.targets[0])


def _guards(node: ast.AST) -> bool:
    return isinstance(node, ast.keyword) and node.arg in SAFEGUARDS


def _statement(node: ast.stmt) -> Iterator[Change]:
    if _prints(node) or _explains(node) or _only_moves_to_a_device(node):
        return
    if not isinstance(node, (ast.Pass, ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom, ast.With)):
        yield f"dropped: {_text(node)}", ast.Pass()
    if isinstance(node, ast.With) and len(node.items) == 1 and node.items[0].optional_vars is None:
        yield f"no longer inside: with {_text(node.items[0])}", ast.If(ast.Constant(True), node.body, [])
    if isinstance(node, ast.If) and node.orelse:
        yield f"dropped: the else of if {_text(node.test)}", _with(node, orelse=[])


_BY_KIND: tuple[tuple[type | types.UnionType, Callable[..., Iterator[Change]]], ...] = (
    (ast.BinOp | ast.AugAssign | ast.BoolOp, _operator),
    (ast.Compare, _comparison),
    (ast.UnaryOp, _sign),
    (ast.Constant, _constant),
    (ast.Slice, _slice),
    (ast.Tuple | ast.List, _tuple),
    (ast.Call, _call),
    (ast.Attribute, _name),
    (ast.stmt, _statement),
)
