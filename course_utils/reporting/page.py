"""`course.report()`: what a learner has trained, drawn as a report on one page. Each lesson adds its own part.

A lesson whose results are kept has a module `report` in its room, with a function `part(latest)`.
"""

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.errors import CourseError
from course_utils.own_files import replace_own
from course_utils.syllabus import LESSONS
from course_utils.templates import render

if TYPE_CHECKING:
    from course_utils.draw.style import Picture

TITLE = "My report"
_MARK = "course_utils report"


@dataclass(frozen=True)
class Section:
    """A figure of the page, or what to run for it.

    Attributes:
        heading: what it shows.
        picture: None where the runs for it are missing.
        text: a sentence below it; what to run, where there is no picture.
    """

    heading: str
    picture: "Picture | None"
    text: str = ""


@dataclass(frozen=True)
class ReportPart:
    """What one lesson adds to the page.

    Attributes:
        title: of the whole page, if this lesson gives it one.
        intro: what was trained, in plain lines.
        sections: its figures; none where nothing is kept yet.
        notes: what is not shown, and why.
        nothing_yet: what to run, where there are no sections.
    """

    title: str = ""
    intro: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()
    notes: tuple[str, ...] = ()
    nothing_yet: str = ""


@dataclass(frozen=True)
class Report:
    """The page. A notebook shows it; `save("report.html")` writes it as one file that needs no other.

    Attributes:
        title: above all.
        intro: what was trained, in plain lines.
        sections: in the order of the lessons.
        notes: what is not shown, and why.
    """

    title: str
    intro: tuple[str, ...]
    sections: tuple[Section, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def html(self) -> str:
        """The page's body."""
        return render("course_utils/reporting/report.html", report=self)

    @property
    def text(self) -> str:
        """The page in words: every figure by its text alternative."""
        lines = list(self.intro)
        for section in self.sections:
            section_text = " ".join(filter(None, (section.picture.alt_text if section.picture else "", section.text)))
            lines.append(f"{section.heading}: {section_text}")
        return "\n".join([*lines, *self.notes])

    def save(self, file: str | Path = "report.html") -> Path:
        """Write the page to a file; an older report there is replaced, and nothing else.

        Raises:
            CourseError: there is another file of that name, or it cannot be written.
        """
        path = Path(file).expanduser()
        page = render("course_utils/reporting/report_page.html", mark=_MARK, title=TITLE, report=self)
        replace_own(path, page, _MARK, "is not a report")
        print(f"Your report is in {path}.")
        return path

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/plain": self.text, "text/html": self.html}

    def __repr__(self) -> str:
        return self.text


def report(file: str | Path | None = None, latest: bool = False) -> Report | None:
    """Draw what you have trained yourself, next to what others have published. A notebook shows it as one page.

    Args:
        file: such as "report.html", to keep the page as a file of its own; None: it is only shown.
        latest: of runs that cannot be compared, take those that are like your latest one.

    Returns:
        The page; None, and a line that says what to run, where there is nothing yet.

    Raises:
        CourseError: the file cannot be written, or is something else.
    """
    found = [part_of(latest) for part_of in _parts()]
    if not any(part.sections for part in found):
        page = page_of(found)
        print("\n".join([*page.intro, *page.notes]))
        if file is not None:
            print(f"So {file} was not written. Only training runs that a lesson or a check keeps can be drawn.")
        return None
    page = page_of(found)
    if file is not None:
        page.save(file)
    return page


def page_of(found: Sequence[ReportPart]) -> Report:
    """One page of the lessons' parts. If a lesson has nothing yet, its introduction says what to run."""
    missing = [part.nothing_yet for part in found if not part.sections and part.nothing_yet]
    return Report(
        title=next((part.title for part in found if part.sections and part.title), TITLE),
        intro=(*(line for part in found for line in part.intro), *missing),
        sections=tuple(section for part in found for section in part.sections),
        notes=tuple(note for part in found for note in part.notes),
    )


def _parts() -> list[Callable[[bool], ReportPart]]:
    """The function `part` of each lesson that has one."""
    with_one = [lesson for lesson in LESSONS if (lesson.room / "report.py").is_file()]
    return [importlib.import_module(f"{lesson.package}.report").part for lesson in with_one]


def section(heading: str, draw: "Callable[[], Picture]", say: Callable[[], str] = str) -> Section:
    """A section, with a sentence below its picture; where its runs are missing, the line that says so."""
    try:
        return Section(heading, draw(), say())
    except CourseError as missing:
        return Section(heading, None, str(missing))
