"""The pictures of deck 4 that its page does not have: a token, timelines side by side, bars, and who holds what."""

from types import SimpleNamespace

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import course_utils as course
from course_utils.draw import style
from course_utils.lessons.messages import pass_the_token
from course_utils.words import seconds_text

OWNERS = style.OTHERS[:4]  # whose block it is
SUM = style.INK


def token_timeline(page: SimpleNamespace) -> Figure:
    """Four messages in four rounds."""
    return page.ranks.run(pass_the_token, course.per_rank([10, 20, 30, 40])).timeline()


def broadcast_timelines(page: SimpleNamespace) -> Figure:
    """The page's two broadcasts: one after the other, and doubling."""
    titles = ["one after the other", "doubling"]
    return course.draw.timelines(page.plain, page.doubling, titles=titles, side_by_side=True)


def who_waits(page: SimpleNamespace) -> Figure:
    """The page's two runs for which rank 3 is late: a broadcast, and an allreduce."""
    title = f"Rank 0 waits for rank 3 in: {page.waits or 'neither'}"
    return course.draw.timelines(*page.runs.values(), titles=list(page.runs), side_by_side=True, title=title)


def pickles(page: SimpleNamespace) -> Figure:
    """A million numbers as a buffer, as a pickled array, as a pickled list, as the page has timed them."""
    seconds = {"array, Send": page.buffer, "array, send": page.pickle, "list, send": page.python}
    title = f"A pickled list takes {page.python / page.buffer:.0f} times as long as a buffer"
    picture, (ax,) = style.new_picture(title, heights=[1.8], left=1.2)
    ax.barh(list(seconds), [1000 * each for each in seconds.values()], color=style.COLOURS["communication"], height=0.6)
    for row, each in enumerate(seconds.values()):
        ax.text(1000 * each, row, f" {seconds_text(each)}", va="center", fontsize=style.TEXT)
    ax.invert_yaxis()
    ax.set_xlim(0, 1150 * max(seconds.values()))
    ax.set_xlabel("a million numbers from rank 0 to rank 1, in ms", fontsize=style.TEXT)
    told = "; ".join(f"{way}: {seconds_text(each)}" for way, each in seconds.items())
    picture.alt_text = f"{title}. Bars, a million numbers from rank 0 to rank 1. {told}."
    return picture


def doubling() -> Figure:
    """Eight ranks; who holds the vector after each of three rounds."""
    picture, ax = _sketch("The holders double in every round: 8 ranks, 3 rounds", 3.1)
    for column in range(4):
        ax.text(0.9 + 2.6 * column, 3.0, f"after round {column}" if column else "at first", ha="center", fontsize=9)
        for rank in range(8):
            holds = rank < 2**column
            _cell(ax, 0.75 + 2.6 * column, 2.6 - 0.36 * rank, OWNERS[0] if holds else "white", 0.3)
            if column == 0:
                ax.text(0.35, 2.75 - 0.36 * rank, f"{rank}", ha="center", va="center", fontsize=9)
            if 2 ** (column - 1) <= rank < 2**column and column:
                giver = rank - 2 ** (column - 1)
                start, end = (0.75 + 2.6 * (column - 1) + 0.36, 2.75 - 0.36 * giver), 0.75 + 2.6 * column - 0.06
                ax.annotate("", (end, 2.75 - 0.36 * rank), start, arrowprops={"arrowstyle": "-|>", "color": style.SEND})
    picture.alt_text = "Eight ranks. At first rank 0 holds the vector, after round 1 two, after round 2 four, then all."
    return picture


def with_root() -> Figure:
    """What bcast, scatter, gather and reduce do."""
    full, column = [[rank, None, None, None] for rank in range(4)], [[0, 1, 2, 3], *[[None] * 4] * 3]
    pairs = {
        "bcast": ([[0, None, None, None], *[[None] * 4] * 3], [[0, None, None, None]] * 4),
        "scatter": (column, full),
        "gather": (full, column),
        "reduce": (full, [["Σ", None, None, None], *[[None] * 4] * 3]),
    }
    picture = _before_and_after("With a root: one gives, or one gets (rows are ranks)", pairs)
    picture.alt_text = (
        "Before and after on four ranks. bcast: rank 0's block is on all. scatter: rank 0's four blocks, one on each. "
        "gather: the reverse. reduce: the sum of four blocks on rank 0."
    )
    return picture


def without_root() -> Figure:
    """What allgather, alltoall and allreduce do."""
    full = [[rank, None, None, None] for rank in range(4)]
    pairs = {
        "allgather": (full, [[0, 1, 2, 3]] * 4),
        "alltoall": ([[rank] * 4 for rank in range(4)], [[0, 1, 2, 3]] * 4),
        "allreduce": (full, [["Σ", None, None, None]] * 4),
    }
    picture = _before_and_after("Without a root: each gets something of everybody (rows are ranks)", pairs)
    picture.alt_text = (
        "Before and after on four ranks. allgather: each has everybody's block. alltoall: each has one from each, "
        "like a table turned on its side. allreduce: each has the sum."
    )
    return picture


def _before_and_after(title: str, pairs: dict) -> Figure:
    """Small tables, ranks as rows: what each holds before, and after."""
    picture, ax = _sketch(title, 1.6 if len(pairs) < 4 else 3.2)
    for number, (name, tables) in enumerate(pairs.items()):
        per_row = len(pairs) if len(pairs) < 4 else 2
        left, top = (10 / per_row) * (number % per_row) + 0.3, (1.3 if number >= 2 and len(pairs) == 4 else 2.9)
        top = top if len(pairs) == 4 else 1.3
        ax.text(left, top + 0.18, name, fontsize=style.TITLE, fontweight="bold", va="center")
        for side, table in enumerate(tables):
            _table(ax, left + side * 1.5, top - 0.3, table)
        arrow = {"arrowstyle": "-|>", "color": style.INK}
        ax.annotate("", (left + 1.45, top - 0.5), (left + 1.1, top - 0.5), arrowprops=arrow)
    return picture


def _table(ax: Axes, left: float, top: float, table: list) -> None:
    for row, entries in enumerate(table):
        for column, entry in enumerate(entries):
            colour = "white" if entry is None else SUM if entry == "Σ" else OWNERS[entry]
            x, y = left + 0.25 * column, top - 0.27 * row
            _cell(ax, x, y, colour, 0.22)
            if entry is not None:
                ink = "white" if entry == "Σ" else style.INK
                ax.text(x + 0.11, y + 0.11, entry, ha="center", va="center", fontsize=style.SMALL, color=ink)


def _cell(ax: Axes, x: float, y: float, colour: str, size: float) -> None:
    ax.add_patch(Rectangle((x, y), size, size, facecolor=colour, edgecolor=style.FAINT, linewidth=0.8))


def _sketch(title: str, height: float) -> tuple[Figure, Axes]:
    """A picture ten units wide and `height` units high, without axes."""
    picture, (ax,) = style.new_picture(title, heights=[height * 0.68], left=0.1, right=0.1, below=0.1)
    ax.set(xlim=(0, 10), ylim=(0, height + 0.1))
    ax.axis("off")
    return picture, ax


FIGURES = {
    "04_token": token_timeline,
    "04_doubling": doubling,
    "04_broadcast_timelines": broadcast_timelines,
    "04_with_root": with_root,
    "04_without_root": without_root,
    "04_who_waits": who_waits,
    "04_pickles": pickles,
}
