"""Every notebook has a bar at its top and at its bottom, whose links lead to the right files in the right order."""

import re
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell

from course_utils.syllabus import LESSONS
from workshop.publish.navigation import add_bars, navigation_of
from workshop.publish.notebooks import assemble, read_committed
from workshop.publish.site import order
from workshop.publish.sources import ROOT, Page, pages

PAGES = [page for page in pages() if navigation_of(page)]
LINK = re.compile(r"\[([^\]]+)\]\(([^)]+)\)")
LAST = LESSONS[-1].number
TITLES = {
    target.relative_to(ROOT): title
    for lesson in LESSONS
    for target, title in (
        (lesson.notebook, lesson.title),
        *([(lesson.second_notebook, lesson.part_2.title)] if lesson.part_2 else []),
    )
}
"""The title of each page that a reader meets by following the arrows, in that order."""
IN_ORDER = list(TITLES)


def bars_of(page: Page) -> tuple[str, str]:
    """The committed notebook's first cell as far as its title, and its last cell."""
    cells = read_committed(page).cells
    return cells[0].source.partition("\n\n# ")[0], cells[-1].source


def links_of(page: Page) -> dict[str, Path]:
    """The links of a page's bar: words, and the file, relative to the repository."""
    folder = (ROOT / page.target).parent
    found = LINK.findall(bars_of(page)[0])
    return {words: (folder / target).resolve().relative_to(ROOT) for words, target in found}


def arrows(page: Page) -> tuple[Path | None, Path | None]:
    """The notebooks to which the two arrows of a bar lead."""
    back = [target for words, target in links_of(page).items() if words.startswith("←")]
    on = [target for words, target in links_of(page).items() if words.endswith("→")]
    return (*back, None)[0], (*on, None)[0]


def test_no_page_is_without_navigation() -> None:
    assert pages() == PAGES


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.target.with_suffix("").as_posix())
def test_a_notebook_has_the_same_bar_at_both_ends_and_its_links_lead_to_files(page: Page) -> None:
    top, bottom = bars_of(page)
    assert top == bottom and bottom == assemble(page).cells[-1].source
    assert links_of(page) and all((ROOT / target).is_file() for target in links_of(page).values())
    assert "README.md" in map(str, links_of(page).values())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.target.with_suffix("").as_posix())
def test_the_arrows_lead_to_the_pages_before_and_after(page: Page) -> None:
    back, on = arrows(page)
    if page.target in IN_ORDER:
        place = IN_ORDER.index(page.target)
        assert (back, on) == ((None, *IN_ORDER)[place], (*IN_ORDER, None)[place + 1])
    else:
        number = int(page.lesson[:2])
        after = LESSONS[number + 1].notebook.relative_to(ROOT) if number < LAST else None
        assert (back, on) == (LESSONS[number].notebook.relative_to(ROOT), after)
    named = [TITLES[target] for target in (back, on) if target and page.target in IN_ORDER]
    assert all(title in bars_of(page)[0] for title in named)
    assert f"lesson {int(page.lesson[:2])} of {LAST}**" in bars_of(page)[0]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.target.with_suffix("").as_posix())
def test_a_lesson_and_its_other_notebooks_lead_to_each_other(page: Page) -> None:
    targets = set(links_of(page).values())
    lesson = next(lesson for lesson in LESSONS if lesson.stem == page.lesson)
    family = {"lesson": lesson.notebook.relative_to(ROOT), "exercise": Path("exercises") / f"{lesson.stem}.ipynb"}
    if lesson.part_2:
        family["part 2"] = lesson.second_notebook.relative_to(ROOT)
    if lesson.further:
        family["further"] = lesson.further.relative_to(ROOT)
    assert {target for kind, target in family.items() if kind != page.kind} <= targets


def test_a_page_that_begins_with_code_gets_a_cell_for_its_bar_and_an_unknown_one_none() -> None:
    page = Page("lesson", Path("notebooks/src/04_messages.py"), Path("notebooks/04_messages.ipynb"))
    cells = [new_code_cell("x = 1")]
    add_bars(cells, page)
    assert [cell.cell_type for cell in cells] == ["markdown", "code", "markdown"]
    cells = [new_code_cell("x = 1")]
    add_bars(cells, Page("lesson", Path("notebooks/src/90_small.py"), Path("notebooks/90_small.ipynb")))
    assert len(cells) == 1


def test_the_website_takes_the_order_of_the_bars_and_leaves_out_pages_that_it_lacks() -> None:
    found = order([page for page in PAGES if page.kind != "solution"])
    assert found["notebooks/05_allreduce"] == {"prev": "notebooks/04_messages", "next": "notebooks/06_data_parallel"}
    assert found["notebooks/00_first_steps"] == {"next": "notebooks/01_sgd"}
    assert found["exercises/19_inference"] == {"prev": "notebooks/19_inference"}
    alone = order([page for page in PAGES if page.lesson == "05_allreduce" and page.kind != "solution"])
    assert alone["notebooks/05_allreduce"] == {}
    assert alone["notebooks/05_allreduce_further"] == {"prev": "notebooks/05_allreduce"}
