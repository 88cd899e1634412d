"""`course grade`: a class, from what a platform handed over to tables that it imports, and texts for learners."""

import hashlib
import itertools
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tqdm.auto import tqdm

from course_utils import system
from course_utils.checks.verdict import Result
from course_utils.errors import CourseError
from course_utils.syllabus import LESSONS
from course_utils.teacher.grading import Mark
from course_utils.teacher.handed_in.class_list import ClassList, ClassMatch, Person, match, read_class_list
from course_utils.teacher.handed_in.hand_in_sentences import matching_lines, not_run_lines, rejection_text
from course_utils.teacher.handed_in.hand_ins import HandIn, HandIns, Learner, find_hand_ins
from course_utils.teacher.handed_in.portal_names import TITLES, Portal
from course_utils.teacher.handed_in.submission_times import submission_times
from course_utils.teacher.learner_rows import LearnerRow, exercises_in, learner_rows, write_learner_rows
from course_utils.teacher.marks import (
    MarkLine,
    grade_each,
    read_marks,
    scratch_of,
    time_text,
    with_the_newest,
    write_marks,
)
from course_utils.teacher.portal_tables import is_filled_for, moodle_maximum, portal_table, write_portal_table
from course_utils.teacher.sandbox import is_root, obstacle
from course_utils.teacher.similar_answers import alike_answers
from course_utils.teacher.summary import alike_lines, summary, write_feedback

MARKS = Path("marks.csv")
_NOTHING = ClassMatch({}, (), (), ())


@dataclass(frozen=True)
class ClassOptions:
    """What a teacher asks for besides marks.

    Attributes:
        class_list: a table of the class; None without one.
        add: a table of marks to go on with; None for a new one.
        due: until when work is in time, in seconds since 1970; None if nothing is to be late but what a platform marks.
        portal: for whose import to write a table; None: that which named the files.
    """

    class_list: Path | None = None
    add: Path | None = None
    due: float | None = None
    portal: Portal | None = None


def grade_class(
    places: Sequence[Path],
    out: Path | None,
    feedback: Path | None,
    ranks: int,
    trusted: bool = False,
    options: ClassOptions = ClassOptions(),
) -> list[Mark]:
    """Mark all submissions; print and write each verdict as it comes, and at the end say where everything is.

    Args:
        places: notebooks, folders of them, and zips as learning platforms hand them over.
        out: the table of marks; None for a new file `MARKS`, or for the table that is gone on with.
        feedback: a folder for a text to each learner, made where there is none; None for no texts.
        ranks: how many each submission is run on.
        trusted: run what was handed in as whoever grades, and not in a box.
        options: the class list, the table to go on with, the date that is due, the platform.

    Returns:
        The marks of what was run.

    Raises:
        CourseError: nothing was handed in, a file cannot be written, there can be no box, or ranks do not start.
    """
    _refuse_without_a_box(trusted)
    people = read_class_list(options.class_list) if options.class_list else None
    earlier = read_marks(options.add) if options.add and options.add.exists() else []
    with tempfile.TemporaryDirectory(prefix="course-handed-in-", ignore_cleanup_errors=True) as scratch:
        hand_ins = find_hand_ins(places, Path(scratch))
        table = _writable(out or options.add)
        if feedback:
            _make_folder(feedback)
        papers = _Papers(hand_ins, people, earlier, options, boxed=not trusted)
        marks: list[Mark] = []
        try:
            _grade(papers, table, feedback, Path(scratch), ranks, marks)
        finally:
            if papers.lines:
                _print_summary(papers, table, feedback)
    return marks


def _refuse_without_a_box(trusted: bool) -> None:
    if not system.LINUX:
        raise CourseError(obstacle())
    if trusted and is_root():
        raise CourseError(
            "`--trusted` runs what was handed in as yourself, and refuses to do so as root. Grade as an ordinary user."
        )
    if not trusted and (reason := obstacle()):
        raise CourseError(
            f"{reason} `--trusted` marks without a box, as you, with your files and your network in reach: "
            "for notebooks of people whom you trust."
        )


