"""How long a lesson's page takes, estimated from what it asks: to read, to predict, to look at, to wait for.

The syllabus states round numbers; a test holds them to this estimate. What an exercise takes stands with the exercise.
"""

import ast
import re
from pathlib import Path

from workshop.publish.sources import ROOT, read_cells

WORDS, LINES = 180, 12
"""Read in a minute: words of text with new ideas, lines of code that one wants to understand."""
PREDICTION, LOOK = 1.0, 1.0
"""Minutes for a prediction, and for what a cell of code shows."""
RUN = 0.5
"""Minutes of waiting for the page's cells; `make times` measures them."""
PREDICT = re.compile(r"^course\.predict\(", re.MULTILINE)
SHOWS = re.compile(r"^%%|^\s*print\(|^\s*course\.measured\(", re.MULTILINE)
QUIET = re.compile(r"course\.predict\(.*\)|[\w.]+\.(?:stop|load_torch|restart|cleanup)\(\)", re.DOTALL)
WORD = re.compile(r"\w")


def minutes_of_page(stem: str, root: Path = ROOT) -> float:
    """The estimate for a page, without exercises.

    Args:
        stem: of the page, "04_messages" or "05_allreduce_further".
        root: the repository.
    """
    cells = read_cells(root / "notebooks" / "src" / f"{stem}.py")
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    programs = [cell.source for cell in cells if cell.cell_type == "code"]
    reading = sum(len([word for word in text.split() if WORD.search(word)]) for text in texts) / WORDS
    reading += sum(len([line for line in program.splitlines() if line.strip()]) for program in programs) / LINES
    predictions = sum(len(PREDICT.findall(program)) for program in programs)
    return reading + PREDICTION * predictions + LOOK * sum(map(shows, programs)) + RUN


def shows(program: str) -> bool:
    """Whether a cell shows something: it prints, compares a prediction, or ends with a value or a picture."""
    if SHOWS.search(program):
        return True
    try:
        last = ast.parse(program).body[-1]
    except (SyntaxError, IndexError):  # a magic or an empty cell
        return bool(program.strip())
    return isinstance(last, ast.Expr) and not QUIET.fullmatch(ast.unparse(last))
