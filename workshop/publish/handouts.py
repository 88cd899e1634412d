"""A sheet of paper for each lesson: what it is about, its pictures, formulas, words and exercises, on two pages of A4.

It is made from the lesson's page, its deck, the glossary and the exercises, so that nobody has to keep it up to date.
"""

import html
import re
import tempfile
from pathlib import Path

from course_utils.checks.registry import exercises_of
from course_utils.syllabus import LESSONS, Lesson
from workshop.publish.deck_slides import Slide, slides_of
from workshop.publish.glossary import GlossaryTerm, terms
from workshop.publish.paper import html_of, line_of, opened, page_of
from workshop.publish.sources import ALT_TEXT, AuthoringError

PICTURES = {
    "00_first_steps": ("00_orders", "00_nothing_shared", "00_hang"),
    "01_sgd": ("01_downhill", "01_four_batches", "01_parabola"),
    "02_autodiff_and_optimizers": ("02_forward_graph", "02_right_order", "02_ready"),
    "03_hardware": ("03_roof", "03_layer_times", "03_bounds"),
    "04_messages": ("04_deadlock", "04_collectives", "04_alpha_beta"),
    "05_allreduce": ("05_ring_blocks", "05_ring", "05_crossings"),
    "06_data_parallel": ("06_opinions", "06_two_ways", "06_rates"),
    "07_overlap": ("07_loop", "07_hooks", "07_sweep"),
    "08_parameter_server": ("08_link", "08_staleness", "08_races"),
    "09_model_parallel": ("09_cuts", "09_heads", "09_memory"),
    "10_pipeline": ("10_micro_batches", "10_1f1b", "10_bubble"),
    "11_hybrid_and_sharded": ("11_mesh", "11_zero_blocks", "11_stages"),
    "12_strategy_search": ("12_cuts", "12_best", "12_gaps"),
    "13_gpu_nodes": ("13_variables", "13_sizes", "13_interval"),
    "14_profiling": ("14_merged", "14_hidden", "14_reasons"),
    "15_read_the_manual": ("15_unlike", "15_shares", "15_naive"),
    "16_experts": ("16_there_and_back", "16_crowd", "16_balance"),
    "17_long_texts": ("17_memory", "17_ring_blocks", "17_zigzag"),
    "18_failures": ("18_goodput", "18_going_on", "18_pieces"),
    "19_inference": ("19_alpha", "19_server", "19_queue"),
}
"""The pictures of a deck that tell most of its lesson."""
PAGES = 2
_SIZES = (10.5, 10.0, 9.5, 9.0, 8.5, 8.0)
"""Points of the text; the largest that fits is taken."""
_HEIGHTS = (84, 74, 66, 58, 50)
"""Millimetres of a picture, tried in each size."""
_NUMBERED = re.compile(r"1\. ")
_STYLE = """
@page { size: A4; margin: 14mm 15mm 12mm }
h1 { font-size: 1.75em; margin: 0 0 .1em }
h2 { font-size: 1.15em; margin: .8em 0 .2em; color: #005a8c; break-after: avoid }
.head { color: #555; margin: 0 0 .4em } ol, ul { margin: .3em 0; padding-left: 1.5em }
figure { margin: .6em 0; break-inside: avoid; text-align: center } figcaption { font-weight: 600; margin-bottom: .2em }
figure img { max-width: 100%; max-height: var(--picture, 62mm) }
.formulas { display: flex; flex-wrap: wrap; gap: 0 2.2em }
.formulas div { break-inside: avoid } .formulas small { color: #555 }
.words { columns: 2; column-gap: 7mm } .words p { margin: .18em 0; break-inside: avoid-column }
table { border-collapse: collapse } td { padding: 1px 14px 1px 0; vertical-align: top }
td:last-child { white-space: nowrap }
"""


