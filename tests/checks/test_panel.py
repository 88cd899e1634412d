"""What a notebook shows of a verdict and a hint: one object, plain text for programs, a panel for people."""

import math
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from course_utils.checks import panel as parts
from course_utils.checks import verdict_panel as verdicts
from course_utils.checks.finding import own
from course_utils.checks.hints import panel as hint_panel
from course_utils.checks.mistake_search import Searched
from course_utils.checks.verdict import Result, Verdict
from course_utils.trace.events import Event

QUESTION = "Was the sum divided by the number of ranks?"
FINDING = own("too-large", "rank 2 holds 10.0 at index 0, expected 2.5")
WRONG = Verdict(Result.WRONG, "squares", FINDING, "4 ranks", searched=Searched(QUESTION))
PLAIN = Verdict(Result.WRONG, "squares", own("wrong", "wrong"))


class Page(HTMLParser):
    """Tags with their attributes, in order, and the text of a piece of HTML with spaces as a browser shows them."""

    def __init__(self, html: str):
        super().__init__()
        self.tags: list[tuple[str, dict]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        assert self.open == [], "every tag is closed"

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("img", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data if "pre" in self.open else re.sub(r"\s+", " ", data)

    def named(self, tag: str) -> list[dict]:
        return [attributes for name, attributes in self.tags if name == tag]


def page_of(verdict: Verdict) -> Page:
    return Page(verdicts.panel(verdict).html)


def ping(rank: int, peer: int, at: float) -> list[Event]:
    """A message of one byte, sent and received within a second."""
    return [
        Event(rank, "Send", "send", peer, 0, 1, at, at + 0.4),
        Event(peer, "Recv", "recv", rank, 0, 1, at, at + 0.5),
    ]


def contrast(one: str, other: str) -> float:
    """The contrast of two colours "#rrggbb" (WCAG 2.2, "contrast ratio")."""

    def luminance(colour: str) -> float:
        shares = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    brighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def test_programs_get_the_line_and_people_a_panel():
    bundle = verdicts.panel(WRONG)._repr_mimebundle_()
    assert bundle.keys() == {"text/plain", "text/html"}
    assert bundle["text/plain"] == str(WRONG)


@pytest.mark.parametrize(
    ("verdict", "words", "said"),
    [
        (Verdict(Result.RIGHT, "squares", praise="4 ranks agree"), "right", "4 ranks agree"),
        (PLAIN, "not yet", "wrong."),
        (Verdict(Result.NOT_BEGUN, "squares"), "not begun", "Replace the line"),
    ],
)
def test_a_verdict_is_said_in_words_and_has_a_name(verdict, words, said):
    page = page_of(verdict)
    (box,) = [attributes for _, attributes in page.tags if attributes.get("role") == "status"]
    assert box["aria-label"] == f"squares: {words}"
    assert f"{verdict.result} {words} squares: {said}" in page.text
    assert any(attributes.get("aria-hidden") == "true" for _, attributes in page.tags), "the mark is not read aloud"


def test_there_is_no_script_and_what_a_learner_wrote_stays_text():
    nasty = '<script>alert(1)</script><img src=x onerror="a()">&amp;"\'`<b>x</b>`'
    page = page_of(
        Verdict(
            Result.WRONG,
            "squares",
            own("nasty", "{nasty}", nasty=nasty),
            searched=Searched(nasty),
            output=((1, nasty),),
        )
    )
    assert {tag for tag, _ in page.tags} <= {"div", "span", "strong", "p", "pre", "code"}
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert page.text.count("<script>") == 3  # in the finding, as the question and as a printed line


def test_the_question_is_set_off():
    assert str(WRONG) == f"✗ squares: rank 2 holds 10.0 at index 0, expected 2.5 (4 ranks). {QUESTION}"
    assert f"Ask yourself: {QUESTION}" in page_of(WRONG).text
    assert page_of(WRONG).text.count(QUESTION) == 1
    assert "Ask yourself" not in page_of(PLAIN).text


def test_not_begun_is_not_said_twice():
    said = page_of(Verdict(Result.NOT_BEGUN, "squares")).text
    assert said.count("not begun") == 1 and "raise NotImplementedError" in said


def test_printed_lines_stand_below_without_their_colours():
    page = page_of(replace(PLAIN, output=((1, "\x1b[31mone\x1b[0m\ntwo <3\n"), (3, "x\n" * 50))))
    assert "[rank 1] one\n[rank 1] two <3\n[rank 3] x" in page.text and "\x1b" not in page.text
    assert "… and 32 more lines" in page.text


def test_lines_break_between_words():
    (box,) = [attributes for _, attributes in page_of(WRONG).tags if attributes.get("role") == "status"]
    (pre,) = page_of(replace(PLAIN, output=((1, "a line"),))).named("pre")
    for style in (box["style"], pre["style"]):
        assert "word-break: normal" in style and "overflow-wrap: anywhere" in style


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({}, None),
        ({"case": "4 ranks"}, "4 ranks"),
        ({"case": "4 ranks", "expected_rounds": 1}, "2 rounds counted, 1 expected (4 ranks)"),
        ({"expected_rounds": 2}, "2 rounds counted, 2 expected"),
        ({"expected_rounds": 3}, "2 rounds counted, at most 3 expected"),
    ],
)
def test_the_picture_names_counted_against_expected_rounds(fields, title):
    events = (*ping(0, 1, 0.0), *ping(1, 2, 1.0))
    assert verdicts.picture_title(replace(PLAIN, events=events, **fields)) == title


