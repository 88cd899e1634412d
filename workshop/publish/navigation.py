"""Navigation: the notebooks before and after each one, in a bar at its top and at its bottom, from the syllabus.

The order is that of the lessons, and of the two pages of a lesson that has two. An exercise notebook and a *Further*
one lead back to the lesson's page, and on to the next lesson, so that nobody has to go back before going on.
"""

import os
from dataclasses import dataclass
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell

from course_utils.syllabus import LESSONS, Lesson
from workshop.publish.sources import Page

CONTENTS = Path("README.md")
"""Where all lessons are listed."""
NAMES = {
    "lesson": "lesson",
    "part 2": "part 2, lesson",
    "further": "further, lesson",
    "exercise": "exercises, lesson",
    "solution": "solutions, lesson",
}
"""What a bar calls the notebook that it is on, by the page's kind."""
FIXED = "\u00a0"
"""A space at which a narrow window breaks no line."""


@dataclass(frozen=True)
class PageLink:
    """The words of a link, and the file it leads to, relative to the repository."""

    words: str
    target: Path


@dataclass(frozen=True)
class Navigation:
    """The links of one page.

    Attributes:
        previous: the page before, or for exercises and *Further* the lesson's own page; None for the first lesson.
        position: what the page is and how far one is, "lesson 5 of 17".
        next: the next page; None for the last.
        related: the lesson's other notebooks, and the list of all lessons.
    """

    previous: PageLink | None
    position: str
    next: PageLink | None
    related: tuple[PageLink, ...]


def add_bars(cells: list[NotebookNode], page: Page) -> None:
    """Put the bar above the title, in the first cell, and below everything in a cell of its own.

    A page whose lesson the syllabus does not know gets none.
    """
    navigation = navigation_of(page)
    if navigation is None:
        return
    text = bar(navigation, page.target.parent)
    if cells[0].cell_type == "markdown":
        cells[0].source = f"{text}\n\n{cells[0].source}"
    else:
        cells.insert(0, new_markdown_cell(text))
    cells.append(new_markdown_cell(text))


def bar(navigation: Navigation, folder: Path) -> str:
    """Return the bar in Markdown: a line with the order, and a line with what else belongs to the lesson.

    Args:
        folder: of the notebook that shows it, from which its links lead.
    """
    order = [f"**{navigation.position}**"]
    if navigation.previous:
        order.insert(0, markdown(navigation.previous, folder, before=f"←{FIXED}"))
    if navigation.next:
        order.append(markdown(navigation.next, folder, after=f"{FIXED}→"))
    return f"{' · '.join(order)}<br>\n{' · '.join(markdown(link, folder) for link in navigation.related)}"


def markdown(link: PageLink, folder: Path, before: str = "", after: str = "") -> str:
    """Return a link in Markdown, with an arrow before its words or after them."""
    return f"[{before}{link.words}{after}]({Path(os.path.relpath(link.target, folder)).as_posix()})"


def navigation_of(page: Page) -> Navigation | None:
    """Return the links of a page, or None if the syllabus does not know its lesson."""
    lesson = next((lesson for lesson in LESSONS if lesson.stem == page.lesson), None)
    if lesson is None:
        return None
    before = LESSONS[lesson.number - 1] if lesson.number else None
    after = LESSONS[lesson.number + 1] if lesson.number + 1 < len(LESSONS) else None
    previous = PageLink(f"back to lesson{FIXED}{lesson.number}", page_of(lesson))
    following = to_page(after) if after else None
    if page.kind == "part 2":
        previous = to_page(lesson)
    if page.kind == "lesson":
        previous = to_last_page(before) if before else None
        following = to_last_page(lesson) if lesson.part_2 else following
    others = [link for kind, link in other_notebooks(lesson).items() if kind != page.kind]
    return Navigation(
        previous=previous,
        position=f"{NAMES[page.kind]} {lesson.number} of {LESSONS[-1].number}",
        next=following,
        related=(*others, PageLink("all lessons", CONTENTS)),
    )


def other_notebooks(lesson: Lesson) -> dict[str, PageLink]:
    """Return links to the notebooks that a lesson has besides its first page, by kind."""
    links = {}
    if lesson.part_2:
        links["part 2"] = PageLink("part 2", Path("notebooks") / lesson.second_notebook.name)
    links["exercise"] = PageLink("exercises", Path("exercises") / f"{lesson.stem}.ipynb")
    if lesson.further:
        links["further"] = PageLink("further", Path("notebooks") / lesson.further.name)
    return links


def to_page(lesson: Lesson) -> PageLink:
    """Return a link to a lesson's page: its number and its title."""
    return PageLink(f"{lesson.number}{FIXED}{lesson.title}", page_of(lesson))


def to_last_page(lesson: Lesson) -> PageLink:
    """Return a link to a lesson's page, or to its second page if it has two."""
    if lesson.part_2 is None:
        return to_page(lesson)
    return PageLink(f"{lesson.number}{FIXED}{lesson.part_2.title}", Path("notebooks") / lesson.second_notebook.name)


def page_of(lesson: Lesson) -> Path:
    """Return where a lesson's page is, relative to the repository."""
    return Path("notebooks") / f"{lesson.stem}.ipynb"
