"""One language: the same word for the same thing, one spelling, calm titles, and a map that is true."""

import ast
import importlib.util
import re
from functools import cache

import pytest
from markdown_it import MarkdownIt
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.image import imread

from course_utils.syllabus import LESSONS
from tests.docs.test_glossary import DECKS, PAGES, ancestors
from workshop.publish.sources import ROOT, Page, read_cells

NOT_PROSE = re.compile(
    r"(?s:```.*?```)|`[^`]*`|(?<=\[)\*[^*]+\*(?=\])|\]\([^)]*\)|\$[^$]*\$|^>.*$|\"[^\"]*\"|<!--.*?-->", re.MULTILINE
)  # code, titles, addresses, formulas, and what others say: quotations
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CHECKS = sorted(ROOT.glob("course_utils/lessons/*/checks/*.py"))

NOT_OURS = {
    r"all ?reduce[sd]?": "all-reduce (allreduce in code only)",
    r"all ?gather(?:s|ed)?": "all-gather",
    r"reduce ?scatter(?:s|ed)?": "reduce-scatter",
    r"micro ?batch(?:es)?": "micro-batch",
    r"mini[- ]batch(?:es)?": "batch",
    r"fully-connected": "fully connected",
    r"back-? ?propagation": "backward pass",
    r"batch-norm(?:alization)?|batchnorm": "batch norm",
    r"non-blocking": "nonblocking",
    r"collective (?:operation|communication)s?": "collective",
    r"per cent": "percent",
    r"data-? ?sets?": "images, examples or data",
    r"speed ?ups?": "speed-up",
    r"warm ?ups?": "warm-up",
    r"time[- ]lines?": "timelines",
    r"hyper-? ?parameters?": "the parameter's name",
    r"step-? ?size": "learning rate",
    r"gradient checkpointing": "activation checkpointing",
    r"recursive halving-doubling": "halving-doubling",
    r"(?:k|M|G)bps|[MG]b/s|[MG]Bit/s": "Mbit/s, Gbit/s",
    r"kB|kilobytes?": "KB",
    r"laggards?|slowpokes?": "straggler",
    r"slave(?:s| nodes?)": "worker",
    "shall": "must, should, or the plain verb",
    r"unlike (?:numbers|vectors|weights|seeds|batches|lengths|examples|losses|orders)": "different",
    r"refus(?:e|es|ed|ing|als?)": "reject",
    r"(?<!there )(?:is|was|be) no (?:power of|mesh|notebook|whole number|square|path|stage of|list of|action|report)": (
        "is not a"
    ),
    r"(?:drawn|saved|told) (?:is|are) (?:the|memory|from|forward)": "subject first: the picture shows",
    r"so many (?:ranks|percent|seconds|stages|images|steps)": "n ranks",
    r"(?:idle|hidden|is|rank|ranks|ranks,) in the mean": "on average",
    r"how many times as (?:long|fast|large) takes": "how many times as long does it take",
}
"""Words for what has another name in this course, and that name."""

AMERICAN = re.compile(
    r"(?i)\b(?:colou?r(?<!colour)|center|neighbor|behavior|favor|labor|gray|labeled|modeled|traveled|canceled|catalog"
    r"|analyz|recogniz|organiz|realiz|minimiz|maximiz|summariz|synchroniz|initializ|serializ|normaliz|generaliz"
    r"|fulfill|toward\b|defense|(?<!L:)license[ds]\b|skeptic)"
)
"""Beginnings of words as Americans spell them, but for the field's own "optimizer" and an option of sbatch."""

SHOUTED = re.compile(r"\b[A-Z]{4,}\b")
ABBREVIATIONS = {"FLOP", "CUDA", "SOAP", "MTBF", "NCCL", "RDMA", "SIGTERM", "JPEG", "PSGD", "HSDP", "NVTX", "SPMD"}


@cache
def prose_of(page: Page) -> str:
    """A page's text cells."""
    return "\n\n".join(cell.source for cell in read_cells(ROOT / page.source) if cell.cell_type == "markdown")


