"""The pictures of deck 0 that its page does not have: what each rank answers, and what a check says."""

import textwrap
from types import SimpleNamespace

from matplotlib.figure import Figure

from course_utils.draw import style

RANK, NOTEBOOK = style.COLOURS["forward"], style.COLOURS["backward"]


def doubled(comm):
    """A wrong answer to rank_squared."""
    return 2 * comm.rank


def answers(page: SimpleNamespace) -> Figure:
    """What each of four ranks says to the same line."""
    picture, ax = _sketch("Only the rank differs", 1.5)
    for rank, answer in enumerate(page.ranks.run(page.introduce).results):
        _box(ax, 1.25 + 2.5 * rank, 0.75, f"I am {answer}", RANK)
    picture.alt_text = "Four boxes: I am rank 0 of 4, and so on up to rank 3."
    return picture


def failure(page: SimpleNamespace) -> Figure:
    """What came of the page's division on each of four ranks: three results and one error."""
    picture, ax = _sketch("Rank 0 failed, the others did not notice", 1.5)
    for reply in page.ranks.attempt(page.share, [()] * 4).replies:
        text = f"rank {reply.rank}\n{reply.error.type if reply.error else reply.value}"
        _box(ax, 1.25 + 2.5 * reply.rank, 0.75, text, style.STUCK if reply.error else RANK)
    picture.alt_text = "Four boxes: rank 0 has a ZeroDivisionError, ranks 1 to 3 have 12, 6 and 4."
    return picture


def verdicts(page: SimpleNamespace) -> Figure:
    """The three verdicts, as a check gave them just now."""
    from course_utils.checks.judge import verdict_on_these
    from course_utils.checks.registry import find
    from course_utils.checks.verdict import Result, Verdict
    from course_utils.lessons.first_steps import rank_squared

    exercise = find("rank_squared")
    tried = (verdict_on_these(exercise, function, page.ranks) for function in (doubled, rank_squared))
    lines = [str(verdict) for verdict in (Verdict(Result.NOT_BEGUN, exercise.name), *tried)]
    picture, ax = _sketch("One line says it all", 2.4)
    for number, line in enumerate(lines):
        words = textwrap.fill(line, 72, subsequent_indent="    ")
        ax.text(0.1, 2.1 - 0.85 * number, words, fontsize=style.TITLE, color=style.INK, va="center")
    picture.alt_text = " ".join(lines)
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
    "00_answers": answers,
    "00_failure": failure,
    "00_verdicts": verdicts,
    "00_allgather": allgather,
}
