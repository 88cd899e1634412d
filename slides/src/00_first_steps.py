"""The pictures of deck 0 that its page does not have: what each rank answers, and what a check says."""

import textwrap
from types import SimpleNamespace

from matplotlib.figure import Figure

from course_utils.draw import style
from course_utils.lessons.first_steps import pictures


def doubled(comm):
    """A wrong answer to rank_squared."""
    return 2 * comm.rank


def answers(page: SimpleNamespace) -> Figure:
    """What each of four ranks says to the same line."""
    picture, ax = pictures.sketch("Only the rank differs", 1.5)
    for rank, answer in enumerate(page.ranks.run(page.introduce).results):
        pictures.box(ax, 1.25 + 2.5 * rank, 0.75, f"I am {answer}", pictures.RANK)
    picture.alt_text = "Four boxes: I am rank 0 of 4, and so on up to rank 3."
    return picture


def failure(page: SimpleNamespace) -> Figure:
    """What came of the page's division on each of four ranks: three results and one error."""
    picture, ax = pictures.sketch("Rank 0 failed, the others did not notice", 1.5)
    for reply in page.ranks.attempt(page.share, [()] * 4).replies:
        text = f"rank {reply.rank}\n{reply.error.type if reply.error else reply.value}"
        pictures.box(ax, 1.25 + 2.5 * reply.rank, 0.75, text, style.STUCK if reply.error else pictures.RANK)
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
    picture, ax = pictures.sketch("One line says it all", 2.4)
    for number, line in enumerate(lines):
        words = textwrap.fill(line, 72, subsequent_indent="    ")
        ax.text(0.1, 2.1 - 0.85 * number, words, fontsize=style.TITLE, color=style.INK, va="center")
    picture.alt_text = " ".join(lines)
    return picture


def allgather() -> Figure:
    """One name in from each rank, all names out on each."""
    names = ("Ada", "Emmy", "Alan", "Grace")
    picture, ax = pictures.sketch("allgather: each puts one in, each gets all out", 2.6)
    for rank, name in enumerate(names):
        x = 1.25 + 2.5 * rank
        pictures.box(ax, x, 2.2, f"rank {rank}\n{name}", pictures.RANK)
        pictures.box(ax, x, 0.5, "\n".join((" ".join(names[:2]), " ".join(names[2:]))), style.COLOURS["step"])
        for other in range(4):
            pictures.arrow(ax, (x, 1.8), (1.25 + 2.5 * other, 0.92))
    picture.alt_text = (
        "Each of four ranks has one name. Arrows lead from each to all. Below, each rank has all four names."
    )
    return picture


FIGURES = {
    "00_answers": answers,
    "00_failure": failure,
    "00_verdicts": verdicts,
    "00_allgather": allgather,
}
