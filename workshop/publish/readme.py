"""The README's table of lessons with the hours that they take, from the syllabus and from what is declared."""

import textwrap
from pathlib import Path

from course_utils.checks.registry import exercises_of, names_of
from course_utils.syllabus import LESSONS, Lesson
from workshop.publish.sources import ROOT

BEGINS, ENDS = "<!-- lessons: written by make notebooks -->", "<!-- end of lessons -->"
SHORTEST_PATH = (0, 4, 5, 6)
"""The lessons that lead to training in parallel, for readers who know how one process trains."""


def table() -> str:
    """The table of lessons in Markdown: number, question with its other notebooks, minutes, ranks, exercises."""
    lines = ["| | The question | Minutes | Ranks | Exercises |", "|---|---|---|---|---|"]
    for lesson in LESSONS:
        question, exercises = f"{lesson.title} *(not written yet)*", str(len(names_of(lesson)))
        if lesson.written:
            question = f"[{lesson.title}](notebooks/{lesson.stem}.ipynb){other_notebooks(lesson)}"
            exercises = f"[{exercises}](exercises/{lesson.stem}.ipynb)"
        lines.append(
            f"| {lesson.number} | {question} | {lesson.minutes_of_pages} | {lesson.ranks or 'none'} | {exercises} |"
        )
    return "\n".join(lines)


def totals() -> str:
    """Return the sentences below the table: how long the course takes, and its shortest useful part."""
    exercises = [exercise.minutes for lesson in LESSONS for exercise in exercises_of(lesson)]
    shortest = sum(LESSONS[number].minutes_of_pages for number in SHORTEST_PATH)
    *first, last = SHORTEST_PATH
    text = (
        f"All lessons together take about {hours(sum(lesson.minutes_of_pages for lesson in LESSONS))}, their "
        f"{len(exercises)} exercises about {hours(sum(exercises))}, and the *Further* notebooks about "
        f"{hours(sum(lesson.further_minutes for lesson in LESSONS))}. The shortest useful path is lessons "
        f"{', '.join(map(str, first))} and {last}, which take {shortest} minutes without exercises. It assumes that "
        "you know how gradient descent trains a network. If you don't, read lessons 1 and 2 before lesson 6."
    )
    return textwrap.fill(text, 120)


def hours(minutes: int) -> str:
    """Return minutes to the nearest half hour, in words."""
    whole, half = divmod(round(minutes / 30), 2)
    return f"{whole}{'½' if half else ''} hours"


def other_notebooks(lesson: Lesson) -> str:
    """Return what follows a lesson's question in a table: links to its second page and to its *Further*."""
    links = ""
    if lesson.part_2:
        links += f" · [part 2: {lesson.part_2.title}](notebooks/{lesson.second_notebook.name})"
    if lesson.further:
        links += f" · [further](notebooks/{lesson.further.name}), {lesson.further_minutes} minutes"
    return links


def with_table(text: str) -> str:
    """Return the text with the present table and totals between its two markers."""
    before, _, rest = text.partition(BEGINS)
    return f"{before}{BEGINS}\n{table()}\n\n{totals()}\n{ENDS}{rest.partition(ENDS)[2]}"


def write(root: Path = ROOT) -> None:
    """Bring the README's table up to date, where there is one."""
    readme = root / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    if BEGINS in text and with_table(text) != text:
        readme.write_text(with_table(text), encoding="utf-8")
