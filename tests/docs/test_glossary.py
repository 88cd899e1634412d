"""The glossary: each term once, taught where it says, linked from later pages, and used on none before its lesson."""

import re
from functools import cache

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell

from course_utils.syllabus import LESSONS
from workshop.publish.glossary import ADDRESS, ANCHOR, GLOSSARY, link_terms, parse, terms
from workshop.publish.notebooks import assemble
from workshop.publish.sources import ROOT, Page, pages, read_cells

TEXT = (ROOT / GLOSSARY).read_text(encoding="utf-8")
TERMS = terms(ROOT)
PAGES = [page for page in pages() if page.kind != "solution"]
DECKS = sorted((ROOT / "slides" / "src").glob("[0-9]*.md"))
NO_WORDS = re.compile(r"(?s:```.*?```)|!\[[^\]]*\]|`[^`]*`|\]\([^)]*\)|^#+ .*$", re.MULTILINE)
NOTES = re.compile(r":::\{revealjs-notes\}.*?^:::$", re.MULTILINE | re.DOTALL)
BOLD = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)
LESSON_NUMBERS = re.compile(r"\b[Ll]essons?\s+((?:\d+(?:, | and | to )?)+)")
MOST_LINKS = 20


@cache
def paragraphs_of(page: Page) -> list[str]:
    """What a page says, without its title's cell."""
    cells = [cell.source for cell in read_cells(ROOT / page.source)[1:] if cell.cell_type == "markdown"]
    return [paragraph for cell in cells for paragraph in re.split(r"\n\s*\n", cell)]


def lessons_named(paragraph: str) -> set[int]:
    """The lessons that a paragraph names: "lesson 7", "lessons 3, 6 and 7", with or without links."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", paragraph.replace("\n", " "))
    return {int(number) for numbers in LESSON_NUMBERS.findall(plain) for number in re.findall(r"\d+", numbers)}


def ancestors(number: int) -> set[int]:
    """The lessons that one builds on, and those that these build on."""
    direct = LESSONS[number].builds_on
    return set(direct).union(*map(ancestors, direct))


def unexplained(paragraphs: list[str], lessons: set[int]) -> list[tuple[str, str]]:
    """The terms of these lessons, each with the paragraph, that are used before a paragraph introduces them.

    A paragraph introduces a term that it sets in bold, and those of a lesson that it names.
    """
    strange = {term for term in TERMS if term.lesson in lessons and not term.plain}
    found = []
    for paragraph in paragraphs:
        named, bold = lessons_named(paragraph), " ".join(BOLD.findall(paragraph))
        here = {term for term in strange if term.pattern.search(NO_WORDS.sub(" ", paragraph))}
        introduced = {term for term in here if term.lesson in named or term.pattern.search(bold)}
        found += [(term.name, paragraph) for term in here - introduced]
        strange -= introduced
    return found


def test_every_term_is_defined_once_in_one_or_two_plain_sentences() -> None:
    names = [term.name.lower() for term in TERMS]
    assert sorted(set(names)) == sorted(names) and len({term.anchor for term in TERMS}) == len(names)
    for term in TERMS:
        assert re.search(r"[.)]$", term.says) and 3 <= len(term.says.split()) <= 45, term
        assert len(re.findall(r"[.!?](?= [A-Z*]|$)", term.says)) <= 3, term


def test_terms_stand_below_their_lesson_in_order_with_a_link_to_it() -> None:
    assert [term.lesson for term in TERMS] == sorted(term.lesson for term in TERMS)
    found = re.findall(r"^## .*Lesson (\d+)\n\n\[(.*)\]\(\.\./notebooks/(.*)\.ipynb\)$", TEXT, re.MULTILINE)
    assert found == [(str(lesson.number), lesson.title, lesson.stem) for lesson in LESSONS]


def test_headings_are_found_in_jupyterlab_too() -> None:
    """JupyterLab keeps capitals and points in a heading's address; there a link needs an element with the address."""
    for heading in re.findall(r"^##+ (.*)$", TEXT, re.MULTILINE):
        name = ANCHOR.sub("", heading)
        address = re.sub(r"[^\w -]", "", name.lower()).replace(" ", "-")
        assert f'id="{address}"' in heading or name.replace(" ", "-") == address, heading


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.name)
def test_a_term_stands_in_bold_where_its_lesson_explains_it_and_not_before(term) -> None:
    own = [page for page in PAGES if page.lesson == LESSONS[term.lesson].stem]
    paragraphs = [paragraph for page in own for paragraph in paragraphs_of(page)]
    bold = [any(map(term.pattern.search, BOLD.findall(paragraph))) for paragraph in paragraphs]
    assert any(bold), f"lesson {term.lesson} sets {term.name} nowhere in bold"
    before = [NO_WORDS.sub(" ", paragraph) for paragraph in paragraphs[: bold.index(True)]]
    early = [paragraph for paragraph in before if term.pattern.search(paragraph)]
    assert term.plain or not early, early


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.target.with_suffix("").as_posix())
def test_a_page_uses_what_it_builds_on_or_says_from_which_lesson_it_is(page) -> None:
    number = int(page.stem[:2])
    unknown = set(range(len(LESSONS))) - ancestors(number) - {number}
    assert unexplained([paragraph for own in pages_up_to(page) for paragraph in paragraphs_of(own)], unknown) == []


