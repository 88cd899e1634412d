"""Where the four documents are redone: each row of docs/sources.md names cells by their tags, on the right pages."""

import re
from collections import Counter

import pytest

from course_utils.syllabus import LESSONS
from workshop.publish.sources import ROOT, pages, read_cells, tags

TEXT = (ROOT / "docs" / "sources.md").read_text(encoding="utf-8")
PAGE = r"\[(?P<words>[^]]+)\]\(\.\./notebooks/(?P<file>[^)]+)\)"
TAG = re.compile(r"`((?:figure|here):(\d\d)_\w+)`")
TABLES = [table.splitlines()[2:] for table in re.findall(r"^(?:\|.*\n)+", TEXT, re.MULTILINE)]
ERRORS, EVERYTHING = ([[cell.strip() for cell in row[1:-1].split(" |")] for row in table] for table in TABLES[1:])
ROWS = [*ERRORS, *EVERYTHING]


def tags_of_pages() -> dict[str, list[str]]:
    """The tags that name a figure or a cell, notebook by notebook."""
    found = {}
    for page in pages():
        if page.teaches:
            on_cells = [tag for cell in read_cells(ROOT / page.source) for tag in tags(cell)]
            found[page.target.name] = [tag for tag in on_cells if tag.startswith(("figure:", "here:"))]
    return found


ON_PAGES = tags_of_pages()


def named(row: list[str]) -> list[tuple[str, str, str]]:
    """(words of the link, notebook, tag) for each tag that a row names."""
    where = [(re.match(PAGE, part), TAG.findall(part)) for part in row[-1].split("; ")]
    return [(link["words"], link["file"], tag) for link, found in where if link for tag, _ in found]


def label(row: list[str]) -> str:
    return " ".join(row[:2])[:60]


@pytest.mark.parametrize("row", ROWS, ids=label)
def test_a_row_names_cells_that_are_on_its_pages(row) -> None:
    assert named(row) or "not" in row[-2].split()[0] or row[-1].startswith("not measured"), "it names no cell"
    for words, file, tag in named(row):
        assert tag in ON_PAGES[file], f"no cell of {file} is tagged {tag}"
        kind, number = words.split()
        lesson = LESSONS[int(number)]
        notebooks = (lesson.notebook, lesson.second_notebook) if kind == "lesson" else (lesson.further,)
        assert file in {notebook.name for notebook in notebooks if notebook}
    said = TAG.findall(row[-1])
    assert len(said) == len(named(row)) == len(set(said)), "a tag without its page, or twice"


def test_a_tag_is_on_one_cell_of_the_lesson_whose_number_it_begins_with() -> None:
    everywhere = [tag for on_page in ON_PAGES.values() for tag in on_page]
    assert [tag for tag, times in Counter(everywhere).items() if times > 1] == []
    for file, on_page in ON_PAGES.items():
        assert {tag.partition(":")[2][:2] for tag in on_page} <= {file[:2]}, file


def test_a_tag_for_this_document_is_named_in_it() -> None:
    here = {tag for on_page in ON_PAGES.values() for tag in on_page if tag.startswith("here:")}
    assert here and here == {tag for row in ROWS for _, _, tag in named(row) if tag.startswith("here:")}


def test_the_first_table_lists_the_lessons_of_the_others() -> None:
    listed = {}
    for document, _, lessons in ([cell.strip() for cell in row[1:-1].split(" |")] for row in TABLES[0]):
        numbers = lessons
        for first, last in re.findall(r"(\d+) to (\d+)", lessons):
            numbers += f", {', '.join(map(str, range(int(first), int(last) + 1)))}"
        listed[document] = {int(number) for number in re.findall(r"\d+", numbers)}
    for row in ROWS:
        used = {int(words.split()[1]) for words, _, _ in named(row)}
        assert used <= listed[row[0][0]], label(row)


def test_a_tag_on_the_wrong_page_is_told(monkeypatch) -> None:
    row = next(row for row in ROWS if named(row))
    _, file, tag = named(row)[0]
    monkeypatch.setitem(ON_PAGES, file, [other for other in ON_PAGES[file] if other != tag])
    with pytest.raises(AssertionError, match=f"no cell of {file} is tagged {tag}"):
        test_a_row_names_cells_that_are_on_its_pages(row)
