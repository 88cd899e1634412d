"""Draw a lesson's figures by real runs: `python -m course_utils.authoring.figures slides/src/figures_04.py FOLDER`.

The file holds `FIGURES`, a dict from a picture's name to a function that returns a Matplotlib `Figure`.
"""

import runpy
import sys
from pathlib import Path

import matplotlib

DOTS_PER_INCH = 160


def draw(source: Path, folder: Path) -> list[Path]:
    """Draw every figure of `source` into `folder` as PNG; returns the files."""
    matplotlib.use("Agg")
    figures = runpy.run_path(str(source))["FIGURES"]
    folder.mkdir(parents=True, exist_ok=True)
    files = []
    try:
        for name, function in figures.items():
            files.append(folder / f"{name}.png")
            function().savefig(files[-1], dpi=DOTS_PER_INCH, bbox_inches="tight")
    finally:
        stop_ranks()
    return files


def stop_ranks() -> None:
    """Stop the ranks that the figures started, if they did."""
    cluster = sys.modules.get("course_utils.cluster")
    ranks = cluster.current() if cluster else None
    if ranks is not None:
        ranks.stop()


if __name__ == "__main__":
    for file in draw(Path(sys.argv[1]), Path(sys.argv[2])):
        print(file)
