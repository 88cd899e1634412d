"""A log as a picture: every line a bar, errors and their consequences coloured, and the line that shows the cause."""

from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from course_utils.draw import style
from course_utils.lessons.gpu_nodes.failures.explain import CONSEQUENCE, ERROR, explain_failure, shortened

_COLOURS = {
    "says something": "#CFCFCF",
    "an error": "#E69F00",
    "follows from another": "#CC79A7",
    "the cause": style.STUCK,
}
_LINE = 0.085  # inches
_LONGEST = 110  # letters that fill the width


def log_map(log: str, title: str = "", width: float = style.WIDTH) -> Figure:
    """Draw a log from above: where it speaks of errors, and where `explain_failure` finds the cause.

    Args:
        log: what a failed launch printed.
        title: said first; the finding (which line shows the cause, and how many errors stand before it) follows.
    """
    cause, lines = explain_failure(log), log.splitlines()
    kinds = [kind_of(line, line in cause.lines) for line in lines]
    found = log_finding(kinds, cause.name)
    marks = {kind: Patch(facecolor=colour) for kind, colour in _COLOURS.items() if kind in kinds}
    above = style.legend_height(list(marks), 0.6)
    heading = (title, found) if title else (found, "")
    look = {"left": 0.6, "right": 0.15, "below": 0.1, "above": above, "width": width}
    picture, (ax,) = style.new_picture(*heading, heights=[_LINE * len(lines) + 0.3], **look)
    ax.set_xlim(0, _LONGEST)
    ax.set_ylim(len(lines) + 0.3 / _LINE, 0)
    ax.axis("off")
    for y, (line, kind) in enumerate(zip(lines, kinds, strict=True)):
        indent = min(len(line) - len(line.lstrip()), 20)
        long = max(0.6, min(len(line.strip()), _LONGEST - indent))
        high = 1.0 if kind == "the cause" else 0.7
        ax.add_patch(Rectangle((indent, y + (1 - high) / 2), long, high, facecolor=_COLOURS[kind], linewidth=0))
        if kind != "says something":
            ax.text(-1, y + 0.5, str(y + 1), ha="right", va="center", fontsize=6, color=_ink(kind))
    at = {"fontsize": 7.2, "family": "monospace", "parse_math": False, "color": _COLOURS["the cause"]}
    letters = int((width - 0.9) * style.DOTS / 6.4)
    for line in cause.lines[:1]:
        ax.text(0, len(lines) + 0.2 / _LINE, shortened(line.strip(), letters), va="center", **at)
    style.draw_legend(ax, marks)
    picture.alt_text = f"A log of {len(lines)} lines seen from above. {title} {found}. {' '.join(cause.lines)}"
    return picture


def kind_of(line: str, shows_cause: bool) -> str:
    """What a line of a log is to its reader."""
    if shows_cause:
        return "the cause"
    if CONSEQUENCE.search(line):
        return "follows from another"
    return "an error" if ERROR.search(line) else "says something"


def log_finding(kinds: list[str], name: str) -> str:
    """Where in the log the cause stands."""
    if "the cause" not in kinds:
        return f"{len(kinds)} lines; the cause is {name}"
    line = kinds.index("the cause")
    before = sum(kind != "says something" for kind in kinds[:line])
    told = "no error stands before it" if not before else f"{before} lines with errors stand before it"
    return f"{name}: line {line + 1} of {len(kinds)} shows it; {told}"


def _ink(kind: str) -> str:
    return _COLOURS["the cause"] if kind == "the cause" else style.FAINT
