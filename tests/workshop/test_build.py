"""Notebooks are what their sources give; an exercise is the library's function without its body."""

import ast
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest

from course_utils.checks import registry
from course_utils.checks.exercise import Exercise
from course_utils.syllabus import LESSONS, Lesson
from workshop.publish.__main__ import main
from workshop.publish.exercises import LINK, WIDTH, function_source, gives_away, stub, without_body
from workshop.publish.minutes import minutes_of_page, shows
from workshop.publish.notebooks import assemble, build, check
from workshop.publish.sources import EXERCISE, ROOT, AuthoringError, pages, read_cells, tags
from workshop.publish.times import PageTime, line_of, sum_of, time_pages

LIBRARY = '''\
"""A library."""

import functools


@functools.cache
def double(
    value: int, how=lambda x: x
) -> dict[str, int]:  # the answer is 2
    """Twice the value: twice.

    Args:
        value: any.
    """
    # a secret
    twice = 2 * value
    return twice


def plain(value): return value + 41
'''
LESSON = """\
# A note to authors, on no page.

# %% [markdown]
# # Why?

# %%
x = 3

# %% tags=["nbval-check-output"]
print("x is", x)

# %%
# %%time
# what?
print("not kept")
"""
EXERCISES = """\
# %% [markdown]
# # Exercises
#
# After [the lesson](../notebooks/90_small.ipynb), not [the web](https://www.python.org) or [here](#here).

# %%
import functools

# %% [markdown]
# Make two of one.

# %% tags=["exercise"]
# double
"""


def declare(name: str, library: str, **settings) -> Exercise:
    """An exercise of the small repository's one lesson."""
    common = {"lesson": "90_small", "minutes": 5, "difficulty": 2, "cases": lambda rng, world_size: []}
    return Exercise(name=name, library=library, **(common | settings))


DECLARED = {
    "double": declare("double", "course_utils.small:double", number=1, turn='say "twice" with `*`'),
    "lost": declare("lost", "course_utils.small:tripple", number=2, turn="x"),
    "astray": declare("astray", "course_utils.smal:double", number=3, turn="x"),
}


