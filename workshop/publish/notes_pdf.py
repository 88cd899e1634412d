"""A deck on paper for its speaker: each slide with its note below, and a list of all votes with their answers."""

import tempfile
from collections.abc import Sequence
from pathlib import Path

from workshop.publish.deck_slides import Slide, Vote, slides_of, votes_of
from workshop.publish.paper import html_of, line_of, opened, page_of
from workshop.publish.sources import AuthoringError

MARGIN, WIDTH, HEIGHT = 36.0, 595.28, 841.89
"""Points of A4: of the margin, and of the whole page."""
_SCALE = (WIDTH - 2 * MARGIN) / 960  # a slide is 1280 by 720 pixels, which are three quarters of a point
_NOTES_FROM = MARGIN + 540 * _SCALE + 18
_STYLE = f"""
.sheet {{ height: {HEIGHT}pt; padding: {_NOTES_FROM}pt {MARGIN + 4}pt {MARGIN}pt; break-after: page; overflow: hidden;
    font-size: 13pt; position: relative }}
.sheet footer {{ position: absolute; left: {MARGIN}pt; right: {MARGIN}pt; bottom: 18pt; font-size: 9pt; color: #555 }}
.votes {{ padding: {MARGIN}pt; font-size: 11pt }}
.votes h1 {{ font-size: 17pt; margin: 0 0 10pt }} .votes h2 {{ font-size: 12.5pt; margin: 12pt 0 2pt }}
.votes section {{ break-inside: avoid }} .votes pre {{ font-size: 9pt }}
"""
_SMALLER = """(least) => {
    const crowded = [];
    document.querySelectorAll('.sheet').forEach((sheet, number) => {
        let size = 13;
        while (sheet.scrollHeight > sheet.clientHeight && size > least) {
            size -= 0.5;
            sheet.style.fontSize = size + 'pt';
        }
        if (sheet.scrollHeight > sheet.clientHeight) crowded.push(number + 1);
    });
    return crowded;
}"""
LEAST_SIZE = 9.0
"""Points of a long note; a longer one does not fit."""


def print_notes(deck: Path, slides_pdf: Path, target: Path, mathjax: Path) -> Path:
    """Write a PDF with a page for each slide, its note below, and the votes at the end.

    Args:
        deck: its Markdown.
        slides_pdf: the deck as a PDF, a page for each slide.
        target: what is written.
        mathjax: the script that draws formulas.

    Raises:
        AuthoringError: Chromium failed, or a note does not fit.
    """
    from pypdf import PdfReader, PdfWriter, Transformation

    slides = slides_of(deck.read_text(encoding="utf-8"))
    title = slides[0].title
    body = "".join(_sheet(slide, number, len(slides), title) for number, slide in enumerate(slides, 1))
    with tempfile.TemporaryDirectory(prefix="course-notes-") as folder:
        page = page_of(title, _STYLE, body + votes_html(votes_of(slides)), mathjax)
        with opened(page, Path(folder)) as tab:
            if crowded := tab.evaluate(_SMALLER, LEAST_SIZE):
                raise AuthoringError(f"{deck.name}: the notes of slides {crowded} do not fit on their pages")
            tab.pdf(path=str(Path(folder) / "notes.pdf"), prefer_css_page_size=True, print_background=True)
        notes, pictures = PdfReader(Path(folder) / "notes.pdf"), PdfReader(slides_pdf)
        if len(pictures.pages) != len(slides):
            raise AuthoringError(f"{deck.name} has {len(slides)} slides, and its PDF {len(pictures.pages)} pages")
        writer = PdfWriter()
        for number, sheet in enumerate(notes.pages):
            written = writer.add_page(sheet)
            if number < len(slides):
                slide = pictures.pages[number]
                scale = (WIDTH - 2 * MARGIN) / float(slide.mediabox.width)
                height = float(slide.mediabox.height) * scale
                moved = Transformation().scale(scale).translate(MARGIN, HEIGHT - MARGIN - height)
                written.merge_transformed_page(slide, moved)
        writer.compress_identical_objects()
        writer.write(target)
    return target


def _sheet(slide: Slide, number: int, total: int, title: str) -> str:
    footer = f"<footer>{line_of(title)} · {number} of {total}</footer>"
    return f'<div class="sheet">{html_of(slide.note)}{footer}</div>'


def votes_html(votes: Sequence[Vote]) -> str:
    """The votes of a deck, each with the slide and the note that answer it; "" without any."""
    if not votes:
        return ""
    return f'<div class="votes"><h1>The votes, and their answers</h1>{"".join(map(_vote, votes))}</div>'


def _vote(vote: Vote) -> str:
    question = f"<h2>{line_of(vote.slide.title)}</h2>{html_of(vote.slide.text)}{html_of(vote.slide.note)}"
    after = vote.answer
    answer = f"<p><b>Next slide: {line_of(after.title)}</b></p>{html_of(after.note)}" if after else ""
    return f"<section>{question}{answer}</section>"