def sentences_of(path) -> str:
    """The strings of a module that hold more than a word: questions, hints, verdicts."""
    strings = (
        node.value for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if isinstance(node, ast.Constant)
    )
    return "\n".join(text for text in strings if isinstance(text, str) and " " in text)


@cache
def texts() -> dict[str, str]:
    """All that learners read, by where it stands."""
    found = {page.source.as_posix(): prose_of(page) for page in PAGES}
    found |= {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in (*DECKS, *DOCUMENTS)}
    return found | {path.relative_to(ROOT).as_posix(): sentences_of(path) for path in CHECKS}


def found(pattern: re.Pattern[str]) -> list[str]:
    """Where the pattern occurs in what learners read, quotations and code left out."""
    return [
        f"{place}: …{words[max(0, match.start() - 30) : match.end() + 20]}…"
        for place, text in texts().items()
        for words in [NOT_PROSE.sub(" ", text)]
        for match in pattern.finditer(words)
    ]


@pytest.mark.parametrize(("other", "ours"), NOT_OURS.items(), ids=NOT_OURS.values())
def test_a_thing_has_one_name_everywhere(other, ours) -> None:
    assert found(re.compile(rf"(?<![\w-])(?:{other})(?![\w-])", 0 if "B" in other else re.IGNORECASE)) == [], ours


def test_spelling_is_british_everywhere() -> None:
    assert found(AMERICAN) == []


def test_titles_neither_shout_nor_repeat_themselves() -> None:
    for place, text in texts().items():
        if place.endswith(".md") or place in {page.source.as_posix() for page in PAGES}:
            titles = re.findall(r"^#{1,3} (.+)$", re.sub(r"(?s)```.*?```", "", text), re.MULTILINE)
            assert len(set(titles)) == len(titles), (place, [title for title in titles if titles.count(title) > 1])
            for title in titles:
                shouted = set(SHOUTED.findall(re.sub(r"<[^>]*>", "", title))) - ABBREVIATIONS
                assert not title.endswith(("!", ":")) and not shouted, (place, title)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.target.with_suffix("").as_posix())
def test_no_broken_line_turns_into_a_title_or_a_list(page: Page) -> None:
    """A line of a paragraph that is "=" makes the text above it a title, and one that begins with "+ " is a list."""
    wrong = []
    for cell in read_cells(ROOT / page.source):
        if cell.cell_type == "markdown":
            lines = re.sub(r"\$\$.*?\$\$", "", cell.source, flags=re.DOTALL).splitlines()
            wrong += [lines[token.map[0]] for token in MarkdownIt().parse("\n".join(lines)) if surprises(token)]
    assert wrong == []


def surprises(token) -> bool:
    """Whether Markdown made something of a line that our pages write in a different way, or not at all."""
    is_title = token.type == "heading_open" and token.markup in ("=", "-")
    return is_title or (token.type == "bullet_list_open" and token.markup != "-")


@pytest.mark.parametrize("lesson", [lesson for lesson in LESSONS if lesson.written], ids=lambda lesson: lesson.stem)
def test_page_exercises_and_deck_ask_the_same_question(lesson) -> None:
    """One title everywhere; an exercise page says it behind `Exercises:`."""
    exercises = f"# Exercises: {lesson.title[0].lower()}{lesson.title[1:]}"
    first = {page.kind: prose_of(page).splitlines()[0] for page in PAGES if page.stem == lesson.stem}
    assert first["lesson"] == f"# {lesson.title}"
    assert first["exercise"].lower() == exercises.lower()
    for deck in DECKS:
        if deck.stem == lesson.stem:
            assert deck.read_text(encoding="utf-8").startswith(f"## {lesson.title}\n")


