"""How long a lesson's page takes, estimated from what it asks: to read, to predict, to look at, to wait for.

The syllabus states round numbers; a test holds them to this estimate. What an exercise takes stands with the exercise.
"""

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


def minutes_of_page(stem: str, root: Path = ROOT) -> float:
    """The estimate for a lesson's page, its exercises left out.

    Args:
        stem: of the lesson, "04_messages".
        root: the repository.
    """
    cells = read_cells(root / "notebooks" / "src" / f"{stem}.py")
    texts = [cell.source for cell in cells if cell.cell_type == "markdown"]
    programs = [cell.source for cell in cells if cell.cell_type == "code"]
    reading = sum(len(text.split()) for text in texts) / WORDS
    reading += sum(len([line for line in program.splitlines() if line.strip()]) for program in programs) / LINES
    predictions = sum(len(PREDICT.findall(program)) for program in programs)
    return reading + PREDICTION * predictions + LOOK * (len(programs) - predictions) + RUN
