"""An exercise is a function of the taught library with its body taken out; the solution is the same text, whole.

Where something that works is to be made better, the body to begin with stands below the line that says what to do.
"""

import ast
import io
import re
import tokenize
from pathlib import Path

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from course_utils.checks import registry
from course_utils.checks.exercise import Exercise
from course_utils.checks.notebook import body_text, function_text, is_docstring
from course_utils.errors import CourseError
from workshop.publish.sources import EXERCISE, AuthoringError, tags

WIDTH = 100
"""Of a line that a learner reads in an exercise's cell: at 1280 pixels, JupyterLab beside its file browser shows 105
characters, and does not wrap."""
NAMED = re.compile(r"#\s*(?P<name>\w+)")
LINK = re.compile(r"(?<=\]\()(?![a-z]+:|#|/)(?=[^)\s]*[./][^)\s]*\))")
"""Where a relative link begins. It leads to a file or folder, so `stages[1](x)` in a line of code is none."""

STUCK = """\
<details><summary>Stuck?</summary>

`course.hint("{name}")` asks you a question. If you call it again, it all but gives the answer away.
The complete function is in [the solution](solutions/{stem}.ipynb).
</details>"""


def named(cell: NotebookNode) -> Exercise:
    """The exercise that an exercise cell names.

    Raises:
        AuthoringError: where its one line is not of the form `# name`, or no exercise is declared under it.
    """
    match = NAMED.fullmatch(cell.source.strip())
    if match is None:
        raise AuthoringError(f"an exercise cell holds one line `# name of the exercise`, not {cell.source.strip()!r}")
    try:
        return registry.find(match["name"])
    except CourseError as error:
        raise AuthoringError(str(error)) from error


def function_source(root: Path, exercise: Exercise) -> str:
    """The text of the library's answer as it stands there, decorators included."""
    return source_of(root, exercise.library)


def source_of(root: Path, location: str) -> str:
    """The text of a function, decorators included.

    The file is read, not imported: the build needs neither torch nor MPI.

    Args:
        location: "module:function".

    Raises:
        AuthoringError: where there is no such module or function.
    """
    module, _, function = location.partition(":")
    base = root.joinpath(*module.split("."))
    path = next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()), None)
    if path is None:
        raise AuthoringError(f"there is no module {module}")
    text = function_text(path.read_text(encoding="utf-8"), function)
    if text is None:
        raise AuthoringError(f"{path.relative_to(root)} defines no function {function}")
    return text.removesuffix("\n")


def stub(root: Path, exercise: Exercise) -> str:
    """What the learner begins with: no body, or that of the function that is to be made better."""
    empty = without_body(function_source(root, exercise), exercise.turn)
    return f"{empty}\n{body_text(source_of(root, exercise.begins_with))}" if exercise.begins_with else empty


def without_body(source: str, turn: str) -> str:
    """The function with its decorators, signature and docstring, and in the body's place a line that says what to do.

    Args:
        source: the text of one function.
        turn: what the learner is to do.
    """
    function = ast.parse(source).body[0]
    if not isinstance(function, ast.FunctionDef):
        raise AuthoringError(f"an exercise is a function, not {source.splitlines()[0]!r}")
    lines = source.splitlines()
    row, column = end_of_signature(source)
    kept = [*lines[: row - 1], lines[row - 1][:column]]
    if ast.get_docstring(function) is not None:
        docstring = function.body[0]
        kept += ["    " + lines[docstring.lineno - 1].strip(), *lines[docstring.lineno : docstring.end_lineno]]
    quoted = turn.replace("\\", "\\\\").replace('"', '\\"')
    text = f'"your turn: {quoted}"'
    line = f"    raise NotImplementedError({text})"
    broken = ["    raise NotImplementedError(", f"        {text}", "    )"]
    return "\n".join([*kept, *([line] if len(line) <= WIDTH else broken)])


def end_of_signature(source: str) -> tuple[int, int]:
    """Line (from 1) and column just after the colon that ends the function's signature."""
    depth, begun = 0, False
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME and token.string == "def" and depth == 0:
            begun = True
        elif token.string in "([{" and token.type == tokenize.OP:
            depth += 1
        elif token.string in ")]}" and token.type == tokenize.OP:
            depth -= 1
        elif begun and depth == 0 and token.type == tokenize.OP and token.string == ":":
            return token.end
    raise AuthoringError("the function has no signature")