class _Papers:
    """What was handed in, who it is from, and the lines of the table so far."""

    def __init__(
        self,
        hand_ins: HandIns,
        people: ClassList | None,
        earlier: Sequence[MarkLine],
        options: ClassOptions,
        boxed: bool,
    ) -> None:
        self.hand_ins, self.people, self.options, self._boxed = hand_ins, people, options, boxed
        self.matching = match(hand_ins.learners, people.people) if people else _NOTHING
        self.called = _names_in_tables(hand_ins.learners, self.matching)
        self._times = submission_times(people) if people else {}
        digests = {(line.learner, line.file) for line in earlier}
        with_digests = [(file, _digest(file)) for file in hand_ins.submissions]
        self.waiting = [
            (file, digest) for file, digest in with_digests if (self.called[file.learner.key], digest) not in digests
        ]
        self.known = len(with_digests) - len(self.waiting)
        self.lines: list[MarkLine] = list(earlier)
        self.done = 0
        for file in hand_ins.rejected:
            if not any(line.learner == self.called[file.learner.key] for line in earlier):
                verdict = f"{Result.WRONG} {rejection_text(file, self.called[file.learner.key])}"
                self.add([Mark(file.name, "", Result.WRONG, verdict, boxed=boxed)], file)

    def add(self, marks: Iterable[Mark], file: HandIn, digest: str = "") -> None:
        """Add the marks of a file to the lines."""
        handed_in = file.handed_in or self._times.get(self._listed(file.learner))
        late = file.late
        if late is None and self.options.due is not None and handed_in is not None:
            late = handed_in > self.options.due
        called = self.called[file.learner.key]
        new = [MarkLine(mark, called, late, time_text(handed_in), True, file.learner.id, digest) for mark in marks]
        self.lines = with_the_newest([*self.lines, *new])

    def _listed(self, learner: Learner) -> Person | None:
        return self.matching.people.get(learner.key)

    @property
    def counting(self) -> list[Mark]:
        """The marks that count."""
        return [line.mark for line in self.lines if line.counts]

    @property
    def rows(self) -> list[LearnerRow]:
        """One row for each learner, and for people of the class list who handed in nothing."""
        listed = {person.name: person for person in self.people.people} if self.people else {}
        people = {self.called[key]: person for key, person in self.matching.people.items()}
        before = {line.learner for line in self.lines} - people.keys()
        people |= {name: listed[name] for name in before & listed.keys()}
        here = {id(person) for person in people.values()}
        absent = [person for person in self.matching.absent if id(person) not in here]
        return learner_rows(self.lines, people, absent)


def _names_in_tables(learners: Sequence[Learner], matching: ClassMatch) -> dict[tuple[str, str], str]:
    """Learner's key → a name that no other learner has: that of the class list, else that of the files."""
    names: dict[tuple[str, str], str] = {}
    whose: dict[str, object] = {}
    for learner in learners:
        person = matching.people.get(learner.key)
        name, who = (person.name, person) if person else (learner.name, learner.key)
        if whose.setdefault(name, who) != who:
            more = next(iter(person.ids), person.email) if person else learner.id or learner.login or learner.name
            name = next(new for new in _numbered(f"{name} ({more})") if whose.setdefault(new, who) == who)
        names[learner.key] = name
    return names


def _numbered(name: str) -> Iterator[str]:
    yield name
    yield from (f"{name} {number}" for number in itertools.count(2))


def _digest(file: HandIn) -> str:
    """What tells whether a file has changed; "" if it cannot be read, which its line will say."""
    try:
        if file.file is None or file.file.is_symlink() or not file.file.is_file():
            return ""
        with file.file.open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest()[:16]
    except OSError:
        return ""


def _grade(papers: _Papers, table: Path, feedback: Path | None, unpacked: Path, ranks: int, marks: list[Mark]) -> None:
    """Run what is new, and write the table after each."""
    for line in papers.lines:
        if line.mark.exercise == "" and not line.file:  # what is not run
            print(f"{line.mark.mark}  {line.mark.verdict}")
            if feedback:
                write_feedback([line.mark], feedback)
    files = [file for file, _ in papers.waiting]
    notebooks = [file.file or Path() for file in files]
    names = [file.name for file in files]
    with tqdm(total=len(files), unit=" notebooks", file=sys.stderr, leave=False, disable=None) as bar:
        graded = grade_each(notebooks, ranks, papers._boxed, names, unpacked) if files else ()
        for (file, digest), of_one in zip(papers.waiting, graded, strict=False):
            marks += of_one
            papers.add(of_one, file, digest)
            for mark in of_one:
                shown = papers.called[file.learner.key] if file.learner.portal else mark.submission
                tqdm.write(f"{mark.mark}  {shown}  {mark.verdict}")
            write_marks(papers.lines, table)
            if feedback:
                write_feedback(of_one, feedback)
            papers.done += 1
            bar.update()
    write_marks(papers.lines, table)


