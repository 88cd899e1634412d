"""A check does not judge a function that its cell has not defined: after an error in the cell, and after a renaming."""

import pytest
from IPython.core.interactiveshell import InteractiveShell

from course_utils.checks import executed_cells
from course_utils.checks.executed_cells import NotDefined, not_defined
from course_utils.checks.verdict import Result, Verdict
from course_utils.checks.verdict_panel import panel

STUB = "def ring(comm, vector):\n    raise NotImplementedError\n"


class Notebook:
    """An IPython whose cells have names, as a notebook's have."""

    def __init__(self, shell: InteractiveShell) -> None:
        self.shell = shell

    def run(self, cell_id: str, text: str) -> None:
        self.shell.run_cell(text, store_history=True, cell_id=cell_id)

    def found(self) -> NotDefined | None:
        """What a check in the next cell finds of `ring`."""
        self.run("check", "found = not_defined(ring)")
        return self.shell.user_ns["found"]


@pytest.fixture
def notebook(monkeypatch, capsys):
    monkeypatch.setattr(executed_cells, "_cells", type(executed_cells._cells)(maxlen=100))
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance()
    shell.user_ns["not_defined"] = not_defined
    executed_cells.watch(shell)
    yield Notebook(shell)
    InteractiveShell.clear_instance()


def test_a_function_whose_cell_ran_is_judged(notebook):
    notebook.run("answer", STUB)
    assert notebook.found() is None
    notebook.run("answer", "def ring(comm, vector):\n    return vector\n\nring(1, 2)\nring(1)")  # fails behind it
    assert notebook.found() is None


@pytest.mark.parametrize(
    ("text", "error", "line"),
    [
        ("def ring(comm, vector):\n    x = (1\n    return x\n", "SyntaxError", 2),
        ("def ring(comm, vector)\n    return vector\n", "SyntaxError", 1),
        ("import os\nde ring(comm, vector):\n    return vector\n", "SyntaxError", 2),
        ("(comm, vector):\n    return vector\n", "SyntaxError", 1),
        ("def ring(comm, vector):\nreturn vector\n", "IndentationError", 2),
        ("def ring(comm, vector):\n    return vector\n\nreturn 3\n", "SyntaxError", 4),
    ],
)
def test_a_cell_that_is_no_python_did_not_run(notebook, text, error, line):
    notebook.run("answer", STUB)
    notebook.run("answer", text)
    found = notebook.found()
    assert found and (found.function, found.error, found.line, found.began) == ("ring", error, line, False)
    notebook.run("answer", "def ring(comm, vector):\n    return vector\n")
    assert notebook.found() is None


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("@jit\ndef ring(comm, vector):\n    return vector\n", 1),
        ("def ring(comm, vector, rounds=many):\n    return vector\n", 1),
        (
            "%%time\nimport numpy\nstart = one\n\ndef ring(comm, vector):\n    return vector\n".removeprefix(
                "%%time\n"
            ),
            2,
        ),
    ],
)
def test_a_cell_that_stopped_before_the_function_was_defined(notebook, text, line):
    notebook.run("answer", STUB)
    notebook.run("answer", text)
    found = notebook.found()
    assert found and (found.error, found.line, found.began) == ("NameError", line, True)


def test_a_renamed_function_is_missed_in_its_own_cell(notebook):
    notebook.run("answer", STUB)
    notebook.run("elsewhere", "def ring2(comm, vector):\n    return ring(comm, vector)\n")
    assert notebook.found() is None
    notebook.run("answer", "def rnig(comm, vector):\n    return vector\n")
    assert notebook.found() == NotDefined("ring", renamed_to=("rnig",))
    notebook.run("answer", "def ring(comm, vector:\n    return vector\n")
    notebook.run("answer", "def rnig(comm, vector):\n    return vector\n")
    assert notebook.found() == NotDefined("ring", renamed_to=("rnig",))
    notebook.run("elsewhere", STUB)  # it has moved
    assert notebook.found() is None


def test_a_function_from_elsewhere_is_judged(notebook):
    notebook.run("answer", "def ring(comm, vector:\n    return vector\n")
    notebook.run("other", "from os.path import join as ring")
    assert notebook.found() is None


def test_what_a_check_says(capsys):
    syntax = NotDefined("ring", "SyntaxError", "expected ':'", 3, began=False)
    verdict = Verdict(Result.NOT_BEGUN, "ring", not_defined=syntax)
    assert str(verdict) == (
        "○ ring: not judged. The cell above did not run, so it has not defined `ring`: SyntaxError, line 3 "
        "(expected ':'). Correct it and run it, then run this cell again."
    )
    assert 'aria-label="ring: not judged"' in panel(verdict).html
    stopped = NotDefined("ring", "NameError", "name 'jit' is not defined", 1)
    assert "The cell above stopped before it had defined `ring`: NameError, line 1 (name 'jit' is not defined)" in str(
        Verdict(Result.NOT_BEGUN, "ring", not_defined=stopped)
    )
    renamed = NotDefined("ring", renamed_to=("rnig",))
    assert "Its cell now defines `rnig` and no longer `ring`" in str(
        Verdict(Result.NOT_BEGUN, "ring", not_defined=renamed)
    )
