"""Mutants of a function: copies with one small mistake each, made mechanically from its syntax tree.

Only the body is changed, never the signature, which an exercise gives to its learner.

Source: DeMillo, Lipton, Sayward 1978, "Hints on test data selection"; the operators follow Offutt et al. 1996.
"""

import ast
import copy
import inspect
import io
import itertools
import sys
import textwrap
import tokenize
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass

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


@dataclass(frozen=True)
class Mutant:
    """One mutated copy of a function.

    Attributes:
        name: of the function.
        line: the text of the line that is changed, without its comment: "total = a + b".
        change: what is different in it: "+ became - in a + b"; what looks like an earlier one has its number: "… (2)".
        tree: the mutated function, as a module of one statement.
        names: the globals that the function sees.
    """

    name: str
    line: str
    change: str
    tree: ast.Module
    names: dict

    def __str__(self) -> str:
        return f"{self.name} | {self.line} | {self.change}"

    @property
    def source(self) -> str:
        """The mutated function, as text."""
        return ast.unparse(self.tree)

    def function(self) -> Callable:
        """The mutated function itself; it belongs to no module that can be imported, so it travels by value."""
        names = {**self.names, "__name__": f"mutant_of_{self.name}"}
        exec(compile(self.tree, f"<mutant of {self.name}: {self.change}>", "exec"), names)
        return names[self.name]


def mutants(function: Callable) -> list[Mutant]:
    """All mutants of a function that stands in a file, in the order of its lines."""
    return mutants_of(inspect.getsource(function), vars(sys.modules[function.__module__]))


def mutants_of(source: str, names: dict | None = None) -> list[Mutant]:
    """All mutants of the function that `source` defines; `names` are the globals that it needs."""
    source = textwrap.dedent(source)
    tree, lines = ast.parse(source), _lines(source)
    definition = tree.body[0]
    body = definition.body[1:] if ast.get_docstring(definition) else definition.body
    found, seen = [], {}
    nodes = [node for statement in body for node in _visible(statement)]
    for node in sorted(nodes, key=lambda node: (node.lineno, node.col_offset)):
        for words, replacement in _changes(node):
            line = lines[node.lineno]
            count = seen[line, words] = seen.get((line, words), 0) + 1
            change = words if count == 1 else f"{words} ({count})"
            mutated = ast.fix_missing_locations(copy.deepcopy(tree, {id(node): ast.copy_location(replacement, node)}))
            found.append(Mutant(definition.name, line, change, mutated, dict(names or {})))
    return found


def _lines(source: str) -> dict[int, str]:
    """The lines of a source by number, from 1, each without its comment and with single spaces."""
    lines = dict(enumerate(source.splitlines(), start=1))
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            number, column = token.start
            lines[number] = lines[number][:column]
    return {number: " ".join(line.split()) for number, line in lines.items()}


def _visible(node: ast.AST) -> Iterator[ast.AST]:
    """Every node with a place in the text, but not what is inside annotations and texts for people."""
    if isinstance(node, (ast.JoinedStr, ast.arguments)):
        return
    if hasattr(node, "lineno"):
        yield node
    for name, value in ast.iter_fields(node):
        if name not in ("annotation", "returns", "exc"):
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _visible(child)


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
    for index, sign in enumerate(SIGNS[type(one)] for one in node.ops):
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
        for index, (one, other) in enumerate(itertools.pairwise(node.elts)):
            swapped = [*node.elts[:index], other, one, *node.elts[index + 2 :]]
            yield f"{_text(one)} and {_text(other)} were swapped in {_text(node)}", _with(node, elts=swapped)


def _call(node: ast.Call) -> Iterator[Change]:
    for index, (one, other) in enumerate(itertools.pairwise(node.args)):
        if ast.dump(one) != ast.dump(other) and not isinstance(other, ast.Starred):
            swapped = [*node.args[:index], other, one, *node.args[index + 2 :]]
            yield f"{_text(one)} and {_text(other)} were swapped", _with(node, args=swapped)
    for keyword in node.keywords:
        rest = [other for other in node.keywords if other is not keyword]
        yield f"{_text(keyword)} was dropped from {_text(node.func)}", _with(node, keywords=rest)


def _name(node: ast.Attribute) -> Iterator[Change]:
    if node.attr in NAMES:
        yield f"{node.attr} became {NAMES[node.attr]} in {_text(node)}", _with(node, attr=NAMES[node.attr])


def _statement(node: ast.stmt) -> Iterator[Change]:
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
