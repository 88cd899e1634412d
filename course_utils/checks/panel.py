"""What a notebook shows of a verdict, a hint or a prediction: one object, plain text for programs, a panel for people.

The panel is HTML with styles and no script. A badge carries its own ground and its own words, so that nothing is said
by colour alone; all other text takes the colour of the page, so that it reads in a light and in a dark theme. Screen
readers get a name for the whole.
"""

import base64
import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from course_utils.draw.style import Picture

VALUE = "application/vnd.course.panel+json"
"""Under this type a saved notebook holds a panel's value."""
RIGHT, NOT_YET, NEUTRAL = "right", "not yet", "neutral"
_GROUNDS = {RIGHT: "#00664B", NOT_YET: "#9A3A00", NEUTRAL: "#565656"}  # white words on them have a contrast above 6.5
_EDGES = {RIGHT: "#009E73", NOT_YET: "#D55E00", NEUTRAL: "#8A8A8A"}  # at least 3.4 on white and on black
_CODE = re.compile(r"`([^`\n]+)`")
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_BOX = (
    "border-left: 4px solid {edge}; border-radius: 4px; background: rgba(127, 127, 127, 0.09); margin: 2px 0; "
    "padding: 9px 14px; max-width: 720px; box-sizing: border-box; line-height: 1.5; "
    "white-space: normal; word-break: normal; overflow-wrap: anywhere"
)
_BADGE = (
    "display: inline-block; background: {ground}; color: #FFFFFF; border-radius: 3px; padding: 0 8px; "
    "margin-right: 4px; font-weight: 600; white-space: nowrap"
)
_SET_OFF = "margin: 8px 0 2px; padding: 4px 12px; border-left: 2px solid {edge}; font-size: 1.05em"
_PRINTED = (
    "margin: 0; padding: 0; background: none; color: inherit; border: none; font-size: 0.93em; "
    "white-space: pre-wrap; word-break: normal; overflow-wrap: anywhere"
)


@dataclass(frozen=True)
class Panel:
    """One output of a cell.

    Attributes:
        text: for terminals and readers that show no HTML: the line or the lines, and nothing else.
        html: for notebooks.
        value: for programs that read the saved notebook: what the panel shows, as JSON; empty for nothing.
    """

    text: str
    html: str = field(repr=False)
    value: Mapping[str, Any] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, Any]:
        """IPython's hook: a notebook keeps all and shows the one it can."""
        value = {VALUE: dict(self.value)} if self.value else {}
        return {"text/plain": self.text, "text/html": self.html, **value}


def show(panel: Panel) -> None:
    """Show it in the notebook, or print its text where there is none."""
    if in_notebook():
        from IPython.display import display

        display(panel)
    else:
        print(panel.text)


def in_notebook() -> bool:
    """Is this the kernel of a notebook?"""
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return hasattr(get_ipython(), "kernel")


def box(name: str, kind: str, *parts: str) -> str:
    """The frame of a panel.

    Args:
        name: what a screen reader calls it.
        kind: RIGHT, NOT_YET or NEUTRAL: the colour of its edge.
        parts: HTML; empty ones are left out.
    """
    style = _BOX.format(edge=_EDGES[kind])
    inside = "".join(filter(None, parts))
    return f'<div class="course-panel" role="status" aria-label="{attribute(name)}" style="{style}">{inside}</div>'


def badge(mark: str, words: str, kind: str) -> str:
    """A mark with its words on a ground of their own; the mark alone is not read aloud."""
    sign = f'<span aria-hidden="true">{escape(mark)}</span> ' if mark else ""
    return f'<span style="{_BADGE.format(ground=_GROUNDS[kind])}">{sign}{escape(words)}</span> '


def head(mark: str, words: str, kind: str, name: str, text: str = "") -> str:
    """The first line: a badge, the name of what it is about, and what there is to say about it."""
    rest = f": {prose(text)}" if text else ""
    return f'<div style="margin: 0">{badge(mark, words, kind)}<strong>{escape(name)}</strong>{rest}</div>'


def paragraph(text: str, style: str = "margin: 6px 0 0") -> str:
    """Plain text as a paragraph; `…` between backticks is code."""
    return f'<p style="{style}">{prose(text)}</p>' if text else ""


def set_off(text: str, kind: str, before: str = "") -> str:
    """A question, apart from what was found. `before`: words that lead to it."""
    lead = f"<strong>{escape(before)}</strong> " if before else ""
    return f'<p style="{_SET_OFF.format(edge=_EDGES[kind])}">{lead}{prose(text)}</p>' if text else ""


def printed(title: str, lines: list[str]) -> str:
    """Lines as they were printed, under a title, broken between words where they are long."""
    if not lines:
        return ""
    text = html.escape(_ESCAPES.sub("", "\n".join(lines)), quote=False)
    return f'<div style="margin: 8px 0 0">{escape(title)}</div><pre style="{_PRINTED}">{text}</pre>'


def image(picture: "Picture") -> str:
    """A picture as wide as it is meant to be, or as there is room for."""
    data = base64.b64encode(picture._repr_png_()).decode()
    style = f"display: block; width: {round(picture.get_figwidth() * 100)}px; max-width: 100%; height: auto"
    alternative = attribute(picture.alt_text)
    return f'<img src="data:image/png;base64,{data}" alt="{alternative}" style="{style}; margin: 10px 0 2px">'


def prose(text: str) -> str:
    """Text as HTML, with what stands between backticks as code."""
    return _CODE.sub(r'<code style="white-space: pre-wrap">\1</code>', escape(text))


def escape(text: object) -> str:
    """Text as HTML."""
    return html.escape(str(text), quote=False)


def attribute(text: object) -> str:
    """Text as the value of an attribute."""
    return html.escape(" ".join(str(text).split()), quote=True)
