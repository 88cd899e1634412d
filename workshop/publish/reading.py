"""What the website shows where a notebook asks: a prediction as a question, and what answers it.

The panels that a run leaves say "put what you expect where the dots are" and "nothing was predicted". On a website
nobody can put anything anywhere.
"""

import re
from collections.abc import Iterator
from typing import Any

from nbformat import NotebookNode

from course_utils.checks.panel import NEUTRAL, VALUE, panel_html
from course_utils.checks.predictions import with_choice

TO_A_NOTEBOOK = re.compile(r'(href="(?![a-z]+:)[^"#]+)\.ipynb(["#])')


def questions_for_readers(notebook: NotebookNode) -> None:
    """Write the panels of predictions anew: questions with their choices, a link to the answer, answers in words.

    Args:
        notebook: with its outputs; predictions that someone has answered stay as they are.
    """
    values = [(data, data[VALUE]) for data in outputs_of(notebook) if VALUE in data]
    measured = {value["measured"] for _, value in values if "measured" in value}
    choices: dict[str, dict[str, str]] = {}
    linked: set[str] = set()
    for data, value in values:
        if name := value.get("asked"):
            choices[name] = value["choices"]
            questions = ", ".join(value["questions"])
            data["text/html"] = question(name, questions, value["choices"], name in measured)
        elif name := value.get("measured"):
            rows = list(value["values"].items())
            data["text/html"] = answer(
                name, rows, choices.get(name, {}), first=name not in linked, heading=value["heading"]
            )
            linked.add(name)
        del data[VALUE]


def links_for_readers(notebook: NotebookNode) -> None:
    """Let links that outputs hold lead to pages where a notebook's lead to notebooks."""
    for data in outputs_of(notebook):
        if "text/html" in data:
            data["text/html"] = TO_A_NOTEBOOK.sub(r"\1.html\2", data["text/html"])


def outputs_of(notebook: NotebookNode) -> Iterator[NotebookNode]:
    """What each output of the notebook shows, by type."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "data" in output:
                yield output.data


def question(name: str, questions: str, choices: dict[str, str], answered: bool) -> str:
    """The panel that asks: what there is to predict, the choices, and where the answer stands."""
    return panel_html(
        f"Prediction {name}: what do you expect?",
        NEUTRAL,
        name,
        mark="○",
        words="predict",
        said=f"{questions}? Decide before you read on." if questions else "decide before you read on.",
        choices=choices,
        answered_at=answer_id(name) if answered else "",
    )


def answer(
    name: str, rows: list[tuple[str, str]], choices: dict[str, str], first: bool, heading: str = "measured"
) -> str:
    """The panel with what was measured, or with the answer; a letter with what it stands for.

    Args:
        rows: (question, value); a question without a name is called "answer".
        first: whether it is the page's first of this prediction, and so what the question links to.
        heading: "measured" or "answer".
    """
    cells = [[asked, with_choice(value, choices)] for asked, value in rows]
    measured: dict[str, Any] = {"columns": {"question": "1 1 130px", heading: "2 1 100px"}, "rows": cells}
    if len(cells) == 1:
        measured = {"said": " ".join(cells[0]).removeprefix("answer ")}
    what, anchor = "what was measured" if heading == "measured" else "the answer", answer_id(name) if first else ""
    return panel_html(f"Prediction {name}: {what}", NEUTRAL, name, after=f", {heading}", id=anchor, **measured)


def answer_id(name: str) -> str:
    """The id of the place that answers a prediction."""
    return "measured-" + re.sub(r"\W+", "-", name)
