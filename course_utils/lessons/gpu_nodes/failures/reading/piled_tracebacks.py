"""Launches in a file that holds nothing but tracebacks, added to it again and again without any mark.

A process raises one exception that ends it. So if tracebacks follow each other in several groups of the same size, the
members of which were written at the same moment, each group is a launch.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from course_utils.lessons.gpu_nodes.failures.log_line import Line
from course_utils.lessons.gpu_nodes.failures.rules import meaning_of
from course_utils.lessons.gpu_nodes.failures.story import ReportKind

_BEGINS = "Traceback (most recent call last):"
_CHAINED = re.compile(r"During handling of the above exception|The above exception was the direct cause")
_CALL = re.compile(r'\s*File "([^"]+)", line \d+, in ')
_RAISED = re.compile(r"(?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Interrupt)\b")
_NAMES_AN_EXCEPTION = re.compile(r"(?:[\w.]*\.)?[A-Z]\w*(?:Error|Exception)")
_LAUNCHER = re.compile(r"/bin/(?:torchrun|accelerate|deepspeed|ds|horovodrun)$")
_OTHER_LINES = 0.1
"""So large a share of the lines may look different, as processes write on each other's lines."""
_FEWEST_GROUPS = 3


@dataclass
class _Pile:
    """The tracebacks of processes that raised at the same moment, or one after the other the same exception.

    Attributes:
        start: the index of its first line.
        size: how many processes raised.
        program: the file of the outermost call.
        raised: the lines that name exceptions.
    """

    start: int
    size: int
    program: str
    raised: list[str]


def launches_of_tracebacks(lines: Sequence[Line]) -> Iterator[Sequence[Line]]:
    """Yield the launches in the lines of a file, which are one unless the file is a pile of tracebacks."""
    starts = _starts(lines) if _is_pile(lines) else []
    for start, end in pairwise([0, *starts, len(lines)]):
        yield lines[start:end]


def _is_pile(lines: Sequence[Line]) -> bool:
    begun = [line for line in lines if line.text.startswith(_BEGINS)]
    if len(begun) < _FEWEST_GROUPS or any(line.rank is not None or line.time is not None for line in lines):
        return False
    inside = (" ", _BEGINS)
    others = sum(
        not (line.text.startswith(inside) or _CHAINED.match(line.text) or _RAISED.match(line.text)) for line in lines
    )
    return others <= _OTHER_LINES * len(lines)


def _starts(lines: Sequence[Line]) -> list[int]:
    piles = list(_piles(lines))
    # The launcher itself could not begin, so the program that raises next is of a later launch.
    failed = [after.start for before, after in pairwise(piles) if _is_launcher(before) and not _is_launcher(after)]
    groups = [pile for pile in piles if not _is_launcher(pile)]
    sizes = Counter(pile.size for pile in groups)
    is_even = len(sizes) == 1 and len(groups) >= _FEWEST_GROUPS and groups[0].size > 1
    again = [pile.start for pile in groups[1:] if is_even and not _complains(pile)]
    return sorted({*failed, *again} - {0})


def _is_launcher(pile: _Pile) -> bool:
    return _LAUNCHER.search(pile.program) is not None and not any("ChildFailed" in text for text in pile.raised)


def _complains(pile: _Pile) -> bool:
    """Whether a pile may follow from the end of other processes."""
    meaning = meaning_of(pile.raised)
    return meaning is not None and meaning.kind is ReportKind.CONSEQUENCE


def _piles(lines: Sequence[Line]) -> Iterator[_Pile]:
    pile: _Pile | None = None
    chained = 0
    for index, line in enumerate(lines):
        # Of two processes that write at once, the names of the exceptions may be on one line.
        before = [line.text for line in lines[max(index - 2, 0) : index]]
        is_over = any(map(_NAMES_AN_EXCEPTION.match, before)) and not before[-1].startswith(_BEGINS)
        chained += _CHAINED.search(line.text) is not None
        if _BEGINS in line.text:
            if chained:
                chained -= 1
            elif pile is None or is_over:
                if pile and _is_the_same(pile, lines[index:]):
                    pile.size += 1
                else:
                    if pile:
                        yield pile
                    pile = _Pile(index, 1, "", [])
            else:
                pile.size += 1
        elif pile and (found := _CALL.match(line.text)):
            pile.program = pile.program or found[1]
        elif pile and _RAISED.match(line.text):
            pile.raised.append(line.text)
    if pile:
        yield pile


def _is_the_same(pile: _Pile, lines: Sequence[Line]) -> bool:
    """Whether the next exception is that of a pile of processes that raised one after the other."""
    text = next((line.text for line in lines if _RAISED.match(line.text)), "")
    return pile.raised == [text] * pile.size
