"""A quotation to be read word by word, its terms underlined with their lessons; and what each way sends and keeps."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from course_utils.draw import style
from course_utils.draw.bars import SharesPanel
from course_utils.lessons.read_the_manual.framework_steps import AT_THE_START, Stepped, parts
from course_utils.lessons.read_the_manual.passages import Passage, Term

_SIZE, _LINE, _BETWEEN = 10.5, 0.42, 0.16  # points; inches of a line, and from passage to passage
_KNOWN, _UNKNOWN = "#0072B2", style.STUCK


@dataclass(frozen=True)
class _Word:
    """A piece of text without a space in it: where it stands on its line, in pixels, and of which term it is."""

    text: str
    line: int
    x: float
    term: Term | None

    @property
    def end(self) -> float:
        return self.x + style.text_width(self.text, _SIZE)


def reading(
    passages: Sequence[Passage], title: str, subtitle: str = "", lessons: bool = True, width: float = style.WIDTH
) -> Figure:
    """Write the passages out; every term is underlined.

    Args:
        lessons: put the lesson's number below each term, or a dash where no lesson taught it.
        width: of the picture, in inches.
    """
    room = (width - 0.35) * style.DOTS
    laid = [_laid_out(passage, room) for passage in passages]
    lines = [1 + max(word.line for word in words) for words in laid]
    height = _LINE * sum(lines) + _BETWEEN * (len(lines) - 1) + 0.1
    margins = {"left": 0.15, "right": 0.2, "below": 0.05, "width": width}
    picture, (ax,) = style.new_picture(title, subtitle, heights=[height], **margins)
    ax.axis("off")
    ax.set_xlim(0, room)
    ax.set_ylim(height, 0)
    top = 0.0
    for words, number in zip(laid, lines, strict=True):
        _write(ax, words, top)
        for term in dict.fromkeys(word.term for word in words if word.term):
            _mark(ax, [word for word in words if word.term is term], term, top, lessons)
        top += _LINE * number + _BETWEEN
    texts = [f"“{passage.text}”" for passage in passages]
    if lessons:
        terms = [term for passage in passages for term in passage.terms]
        texts += [f"{term.words}: {'no lesson' if term.lesson is None else f'lesson {term.lesson}'}." for term in terms]
    sentences = [f"{words}." for words in (title, subtitle) if words]
    picture.alt_text = " ".join(["A text with words underlined.", *sentences, *texts])
    return picture


def _laid_out(passage: Passage, room: float) -> list[_Word]:
    """Every word with its place: a line is broken at a space, never inside a word, even where two terms make one."""
    space = 1.35 * (style.text_width("a a", _SIZE) - style.text_width("aa", _SIZE))  # with room for coarser letters
    placed: list[_Word] = []
    x, line = 0.0, 0
    for group in _groups(passage):
        wide = sum(style.text_width(text, _SIZE) for text, _ in group)
        if x and x + wide > room:
            x, line = 0.0, line + 1
        for text, term in group:
            placed.append(_Word(text, line, x, term))
            x = placed[-1].end
        x += space
    return placed


def _groups(passage: Passage) -> Iterator[list[tuple[str, Term | None]]]:
    """What stands between two spaces: mostly one piece; two where a comma follows a term."""
    group: list[tuple[str, Term | None]] = []
    for text, term in passage.pieces:
        for index, part in enumerate(text.split(" ")):
            if index and group:
                yield group
                group = []
            if part:
                group.append((part, term))
    if group:
        yield group


def _write(ax: Axes, words: Sequence[_Word], top: float) -> None:
    for word in words:
        at = (word.x, top + _LINE * word.line + 0.17)
        colour = style.INK if word.term else "#555555"
        ax.text(*at, word.text, fontsize=_SIZE, color=colour, va="baseline", parse_math=False)


def _mark(ax: Axes, words: Sequence[_Word], term: Term, top: float, lessons: bool) -> None:
    """Underline a term, on each of its lines; its lesson stands below the longest piece."""
    colour = _UNKNOWN if lessons and term.lesson is None else _KNOWN
    spans = []
    for line in dict.fromkeys(word.line for word in words):
        own = [word for word in words if word.line == line]
        spans.append((own[0].x, own[-1].end, line))
        y = top + _LINE * line + 0.215
        ax.plot([own[0].x + 1, own[-1].end - 1], [y, y], color=colour, linewidth=1.6, solid_capstyle="butt")
    if lessons:
        left, right, line = max(spans, key=lambda span: span[1] - span[0])
        text = "–" if term.lesson is None else str(term.lesson)
        at = ((left + right) / 2, top + _LINE * line + 0.345)
        text_style = {"ha": "center", "va": "baseline", "fontweight": "bold", "parse_math": False}
        ax.text(*at, text, fontsize=style.TEXT, color=colour, **text_style)


def sent_and_kept_panels(steps: Mapping[str, Sequence[Stepped]]) -> list[SharesPanel]:
    """Return the panels for `course.draw.shares`: what rank 0 sends once, what it sends in a step, what it keeps."""
    sent, kept = parts(steps)
    once = {name: {AT_THE_START: amounts.pop(AT_THE_START, 0.0)} for name, amounts in sent.items()}
    columns = {"sent once, at the start": once, "sent in the step": sent, "kept": kept}
    return [SharesPanel(title, bars, say="{:,.0f}".format) for title, bars in columns.items()]
