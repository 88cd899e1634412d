"""The one line that a check ends with, and what may stand below it."""

from dataclasses import dataclass, field
from typing import Any

PASSED, FAILED, NOT_BEGUN = "✓", "✗", "○"
MOST_LINES = 20
MOST_MESSAGES = 60


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
    """Print the line, then what the learner's own function printed, then in a notebook at most one picture."""
    print(verdict)
    lines = [f"[rank {rank}] {line}" for rank, text in verdict.output for line in text.splitlines()]
    for line in lines[:MOST_LINES]:
        print(line)
    if len(lines) > MOST_LINES:
        print(f"… and {len(lines) - MOST_LINES} more lines")
    messages = sum(event.kind == "send" for event in verdict.events)
    if picture and 0 < messages <= MOST_MESSAGES and _in_notebook():
        _draw(verdict)


def _in_notebook() -> bool:
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return hasattr(get_ipython(), "kernel")


def _draw(verdict: Verdict) -> None:
    from IPython.display import display

    from course_utils.draw import timeline

    display(timeline(list(verdict.events), title=verdict.details.get("picture_title")))
