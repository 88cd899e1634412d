"""Decks on paper: slides read from their Markdown, pages with notes, the list of votes, and handouts of two pages."""

import os
import shutil

import pytest
from matplotlib.figure import Figure

from course_utils.syllabus import LESSONS
from workshop.publish.deck_slides import slides_of, votes_of
from workshop.publish.handouts import PAGES, PICTURES, number_of_pages, opening_of, print_handout
from workshop.publish.mathjax import mathjax_script
from workshop.publish.notes_pdf import votes_html
from workshop.publish.paper import html_of
from workshop.publish.slides import decks
from workshop.publish.sources import ROOT, AuthoringError

DECK = """\
## A question

Ask $x^2$.

$$ T = \\alpha $$

:::{revealjs-notes}
Explain it.
:::

---

### Which is faster?

```python
a = 1
---
```

:::{revealjs-notes}
Take a vote first.
:::

---

### The second

```{figure} figures/90_line.png
:alt: A line.
```

:::{revealjs-notes}
It is the **second**.
:::
"""


def test_a_deck_is_read_slide_by_slide() -> None:
    first, vote, answer = slides_of(DECK)
    assert (first.title, first.note, first.formulas) == ("A question", "Explain it.", ("T = \\alpha",))
    assert "---" in vote.text and vote.is_a_vote and not first.is_a_vote
    assert answer.figures == ("90_line",) and answer.text == ""


def test_the_answer_to_a_vote_is_on_the_next_slide() -> None:
    [vote] = votes_of(slides_of(DECK))
    assert (vote.slide.title, vote.answer.title) == ("Which is faster?", "The second")
    text = votes_html([vote])
    assert "Take a vote first." in text and "Next slide: The second" in text and "<strong>second</strong>" in text
    assert votes_html([]) == ""


def test_formulas_are_left_to_mathjax() -> None:
    assert html_of("If $a < b$") == "<p>If \\(a &lt; b\\)</p>\n"


def test_a_page_opens_with_its_reason() -> None:
    source = "# About.\n\n# %% [markdown]\n# # Why?\n#\n# A [reason](x.ipynb).\n#\n# *5 minutes*\n\n# %%\nx = 1\n"
    assert opening_of(source) == "A reason."


def test_each_lesson_has_pictures_of_its_deck() -> None:
    assert list(PICTURES) == [lesson.stem for lesson in LESSONS]
    for deck in decks():
        drawn = {name for slide in slides_of(deck.read_text(encoding="utf-8")) for name in slide.figures}
        assert set(PICTURES[deck.stem]) <= drawn, deck.stem
        assert opening_of((ROOT / "notebooks" / "src" / f"{deck.stem}.py").read_text(encoding="utf-8"))


@pytest.mark.browser
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "stem",
    [pytest.param(name, marks=[] if name == "11_hybrid_and_sharded" else pytest.mark.weekly) for name in PICTURES],
)
def test_a_handout_has_two_pages(stem, tmp_path) -> None:
    try:
        script = mathjax_script(ROOT / "slides" / "build" / "cache")
    except AuthoringError as error:
        assert os.environ.get("CI") != "true", error
        pytest.skip(str(error))
    if not shutil.which("chromium"):
        assert os.environ.get("CI") != "true", "under CI=true Chromium must be there: apt install chromium"
        pytest.skip("no Chromium")
    for name in PICTURES[stem]:
        Figure(figsize=(11, 6)).savefig(tmp_path / f"{name}.png")
    [deck] = decks(wanted=[stem])
    assert number_of_pages(print_handout(deck, tmp_path, tmp_path / "handout.pdf", script)) == PAGES
