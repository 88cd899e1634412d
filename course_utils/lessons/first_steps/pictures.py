"""Drawings of lesson 0: the notebook and its ranks, and variables that only share their name."""

from collections.abc import Sequence

from matplotlib.axes import Axes

from course_utils.draw import style
from course_utils.words import count

RANK, NOTEBOOK = style.COLOURS["forward"], style.COLOURS["backward"]


def notebook_and_ranks(notebook: int, ranks: Sequence[int]) -> style.Picture:
    """Draw the notebook above its ranks: a function goes down to each of them, and results come back.

    Args:
        notebook: its process number.
        ranks: the process number of each rank, in rank order.
    """
    picture, ax = sketch(f"{count(len(ranks) + 1, 'process')}: the notebook and {count(len(ranks), 'rank')}", 2.7)
    box(ax, 5, 2.3, f"your notebook\nprocess {notebook}", NOTEBOOK)
    for rank, process in enumerate(ranks):
        x = _spread(rank, len(ranks))
        box(ax, x, 0.5, f"rank {rank}\nprocess {process}", RANK)
        side = 0.5 * (rank - (len(ranks) - 1) / 2)
        arrow(ax, (5 + side - 0.1, 1.85), (x - 0.18, 0.95))
        arrow(ax, (x + 0.18, 0.95), (5 + side + 0.1, 1.85), style.FAINT)
    ax.text(1.6, 1.75, "a function goes out", color=style.SEND, fontsize=style.TEXT, ha="center")
    ax.text(8.4, 1.75, "results come back", color=style.FAINT, fontsize=style.TEXT, ha="center")
    numbers = ", ".join(f"rank {rank} is process {process}" for rank, process in enumerate(ranks))
    picture.alt_text = (
        f"A box for the notebook, process {notebook}, above a box for each rank: {numbers}. "
        "A function goes out to every rank, and results come back."
    )
    return picture


def separate_variables(name: str, notebook: object, ranks: Sequence[object]) -> style.Picture:
    """Draw one box for each process, with the value that a variable of this name has there.

    Args:
        notebook: the value in the notebook.
        ranks: the value on each rank, in rank order.
    """
    values = {"notebook": notebook} | {f"rank {rank}": value for rank, value in enumerate(ranks)}
    title = f"{count(len(values), 'process')}, and each has its own {name}"
    picture, ax = sketch(title, 1.0)
    for position, (process, value) in enumerate(values.items()):
        colour = RANK if position else NOTEBOOK
        box(ax, _spread(position, len(values)), 0.5, f"{process}\n{name} = {value!r}", colour)
    picture.alt_text = f"{title}: " + "; ".join(f"{process}: {value!r}" for process, value in values.items()) + "."
    return picture


def _spread(position: int, number: int) -> float:
    """Where the middle of a box goes, of ten units' width."""
    return 10 * (position + 0.5) / number


def sketch(title: str, height: float) -> tuple[style.Picture, Axes]:
    """Return an empty picture and its axes, ten units wide and `height` units high; its deck draws on one, too."""
    picture, (ax,) = style.new_picture(title, heights=[height * 0.68], left=0.1, right=0.1, below=0.1)
    ax.set(xlim=(0, 10), ylim=(0, height + 0.1))
    ax.axis("off")
    return picture, ax


def box(ax: Axes, x: float, y: float, text: str, colour: str) -> None:
    """Draw a box with its text, in a `sketch`, around this point."""
    frame = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": colour, "linewidth": 2}
    ax.text(x, y, text, ha="center", va="center", fontsize=style.TEXT, color=style.INK, bbox=frame, zorder=3)


def arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], colour: str = style.SEND) -> None:
    """Draw an arrow, in a `sketch`."""
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.2})
