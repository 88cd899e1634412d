"""What the website shows where a notebook asks: a prediction as a question, its measurement as the answer.

The panels that a run leaves say "put what you expect where the dots are" and "nothing was predicted". On a website
nobody can put anything anywhere.
"""

import re
from collections.abc import Iterator

from nbformat import NotebookNode

from course_utils.checks import grid
from course_utils.checks import panel as parts
from course_utils.checks.panel import NEUTRAL, VALUE

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
            data["text/html"] = answer(name, rows, choices.get(name, {}), first=name not in linked)
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
    said = f"{questions}? Decide before you read on." if questions else "decide before you read on."
    items = "".join(f"<li>{parts.escape(letter)}) {parts.prose(text)}</li>" for letter, text in choices.items())
    listed = f'<ul style="list-style: none; margin: 6px 0 0; padding: 0">{items}</ul>' if items else ""
    link = f'<a href="#{place(name)}">To what was measured</a>' if answered else ""
    title = parts.head("○", "predict", NEUTRAL, name, said)
    return parts.box(f"Prediction {name}: what do you expect?", NEUTRAL, title, listed, link)


def answer(name: str, rows: list[tuple[str, str]], choices: dict[str, str], first: bool) -> str:
    """The panel with what was measured; a letter with what it stands for.

    Args:
        rows: (question, value); a question without a name is called "answer".
        first: whether it is the page's first of this prediction, and so what the question links to.
    """
    told = [
        (asked, f"{parts.escape(value)}) {parts.prose(choices[value])}" if value in choices else parts.escape(value))
        for asked, value in rows
    ]
    anchor = f' id="{place(name)}"' if first else ""
    title = f"<strong>{parts.escape(name)}</strong>, measured"
    label = f"Prediction {name}: what was measured"
    if len(told) == 1:
        asked = "" if told[0][0] == "answer" else f"{parts.escape(told[0][0])} "
        return parts.box(label, NEUTRAL, f"<div{anchor}>{title}: {asked}{told[0][1]}</div>")
    cells = [[parts.escape(asked), text] for asked, text in told]
    table = grid.table(f"Measured: {name}", ["question", "measured"], cells, ["1 1 130px", "2 1 100px"])
    return parts.box(label, NEUTRAL, f"<div{anchor}>{title}</div>", table)


def place(name: str) -> str:
    """The id of the place that answers a prediction."""
    return "measured-" + re.sub(r"\W+", "-", name)
