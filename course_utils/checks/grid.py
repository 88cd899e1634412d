"""Tables that stay readable in a narrow window: where the last cells of a row do not fit, they go below the first.

They are laid out by flexible boxes. Such a table is not a table to every screen reader, so its roles are written out.
"""

from collections.abc import Iterable, Sequence

from course_utils.checks.panel import attribute

_TABLE = "display: block; margin: 8px 0 0; border: none; color: inherit; font-size: inherit"
_ROW = "display: flex; flex-wrap: wrap; align-items: baseline; gap: 0 8px; padding: 3px 0; background: none"
_CELL = (
    "display: block; box-sizing: border-box; text-align: left; padding: 0; line-height: 1.5; white-space: normal; "
    "overflow-wrap: break-word; flex: {flex}"
)


def table(name: str, head: Sequence[str], rows: Iterable[Sequence[str]], widths: Sequence[str]) -> str:
    """A table with a line of titles; the first cell of every row is the row's name.

    Args:
        name: what a screen reader calls it.
        head: HTML, a title for each column.
        rows: HTML, the cells of each row; a row may have fewer cells than there are titles.
        widths: the `flex` of each column: "1 1 260px" may grow from 260 pixels, "0 0 80px" may not.
    """
    titles = _row([_cell(title, width, "columnheader") for title, width in zip(head, widths, strict=True)])
    body = "".join(
        _row(
            [
                _cell(inside, width, "cell" if column else "rowheader")
                for column, (inside, width) in enumerate(zip(cells, widths, strict=False))
            ]
        )
        for cells in rows
    )
    return (
        f'<table role="table" aria-label="{attribute(name)}" style="{_TABLE}">'
        f'<thead role="rowgroup" style="display: block">{titles}</thead>'
        f'<tbody role="rowgroup" style="display: block">{body}</tbody></table>'
    )


def _row(cells: Iterable[str]) -> str:
    return f'<tr role="row" style="{_ROW}">{"".join(cells)}</tr>'


def _cell(inside: str, width: str, role: str) -> str:
    tag, weight = ("td", "") if role == "cell" else ("th", "; font-weight: 600")
    weight = "; font-weight: normal" if role == "rowheader" else weight
    return f'<{tag} role="{role}" style="{_CELL.format(flex=width)}{weight}">{inside}</{tag}>'
