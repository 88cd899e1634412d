"""Words for sentences: lines that a page breaks itself, or that are broken for it."""

from course_utils.errors import RankError
from course_utils.words import PAGE_WRAPS, wrapped

LONG = "rank 0 is waiting in Send(dest=1), line 4 of your cell; " * 4


def test_a_long_text_is_broken_between_words_unless_the_page_does_so(monkeypatch) -> None:
    monkeypatch.delenv(PAGE_WRAPS, raising=False)
    assert max(map(len, wrapped(LONG).splitlines())) <= 92
    assert max(map(len, wrapped(LONG, 60).splitlines())) <= 60
    assert wrapped(LONG).split() == LONG.split()
    assert len(RankError(LONG)._render_traceback_()) == 3
    monkeypatch.setenv(PAGE_WRAPS, "1")
    assert wrapped(LONG) == LONG
    assert RankError(LONG)._render_traceback_() == [f"RankError: {LONG}"]
