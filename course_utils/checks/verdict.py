"""What a check came to, as a value, and its line. Every decision reads the fields, and nothing reads the line."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from course_utils.checks.executed_cells import NotDefined
from course_utils.checks.finding import Finding
from course_utils.checks.finding_text import text_of
from course_utils.checks.mistake_search import Searched, SearchEnd
from course_utils.words import capital, count, join, uncapital

if TYPE_CHECKING:
    from course_utils.draw.style import Picture
    from course_utils.trace.events import Event


class Result(StrEnum):
    """Right, not right, not begun; the value is the mark that a line begins with, and that is kept."""

    RIGHT = "✓"
    WRONG = "✗"
    NOT_BEGUN = "○"


NAMES = {Result.RIGHT: "right", Result.WRONG: "not yet", Result.NOT_BEGUN: "not begun"}
"""What a badge says."""
_STUB = "Replace the line `raise NotImplementedError`."


@dataclass(frozen=True)
class JudgedOn:
    """The ranks on which a verdict stands.

    Attributes:
        virtual: the smallest and the largest number of virtual ranks on which the answer was right.
        real: how many real ranks judged it; 0 where none did.
        found_on_virtual: whether what is wrong was found on virtual ranks.
        virtual_cannot: what the answer does that virtual ranks cannot; "" where they could.
        start: the line that starts the ranks that are missing; "" where none are.
        left_out: the number of ranks of the largest case that did not fit; 0 where all did.
    """

    virtual: tuple[int, int] | None = None
    real: int = 0
    found_on_virtual: bool = False
    virtual_cannot: str = ""
    start: str = ""
    left_out: int = 0


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    Attributes:
        result: right, not right, or not begun.
        name: the exercise.
        finding: what is wrong; None where nothing is, or nothing has begun.
        case: in words, the case in which it was found.
        case_key: the same for programs.
        praise: what the line of a right answer says.
        searched: the search for the mistake; its question is the one that the learner is asked.
        judged_on: on which ranks all this was seen.
        events: what happened on the ranks in the failing (or last) case, for the picture.
        output: what the learner's function printed in the failing case: (rank, text).
        seed: of the numbers that were used; the same seed gives the same numbers.
        expected_rounds: that the case may take; None where they are not counted.
        drawing: gives the picture of an exercise that has its own.
        not_defined: why the function's cell did not define it, so that nothing was judged; None where it did.
    """

    result: Result
    name: str
    finding: Finding | None = None
    case: str = ""
    case_key: str = ""
    praise: str = ""
    searched: Searched = Searched()
    judged_on: JudgedOn = JudgedOn()
    events: "tuple[Event, ...]" = ()
    output: tuple[tuple[int, str], ...] = ()
    seed: int | None = None
    expected_rounds: int | None = None
    drawing: "Callable[[], Picture | None] | None" = None
    not_defined: NotDefined | None = None

    @property
    def passed(self) -> bool:
        """Whether the answer is right."""
        return self.result == Result.RIGHT

    @property
    def question(self) -> str:
        """The question that leads out of the mistake; "" where none is asked."""
        return self.searched.question

    @property
    def badge(self) -> str:
        """What a badge says."""
        return "not judged" if self.not_defined else NAMES[self.result]

    def __str__(self) -> str:
        """The whole verdict as one line: the mark, the exercise, what was found, and the question."""
        begun = f"{self.badge}. " if self.result == Result.NOT_BEGUN else ""
        return f"{self.result} {self.name}: {begun}{finding_of(self)} {self.question}".rstrip()


def finding_of(verdict: Verdict) -> str:
    """What a verdict says without its question."""
    if verdict.not_defined:
        return _why_not_defined(verdict.not_defined)
    if verdict.result == Result.NOT_BEGUN:
        return _STUB
    ranks = _ranks_of(verdict.judged_on, verdict.passed)
    if verdict.finding is None:
        return f"{verdict.praise}{''.join(f' ({remark})' for remark in ranks)}"
    where = text_of(verdict.finding, verdict.case)
    if verdict.judged_on.virtual and verdict.judged_on.real:
        on_real = f"but not on your {count(verdict.judged_on.real, 'real rank')}"
        where = f"right on {_virtual(verdict.judged_on)}, {on_real}: {where}"
        ranks = []
    remarks = [f"{capital(remark)}." for remark in ranks]
    return " ".join([where, *remarks, *_search_of(verdict)])


def _why_not_defined(cell: NotDefined) -> str:
    """What a learner reads instead of a judgement, for the function is older than its cell."""
    name = cell.function
    if cell.renamed_to:
        others = join([f"`{other}`" for other in cell.renamed_to])
        return (
            f"Its cell now defines {others} and no longer `{name}`, which is still the function from before. "
            f"Name it `{name}` again and run that cell, then this one."
        )
    what = "stopped before it had defined" if cell.began else "did not run, so it has not defined"
    line = f", line {cell.line}" if cell.line else ""
    message = f" ({cell.message})" if cell.message else ""
    return (
        f"The cell above {what} `{name}`: {cell.error}{line}{message}. Correct it and run it, then run this cell again."
    )


def _search_of(verdict: Verdict) -> list[str]:
    """What is said of a search that was not brought to its end, and found nothing."""
    searched = verdict.searched
    if searched.question or searched.ended is None:
        return []
    if searched.ended == SearchEnd.STOPPED:
        return ["You stopped the search for the mistake."]
    return [f"The search for the mistake stopped after {count(searched.runs, 'run')}, with known mistakes left to try."]


def _virtual(ranks: JudgedOn) -> str:
    least, most = ranks.virtual or (0, 0)
    return f"{least} to {count(most, 'virtual rank')}"


def _ranks_of(ranks: JudgedOn, passed: bool) -> list[str]:
    """Remarks on the ranks that judged, as parts of a sentence."""
    remarks = []
    if ranks.virtual_cannot:
        remarks.append(f"judged by your {count(ranks.real, 'rank')} alone, because {uncapital(ranks.virtual_cannot)}")
    elif ranks.found_on_virtual:
        remarks.append("this was found on virtual ranks")
    elif ranks.virtual and passed and ranks.real:
        remarks.append(f"on {_virtual(ranks)}, then on your {count(ranks.real, 'rank')}")
    elif ranks.virtual and passed:
        remarks.append(
            f"on {_virtual(ranks)}; to have it judged on real ranks too, run `{ranks.start}` and then this cell again"
        )
    if ranks.left_out and passed:
        rest = f"`course.start({ranks.left_out})` starts as many as the other cases need"
        remarks.insert(0, f"as far as {count(ranks.real, 'rank')} can show; {rest}")
    return remarks