def fill(cells: list[NotebookNode], root: Path, stem: str, solved: bool) -> list[NotebookNode]:
    """The cells of the learner's notebook, or of the solutions where `solved`.

    Each exercise cell becomes the function (without its body, or whole), its check, and for the learner a folded help.

    Args:
        cells: as read from the source.
        root: the repository, which holds the library.
        stem: the lesson's name, for the link to the solutions.
        solved: whether bodies stay.
    """
    filled: list[NotebookNode] = []
    for cell in with_all(cells, stem):
        if EXERCISE not in tags(cell):
            filled.append(one_folder_down(cell) if solved else cell)
            continue
        exercise = named(cell)
        say_effort(filled, exercise)
        whole = function_source(root, exercise)
        answer = {**cell.metadata, **for_nbgrader(exercise.name, solution=True, locked=False)}
        marked = for_nbgrader(f"check_{exercise.name}", grade=True, points=1)
        filled.append(new_code_cell(whole if solved else stub(root, exercise), metadata=answer))
        filled.append(new_code_cell(f'course.check("{exercise.name}", {exercise.name})', metadata=marked))
        if not solved:
            filled.append(new_markdown_cell(STUCK.format(name=exercise.name, stem=stem)))
    if solved:
        say_solved(filled, stem)
    return filled


def for_nbgrader(name: str, **says: bool | int) -> dict[str, dict]:
    """A cell's metadata by which nbgrader knows it again, under an id that never changes; nobody else looks at it.

    Args:
        name: the id, unlike those of the notebook's other cells.
        says: "solution": learners write here; "grade", with "points": its outcome is the mark; "locked": for both not.
    """
    plain = {"schema_version": 3, "grade_id": name, "grade": False, "solution": False, "task": False, "locked": True}
    return {"nbgrader": plain | says}


def with_all(cells: list[NotebookNode], stem: str) -> list[NotebookNode]:
    """The page's cells, and behind its last exercise those that are declared for the lesson but not on the page."""
    places = [index for index, cell in enumerate(cells) if EXERCISE in tags(cell)]
    on_the_page = {named(cells[index]).name for index in places}
    added = []
    for exercise in registry.declared():
        if exercise.lesson == stem and exercise.name not in on_the_page:
            added.append(new_markdown_cell(f"## {exercise.number} · {exercise.title or exercise.name}"))
            added.append(new_code_cell(f"# {exercise.name}", metadata={"tags": [EXERCISE]}))
    behind = places[-1] + 1 if places else len(cells)
    return [*cells[:behind], *added, *cells[behind:]]


def say_effort(filled: list[NotebookNode], exercise: Exercise) -> None:
    """End the text above an exercise with how hard it is and how long it takes."""
    if not filled or filled[-1].cell_type != "markdown":
        raise AuthoringError(f"the cell above the exercise {exercise.name} must be text that says what to do")
    filled[-1].source += f"\n\n*{exercise.effort}*"


def one_folder_down(cell: NotebookNode) -> NotebookNode:
    """A Markdown cell whose relative links still lead to the same files from exercises/solutions/."""
    if cell.cell_type == "markdown":
        cell.source = LINK.sub("../", cell.source)
    return cell


def say_solved(cells: list[NotebookNode], stem: str) -> None:
    """Say under the title that these are the solutions, and where the exercises are."""
    first = cells[0]
    if first.cell_type == "markdown":
        title, _, rest = first.source.partition("\n")
        note = f"*These are the solutions, with every function complete. [Back to the exercises](../{stem}.ipynb)*"
        first.source = "\n\n".join(part for part in (title, note, rest.strip("\n")) if part)


def gives_away(learner: list[NotebookNode], solution: list[NotebookNode]) -> list[str]:
    """Names of the exercises whose body stands in the learner's notebook after all.

    A learner's function holds its docstring and one `raise`, and behind it at most the body that is to be made better;
    and no cell may hold the body of a solution.
    """
    text = "\n".join(squeezed(cell.source) for cell in learner)
    given = []
    for cell in solution:
        if EXERCISE in tags(cell):
            function = ast.parse(cell.source).body[0]
            body = body_text(cell.source)
            if squeezed(body) in text:
                given.append(function.name)
    for cell in learner:
        if EXERCISE in tags(cell):
            function = ast.parse(cell.source).body[0]
            body = [node for node in function.body if not is_docstring(node)]
            if not isinstance(body[0], ast.Raise) or (len(body) > 1 and not registry.find(function.name).begins_with):
                given.append(function.name)
    return sorted(set(given))


def squeezed(text: str) -> str:
    """The text with its white space taken out."""
    return "".join(text.split())