@pytest.fixture(scope="module", autouse=True)
def _declared() -> Iterator[None]:
    """The build knows the exercises above beside those of the course."""
    find, declared = registry.find, registry.declared
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "find", lambda name: DECLARED.get(name) or find(name))
        patch.setattr(registry, "declared", lambda: (*declared(), DECLARED["double"]))
        yield


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A small repository, built once."""
    root = tmp_path_factory.mktemp("small")
    for name, text in {
        "course_utils/small.py": LIBRARY,
        "notebooks/src/90_small.py": LESSON,
        "exercises/src/90_small.py": EXERCISES,
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    build(root)
    return root


@pytest.fixture
def small(built, tmp_path) -> Path:
    """A copy of the small repository, free to be changed."""
    return Path(shutil.copytree(built, tmp_path / "small"))


def edit(path: Path, old: str, new: str) -> None:
    """Replace a text in a file; it must be there."""
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_what_is_committed_is_what_the_sources_give():
    assert check(ROOT) == []


def test_a_page_keeps_titles_magics_and_comments():
    cells = read_cells_of("# note\n# %% [markdown]\n# # Why?\n\n# %%\n# %%px\n# why?\nx = 1\n# !ls\n")
    assert [cell.source for cell in cells] == ["# Why?", "%%px\n# why?\nx = 1\n!ls"]


def read_cells_of(text: str):
    """The cells of a source given as text."""

    class Source:
        name = "text"

        def read_text(self, encoding):
            return text

    return read_cells(Source())


def test_a_built_notebook_says_so_and_holds_checked_outputs_only(built):
    notebook = nbformat.read(built / "notebooks/90_small.ipynb", as_version=4)
    assert notebook.metadata.course.built_from == "notebooks/src/90_small.py"
    assert notebook.cells[0].metadata.built_from == "notebooks/src/90_small.py"
    assert [len(cell.get("outputs", [])) for cell in notebook.cells] == [0, 0, 1, 0]
    assert notebook.cells[2].outputs[0].text == "x is 3\n"
    assert check(built) == []


def test_cell_ids_are_stable_and_differ(built):
    page = pages(built)[0]
    first, second = ([cell.id for cell in assemble(page, built).cells] for _ in range(2))
    assert first == second
    assert len(set(first)) == len(first)


def test_building_again_changes_and_runs_nothing(small, monkeypatch):
    monkeypatch.setattr("workshop.publish.notebooks.execute", lambda *_: pytest.fail("a notebook was run"))
    assert {done for _, done in build(small)} == {"unchanged"}


def test_words_may_change_without_a_run_but_code_may_not(small, monkeypatch):
    ran = []
    monkeypatch.setattr("workshop.publish.notebooks.execute", lambda _, page, __: ran.append(page.stem))
    edit(small / "notebooks/src/90_small.py", "# # Why?", "# # How?")
    build(small)
    assert ran == []
    edit(small / "notebooks/src/90_small.py", "x = 3", "x = 4")
    build(small)
    assert ran == ["90_small"]


@pytest.mark.parametrize(
    "name, old, new, said",
    [
        (
            "notebooks/src/90_small.py",
            "x = 3",
            "x = 4",
            "not what notebooks/src/90_small.py gives (cell 2, its source)",
        ),
        ("notebooks/90_small.ipynb", '"# Why?"', '"# Who?"', "not what notebooks/src/90_small.py gives (cell 1"),
        (
            "course_utils/small.py",
            "twice = 2 * value",
            "twice = value * 2",
            "exercises/solutions/90_small.ipynb is not",
        ),
        ("exercises/src/90_small.py", "import functools", "import functools  # %%\n\n# %%\nx = 1", "cell 2"),
    ],
    ids=["source", "notebook", "library", "cells"],
)
def test_a_stale_notebook_is_found(small, name, old, new, said):
    edit(small / name, old, new)
    wrong = check(small)
    assert any(said in line for line in wrong), wrong
    assert main(["--root", str(small), "check"]) == 1


def test_outputs_where_none_belong_are_found(small):
    path = small / "notebooks/90_small.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells[2].outputs, notebook.cells[3].outputs = [], notebook.cells[2].outputs
    nbformat.write(notebook, path)
    wrong = check(small)
    assert any("cell 3 is checked but has no output" in line for line in wrong), wrong
    assert any("cell 4 has an output that nothing checks" in line for line in wrong), wrong


def test_missing_and_orphaned_notebooks_are_found(small):
    (small / "notebooks/90_small.ipynb").rename(small / "notebooks/91_other.ipynb")
    wrong = "\n".join(check(small))
    assert "notebooks/90_small.ipynb is missing" in wrong
    assert "notebooks/91_other.ipynb has no source" in wrong


def test_the_learner_gets_signature_and_docstring_and_the_solution_all(built):
    learner = exercise_cell(built / "exercises/90_small.ipynb")
    assert "@functools.cache\ndef double(" in learner
    assert "Args:\n        value: any." in learner
    assert 'raise NotImplementedError("your turn: say \\"twice\\" with `*`")' in learner
    assert not any(secret in learner for secret in ("secret", "2 * value", "the answer"))
    ast.parse(learner)
    assert exercise_cell(built / "exercises/solutions/90_small.ipynb") in LIBRARY


def exercise_cell(path: Path) -> str:
    """The source of a notebook's first exercise."""
    return next(cell.source for cell in nbformat.read(path, as_version=4).cells if EXERCISE in tags(cell))


def test_the_text_above_ends_with_how_hard_it_is(built, small, capsys):
    cells = nbformat.read(built / "exercises/90_small.ipynb", as_version=4).cells
    assert cells[2].source == "Make two of one.\n\n*difficulty ●●○ · 5 minutes*"
    edit(small / "exercises/src/90_small.py", "# %% [markdown]\n# Make two of one.\n\n", "")
    assert main(["--root", str(small), "build"]) == 1
    assert "the cell above the exercise double must be text" in capsys.readouterr().err


def test_an_exercise_that_its_page_forgets_stands_behind_the_others(small):
    source = small / "exercises/src/90_small.py"
    source.write_text(source.read_text().partition("# %% [markdown]\n# Make two")[0])
    cells = assemble(pages(small)[1], small).cells
    assert cells[2].source.startswith("## 1 · double") and cells[4].source == 'course.check("double", double)'


