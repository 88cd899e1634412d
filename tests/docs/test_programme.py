"""The two days' programme: its times add up, and each lesson gets the minutes that it takes."""

import re
from dataclasses import dataclass
from itertools import pairwise

import pytest

from course_utils.checks.registry import exercises_of
from course_utils.syllabus import LESSONS, Lesson
from workshop.publish.slides import decks
from workshop.publish.sources import ROOT

TEXT = (ROOT / "docs" / "programme.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (\d+):(\d\d)–(\d+):(\d\d) \| (.+?) \| (.*?) ?\| (.*?) ?\| (.*?) ?\|$", re.MULTILINE)
LESSON = re.compile(r"\[(\d+) (.+)\]\(\.\./notebooks/(.+)\.ipynb\)")
OTHER = re.compile(r"^\| (.+?) \| ([\d, ]+) \| ([\d, ]*) \| (\d+) \|$", re.MULTILINE)
SAID = re.compile(
    r"(\d+) minutes with the lesson open (?:beside|next to) the slides, (?:or )?(\d+) with the slides alone\."
)
SPARE = 5  # minutes of a slot beyond what its lesson and exercises take


@dataclass
class Slot:
    """A line of a day: from and to, in minutes, what, how, exercises in class, slides that may be left out."""

    begin: int
    end: int
    what: str
    how: str
    exercises: list[str]
    left_out: list[str]

    @property
    def minutes(self) -> int:
        return self.end - self.begin

    @property
    def lesson(self) -> Lesson | None:
        named = LESSON.fullmatch(self.what)
        return LESSONS[int(named[1])] if named else None


def slot(cells: tuple[str, ...]) -> Slot:
    begin, end = (60 * int(cells[at]) + int(cells[at + 1]) for at in (0, 2))
    return Slot(begin, end, *cells[4:6], re.findall(r"`(\w+)`", cells[6]), re.findall(r"\*(.+?)\*", cells[7]))


def days() -> list[list[Slot]]:
    return [[slot(cells) for cells in ROW.findall(part)] for part in re.split(r"^## ", TEXT, flags=re.MULTILINE)[1:3]]


TAUGHT = [each for day in days() for each in day if each.lesson]


def deck_of(lesson: Lesson) -> str:
    """The text of a lesson's deck."""
    return decks(wanted=[lesson.stem])[0].read_text(encoding="utf-8")


def minutes_said(lesson: Lesson) -> tuple[int, int]:
    """What a deck's first note says: minutes with the lesson, and with the slides alone."""
    found = SAID.search(" ".join(re.findall(r":::\{revealjs-notes\}\n(.*?):::", deck_of(lesson), re.DOTALL)[0].split()))
    assert found, f"the first note of deck {lesson.stem} does not say how many minutes it takes"
    return int(found[1]), int(found[2])


def test_a_day_has_no_gap_a_lunch_and_at_most_nine_hours():
    assert len(days()) == 2
    for day in days():
        assert all(one.end == other.begin for one, other in pairwise(day)) and all(each.minutes > 0 for each in day)
        assert day[-1].end - day[0].begin <= 9 * 60
        assert [each.what for each in day].count("Lunch") == 1
        breaks = [each.begin for each in day if each.what in ("Coffee", "Lunch")]
        assert all(later - earlier <= 150 for earlier, later in pairwise([day[0].begin, *breaks, day[-1].end]))


def test_every_lesson_is_met_once_by_its_name_in_order():
    named = [LESSON.fullmatch(each.what).groups() for each in TAUGHT]
    assert named == [(str(lesson.number), lesson.title, lesson.stem) for lesson in LESSONS]
    assert {each.how for each in TAUGHT} == {"done", "shown"}


@pytest.mark.parametrize("taught", TAUGHT, ids=lambda taught: taught.lesson.stem)
def test_a_lesson_gets_the_minutes_that_it_takes(taught):
    lesson, takes = taught.lesson, {each.name: each.minutes for each in exercises_of(taught.lesson)}
    with_page, alone = minutes_said(lesson)
    assert with_page == lesson.minutes_of_pages
    assert set(taught.exercises) <= set(takes), "the lesson has no such exercise"
    needs = sum(takes[name] for name in taught.exercises) + (lesson.minutes_of_pages if taught.how == "done" else alone)
    assert needs <= taught.minutes <= needs + SPARE, f"{needs} minutes are needed"


@pytest.mark.parametrize("taught", TAUGHT, ids=lambda taught: taught.lesson.stem)
def test_slides_alone_take_one_to_two_minutes_each_and_those_to_leave_out_are_there(taught):
    titles = re.findall(r"^#{1,3} (.+)$", deck_of(taught.lesson), re.MULTILINE)
    assert len(titles) <= minutes_said(taught.lesson)[1] <= 2 * len(titles)
    assert set(taught.left_out) <= set(titles)


def test_what_remains_for_home_is_what_was_not_done():
    pages = [each.lesson.minutes_of_pages for each in TAUGHT if each.how == "shown"]
    done = {name for each in TAUGHT for name in each.exercises}
    exercises = [each.minutes for lesson in LESSONS for each in exercises_of(lesson) if each.name not in done]
    hours, more = (f"{sum(minutes) / 60:.0f} hours" for minutes in (pages, exercises))
    said = f"{len(pages)} lessons ({hours}) and {len(exercises)} exercises ({more})"
    assert said in " ".join(TEXT.split()), said


def test_further_notebooks_are_listed_as_optional_with_their_minutes():
    listed = re.findall(r"^\| \[(\d+) (.+)\]\(\.\./notebooks/(.+)\) \| (\d+) \|$", TEXT, re.MULTILINE)
    further = [lesson for lesson in LESSONS if lesson.further]
    rows = [(lesson.number, lesson.further_title, lesson.further.name, lesson.further_minutes) for lesson in further]
    assert listed == [tuple(map(str, row)) for row in rows]


def test_shorter_programmes_add_up():
    others = OTHER.findall(TEXT)
    assert len(others) >= 3
    for title, *lists, minutes in others:
        done, shown = ([LESSONS[int(number)] for number in re.findall(r"\d+", numbers)] for numbers in lists)
        assert not set(done) & set(shown), title
        assert int(minutes) == sum(each.minutes_of_pages for each in done) + sum(
            minutes_said(each)[1] for each in shown
        ), title
