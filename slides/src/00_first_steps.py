"""The pictures of deck 0: runs on real ranks, this machine, and sketches of who knows what."""

import textwrap

from matplotlib.figure import Figure

import course_utils as course
from course_utils.draw import style

RANK, NOTEBOOK = style.COLOURS["forward"], style.COLOURS["backward"]


def whisper(comm):
    """Pass a word from rank to rank."""
    heard = "hello" if comm.rank == 0 else comm.recv(source=comm.rank - 1)
    if comm.rank + 1 < comm.size:
        comm.send(heard + "!", dest=comm.rank + 1)
    return heard


def wait_for_nobody(comm):
    """Rank 3 waits for what rank 0 never sends."""
    if comm.rank == 3:
        return comm.recv(source=0)


def introduce(comm):
    """Say who this rank is."""
    return f"I am rank {comm.rank}\nof {comm.size}"


def share(comm):
    """Divide twelve pieces by this rank's number: nobody can, on rank 0."""
    return 12 // comm.rank


def doubled(comm):
    """A wrong answer to rank_squared."""
    return 2 * comm.rank


def cores() -> Figure:
    """The cores of this machine and who runs on them."""
    return course.start(4).picture()


def whisper_timeline() -> Figure:
    """Four ranks, three messages, one after the other."""
    return course.start(4).run(whisper).timeline()


def hang_timeline() -> Figure:
    """Rank 3 in a receive that has no end."""
    from course_utils.ranks.run import events_of

    attempt = course.start(4).attempt(wait_for_nobody, [()] * 4, patience=1.0)
    return course.draw.timeline(events_of(attempt.replies))


def orders() -> Figure:
    """One notebook, four ranks: a function goes out, results come back."""
    picture, ax = _sketch("The notebook gives orders, the ranks do the work", 2.6)
    _box(ax, 5, 2.2, "your notebook", NOTEBOOK)
    for rank in range(4):
        x = 1.4 + 2.4 * rank
        _box(ax, x, 0.5, f"rank {rank}", RANK)
        _arrow(ax, (4.6 + 0.2 * rank, 1.85), (x - 0.15, 0.85))
        _arrow(ax, (x + 0.15, 0.85), (4.85 + 0.2 * rank, 1.85), style.FAINT)
    ax.text(1.2, 1.6, "a function", color=style.SEND, fontsize=style.TEXT, ha="center")
    ax.text(8.8, 1.6, "results", color=style.FAINT, fontsize=style.TEXT, ha="center")
    picture.alt_text = "A box, your notebook, above four boxes, ranks 0 to 3; a function goes down, results come up."
    return picture


def nothing_shared() -> Figure:
    """Five processes, five variables of one name."""
    picture, ax = _sketch("Five variables, one name", 1.5)
    _box(ax, 1, 0.75, 'notebook\nx = "my own"', NOTEBOOK)
    for rank in range(4):
        _box(ax, 3 + 2 * rank, 0.75, f"rank {rank}\nx = {10 * rank}", RANK)
    picture.alt_text = (
        "Five boxes side by side: the notebook, whose x is a text, and four ranks, whose x is 0, 10, 20, 30."
    )
    return picture


def answers() -> Figure:
    """What each of four ranks says to the same line."""
    answers = course.start(4).run(introduce).results
    picture, ax = _sketch("One cell, four answers", 1.5)
    for rank, answer in enumerate(answers):
        _box(ax, 1.25 + 2.5 * rank, 0.75, answer, RANK)
    picture.alt_text = "Four boxes: I am rank 0 of 4, and so on up to rank 3."
    return picture


def failure() -> Figure:
    """What came of a division on each of four ranks: three results and one error."""
    replies = course.start(4).attempt(share, [()] * 4).replies
    picture, ax = _sketch("Rank 0 failed, the others did not notice", 1.5)
    for reply in replies:
        text = f"rank {reply.rank}\n{reply.error.type if reply.error else reply.value}"
        _box(ax, 1.25 + 2.5 * reply.rank, 0.75, text, style.STUCK if reply.error else RANK)
    picture.alt_text = "Four boxes: rank 0 has a ZeroDivisionError, ranks 1 to 3 have 12, 6 and 4."
    return picture


def verdicts() -> Figure:
    """The three verdicts, as a check gave them just now."""
    from course_utils.checks.judge import judge
    from course_utils.checks.registry import find
    from course_utils.checks.verdict import not_begun
    from course_utils.lessons.first_steps.rank_and_size import rank_squared

    ranks, exercise = course.start(4), find("rank_squared")
    lines = (not_begun(exercise.name), judge(exercise, doubled, ranks), judge(exercise, rank_squared, ranks))
    picture, ax = _sketch("One line says it all", 2.4)
    for number, verdict in enumerate(lines):
        words = textwrap.fill(str(verdict), 72, subsequent_indent="    ")
        ax.text(0.1, 2.1 - 0.85 * number, words, fontsize=style.TITLE, color=style.INK, va="center")
    picture.alt_text = " ".join(str(verdict) for verdict in lines)
    return picture


def allgather() -> Figure:
    """One name in from each rank, all names out on each."""
    names = ("Ada", "Emmy", "Alan", "Grace")
    picture, ax = _sketch("allgather: each puts one in, each gets all out", 2.6)
    for rank, name in enumerate(names):
        x = 1.25 + 2.5 * rank
        _box(ax, x, 2.2, f"rank {rank}\n{name}", RANK)
        _box(ax, x, 0.5, "\n".join((" ".join(names[:2]), " ".join(names[2:]))), style.COLOURS["step"])
        for other in range(4):
            _arrow(ax, (x, 1.8), (1.25 + 2.5 * other, 0.92))
    picture.alt_text = (
        "Each of four ranks has one name. Arrows lead from each to all. Below, each rank has all four names."
    )
    return picture


def _sketch(title: str, height: float):
    """A picture of ten units' width and `height` units without axes."""
    picture, (ax,) = style.new_picture(title, heights=[height * 0.68], left=0.1, right=0.1, below=0.1)
    ax.set(xlim=(0, 10), ylim=(0, height + 0.1))
    ax.axis("off")
    return picture, ax


def _box(ax, x: float, y: float, text: str, colour: str) -> None:
    frame = {"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": colour, "linewidth": 2}
    ax.text(x, y, text, ha="center", va="center", fontsize=style.TEXT, color=style.INK, bbox=frame, zorder=3)


def _arrow(ax, start: tuple[float, float], end: tuple[float, float], colour: str = style.SEND) -> None:
    ax.annotate("", end, start, arrowprops={"arrowstyle": "-|>", "color": colour, "linewidth": 1.2})


FIGURES = {
    "00_orders": orders,
    "00_cores": cores,
    "00_answers": answers,
    "00_nothing_shared": nothing_shared,
    "00_whisper": whisper_timeline,
    "00_failure": failure,
    "00_hang": hang_timeline,
    "00_verdicts": verdicts,
    "00_allgather": allgather,
}
