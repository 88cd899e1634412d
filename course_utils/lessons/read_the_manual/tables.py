"""What lesson 15 shows as tables: code side by side, the dictionary, and the words of a quotation with their lessons.

Each is text for terminals and HTML for notebooks. What is wider than the window can be scrolled by itself.
"""

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence

from course_utils.checks.overview import link
from course_utils.checks.panel import Panel, attribute, escape, prose
from course_utils.lessons.read_the_manual.dictionary import DICTIONARY, Cell, Entry
from course_utils.lessons.read_the_manual.manuals import FRAMEWORKS
from course_utils.lessons.read_the_manual.passages import PASSAGES
from course_utils.syllabus import LESSONS

_SCROLLED = (
    '<div role="region" aria-label="{name}" tabindex="0" style="overflow-x: auto; max-width: 100%">{inside}</div>'
)
_TABLE = (
    "border-collapse: collapse; border: none; table-layout: fixed; width: 100%; min-width: {width}em; "
    "font-size: 0.88em; line-height: 1.4; margin: 4px 0"
)
_CELL = (
    "text-align: left; vertical-align: top; padding: 4px 10px 4px 0; border: none; "
    "border-bottom: 1px solid rgba(127, 127, 127, 0.35); white-space: normal; overflow-wrap: anywhere; background: none"
)
_CODE = (
    "margin: 0; padding: 0; background: none; color: inherit; border: none; font-family: monospace; font-size: 0.85em; "
    "line-height: 1.45"
)
_BREAK = re.compile(r"(?P<tag><[^>]*>)|(?<=[_.(=])|(?<=[a-z])(?=[A-Z])")
"""Where a long name may go on in the next line; tags are left alone."""
_NEW = "background: rgba(0, 114, 178, 0.18)"  # behind what the first way does not say


def code_lines(function: Callable) -> list[str]:
    """The lines of a function's source, its own indentation taken away."""
    return textwrap.dedent(inspect.getsource(function)).strip().splitlines()


def side_by_side(ways: Mapping[str, Callable]) -> Panel:
    """Functions beside each other; lines that the first one does not have are marked."""
    sources = {name: code_lines(way) for name, way in ways.items()}
    first = {line.strip() for line in next(iter(sources.values()))[1:]}
    columns, told = [], []
    for place, (name, lines) in enumerate(sources.items()):
        new = [place > 0 and number > 0 and line.strip() not in first for number, line in enumerate(lines)]
        code = "\n".join(_line(line, marked) for line, marked in zip(lines, new, strict=True))
        title = f"{name}: {len(lines)} lines" + (f", {sum(new)} of them new" if place else "")
        columns.append(
            f'<div style="flex: 1 1 440px; min-width: 0; margin: 0 0 10px"><strong>{escape(title)}</strong>'
            f'<div style="overflow-x: auto" tabindex="0" role="region" aria-label="{attribute(title)}">'
            f'<pre style="{_CODE}">{code}</pre></div></div>'
        )
        told.append("\n".join([title, *(f"{'+' if marked else ' '} {line}" for line, marked in zip(lines, new))]))
    html = f'<div style="display: flex; flex-wrap: wrap; gap: 4px 20px">{"".join(columns)}</div>'
    return Panel("\n\n".join(told), html)


def _line(text: str, marked: bool) -> str:
    return f'<span style="{_NEW}">{escape(text)}</span>' if marked else escape(text)


def dictionary_table() -> Panel:
    """A row for each term of the course, a column for each framework; a cell links to the page where it stands."""
    head = ["this course", *FRAMEWORKS]
    rows = [[_term(entry), *(_cell_link(entry.cells[name]) for name in FRAMEWORKS)] for entry in DICTIONARY]
    told = [
        "\n".join([f"{entry.term} (lesson {entry.lesson})", *(f"  {n}: {entry.cells[n].says}" for n in FRAMEWORKS)])
        for entry in DICTIONARY
    ]
    return Panel("\n".join(told), _table("The dictionary", head, rows, [8] * (1 + len(FRAMEWORKS))))


def words_table() -> Panel:
    """A row for each underlined word: what it means, and where the course measured it."""
    head = ["word", "means", "measured", "lesson"]
    rows, told = [], []
    for term in (term for passage in PASSAGES for term in passage.terms):
        lesson = "–" if term.lesson is None else _lesson(term.lesson)
        rows.append(
            [
                f"<strong>{_breakable(escape(term.words))}</strong>",
                prose(term.means),
                prose(term.measured or "–"),
                lesson,
            ]
        )
        where = "no lesson" if term.lesson is None else f"lesson {term.lesson}: {term.measured}"
        told.append(f"{term.words}: {term.means}. {where}".replace("`", ""))
    return Panel("\n".join(told), _table("The words", head, rows, [11, 16, 16, 5]))


def _term(entry: Entry) -> str:
    return f"<strong>{escape(entry.term)}</strong> ({_lesson(entry.lesson)})<br>{prose(entry.meaning)}"


def _lesson(number: int) -> str:
    return link(f"notebooks/{LESSONS[number].stem}.ipynb", str(number))


def _cell_link(cell: Cell) -> str:
    style = "color: inherit; text-underline-offset: 0.25em"  # else the line hides each underscore
    said = _breakable(prose(cell.says))
    return f'<a href="{attribute(cell.address)}" title="{attribute(cell.source)}" style="{style}">{said}</a>'


def _breakable(html: str) -> str:
    """HTML whose long names may go on in the next line, between their parts."""
    return _BREAK.sub(lambda found: found["tag"] or "<wbr>", html)


def _table(name: str, head: Sequence[str], rows: Sequence[Sequence[str]], widths: Sequence[int]) -> str:
    """HTML cells as a table; `widths` are shares of the whole, and of each column the least, in letters' heights."""
    titles = "".join(
        f'<th scope="col" style="{_CELL}; width: {100 * width / sum(widths):.1f}%">{_breakable(escape(title))}</th>'
        for title, width in zip(head, widths, strict=True)
    )
    body = "".join(
        f'<tr style="background: none">{"".join(_cell(inside, place) for place, inside in enumerate(row))}</tr>'
        for row in rows
    )
    style = _TABLE.format(width=sum(widths))
    table = f'<table style="{style}"><thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>'
    return _SCROLLED.format(name=attribute(name), inside=table)


def _cell(inside: str, place: int) -> str:
    if place == 0:
        return f'<th scope="row" style="{_CELL}; font-weight: normal">{inside}</th>'
    return f'<td style="{_CELL}">{inside}</td>'
