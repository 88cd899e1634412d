"""The one line that a check ends with, and what a notebook shows around it."""

import contextlib
import math
from dataclasses import dataclass, field
from typing import Any

from course_utils import draw
from course_utils.checks import panel as parts
from course_utils.checks.panel import NEUTRAL, NOT_YET, RIGHT, Panel
from course_utils.trace.events import count_rounds
from course_utils.words import count

PASSED, FAILED, NOT_BEGUN = "✓", "✗", "○"
WORDS = {PASSED: "right", FAILED: "not yet", NOT_BEGUN: "not begun"}
MOST_LINES = 20
MOST_MESSAGES = 60
_KINDS = {PASSED: RIGHT, FAILED: NOT_YET, NOT_BEGUN: NEUTRAL}


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Attributes:
        mark: "✓" right, "✗" not right, "○" not begun.
        name: the exercise.
        text: what, which rank, expected, got, and the likely cause as a question.
        events: what happened on the ranks in the failing (or last) case, for the picture.
        output: what the learner's function printed in the failing case: (rank, text).
        seed: the seed of the numbers that were used; the same seed gives the same numbers.
        details: for the panel: "question", with which `text` ends; "expected_rounds" and "picture_title" of the case;
            "drawing", a function that gives the picture of an exercise that has its own. Where a mistake was looked
            for, "search_seconds" that it took.
    """

    mark: str
    name: str
    text: str
    events: tuple = ()
    output: tuple[tuple[int, str], ...] = ()
    seed: int | None = None
    details: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.mark} {self.name}: {self.text}"

    @property
    def passed(self) -> bool:
        """Whether the answer is right."""
        return self.mark == PASSED


def not_begun(name: str) -> Verdict:
    """The verdict on a function that still is the stub."""
    return Verdict(NOT_BEGUN, name, "not begun. Replace the line `raise NotImplementedError`.")


def show(verdict: Verdict, picture: bool = True) -> None:
    """Show the verdict's panel in a notebook; elsewhere print its line, then what the learner's function printed."""
    if parts.in_notebook():
        parts.show(panel(verdict, picture))
    else:
        print("\n".join([str(verdict), *printed_lines(verdict)]))


def panel(verdict: Verdict, picture: bool = True) -> Panel:
    """The verdict as one output. Its text is the line; its HTML adds what was printed and at most one picture."""
    kind, words = _KINDS[verdict.mark], WORDS[verdict.mark]
    finding, question = split_question(verdict)
    html = parts.box(
        f"{verdict.name}: {words}",
        kind,
        parts.head(verdict.mark, words, kind, verdict.name, finding),
        parts.set_off(question, kind, "Ask yourself:"),
        parts.printed("Your function printed:", printed_lines(verdict)),
        _picture(verdict) if picture else "",
    )
    return Panel(str(verdict), html)


def split_question(verdict: Verdict) -> tuple[str, str]:
    """What was found, and the question behind it ("" where there is none)."""
    question = verdict.details.get("question") or ""
    finding = verdict.text.removesuffix(question).rstrip()
    if verdict.mark == NOT_BEGUN:
        finding = finding.removeprefix("not begun. ")  # the badge says so already
    return finding, question


def printed_lines(verdict: Verdict) -> list[str]:
    """What the learner's function printed, each line with its rank, and how many lines more there were."""
    lines = [f"[rank {rank}] {line}" for rank, text in verdict.output for line in text.splitlines()]
    rest = len(lines) - MOST_LINES
    return [*lines[:MOST_LINES], f"… and {rest} more lines"] if rest > 0 else lines


def picture_title(verdict: Verdict) -> str | None:
    """Counted against expected rounds, and the case: `4 rounds counted, 2 expected (4 ranks)`; None: the finding.

    Where a message never ended, there is nothing to count.
    """
    case, expected = verdict.details.get("picture_title"), verdict.details.get("expected_rounds")
    if expected is None or any(math.isinf(event.end) for event in verdict.events):
        return case
    counted = count_rounds(verdict.events)
    title = f"{count(counted, 'round')} counted, {'at most ' if counted < expected else ''}{expected} expected"
    return f"{title} ({case})" if case else title


def _picture(verdict: Verdict) -> str:
    """The exercise's own picture, or the messages; "" where there is nothing to draw, or too much."""
    figure, drawing = None, verdict.details.get("drawing")
    if drawing:
        with contextlib.suppress(Exception):  # it looked into something of an unexpected form: then there is no picture
            figure = drawing()
    if figure:
        return parts.image(figure)
    messages = sum(event.kind == "send" for event in verdict.events)
    if not 0 < messages <= MOST_MESSAGES:
        return ""

    return parts.image(draw.timeline(list(verdict.events), title=picture_title(verdict)))
