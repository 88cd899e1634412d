"""What a class's marks say: to the teacher as a table and two sentences, to each learner as a text to give back."""

import errno
import itertools
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from course_utils.checks.verdict import Result
from course_utils.teacher.grading import Mark
from course_utils.teacher.similar_answers import AlikeAnswers
from course_utils.words import count, join

_NO_SUCH_NAME = (errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ENAMETOOLONG)
"""Why a text cannot be called as its submission: a folder is called so, or the name is too long with its number."""

_MOST_ALIKE = 6
"""Groups of learners with the same answers that are named."""


def summary(marks: Sequence[Mark]) -> str:
    """How many are right of each exercise, which one is the hardest, and which question was asked most often."""
    judged = [row for row in marks if row.exercise]
    unread = sum(not row.exercise for row in marks)
    lines = [f"{sum(row.mark for row in judged)} of {count(len(judged), 'mark')}"]
    lines[0] += f"; {count(unread, 'file')} without answers." if unread else "."
    if not judged:
        return lines[0]
    exercises = list(dict.fromkeys(row.exercise for row in judged))
    width = max(len("exercise"), *map(len, exercises))
    lines += ["", f"{'exercise':<{width}}  right  wrong  not begun"]
    for exercise in exercises:
        right, wrong, missing = _tally(exercise, judged)
        lines.append(f"{exercise:<{width}}  {right:>5}  {wrong:>5}  {missing:>9}")
    return "\n".join([*lines, "", *_sentences(exercises, judged)])


def _tally(exercise: str, judged: Sequence[Mark]) -> tuple[int, int, int]:
    """Right, wrong, not begun."""
    own = [row for row in judged if row.exercise == exercise]
    right, missing = sum(row.mark for row in own), sum(row.result == Result.NOT_BEGUN for row in own)
    return right, len(own) - right - missing, missing


def _sentences(exercises: Sequence[str], judged: Sequence[Mark]) -> list[str]:
    sentences = []
    shares = {name: _tally(name, judged)[0] / sum(_tally(name, judged)) for name in exercises}
    hardest = min(exercises, key=shares.__getitem__)
    if shares[hardest] < 1:
        right, wrong, missing = _tally(hardest, judged)
        sentences.append(f"Fewest are right of {hardest}: {right} of {right + wrong + missing}.")
    questions = Counter((row.exercise, row.question) for row in judged if row.question)
    if questions:
        (exercise, question), times = questions.most_common(1)[0]
        sentences.append(f"Asked most often ({exercise}, {count(times, 'time')}): {question}")
    return sentences


def alike_lines(found: Sequence[AlikeAnswers]) -> list[str]:
    """A line for each group of learners whose answers are equal after renaming, and what that means."""
    by_learners: dict[tuple[str, ...], list[AlikeAnswers]] = {}
    for alike in found:
        by_learners.setdefault(alike.learners, []).append(alike)
    lines = []
    for learners, answers in list(by_learners.items())[:_MOST_ALIKE]:
        exercises = [f"{alike.exercise} ({count(alike.statements, 'statement')})" for alike in answers]
        lines.append(f"The same but for names: {join(list(learners))} in {join(exercises)}.")
    if more := len(by_learners) - len(lines):
        lines.append(f"The same but for names: {count(more, 'further group')} of learners.")
    return [*lines, "That is a reason to ask them, and proves nothing."] if lines else []


def feedback(name: str, marks: Sequence[Mark]) -> str:
    """A submission's marks and verdicts in full, for the one who handed it in."""
    judged = [row for row in marks if row.exercise]
    head = f"{name}: {sum(row.mark for row in judged)} of {len(judged)}" if judged else name
    run = [] if all(row.boxed for row in marks) else ["Run without a box: --trusted."]
    return "\n\n".join([head, *(row.verdict for row in marks), *run]) + "\n"


def write_feedback(marks: Sequence[Mark], folder: Path) -> list[Path]:
    """Write a text for each submission, called as the submission; gives the files."""
    files = []
    for name in dict.fromkeys(row.submission for row in marks):
        file = (folder / name).with_suffix(".txt")
        text = feedback(name, [row for row in marks if row.submission == name])
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        except OSError as error:
            if error.errno not in _NO_SUCH_NAME:
                raise
            names = (folder / f"text {number}.txt" for number in itertools.count(1))
            file = next(name for name in names if not name.exists())
            file.write_text(text, encoding="utf-8")
        files.append(file)
    return files
