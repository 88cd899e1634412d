"""The pictures of deck 4: runs on real ranks, and sketches of who holds what before and after a collective."""

import time
from functools import cache

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import course_utils as course
from course_utils.draw import style
from course_utils.lessons.messages import pictures, point_to_point
from course_utils.lessons.messages.broadcast_and_scatter import flat_broadcast, tree_broadcast
from course_utils.lessons.messages.ping_pong import fit_alpha_beta, ping_pong
from course_utils.words import seconds_text

OWNERS = style.OTHERS[:4]  # whose block it is
SUM = style.INK
LENGTH = 1_000_000


def first_message(comm):
    """Rank 0 sends a vector to rank 3."""
    if comm.rank == 0:
        comm.Send(np.zeros(1000), dest=3)
    if comm.rank == 3:
        comm.Recv(np.empty(1000), source=0)


def both_send_first(comm):
    """Two ranks send a long vector to each other before either receives."""
    comm.Send(np.zeros(LENGTH), dest=1 - comm.rank)
    comm.Recv(np.empty(LENGTH), source=1 - comm.rank)


def shift(comm):
    """Each rank sends a number to its right and receives one from its left, all at once."""
    mine, theirs = np.array([10 * comm.rank]), np.empty(1, int)
    request = comm.Isend(mine, dest=(comm.rank + 1) % comm.size)
    comm.Recv(theirs, source=(comm.rank - 1) % comm.size)
    request.Wait()


def late(comm, operation):
    """Rank 3 comes a tenth of a second after the others."""
    if comm.rank == 3:
        time.sleep(0.1)
    comm.bcast(7) if operation == "bcast" else comm.allreduce(7)


def move(comm, thing, pickled):
    """The best of five times that a message from rank 0 to rank 1 takes."""
    seconds = []
    for _ in range(5):
        comm.Barrier()
        start = time.perf_counter()
        if comm.rank == 0:
            comm.send(thing, dest=1) if pickled else comm.Send(thing, dest=1)
        else:
            comm.recv(source=0) if pickled else comm.Recv(thing, source=0)
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def sweep(comm, sizes):
    """A ping-pong for each size."""
    return [ping_pong(comm, nbytes) for nbytes in sizes]


@cache
def four_ranks():
    """The ranks that all pictures of this deck run on."""
    return course.start(4)


def first_message_timeline() -> Figure:
    """One message from rank 0 to rank 3."""
    return four_ranks().run(first_message).timeline()


def deadlock_timeline() -> Figure:
    """Two sends without end."""
    from course_utils.ranks.run import events_of

    attempt = four_ranks().attempt(both_send_first, [()] * 2, patience=1.0)
    return course.draw.timeline(events_of(attempt.replies))


def shift_timeline() -> Figure:
    """Four messages in one round."""
    return four_ranks().run(shift).timeline()


def token_timeline() -> Figure:
    """Four messages in four rounds."""
    return four_ranks().run(point_to_point.pass_the_token, course.per_rank([10, 20, 30, 40])).timeline()


def broadcast_timelines() -> Figure:
    """One after the other, and doubling."""
    vector = np.zeros(LENGTH // 2)
    plain = four_ranks().run(flat_broadcast, vector)
    doubling = four_ranks().run(tree_broadcast, vector)
    return course.draw.timelines(plain, doubling, titles=["one after the other", "doubling"], side_by_side=True)


def who_waits() -> Figure:
    """Rank 3 is late for a broadcast, and for an allreduce."""
    runs = [four_ranks().run(late, operation) for operation in ("bcast", "allreduce")]
    longest = [max(event.end - event.start for event in run.events if event.rank < 3) for run in runs]
    title = "Ranks 0 to 2: at most {} in the broadcast, {} in the sum".format(*map(seconds_text, longest))
    names = ["a broadcast from rank 0", "a sum for all"]
    return course.draw.timelines(*runs, titles=names, side_by_side=True, title=title)


def ping_pong_timeline() -> Figure:
    """Three round trips."""
    return four_ranks().run(ping_pong, 1000, 2, ranks=2).timeline()


def alpha_beta() -> Figure:
    """The line fitted to a ping-pong."""
    sizes = [1, 10, 100, 1_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000]
    seconds = four_ranks().run(sweep, sizes, ranks=2).results[0]
    return pictures.alpha_beta(sizes, seconds, *fit_alpha_beta(sizes, seconds))


def pickles() -> Figure:
    """A million numbers as a buffer, as a pickled array, as a pickled list."""
    array = np.random.default_rng(0).random(LENGTH)
    ways = {"array, Send": (array, False), "array, send": (array, True), "list, send": (array.tolist(), True)}
    seconds = [max(four_ranks().run(move, *way, ranks=2).results) for way in ways.values()]
    ratio = seconds[2] / seconds[0]
    picture, (ax,) = style.new_picture(f"A pickled list takes {ratio:.0f} times as long", heights=[1.8], left=1.2)
    ax.barh(list(ways), [1000 * each for each in seconds], color=style.COLOURS["communication"], height=0.6)
    for row, each in enumerate(seconds):
        ax.text(1000 * each, row, f" {seconds_text(each)}", va="center", fontsize=style.TEXT)
    ax.invert_yaxis()
    ax.set_xlim(0, 1150 * max(seconds))
    ax.set_xlabel("a million numbers from rank 0 to rank 1, in ms", fontsize=style.TEXT)
    picture.alt_text = ", ".join(f"{way}: {seconds_text(each)}" for way, each in zip(ways, seconds))
    return picture


def doubling() -> Figure:
    """Eight ranks; who holds the vector after each of three rounds."""
    picture, ax = _sketch("The holders double in every round: 8 ranks, 3 rounds", 2.9)
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
    "04_first_message": first_message_timeline,
    "04_deadlock": deadlock_timeline,
    "04_shift": shift_timeline,
    "04_token": token_timeline,
    "04_doubling": doubling,
    "04_broadcast_timelines": broadcast_timelines,
    "04_with_root": with_root,
    "04_without_root": without_root,
    "04_who_waits": who_waits,
    "04_pickles": pickles,
    "04_ping_pong": ping_pong_timeline,
    "04_alpha_beta": alpha_beta,
}