def test_a_check_and_help_follow_and_links_lead_from_the_solutions(built):
    learner = nbformat.read(built / "exercises/90_small.ipynb", as_version=4).cells
    assert learner[4].source == 'course.check("double", double)'
    assert "Stuck?" in learner[5].source and 'course.hint("double")' in learner[5].source
    title = nbformat.read(built / "exercises/solutions/90_small.ipynb", as_version=4).cells[0].source
    assert "(../90_small.ipynb)" in title and "(../../notebooks/90_small.ipynb)" in title
    assert "(https://www.python.org)" in title and "(#here)" in title


def test_functions_of_one_line_and_without_docstring_lose_their_body_too(built):
    source = function_source(built, declare("plain", "course_utils.small:plain", number=1, turn="add"))
    assert without_body(source, "add") == 'def plain(value):\n    raise NotImplementedError("your turn: add")'


def test_what_is_to_be_made_better_stands_below_the_line(built):
    better = declare("plain", "course_utils.small:plain", number=1, turn="add", begins_with="course_utils.small:double")
    lines = stub(built, better).splitlines()
    assert lines[0] == "def plain(value):" and "your turn: add" in lines[1]
    assert lines[2:] == ["    twice = 2 * value", "    return twice"]


def test_a_solution_shown_to_the_learner_is_found(small):
    edit(small / "exercises/src/90_small.py", "import functools", "import functools\n\ntwice = 2 * value\nreturn twice")
    learner, solution = (assemble(page, small).cells for page in pages(small)[1:])
    learner[1].source = "x = 1\ntwice = 2 * value\n    return twice"
    assert gives_away(learner, solution) == ["double"]


