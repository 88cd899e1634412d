"""A deck's slides as its Markdown has them: title, text, pictures, and what the speaker's note says."""

import re
from dataclasses import dataclass

FIGURE = re.compile(r"figures/([\w-]+)\.png")
_FENCE = re.compile(r"\s*(`{3,}|:{3,}|~{3,})")
_NOTE = re.compile(r"^:::\{revealjs-notes\}\n(.*?)^:::$", re.MULTILINE | re.DOTALL)
_DIRECTIVE = re.compile(r"^```\{figure\}.*?^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"^#+ (.+)$", re.MULTILINE)
_FORMULA = re.compile(r"\$\$(.+?)\$\$", re.DOTALL)
_VOTE = re.compile(r"\bvotes?\b", re.IGNORECASE)


@dataclass(frozen=True)
class Slide:
    """One slide.

    Attributes:
        title: of the slide; "" without one.
        text: what else is on it, in Markdown, without pictures.
        note: the speaker's, in Markdown.
        figures: the names of its pictures.
    """

    title: str
    text: str
    note: str
    figures: tuple[str, ...] = ()

    @property
    def formulas(self) -> tuple[str, ...]:
        """The formulas that have a line of their own, in TeX."""
        return tuple(formula.strip() for formula in _FORMULA.findall(self.text))

    @property
    def is_a_vote(self) -> bool:
        """Whether the note asks for a vote."""
        return bool(_VOTE.search(self.note))


@dataclass(frozen=True)
class Vote:
    """A vote, and the slide after it, which has the answer."""

    slide: Slide
    answer: Slide | None


def slides_of(text: str) -> list[Slide]:
    """The slides of a deck's Markdown."""
    return [_slide(part) for part in _parts(text)]


def votes_of(slides: list[Slide]) -> list[Vote]:
    """The votes of a deck, in order."""
    following = [*slides[1:], None]
    return [Vote(slide, after) for slide, after in zip(slides, following, strict=True) if slide.is_a_vote]


def _parts(text: str) -> list[str]:
    """The deck cut at its lines `---` and at headings, as Sphinx does, but not within code."""
    parts: list[list[str]] = [[]]
    fence = None
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and fence is None:
            fence = mark[1]
        elif mark and fence and mark[1].startswith(fence) and line.strip() == mark[1]:
            fence = None
        if fence is None and line.strip() == "---":
            parts.append([])
            continue
        if fence is None and _TITLE.match(line) and any(map(str.strip, parts[-1])):
            parts.append([])
        parts[-1].append(line)
    return ["\n".join(part) for part in parts]


def _slide(part: str) -> Slide:
    note = "\n\n".join(found.strip() for found in _NOTE.findall(part))
    body = _DIRECTIVE.sub("", _NOTE.sub("", part))
    title = _TITLE.search(body)
    text = body.replace(title[0], "", 1) if title else body
    return Slide(title[1] if title else "", text.strip(), note, tuple(FIGURE.findall(part)))
