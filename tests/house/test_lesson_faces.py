"""A lesson's package offers what pages import, loads it when it is first used, and gives no answer away."""

import ast
import importlib
import json
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from types import ModuleType

import cloudpickle
import pytest

from course_utils.checks.hidden_answer import call_without
from course_utils.checks.judge import verdict_on_these
from course_utils.checks.registry import declared, find
from course_utils.checks.verdict import Result
from course_utils.lazy import homes
from course_utils.syllabus import LESSONS, ROOT

FACES = [lesson.package for lesson in LESSONS]
PAGES = sorted(
    path for folder in ("notebooks", "exercises", "slides") for path in (ROOT / folder / "src").glob("*.[pm][yd]")
)
TEXTS = [*PAGES, ROOT / "docs" / "leaderboard.md", ROOT / "docs" / "first_picture.py"]
IMPORT = re.compile(r"from (course_utils\.lessons[\w.]*) import\s+(?:# )?(\w+(?:, \w+)*)")
"""An import from a lesson, in code or in a text that tells a learner what to write; there it may go over two lines."""


def in_code(path: Path) -> list[tuple[str, str]]:
    """Return (module, name) for each import from a lesson that a source's code has, inside functions too."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    return [(node.module, alias.name) for node in found if is_of_lessons(node.module) for alias in node.names] + [
        (alias.name, "")
        for node in ast.walk(tree)
        if isinstance(node, ast.Import)
        for alias in node.names
        if is_of_lessons(alias.name)
    ]


def is_of_lessons(module: str) -> bool:
    return f"{module}.".startswith("course_utils.lessons.")


def in_text(path: Path) -> list[tuple[str, str]]:
    """Return (module, name) for each import from a lesson in a source, its prose included."""
    found = IMPORT.findall(path.read_text(encoding="utf-8"))
    return [(module, name) for module, names in found for name in names.split(", ")]


def test_pages_exercises_and_slides_import_from_a_lessons_face_alone() -> None:
    imports = {
        (module, name, path)
        for path in TEXTS
        for module, name in (in_code(path) if path.suffix == ".py" else []) + in_text(path)
    }
    assert len(imports) > 700
    assert {f"{path.name}: {module}" for module, _, path in imports if module not in FACES} == set()
    for face in FACES:
        taken = {name for module, name, _ in imports if module == face}
        assert sorted(taken) == sorted(importlib.import_module(face).__all__), face


@pytest.mark.parametrize("face", FACES)
def test_what_a_face_offers_is_there_even_where_a_module_has_its_name(face: str) -> None:
    package, home = importlib.import_module(face), homes(face, ROOT.joinpath(*face.split("."), "__init__.py"))
    for path in sorted(Path(package.__file__).parent.glob("[!_]*.py")):
        importlib.import_module(f"{face}.{path.stem}")  # Python would bind it in the package
    assert dir(package) == sorted(package.__all__) and set(home) == set(package.__all__)
    for name, (module, attribute) in home.items():
        offered = getattr(package, name)
        if isinstance(offered, ModuleType):
            assert offered is sys.modules[f"{module}.{attribute}"], name
        else:
            assert offered is vars(sys.modules[module])[attribute], name


def test_importing_every_face_loads_no_module_of_a_lesson_and_nothing_slow() -> None:
    lines = f"import importlib, json, sys; [importlib.import_module(face) for face in {FACES}]; "
    lines += "print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(
        subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True).stdout
    )
    assert [name for name in loaded if name.startswith("course_utils.lessons.")] == sorted(FACES)
    assert not {"torch", "numpy", "matplotlib", "mpi4py", "IPython"} & set(loaded)


def test_a_face_is_sent_to_ranks_by_its_name_and_has_no_other_names() -> None:
    face = importlib.import_module("course_utils.lessons.sgd")
    assert cloudpickle.loads(cloudpickle.dumps(lambda: face))() is face
    with pytest.raises(AttributeError, match="course_utils.lessons.sgd has no 'adam'"):
        _ = face.adam


def answers_on_faces() -> dict[str, tuple[str, str]]:
    """Return "module:function" → (face, name), for each answer to an exercise that a face offers."""
    offered = defaultdict(list)
    for face in FACES:
        for name, (module, attribute) in homes(face, ROOT.joinpath(*face.split("."), "__init__.py")).items():
            offered[f"{module}:{attribute}"].append((face, name))
    places = {place for exercise in declared() for place in (exercise.library, *exercise.also_hidden)}
    return {place: offered[place][0] for place in sorted(places) if place in offered}


@pytest.mark.parametrize(("place", "offered"), answers_on_faces().items(), ids=str)
def test_an_answer_is_hidden_on_the_face_too(place: str, offered: tuple[str, str]) -> None:
    face, name = offered

    def imports_and_calls_it() -> None:
        getattr(importlib.import_module(face), name)()

    with pytest.raises(NotImplementedError, match=f"own {place.partition(':')[2]} is hidden"):
        call_without([place], imports_and_calls_it)


def test_an_answer_is_hidden_on_the_face_where_its_module_is_imported_meanwhile() -> None:
    lines = """
        import sys
        from course_utils.checks.hidden_answer import call_without

        def imports_and_calls_it():
            assert "course_utils.lessons.pipeline.schedules" not in sys.modules
            from course_utils.lessons.pipeline import gpipe_schedule
            return gpipe_schedule(2, 2)

        try:
            call_without(["course_utils.lessons.pipeline.schedules:gpipe_schedule"], imports_and_calls_it)
        except NotImplementedError as error:
            print(error)
    """
    program = "\n".join(line.removeprefix("        ") for line in lines.splitlines())
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "the course's own gpipe_schedule is hidden while answers are judged"


def from_the_face(comm, vector, root=0):
    from course_utils.lessons.messages import tree_broadcast

    return tree_broadcast(comm, vector, root)


def from_the_module(comm, vector, root=0):
    from course_utils.lessons.messages.broadcast_and_scatter import tree_broadcast

    return tree_broadcast(comm, vector, root)


def test_a_check_rejects_an_answer_that_calls_the_faces_as_it_rejects_one_that_calls_the_modules(four_ranks) -> None:
    exercise = find("tree_broadcast")
    verdicts = [verdict_on_these(exercise, answer, four_ranks) for answer in (from_the_face, from_the_module)]
    assert [verdict.result for verdict in verdicts] == [Result.WRONG, Result.WRONG]
    assert all("own tree_broadcast is hidden" in str(verdict) for verdict in verdicts), verdicts[0]
