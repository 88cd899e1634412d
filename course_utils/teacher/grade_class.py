"""`course grade`: a class from its notebooks to the table of marks, the texts for learners, and a summary."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tqdm.auto import tqdm

from course_utils import system
from course_utils.errors import CourseError
from course_utils.teacher.grading import Mark
from course_utils.teacher.marks import grade_each, scratch_of, write_marks
from course_utils.teacher.sandbox import is_root, obstacle
from course_utils.teacher.submission_files import notebooks_in
from course_utils.teacher.summary import summary, write_feedback

MARKS = Path("marks.csv")


def grade_class(
    places: Sequence[Path], out: Path | None, feedback: Path | None, ranks: int, trusted: bool = False
) -> list[Mark]:
    """Mark all submissions; print and write each verdict as it comes, and at the end say where everything is.

    Args:
        places: notebooks, or folders of them.
        out: the table of marks; None for a new file `MARKS`.
        feedback: a folder for a text to each learner, made where there is none; None for no texts.
        ranks: how many each submission is run on.
        trusted: run what was handed in as whoever grades, and not in a box.

    Raises:
        CourseError: nothing was handed in, a file cannot be written, there can be no box, or ranks do not start.
    """
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
    notebooks = notebooks_in(places)
    table = _writable(out)
    if feedback:
        _make_folder(feedback)
    marks: list[Mark] = []
    done = 0
    try:
        with tqdm(total=len(notebooks), unit=" notebooks", file=sys.stderr, leave=False, disable=None) as bar:
            for of_one in grade_each(notebooks, ranks, not trusted):
                marks += of_one
                for mark in of_one:
                    tqdm.write(f"{mark.mark}  {mark.submission}  {mark.verdict}")
                write_marks(marks, table)
                if feedback:
                    write_feedback(of_one, feedback)
                done += 1
                bar.update()
    finally:
        if marks:
            stopped = f"Stopped after {done} of {len(notebooks)} notebooks. " if done < len(notebooks) else ""
            print(f"\n{stopped}{summary(marks)}")
            print(f"Marks: {table}")
            if feedback:
                print(f"Texts for learners: {feedback}")
    return marks


def _writable(out: Path | None) -> Path:
    """Where the marks go; said before anything is run, and not after ten minutes."""
    if out is None and MARKS.exists():
        raise CourseError(
            f"{MARKS} exists already. `--out {MARKS}` replaces it, `--out NAME.csv` writes a different file."
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
