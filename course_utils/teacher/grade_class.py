"""`course grade`: a class from its notebooks to the table of marks, the texts for learners, and a summary."""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tqdm.auto import tqdm

from course_utils.errors import CourseError
from course_utils.teacher.containment import obstacle
from course_utils.teacher.handed_in import notebooks_in
from course_utils.teacher.marks import Mark, grade_each, scratch_of, write_marks
from course_utils.teacher.summary import summary, write_feedback

MARKS = Path("marks.csv")


def grade_class(places: Sequence[Path], out: Path | None, feedback: Path | None, ranks: int) -> list[Mark]:
    """Mark all submissions; print each verdict as it comes, and at the end where everything was written.

    What is marked when the teacher stops it (Ctrl-C) is written as well.

    Args:
        places: notebooks, or folders of them.
        out: the table of marks; None for a new file `MARKS`.
        feedback: a folder for a text to each learner, made where there is none; None for no texts.
        ranks: how many each submission is run on.

    Raises:
        CourseError: nothing was handed in, a file cannot be written, or contained ranks do not start.
    """
    notebooks = notebooks_in(places)
    table = _writable(out)
    if feedback:
        _make_folder(feedback)
    if reason := obstacle():
        print(f"No namespaces here ({reason}): limits and the guard alone hold what is run.", file=sys.stderr)
    marks: list[Mark] = []
    done = 0
    try:
        with tqdm(total=len(notebooks), unit=" notebooks", file=sys.stderr, leave=False, disable=None) as bar:
            for of_one in grade_each(notebooks, ranks, hide=[table]):
                marks += of_one
                for mark in of_one:
                    tqdm.write(f"{mark.mark}  {mark.submission}  {mark.verdict}")
                done += 1
                bar.update()
    finally:
        if marks:
            stopped = f"Stopped after {done} of {len(notebooks)} notebooks. " if done < len(notebooks) else ""
            print(f"\n{stopped}{summary(marks)}")
            write_marks(marks, table)
            print(f"Marks: {table}")
            if feedback:
                write_feedback(marks, feedback)
                print(f"Texts for learners: {feedback}")
    return marks


def _writable(out: Path | None) -> Path:
    """Where the marks go; said before anything is run, and not after ten minutes."""
    if out is None and MARKS.exists():
        raise CourseError(f"{MARKS} is there already. `--out {MARKS}` replaces it, `--out NAME.csv` writes another.")
    table = out or MARKS
    if not table.absolute().parent.is_dir() or table.is_dir():
        raise CourseError(f"{table} cannot be written: is its folder there? `--out` names the file.")
    scratch = scratch_of(table)
    with _plain_error(f"{table} cannot be written", "`--out` names a file elsewhere."):
        scratch.touch()
        scratch.unlink()
    return table


def _make_folder(feedback: Path) -> None:
    scratch = feedback / ".course-new"
    with _plain_error(f"No texts can be written into {feedback}", "`--feedback` names another folder."):
        feedback.mkdir(parents=True, exist_ok=True)
        scratch.touch()
        scratch.unlink()


@contextmanager
def _plain_error(problem: str, advice: str) -> Iterator[None]:
    """The system's refusal as a line that says what to do."""
    try:
        yield
    except OSError as error:
        raise CourseError(f"{problem} ({error.strerror}). {advice}") from None