@pytest.mark.parametrize(
    "line, said",
    [
        ("# lost", "defines no function tripple"),
        ("# astray", "there is no module course_utils.smal"),
        ("# dubble", 'There is no exercise "dubble"'),
        ("double", "an exercise cell holds one line"),
    ],
)
def test_an_exercise_that_names_nothing_is_rejected_in_plain_words(small, capsys, line, said):
    edit(small / "exercises/src/90_small.py", "# double", line)
    assert main(["--root", str(small), "build"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("error: exercises/src/90_small.py: ") and said in error


def test_a_cell_that_fails_is_named(small):
    edit(small / "notebooks/src/90_small.py", "x = 3", "x = 1 / 0")
    with pytest.raises(AuthoringError, match=r"90_small.py: a cell fails[\s\S]*ZeroDivisionError"):
        build(small, ["90"])


def test_pages_are_timed_and_the_slowest_cell_is_named(small, capsys):
    edit(small / "notebooks/src/90_small.py", "x = 3", "import time\ntime.sleep(0.5)\nx = 3")
    (small / "notebooks/src/91_wrong.py").write_text("# %%\n1 / 0\n", encoding="utf-8")
    [well, wrong] = time_pages(small)
    assert (well.stem, well.line, well.problem) == ("90_small", "import time", "")
    assert 0.5 <= well.slowest <= well.seconds
    assert wrong.stem == "91_wrong" and "ZeroDivisionError" in wrong.problem and not wrong.slowest
    assert main(["--root", str(small), "times", "91"]) == 1
    head, failed, *_, everything = capsys.readouterr().out.splitlines()
    assert head.split()[:3] == ["page", "runs", "for"] and failed.startswith("91_wrong") and "✗" in failed
    assert everything.startswith("all 1 ")


OFF = 0.2
"""By what share the minutes that the syllabus states may differ from the estimate."""


def test_a_page_is_estimated_by_what_it_asks_for(tmp_path):
    (tmp_path / "notebooks" / "src").mkdir(parents=True)
    text = (
        "# %% [markdown]\n# " + "word | " * 180 + '\n\n# %%\ncourse.predict("x", bytes=...)\n\n# %%\n' + "x + 1\n" * 11
    )
    (tmp_path / "notebooks" / "src" / "90_small.py").write_text(text, encoding="utf-8")
    assert minutes_of_page("90_small", tmp_path) == pytest.approx(1 + 1 + 1 + 1 + 0.5, abs=0.02)


@pytest.mark.parametrize("lesson", [lesson for lesson in LESSONS if lesson.written], ids=lambda lesson: lesson.stem)
def test_the_minutes_of_a_lesson_are_those_that_its_page_needs(lesson: Lesson):
    estimate = minutes_of_page(lesson.stem)
    assert (1 - OFF) * lesson.minutes <= estimate <= (1 + OFF) * lesson.minutes, f"about {estimate:.0f} minutes"


@pytest.mark.parametrize("lesson", [lesson for lesson in LESSONS if lesson.part_2], ids=lambda lesson: lesson.stem)
def test_the_minutes_of_a_second_page_are_those_that_it_needs(lesson: Lesson):
    estimate, stated = minutes_of_page(lesson.second_notebook.stem), lesson.part_2.minutes
    assert (1 - OFF) * stated <= estimate <= (1 + OFF) * stated, f"about {estimate:.0f} minutes"


@pytest.mark.parametrize("lesson", [lesson for lesson in LESSONS if lesson.further], ids=lambda lesson: lesson.stem)
def test_the_minutes_of_a_further_notebook_are_those_that_it_needs(lesson: Lesson):
    estimate = minutes_of_page(lesson.further.stem)
    assert (1 - OFF) * lesson.further_minutes <= estimate <= (1 + OFF) * lesson.further_minutes, f"about {estimate:.0f}"


@pytest.mark.parametrize(
    ("program", "is_shown"),
    [
        ("import numpy as np\n\n\ndef f(x):\n    return x", False),
        ("x = 1\nx", True),
        ("x = 1\nrun.timeline()", True),
        ("for x in range(3):\n    print(x)", True),
        ('course.measured("x", answer=1)', True),
        ('course.predict("x", answer=...)', False),
        ("%%px\nx = 1", True),
        ("ranks.stop()", False),
    ],
)
def test_a_cell_is_looked_at_if_it_shows_something(program: str, is_shown: bool):
    assert shows(program) == is_shown


def test_a_page_over_its_limit_is_marked():
    well, more = PageTime("90_small", 15.0, 4.25, "train()"), PageTime("91_more", 60.5, 40.0, "train()")
    assert re.fullmatch(r"90_small +15\.0 s +25% +4\.2 s +train\(\)", line_of(well))
    assert "✗ over 60 s" in line_of(more)
    assert re.fullmatch(r"all 2 +75\.5 s +63%", sum_of([well, more]))


def test_a_further_notebook_is_built_with_its_lesson_behind_its_page(small, capsys):
    text = LESSON.replace("Why?", "Further: why?")
    (small / "notebooks/src/90_small_further.py").write_text(text, encoding="utf-8")
    lesson, further, exercise, solution = pages(small, ["90"])
    assert [page.kind for page in (lesson, further, exercise, solution)] == [
        "lesson",
        "further",
        "exercise",
        "solution",
    ]
    assert further.lesson == "90_small" and further.teaches and further.target.name == "90_small_further.ipynb"
    assert main(["--root", str(small), "build", "90"]) == 0
    assert "notebooks/90_small_further.ipynb: run and written" in capsys.readouterr().out
    assert check(small) == [] and [page.stem for page in time_pages(small)] == ["90_small", "90_small_further"]
    ids = [{cell.id for cell in assemble(page, small).cells} for page in (lesson, further)]
    assert not ids[0] & ids[1]


def test_an_unknown_stem_is_rejected(small):
    with pytest.raises(AuthoringError, match="no source is called 91; there are: 90_small"):
        build(small, ["91"])


def test_links_of_built_notebooks_lead_to_files():
    lost = []
    for page in pages(ROOT):
        for cell in assemble(page).cells:
            for found in LINK.finditer(cell.source if cell.cell_type == "markdown" else ""):
                link = re.match(r"[^)\s#]+", cell.source[found.end() :])[0]
                if not (ROOT / page.target.parent / link).exists():
                    lost.append(f"{page.target}: {link}")
    assert lost == []


@pytest.mark.parametrize("exercise", registry.declared(), ids=lambda exercise: exercise.name)
def test_what_the_learner_reads_fits_beside_the_file_browser(exercise):
    too_wide = [line for line in stub(ROOT, exercise).splitlines() if len(line) > WIDTH]
    assert too_wide == [], f"break these lines of {exercise.library} at {WIDTH} characters"
