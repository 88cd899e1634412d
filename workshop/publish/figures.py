"""Draw a deck's figures by real runs: `python -m workshop.publish.figures slides/src/04_messages.py FOLDER`.

Figures that the lesson's page draws come from the page (`page_figures`). The file beside the deck may hold:

- `FIGURES`, the others: a dict from a picture's name to a function that returns a Matplotlib `Figure`; one with an
  argument `page` gets the names that the page has defined.
- `PAGE`, a dict: the deck's own values of names that the page assigns.
- `DRAFT`, a dict from names of the file to the values they have with `--draft`: fewer repetitions and sizes, with which
  tests see in less time that every picture can be drawn.
"""

import argparse
import inspect
import sys
import warnings
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from course_utils.measuring import BUSY
from workshop.publish.page_figures import figures_of, run_page
from workshop.publish.sources import ALT_TEXT, BusyFigure

DOTS_PER_INCH = 160


def draw(source: Path, folder: Path, draft: bool = False) -> list[Path]:
    """Draw every figure of a deck into `folder` as PNG, in its `DRAFT` settings if asked; returns the files.

    Raises:
        ValueError: `DRAFT` names what the file does not hold, or a figure is both the page's and the file's.
    """
    matplotlib.use("Agg")
    names = {"__name__": source.stem, "__file__": str(source), "PAGE": {}, "DRAFT": {}, "FIGURES": {}}
    if source.is_file():
        exec(compile(source.read_text(encoding="utf-8"), str(source), "exec"), names)
    smaller, own = names["DRAFT"], names["FIGURES"]
    if unknown := sorted(set(smaller) - set(names)):
        raise ValueError(f"DRAFT of {source.name} names {', '.join(unknown)}, which the file does not hold")
    root = source.resolve().parents[2]
    if twice := sorted(set(figures_of(source.stem, root)) & set(own)):
        raise ValueError(f"{source.name} draws {', '.join(twice)}, which the page draws")
    names |= smaller if draft else {}
    folder.mkdir(parents=True, exist_ok=True)
    try:
        page = run_page(source.stem, names["PAGE"], root)
        files = [save(folder / f"{name}.png", figure) for name, figure in page.figures.items()]
        for name, function in own.items():
            needs_page = "page" in inspect.signature(function).parameters
            files.append(save(folder / f"{name}.png", function(page.names) if needs_page else function()))
    finally:
        stop_ranks()
    return files


def save(file: Path, figure: Figure) -> Path:
    """Write a figure, and beside it its alternative text on one line, if it has one."""
    figure.savefig(file, dpi=DOTS_PER_INCH, bbox_inches="tight")
    alt_text = getattr(figure, "alt_text", "")
    if BUSY in alt_text:
        warnings.warn(f"{file.stem} says that the machine was busy: build this deck again", BusyFigure, stacklevel=2)
    if alt_text:
        file.with_suffix(ALT_TEXT).write_text(" ".join(alt_text.split()), encoding="utf-8")
    return file


def stop_ranks() -> None:
    """Stop the ranks that the figures started, if they did."""
    started = sys.modules.get("course_utils.ranks.start")
    ranks = started.current() if started else None
    if ranks is not None:
        ranks.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m workshop.publish.figures")
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draft", action="store_true", help="with the smaller settings of the file's DRAFT")
    options = parser.parse_args()
    for file in draw(options.source, options.folder, options.draft):
        print(file)
