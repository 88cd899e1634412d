"""A training that is started several times: which batches each start did, and after which steps it wrote."""

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from course_utils.draw import style
from course_utils.draw.rows import paler

_ROW = 0.42  # inches
_EPOCHS = ("#0072B2", "#E69F00", "#009E73")


@dataclass(frozen=True)
class Row:
    """One start.

    Attributes:
        name: "first start".
        done: (epoch, batch) of each of its steps, in order.
        due: those that it had to do.
        written: after how many steps in all it wrote a checkpoint.
        ended: how, in a word or two.
    """

    name: str
    done: Sequence[tuple[int, int]]
    due: Sequence[tuple[int, int]]
    written: Sequence[int]
    ended: str


def starts(rows: Sequence[Row], in_epoch: int, title: str) -> Figure:
    """Draw each start as a row of batches, numbered within their epoch; a frame stands where one was due.

    Args:
        in_epoch: batches in an epoch.
        title: the finding.
    """
    look = {"left": 1.0, "right": 0.95, "above": 0.1, "below": 0.45}
    note = "A colour for each epoch; red: not the batch that was due; ▲ a checkpoint"
    picture, (ax,) = style.new_picture(title, note, heights=[_ROW * len(rows)], **look)
    for y, row in enumerate(rows):
        _draw(ax, y, row, in_epoch)
    last = max([len(row.done) + _place(row.done, in_epoch) for row in rows] + [_end(row, in_epoch) for row in rows])
    ax.set_xlim(0, max(1, last))
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_yticks(range(len(rows)), [row.name for row in rows], fontsize=style.TEXT)
    ax.set_xlabel("steps done in all", fontsize=style.TEXT, color="#555555")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    told = "; ".join(f"{row.name}: {len(row.done)} steps, {row.ended}" for row in rows)
    picture.alt_text = f"The starts of one training. {title}. {told}."
    return picture


def _draw(ax: Axes, y: int, row: Row, in_epoch: int) -> None:
    first = _place(row.done or row.due, in_epoch)
    for number, (epoch, batch) in enumerate(row.done):
        wrong = number >= len(row.due) or row.due[number] != (epoch, batch)
        face = style.STUCK if wrong else paler(_EPOCHS[epoch % 3], 0.45)
        ax.add_patch(Rectangle((first + number, y - 0.3), 1, 0.46, facecolor=face, edgecolor="white"))
        look = {"ha": "center", "va": "center", "fontsize": style.SMALL, "color": "white" if wrong else style.INK}
        ax.text(first + number + 0.5, y - 0.07, str(batch), **look)
    if row.due:
        where = _place(row.due, in_epoch), y - 0.3
        ax.add_patch(Rectangle(where, len(row.due), 0.46, fill=False, edgecolor=style.FAINT, linewidth=1, zorder=5))
    for step in row.written:
        ax.plot([step], [y + 0.3], marker="^", color=style.INK, markersize=5, clip_on=False)
    ax.text(1.01, y - 0.07, row.ended, transform=ax.get_yaxis_transform(), va="center", fontsize=style.SMALL)


def _place(batches: Sequence[tuple[int, int]], in_epoch: int) -> int:
    """How many steps are done before the first of these."""
    return batches[0][0] * in_epoch + batches[0][1] if batches else 0


def _end(row: Row, in_epoch: int) -> int:
    return _place(row.due, in_epoch) + len(row.due)
