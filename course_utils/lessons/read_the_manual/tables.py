"""What lesson 15 shows as tables: code side by side, the dictionary, and the words of a quotation with their lessons.

Each is text for terminals and HTML for notebooks. What is wider than the window can be scrolled by itself.
"""

import ast
import inspect
import textwrap
from collections.abc import Callable, Mapping

from course_utils.checks.panel import Panel
from course_utils.lessons.read_the_manual.dictionary import DICTIONARY
from course_utils.lessons.read_the_manual.manuals import FRAMEWORKS
from course_utils.lessons.read_the_manual.passages import PASSAGES
from course_utils.syllabus import LESSONS
from course_utils.templates import render

_FOLDER = "course_utils/lessons/read_the_manual"


def code_lines(function: Callable) -> list[str]:
    """Return the lines of a function's source, without its own indentation."""
    return textwrap.dedent(inspect.getsource(function)).strip().splitlines()


def lines_of_code(function: Callable) -> int:
    """Return how many lines of a function hold code: no blank lines, comments, or docstrings."""
    (definition,) = ast.parse("\n".join(code_lines(function))).body
    if ast.get_docstring(definition) is not None:  # type: ignore[arg-type]
        definition.body = definition.body[1:]  # type: ignore[attr-defined]
    return len(ast.unparse(definition).splitlines())


def side_by_side(ways: Mapping[str, Callable]) -> Panel:
    """Show functions side by side; lines that the first one does not have are marked."""
    sources = {name: code_lines(function) for name, function in ways.items()}
    first = {line.strip() for line in next(iter(sources.values()))[1:]}
    functions: dict[str, list[tuple[str, bool]]] = {}
    for position, (name, lines) in enumerate(sources.items()):
        is_new = [position > 0 < number and line.strip() not in first | {""} for number, line in enumerate(lines)]
        title = f"{name}: {sum(bool(line.strip()) for line in lines)} lines" + (
            f", {sum(is_new)} of them new" if position else ""
        )
        functions[title] = list(zip(lines, is_new, strict=True))
    texts = [
        "\n".join([title, *(f"{'+' if is_new else ' '} {line}" for line, is_new in lines)])
        for title, lines in functions.items()
    ]
    return Panel("\n\n".join(texts), render(f"{_FOLDER}/side_by_side.html", functions=functions))


def dictionary_table() -> Panel:
    """Show a row for each term of the course and a column for each framework; a cell links to the manual's page."""
    columns = dict.fromkeys(["this course", *FRAMEWORKS], 8)
    html = render(f"{_FOLDER}/dictionary.html", columns=columns, frameworks=FRAMEWORKS, entries=DICTIONARY, page=_page)
    texts = [
        "\n".join([f"{entry.term} (lesson {entry.lesson})", *(f"  {n}: {entry.cells[n].says}" for n in FRAMEWORKS)])
        for entry in DICTIONARY
    ]
    return Panel("\n".join(texts), html)


def words_table() -> Panel:
    """Show a row for each underlined word: what it means, and where the course measured it."""
    terms = [term for passage in PASSAGES for term in passage.terms]
    texts = []
    for term in terms:
        where = "no lesson" if term.lesson is None else f"lesson {term.lesson}: {term.measured}"
        texts.append(f"{term.words}: {term.means}. {where}".replace("`", ""))
    return Panel("\n".join(texts), render(f"{_FOLDER}/words.html", terms=terms, page=_page))


def _page(lesson: int) -> str:
    return f"notebooks/{LESSONS[lesson].stem}.ipynb"
