"""`course class`: a page on how far a class has come, from the files that learners send."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from course_utils.checks.progress_file import LearnerProgress, read_progress
from course_utils.checks.registry import names_of
from course_utils.errors import CourseError
from course_utils.own_files import replace_own
from course_utils.syllabus import LESSONS, Lesson
from course_utils.teacher.handed_in.hand_ins import find_hand_ins
from course_utils.templates import render
from course_utils.words import count, join_first

FEWEST = 3
"""So many have to have tried something before it is called hard, and in a large class a quarter of it."""
_SHOWN = 10
_MARK = "course_utils class"


@dataclass(frozen=True)
class ExerciseCount:
    """How a class fared with an exercise.

    Attributes:
        lesson: its number.
        name: of the exercise.
        solved, tried: how many learners.
    """

    lesson: int
    name: str
    solved: int
    tried: int

    @property
    def begun(self) -> int:
        """How many have solved or tried it."""
        return self.solved + self.tried


@dataclass(frozen=True)
class PredictionCount:
    """How many learners predicted something right, of those whose prediction has met its measurement."""

    name: str
    hit: int
    compared: int


@dataclass(frozen=True)
class ClassProgress:
    """The progress of a class.

    Attributes:
        learners: in the order of names.
        unread: what was sent and is no progress, a line each.
    """

    learners: tuple[LearnerProgress, ...]
    unread: tuple[str, ...] = ()

    @property
    def exercises(self) -> list[ExerciseCount]:
        """Every exercise that somebody has begun."""
        counted = [
            ExerciseCount(
                lesson.number,
                name,
                sum(name in learner.solved for learner in self.learners),
                sum(name in learner.tried for learner in self.learners),
            )
            for lesson in LESSONS
            for name in names_of(lesson)
        ]
        return [exercise for exercise in counted if exercise.begun]

    @property
    def hardest(self) -> ExerciseCount | None:
        """The exercise that the smallest share of those who tried it have solved; None if all are solved."""
        enough = max(FEWEST, len(self.learners) // 4)
        known = [exercise for exercise in self.exercises if exercise.begun >= enough and exercise.tried]
        return min(known, key=lambda exercise: exercise.solved / exercise.begun, default=None)

    @property
    def predictions(self) -> list[PredictionCount]:
        """Every prediction that has met its measurement, those that surprised most first."""
        hits: dict[str, list[bool]] = {}
        for learner in self.learners:
            for name, hit in learner.hit.items():
                hits.setdefault(name, []).append(hit)
        counted = [PredictionCount(name, sum(own), len(own)) for name, own in hits.items()]
        return sorted(counted, key=lambda found: (found.hit / found.compared, -found.compared, found.name))

    def lesson_of(self, learner: LearnerProgress) -> Lesson | None:
        """The last lesson that a learner has begun."""
        begun = [lesson for lesson in LESSONS if lesson.stem in learner.begun]
        return begun[-1] if begun else None


def write_class_page(paths: Sequence[Path], out: Path) -> ClassProgress:
    """Write the page, and print what it says first.

    Args:
        paths: what learners sent: files, folders, or the zip of a learning platform.
        out: an older page there is replaced, and no other file.

    Raises:
        CourseError: nothing was sent, or the page cannot be written.
    """
    found = read_class(paths)
    if not found.learners:
        raise CourseError("There is no progress in what was named. `course.progress('progress.json')` writes it.")
    replace_own(out, page_of(found), _MARK, "is no page of a class", "`--out` names a different file.")
    print("\n".join([*sentences(found), *found.unread, f"The page is in {out}."]))
    return found


def read_class(paths: Sequence[Path]) -> ClassProgress:
    """Read what learners sent; a learner's newest file counts."""
    learners, unread = [], []
    with tempfile.TemporaryDirectory(prefix="course-class-", ignore_cleanup_errors=True) as scratch:
        sent = find_hand_ins(paths, Path(scratch), ".json")
        for file in sent.submissions:
            try:
                learners.append(read_progress(file.file or Path(), file.learner.name))
            except CourseError as error:
                unread.append(str(error))
    unread += [f"{file.learner.name} sent {Path(file.name).name}, which holds no progress." for file in sent.rejected]
    return ClassProgress(tuple(sorted(learners, key=lambda learner: learner.name.casefold())), tuple(unread))


def sentences(found: ClassProgress) -> list[str]:
    """What a teacher wants to know first."""
    lines = [_where(found)]
    if hardest := found.hardest:
        lines.append(
            f"The hardest exercise is {hardest.name} in lesson {hardest.lesson}: of the {hardest.begun} who tried it, "
            f"{hardest.solved or 'none'} solved it."
        )
    if surprise := next((each for each in found.predictions if each.compared >= FEWEST), None):
        lines.append(
            f"The biggest surprise is {surprise.name}: {surprise.hit} of {surprise.compared} predicted it right."
        )
    return lines


def _where(found: ClassProgress) -> str:
    lessons = [lesson.number for learner in found.learners if (lesson := found.lesson_of(learner))]
    if not lessons:
        return f"{count(len(found.learners), 'learner')}, who have not begun yet."
    middle = sorted(lessons)[len(lessons) // 2]
    behind = [
        learner.name
        for learner in found.learners
        if (lesson := found.lesson_of(learner)) is None or lesson.number < middle - 1
    ]
    text = f"{count(len(found.learners), 'learner')}. Half of them have reached lesson {middle}."
    if behind:
        text += f" More than a lesson behind: {join_first(behind, _SHOWN)}."
    return text


def page_of(found: ClassProgress) -> str:
    """The page as HTML."""
    lessons = [lesson for lesson in LESSONS if any(lesson.stem in learner.begun for learner in found.learners)]
    return render(
        "course_utils/teacher/class_page.html",
        mark=_MARK,
        sentences=sentences(found),
        unread=found.unread,
        lessons=[(lesson, names_of(lesson)) for lesson in lessons],
        learners=found.learners,
        exercises=found.exercises,
        number=len(found.learners),
        predictions=[each for each in found.predictions if each.compared >= FEWEST][:_SHOWN],
    )