def _print_summary(papers: _Papers, table: Path, feedback: Path | None) -> None:
    """Say what came of it, and write the tables with a row for each learner."""
    total, lines = len(papers.waiting), []
    stopped = f"Stopped after {papers.done} of {total} notebooks. " if papers.done < total else ""
    print(f"\n{stopped}{summary(papers.counting)}")
    if papers.known:
        lines.append(f"{papers.known} of the notebooks are in {papers.options.add} already and were not run again.")
    lines += not_run_lines(papers.hand_ins, papers.called)
    if papers.people and papers.options.class_list:
        lines += matching_lines(papers.matching, papers.options.class_list.name)
    if not stopped:
        lines += alike_lines(_alike(papers))
    print("\n".join([*lines, *([""] if lines else []), f"Marks: {table}"]))
    rows = papers.rows
    for_learners = table.with_name(f"{table.stem}_learners.csv")
    write_learner_rows(rows, for_learners)
    print(f"One row for each learner: {for_learners}")
    if portal := papers.options.portal or papers.hand_ins.portal:
        _write_for_portal(papers, rows, portal, table)
    if feedback:
        print(f"Texts for learners: {feedback}")


def _alike(papers: _Papers) -> list:
    files = [(papers.called[file.learner.key], file.file) for file in papers.hand_ins.submissions if file.file]
    return alike_answers(files) if len({learner for learner, _ in files}) > 1 else []


def _write_for_portal(papers: _Papers, rows: Sequence[LearnerRow], portal: Portal, table: Path) -> None:
    file = table.with_name(f"{table.stem}_{portal}.csv")
    imported = portal_table(portal, rows, _assignment(papers), papers.people)
    write_portal_table(imported, file)
    print(f"For the import into {TITLES[portal]}: {file}")
    if not is_filled_for(imported, rows):
        print(
            f"It lacks learners whose number in {TITLES[portal]} is unknown. Export the class from {TITLES[portal]}, "
            "and give that file with `--class`."
        )
    most, number = moodle_maximum(papers.people), len(exercises_in(rows))
    if portal is Portal.MOODLE and most and number and most != number:
        print(f"The grades in it are out of {most:g}, as Moodle's worksheet has it, and not out of {number}.")


def _assignment(papers: _Papers) -> str:
    """What a platform may call these marks: the lesson that most files are called after."""
    stems = [lesson.stem for lesson in LESSONS for file in papers.hand_ins.submissions if lesson.stem in file.own_name]
    return Counter(stems).most_common(1)[0][0] if stems else "Exercises"


def seconds_of(due: str) -> float:
    """The time that `--due` names, in seconds since 1970; a date alone means its last minute.

    Raises:
        CourseError: it is no date.
    """
    for form in ("%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"):
        try:
            found = time.strptime(due, form)
        except ValueError:
            continue
        return time.mktime(found) + (59 if re.search(r"\d:", due) else 86_399)
    raise CourseError(f"{due} is no date. Write it as 2026-11-03, or with a time as 2026-11-03T23:59.")


def _writable(out: Path | None) -> Path:
    """Where the marks go; said before anything is run, and not after ten minutes."""
    if out is None and MARKS.exists():
        raise CourseError(
            f"{MARKS} exists already. `--add {MARKS}` goes on with it, `--out {MARKS}` replaces it, "
            "`--out NAME.csv` writes a different file."
        )
    table = out or MARKS
    if not table.absolute().parent.is_dir() or table.is_dir():
        raise CourseError(f"{table} cannot be written. Does its folder exist? `--out` names the file.")
    scratch = scratch_of(table)
    with _plain_error(f"{table} cannot be written", "`--out` names a file elsewhere."):
        scratch.touch()
        scratch.unlink()
    return table


def _make_folder(feedback: Path) -> None:
    scratch = feedback / ".course-new"
    with _plain_error(f"No texts can be written into {feedback}", "`--feedback` names a different folder."):
        feedback.mkdir(parents=True, exist_ok=True)
        scratch.touch()
        scratch.unlink()


@contextmanager
def _plain_error(problem: str, advice: str) -> Iterator[None]:
    """The system's rejection as a line that says what to do."""
    try:
        yield
    except OSError as error:
        raise CourseError(f"{problem} ({error.strerror}). {advice}") from None
