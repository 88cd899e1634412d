"""What a notebook shows of a verdict: its line, what the learner's function printed, and at most one picture."""

import contextlib
import math
import re
from typing import TYPE_CHECKING

from course_utils import draw
from course_utils.checks import panel as parts
from course_utils.checks.panel import NEUTRAL, NOT_YET, RIGHT, Panel
from course_utils.checks.verdict import Result, Verdict, finding_of
from course_utils.trace.events import count_rounds
from course_utils.words import count

if TYPE_CHECKING:
    from course_utils.draw.style import Picture

MOST_LINES = 20
MOST_MESSAGES = 60
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_COLOURS = {Result.RIGHT: RIGHT, Result.WRONG: NOT_YET, Result.NOT_BEGUN: NEUTRAL}


def show(verdict: Verdict, picture: bool = True) -> None:
    """Show the verdict's panel in a notebook; elsewhere print its line, then what the learner's function printed."""
    if parts.in_notebook():
        parts.show(panel(verdict, picture))
    else:
        print("\n".join([str(verdict), *printed_lines(verdict)]))


def panel(verdict: Verdict, picture: bool = True) -> Panel:
    """The verdict as one output. Its text is the line; its HTML adds what was printed and at most one picture."""
    colour, name = _COLOURS[verdict.result], verdict.badge
    html = parts.panel_html(
        f"{verdict.name}: {name}",
        colour,
        verdict.name,
        mark=verdict.result,
        words=name,
        said=finding_of(verdict),
        lead="Ask yourself:",
        question=verdict.question,
        printed=[_ESCAPES.sub("", line) for line in printed_lines(verdict)],
        picture=_picture(verdict) if picture else None,
    )
    return Panel(str(verdict), html)


def printed_lines(verdict: Verdict) -> list[str]:
    """What the learner's function printed, each line with its rank, and how many lines more there were."""
    lines = [f"[rank {rank}] {line}" for rank, text in verdict.output for line in text.splitlines()]
    rest = len(lines) - MOST_LINES
    return [*lines[:MOST_LINES], f"… and {rest} more lines"] if rest > 0 else lines


def picture_title(verdict: Verdict) -> str | None:
    """Counted against expected rounds, and the case: `4 rounds counted, 2 expected (4 ranks)`; None: the finding.

    Where a message never ended, there is nothing to count.
    """
    case = None if verdict.passed else verdict.case or None
    expected = verdict.expected_rounds
    if expected is None or any(math.isinf(event.end) for event in verdict.events):
        return case
    counted = count_rounds(verdict.events)
    title = f"{count(counted, 'round')} counted, {'at most ' if counted < expected else ''}{expected} expected"
    return f"{title} ({case})" if case else title


def _picture(verdict: Verdict) -> "Picture | None":
    """The exercise's own picture, or the messages; None where there is nothing to draw, or too much."""
    if verdict.drawing:
        with contextlib.suppress(Exception):  # it looked into something of an unexpected form: then there is no picture
            if figure := verdict.drawing():
                return figure
    messages = sum(event.kind == "send" for event in verdict.events)
    if not 0 < messages <= MOST_MESSAGES:
        return None
    return draw.timeline(list(verdict.events), title=picture_title(verdict))