def print_handout(deck: Path, figures: Path, target: Path, mathjax: Path) -> Path | None:
    """Write the handout of a deck's lesson, or nothing if the deck is no lesson's.

    Args:
        deck: its Markdown.
        figures: the folder in which its pictures have been drawn.
        target: what is written.
        mathjax: the script that draws formulas.

    Raises:
        AuthoringError: Chromium failed, or it needs more than two pages even in small type.
    """
    lesson = next((lesson for lesson in LESSONS if lesson.stem == deck.stem), None)
    if lesson is None:
        return None
    body = handout_html(lesson, deck, figures)
    with (
        tempfile.TemporaryDirectory(prefix="course-handout-") as folder,
        opened(page_of(lesson.title, _STYLE, body, mathjax), Path(folder)) as tab,
    ):
        for size in _SIZES:
            for height in _HEIGHTS:
                tab.evaluate(
                    "([size, height]) => { document.body.style.fontSize = size + 'pt';"
                    " document.body.style.setProperty('--picture', height + 'mm') }",
                    [size, height],
                )
                tab.pdf(path=str(target), prefer_css_page_size=True, print_background=True)
                if number_of_pages(target) <= PAGES:
                    return target
    raise AuthoringError(f"The handout of {deck.stem} needs more than {PAGES} pages")


def number_of_pages(pdf: Path) -> int:
    """How many pages a PDF has."""
    from pypdf import PdfReader

    return len(PdfReader(pdf).pages)


def handout_html(lesson: Lesson, deck: Path, figures: Path) -> str:
    """The body of the handout."""
    root = deck.resolve().parents[2]
    slides = slides_of(deck.read_text(encoding="utf-8"))
    opening = opening_of((root / "notebooks" / "src" / f"{lesson.stem}.py").read_text(encoding="utf-8"))
    remember = [slide for slide in slides[-3:] if _NUMBERED.match(slide.text)]
    parts = [
        f"<h1>{lesson.number} · {line_of(lesson.title)}</h1>",
        f'<p class="head">Distributed deep learning · {lesson.minutes_of_pages} minutes</p>',
        html_of(opening),
        *(f"<h2>{line_of(slide.title)}</h2>{html_of(slide.text)}" for slide in remember[:1]),
        *(_figure(name, slides, figures) for name in PICTURES[lesson.stem]),
        _formulas(slides),
        _words([term for term in terms(root) if term.lesson == lesson.number]),
        _exercises(lesson),
    ]
    return "\n".join(parts)


def opening_of(source: str) -> str:
    """What a page says before its first code, without its title and the line of minutes; links lose their address."""
    cell = source.partition("# %% [markdown]\n")[2].partition("\n# %%")[0]
    text = "\n".join(line.removeprefix("#").removeprefix(" ") for line in cell.splitlines())
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if not part.startswith(("#", "*", "<"))]
    return _without_links("\n\n".join(paragraphs))


def _without_links(text: str) -> str:
    return re.sub(r"\[([^\]]+)\]\([^)]*\)", r"\1", text)


def _figure(name: str, slides: list[Slide], figures: Path) -> str:
    title = next((slide.title for slide in slides if name in slide.figures), "")
    file, alt = figures / f"{name}.png", figures / f"{name}{ALT_TEXT}"
    if not file.is_file():
        raise AuthoringError(f"the handout wants the picture {name}, which was not drawn")
    alternative = html.escape(alt.read_text(encoding="utf-8") if alt.is_file() else title, quote=True)
    picture = f'<img src="{file.resolve().as_uri()}" alt="{alternative}">'
    return f"<figure><figcaption>{line_of(title)}</figcaption>{picture}</figure>"


def _formulas(slides: list[Slide]) -> str:
    found = [(formula, slide.title) for slide in slides for formula in slide.formulas]
    drawn = [
        f"<div>{html_of(f'$${formula}$$')}<small>{line_of(title)}</small></div>"
        for formula, title in dict(reversed(found)).items()
    ]
    return f'<h2>Formulas</h2><div class="formulas">{"".join(reversed(drawn))}</div>' if drawn else ""


def _words(words: list[GlossaryTerm]) -> str:
    return f'<h2>Words</h2><div class="words">{"".join(map(_word, words))}</div>' if words else ""


def _word(term: GlossaryTerm) -> str:
    """A term with the first sentence on it."""
    first = re.split(r"(?<=[.!?])\s+(?=[A-Z`$])", " ".join(term.says.split()))[0]
    return f"<p><b>{line_of(term.name)}</b>: {line_of(_without_links(first))}</p>"


def _exercises(lesson: Lesson) -> str:
    rows = [
        f"<tr><td><code>{exercise.name}</code></td><td>{line_of(exercise.title)}</td>"
        f"<td>{exercise.minutes} minutes</td></tr>"
        for exercise in exercises_of(lesson)
    ]
    return f"<h2>Exercises</h2><table>{''.join(rows)}</table>" if rows else ""
