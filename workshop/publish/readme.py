"""The README's table of lessons, written from the syllabus and from what is declared."""

from pathlib import Path

from course_utils.checks.registry import names_of
from course_utils.syllabus import LESSONS, Lesson
from workshop.publish.sources import ROOT

BEGINS, ENDS = "<!-- lessons: written by make notebooks -->", "<!-- end of lessons -->"


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


def other_notebooks(lesson: Lesson) -> str:
    """Return what follows a lesson's question in a table: links to its second page and to its *Further*."""
    links = ""
    if lesson.part_2:
        links += f" · [part 2: {lesson.part_2.title}](notebooks/{lesson.second_notebook.name})"
    if lesson.further:
        links += f" · [further](notebooks/{lesson.further.name}), {lesson.further_minutes} minutes"
    return links


def with_table(text: str) -> str:
    """The text with the present table between its two markers."""
    before, _, rest = text.partition(BEGINS)
    return f"{before}{BEGINS}\n{table()}\n{ENDS}{rest.partition(ENDS)[2]}"


def write(root: Path = ROOT) -> None:
    """Bring the README's table up to date, where there is one."""
    readme = root / "README.md"
    text = readme.read_text(encoding="utf-8") if readme.exists() else ""
    if BEGINS in text and with_table(text) != text:
        readme.write_text(with_table(text), encoding="utf-8")