def test_rounds_of_messages_that_never_ended_are_not_counted():
    (stuck,) = [event for event in ping(0, 1, 0.0) if event.kind == "send"]
    events = (stuck._replace(end=math.inf),)
    assert verdicts.picture_title(replace(PLAIN, events=events, case="2 ranks", expected_rounds=1)) == "2 ranks"


def test_there_is_one_picture_with_a_text_alternative_and_none_of_too_many_messages():
    events = (*ping(0, 1, 0.0), *ping(1, 2, 1.0))
    wrong = replace(PLAIN, events=events, expected_rounds=1)
    (picture,) = page_of(wrong).named("img")
    assert "2 messages in 2 rounds" in picture["alt"] and "max-width: 100%" in picture["style"]
    assert "<img" not in verdicts.panel(wrong, picture=False).html
    many = tuple(event for at in range(61) for event in ping(0, 1, float(at)))
    assert page_of(replace(PLAIN, events=many)).named("img") == []


def test_a_badge_reads_on_its_own_ground_and_an_edge_is_seen_on_white_and_on_black():
    for kind in (parts.RIGHT, parts.NOT_YET, parts.NEUTRAL):
        html = parts.panel_html("label", kind, "name", mark="✓", words="words")
        ground = re.search(r"background: (#\w{6}); color: #FFFFFF", html)
        assert contrast(ground[1], "#FFFFFF") >= 4.5
        edge = re.search(r"border-left: 4px solid (#\w{6})", html)
        assert contrast(edge[1], "#FFFFFF") >= 3 and contrast(edge[1], "#111111") >= 3


@pytest.mark.parametrize("in_notebook", [True, False])
def test_a_notebook_gets_one_object_and_a_terminal_the_lines(monkeypatch, capsys, in_notebook):
    shown = []
    monkeypatch.setattr(parts, "in_notebook", lambda: in_notebook)
    monkeypatch.setattr("IPython.display.display", shown.append)
    verdicts.show(replace(PLAIN, output=((1, "one\n"),)))
    printed = capsys.readouterr().out
    if in_notebook:
        assert [str(one) for one in shown] == ["✗ squares: wrong."] and printed == ""
    else:
        assert shown == [] and printed == "✗ squares: wrong.\n[rank 1] one\n"


def test_a_hint_says_how_many_there_are_and_how_to_get_the_next():
    hints = ("Which call gathers?", "`comm.allgather` does.")
    first, last = hint_panel("squares", hints, 0), hint_panel("squares", hints, 1)
    assert first.text.splitlines()[0] == "Hint 1 of 2: Which call gathers?"
    assert 'course.hint("squares")' in first.text and "again" not in last.text
    page = Page(first.html)
    assert page.tags[0][1]["aria-label"] == "squares: hint 1 of 2" and "Which call gathers?" in page.text
    assert [tag for tag, _ in Page(last.html).tags].count("code") == 1