def pages_up_to(page: Page) -> list[Page]:
    """The lesson's page, and behind it its second page, its *Further* or its exercises where they are asked for."""
    before = ("lesson",) if page.kind in ("lesson", "part 2") else ("lesson", "part 2")
    return [own for own in PAGES if own.lesson == page.lesson and own.kind in (*before, page.kind)]


@pytest.mark.parametrize("deck", DECKS, ids=lambda deck: deck.stem)
def test_a_deck_uses_no_later_lessons_term(deck) -> None:
    slides = NOTES.sub("", deck.read_text(encoding="utf-8")).split("\n---\n")
    assert unexplained(slides, set(range(int(deck.stem[:2]) + 1, len(LESSONS)))) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.target.with_suffix("").as_posix())
def test_a_page_links_known_terms_once_and_not_too_many(page) -> None:
    number = int(page.stem[:2])
    text = "\n".join(cell.source for cell in assemble(page).cells if cell.cell_type == "markdown")
    links = re.findall(rf"\]\({re.escape(ADDRESS)}#([\w-]+)\)", text)
    known = {term.anchor for term in TERMS if term.lesson < number + (not page.teaches)}
    assert set(links) - {f"lesson-{number}"} <= known
    assert len(set(links)) == len(links) <= MOST_LINKS


def test_links_stand_on_first_mentions_and_never_in_code_titles_formulas_or_questions(tmp_path) -> None:
    glossary = tmp_path / GLOSSARY
    glossary.parent.mkdir()
    glossary.write_text(
        "# Glossary\n\n## Lesson 4\n\n### all-reduce\n<!-- also: all-reduces -->\nA sum for all.\n\n"
        "### root\n<!-- plain -->\nOne rank.\n\n## Lesson 5\n\n### bucket\nSeveral gradients.\n",
        encoding="utf-8",
    )
    untouched = (
        "# An all-reduce\n\n`all-reduce` $all-reduce$ [all-reduce](x.md) **all-reduce**\n\n**Predict.** An all-reduce?"
    )
    page = Page("lesson", ROOT / "notebooks" / "src" / "05_more.py", ROOT)
    cells = [
        new_markdown_cell("# All-reduce"),
        new_markdown_cell(untouched),
        new_markdown_cell("A root.\nTwo all-reduces, one bucket.\n\nAll-reduce again."),
        new_code_cell("# all-reduce"),
    ]
    link_terms(cells, page, tmp_path)
    assert cells[0].source == "# All-reduce" and cells[1].source == untouched and cells[3].source == "# all-reduce"
    linked = f"A root.\nTwo [all-reduces]({ADDRESS}#all-reduce), one bucket.\n\nAll-reduce again."
    assert cells[2].source.startswith(linked) and cells[2].source.endswith(f"[glossary]({ADDRESS}#lesson-5).*")


def test_a_terms_other_forms_are_found_and_longer_words_are_not() -> None:
    [term, _] = parse("## Lesson 2\n\n### running mean\n<!-- also: MEAN -->\nx.\n\n### y\nz.\n")
    for text in ("Running means", "a running\nmean", "MEAN"):
        assert term.pattern.search(text), text
    for text in ("running meaning", "a-running mean", "Mean"):
        assert not term.pattern.search(text), text
