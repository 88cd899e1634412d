"""Draw a lesson's figures by real runs: `python -m workshop.build.figures slides/src/04_messages.py FOLDER`.

The file holds `FIGURES`, a dict from a picture's name to a function that returns a Matplotlib `Figure`. It may hold
`DRAFT`, a dict from names of the file to the values they have with `--draft`: fewer repetitions and sizes, with which
tests see in less time that every picture can be drawn.
"""

import argparse
import sys
from pathlib import Path

import matplotlib

DOTS_PER_INCH = 160


def draw(source: Path, folder: Path, draft: bool = False) -> list[Path]:
    """Draw every figure of `source` into `folder` as PNG, in its `DRAFT` settings if asked; returns the files.

    Raises:
        ValueError: `DRAFT` names what the file does not hold.
    """
    matplotlib.use("Agg")
    names = {"__name__": source.stem, "__file__": str(source)}
    exec(compile(source.read_text(encoding="utf-8"), str(source), "exec"), names)
    smaller = names.get("DRAFT", {})
    if unknown := sorted(set(smaller) - set(names)):
        raise ValueError(f"DRAFT of {source.name} names {', '.join(unknown)}, which the file does not hold")
    names |= smaller if draft else {}
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    try:
        for name, function in names["FIGURES"].items():
            files.append(folder / f"{name}.png")
            function().savefig(files[-1], dpi=DOTS_PER_INCH, bbox_inches="tight")
    finally:
        stop_ranks()
    return files


def stop_ranks() -> None:
    """Stop the ranks that the figures started, if they did."""
    started = sys.modules.get("course_utils.ranks.start")
    ranks = started.current() if started else None
    if ranks is not None:
        ranks.stop()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m workshop.build.figures")
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--draft", action="store_true", help="with the smaller settings of the file's DRAFT")
    options = parser.parse_args()
    for file in draw(options.source, options.folder, options.draft):
        print(file)