@pytest.mark.parametrize("lesson", [lesson for lesson in LESSONS if lesson.written], ids=lambda lesson: lesson.stem)
def test_a_page_names_the_lessons_it_builds_on(lesson) -> None:
    page = (ROOT / "notebooks" / "src" / f"{lesson.stem}.py").read_text(encoding="utf-8")
    [said] = re.findall(r"^# \*\d+ minutes[^·]*· builds on ([^·]*)·", page, re.MULTILINE)
    linked = tuple(int(number) for number in re.findall(r"\((\d\d)_", said))
    if said.startswith("all lessons"):
        assert ancestors(lesson.number) == set(range(lesson.number))
    else:
        assert linked == lesson.builds_on


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.target.with_suffix("").as_posix())
def test_a_page_imports_nothing_of_a_later_lesson_without_saying_so(page) -> None:
    code = "\n".join(cell.source for cell in read_cells(ROOT / page.source) if cell.cell_type == "code")
    faces = set(re.findall(r"^\s*from (course_utils\.lessons\.\w+) import", code, re.MULTILINE))
    later = [lesson.number for lesson in LESSONS if lesson.package in faces and lesson.number > int(page.stem[:2])]
    assert faces <= {lesson.package for lesson in LESSONS}
    assert [number for number in later if not re.search(rf"lesson {number}\b", prose_of(page))] == []


@pytest.fixture(scope="module")
def drawn():
    """The program that draws the map."""
    spec = importlib.util.spec_from_file_location("map_of_lessons", ROOT / "docs" / "map.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_map_is_that_of_the_syllabus(drawn) -> None:
    picture = ROOT / "docs" / "map.png"
    assert drawn.description().encode("latin-1") in picture.read_bytes(), "run: .venv/bin/python docs/map.py"
    assert imread(picture).shape[:2] == (2 * drawn.SIZE[1], 2 * drawn.SIZE[0])
    for place in ("README.md", "notebooks/src/00_first_steps.py"):
        text = re.sub(r"\s*\n(?:# )?", " ", (ROOT / place).read_text(encoding="utf-8"))
        assert f"![{drawn.alt_text()}](" in text, place


def test_no_arrow_of_the_map_crosses_a_box_and_no_box_another(drawn) -> None:
    boxes = {lesson.number: drawn.box_of(lesson) for lesson in LESSONS}
    for (before, after), corners in drawn.arrows().items():
        for (x, y), (to_x, to_y) in zip(corners, corners[1:], strict=False):
            for number, (left, top, right, bottom) in boxes.items():
                apart = max(x, to_x) <= left or min(x, to_x) >= right or max(y, to_y) <= top or min(y, to_y) >= bottom
                assert apart, f"the arrow from {before} to {after} crosses {number}"
    for one, (left, top, right, bottom) in boxes.items():
        for other, (left_2, top_2, right_2, bottom_2) in boxes.items():
            assert one == other or right < left_2 or right_2 < left or bottom < top_2 or bottom_2 < top, (one, other)


def test_the_maps_words_stay_in_their_boxes(drawn) -> None:
    picture = drawn.draw()
    renderer = FigureCanvasAgg(picture).get_renderer()
    boxes = [drawn.box_of(lesson) for lesson in LESSONS]
    for text in picture.axes[0].texts[len(drawn.arrows()) :]:
        around = text.get_window_extent(renderer)
        x, y = (around.x0 + around.x1) / 2, drawn.SIZE[1] - (around.y0 + around.y1) / 2
        for left, top, right, bottom in boxes:
            if left < x < right and top < y < bottom:
                assert left <= around.x0 and around.x1 <= right, text.get_text()
                assert top <= drawn.SIZE[1] - around.y1 and drawn.SIZE[1] - around.y0 <= bottom, text.get_text()


def test_everything_leads_to_the_last_lesson_and_the_first_to_everything() -> None:
    assert ancestors(15) == set(range(15))
    for lesson in LESSONS[1:]:
        assert 0 in ancestors(lesson.number) and max(lesson.builds_on) < lesson.number
        for before in lesson.builds_on:
            assert not any(before in ancestors(other) for other in lesson.builds_on), "goes without saying"
