"""What a notebook shows of a verdict, a hint or a prediction: one object, plain text for programs, a panel for people.

The panel is HTML with styles and no script, from `panel.html`. A badge has a ground and words of its own, so that
colour alone says nothing; all other text takes the colour of the page, so that it reads in a light and in a dark theme.
Screen readers get a name for the whole.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from course_utils.progress_bar import in_notebook
from course_utils.templates import render

VALUE = "application/vnd.course.panel+json"
"""Under this type a saved notebook holds a panel's value."""
RIGHT, NOT_YET, NEUTRAL = "right", "not yet", "neutral"


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


def panel_html(label: str, kind: str, name: str, **values: Any) -> str:
    """The HTML of a panel.

    Args:
        label: what a screen reader calls it.
        kind: RIGHT, NOT_YET or NEUTRAL: the colour of its edge.
        name: what it is about.
        values: what else it shows; `panel.html` lists what there can be.
    """
    return render("course_utils/checks/panel.html", label=label, kind=kind, name=name, **values)
