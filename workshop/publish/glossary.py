"""The glossary: every term of the course once, in docs/glossary.md, and the links that lead there from the pages.

An entry is a heading `### term` under the heading of the lesson that teaches it, then one or two sentences. A comment
between the two may say how else the term is written (`<!-- also: SGD -->`), or that it is an everyday word, too
(`<!-- plain -->`): such a word is linked nowhere, and may be used in any lesson.
"""

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from nbformat import NotebookNode

from workshop.publish.sources import Page

GLOSSARY = Path("docs") / "glossary.md"
ADDRESS = "../docs/glossary.md"
"""Where it is for a notebook; the build turns the links of solutions to one folder further down."""
ANCHOR = re.compile(r'<a id="[^"]+"></a>')
"""What makes a heading found under its address in JupyterLab, too, which keeps capitals and points."""
LESSON = re.compile(r"^## Lesson (?P<number>\d+)$")
ENTRY = re.compile(r"^### (?P<name>.+)$")
REMARK = re.compile(r"^<!-- (?P<remark>.+) -->$")
UNTOUCHED = re.compile(
    r"```.*?```|\$\$.*?\$\$|<details>.*?</details>"  # code, formulas, folded answers
    r"|^(?:\#|\||>|    ).*?$"  # headings, tables, quotes, indented code
    r"|\*\*Predict.*?(?=\n\n|\Z)"  # a question, to the end of its paragraph
    r"|!?\[[^\]]*\]\([^)]*\)|`[^`]*`|\$[^$]*\$|<[^>]*>|\*\*.*?\*\*",
    re.MULTILINE | re.DOTALL,
)
"""Parts of a text in which nothing is linked."""


@dataclass(frozen=True)
class GlossaryTerm:
    """One entry of the glossary.

    Attributes:
        name: as the entry's heading says it.
        lesson: the number of the lesson that teaches it.
        also: other ways to write it, without plurals in s.
        plain: whether it is an everyday word, too.
        says: what it is.
    """

    name: str
    lesson: int
    also: tuple[str, ...]
    plain: bool
    says: str

    @property
    def anchor(self) -> str:
        """Where its heading is found: as GitHub makes it, small letters without points."""
        return re.sub(r"[^\w -]", "", self.name.lower()).replace(" ", "-")

    @property
    def pattern(self) -> re.Pattern[str]:
        """What finds it in a text: each way to write it, a plural, and a capital where a sentence begins."""
        ways = "|".join(sorted(map(written, (self.name, *self.also)), key=len, reverse=True))
        return re.compile(rf"(?<![\w/-])(?:{ways})(?![\w-])")


def written(form: str) -> str:
    """A pattern for a form, with any white space between its words."""
    first, rest = re.escape(form[0]), re.escape(form[1:]).replace(r"\ ", r"\s+")
    capital = f"[{form[0]}{form[0].upper()}]" if form[0].islower() else first
    return f"{capital}{rest}s?"


@cache
def terms(root: Path) -> tuple[GlossaryTerm, ...]:
    """The terms of the glossary in its order; none where there is no glossary."""
    path = root / GLOSSARY
    return parse(path.read_text(encoding="utf-8")) if path.is_file() else ()


def parse(text: str) -> tuple[GlossaryTerm, ...]:
    """The terms that a glossary's text defines, in its order."""
    found: list[GlossaryTerm] = []
    number = 0
    for block in re.split(r"^(?=##)", ANCHOR.sub("", text), flags=re.MULTILINE):
        head, *lines = block.strip().splitlines() or [""]
        if lesson := LESSON.match(head):
            number = int(lesson["number"])
        elif entry := ENTRY.match(head):
            remarks = [match["remark"] for line in lines if (match := REMARK.match(line))]
            also = [remark.removeprefix("also: ") for remark in remarks if remark.startswith("also: ")]
            says = " ".join(line for line in lines if line and not REMARK.match(line))
            forms = tuple(form for remark in also for form in remark.split(", "))
            found.append(GlossaryTerm(entry["name"], number, forms, "plain" in remarks, says))
    return tuple(found)


def free_parts(text: str) -> list[tuple[int, int]]:
    """Where in a text, from and to, there are words that a link may stand on."""
    parts, begin = [], 0
    for match in UNTOUCHED.finditer(text):
        parts.append((begin, match.start()))
        begin = match.end()
    return [*parts, (begin, len(text))]


def link_terms(cells: list[NotebookNode], page: Page, root: Path) -> None:
    """Let the first mention of each term that the reader has met lead to the glossary; at most one link in a paragraph.

    Args:
        cells: the page's, changed in place. The first one, its title, stays as it is.
        page: a lesson's pages link the terms of earlier lessons, its exercises those of the lesson, too.
        root: the repository.
    """
    number = int(page.stem[:2])
    taught = number + (not page.teaches)
    unlinked = {term.name: term for term in terms(root) if not term.plain and term.lesson < taught}
    for cell in cells[1:]:
        if cell.cell_type == "markdown":
            for begin, end, term in reversed(first_mentions(cell.source, unlinked)):
                link = f"[{cell.source[begin:end]}]({ADDRESS}#{term.anchor})"
                cell.source = cell.source[:begin] + link + cell.source[end:]
    if page.teaches and any(term.lesson == number for term in terms(root)):
        last = next(cell for cell in reversed(cells) if cell.cell_type == "markdown")
        last.source += f"\n\n*The terms of this lesson are explained in the [glossary]({ADDRESS}#lesson-{number}).*"


def first_mentions(text: str, unlinked: dict[str, GlossaryTerm]) -> list[tuple[int, int, GlossaryTerm]]:
    """Where links belong in a text, from, to and for which term; these terms are taken out of `unlinked`."""
    parts = free_parts(text)
    found = [
        (match.start(), -match.end(), term.name)
        for term in unlinked.values()
        for match in term.pattern.finditer(text)
        if any(begin <= match.start() and match.end() <= end for begin, end in parts)
    ]
    chosen: list[tuple[int, int, GlossaryTerm]] = []
    paragraphs = set()
    for begin, end, name in sorted(found):
        paragraph = text.count("\n\n", 0, begin)
        if name in unlinked and paragraph not in paragraphs:
            paragraphs.add(paragraph)
            chosen.append((begin, -end, unlinked.pop(name)))
    return chosen
