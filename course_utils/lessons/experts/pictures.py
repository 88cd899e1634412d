"""Drawings of lesson 16: which rank's tokens are where, on their way to experts and back, and between two nodes.

`expert_loads` shows how many of them each expert and each rank gets.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from course_utils.draw import style
from course_utils.draw.block_frames import Block, BlockFrames, BlockPiece, Frame
from course_utils.draw.block_panels import blocks
from course_utils.draw.lines import label
from course_utils.words import as_sentences, number_text

Held = Sequence[tuple[int, str]]
"""What a rank holds, in order: for each item the rank that it came from at first, and a short label."""


def where_tokens_are(moments: Mapping[str, Sequence[Held]], title: str, subtitle: str) -> Figure:
    """Draw what each rank holds at several moments: ranks as rows, items as squares in the colour of their first rank.

    Args:
        moments: by name, in order; `moments[name][r]` is what rank r holds then.
        subtitle: how to read the squares.
    """
    ranks = len(next(iter(moments.values())))
    longest = max(len(held) for every in moments.values() for held in every)
    frames = tuple(Frame(name, tuple(_row(held, ranks, longest) for held in every)) for name, every in moments.items())
    return blocks(BlockFrames(frames), title=title, subtitle=subtitle)


def _row(held: Held, ranks: int, longest: int) -> tuple[Block, ...]:
    """A rank's items as blocks, filled up with empty ones so that all rows are equally long."""
    row = [(BlockPiece(1.0, tuple(int(r == rank) for r in range(ranks)), label),) for rank, label in held]
    return (*row, *[()] * (longest - len(row)))


def tokens_there_and_back(
    tokens: Sequence[Sequence[int]], rows: Sequence[Sequence[int]], answers: Sequence[Sequence[int]]
) -> Figure:
    """Draw dispatch and combine from a run: where each token was at first, where its expert was, where its answer went.

    Args:
        tokens: of each rank; token i of rank r is the number 10 r + i.
        rows: what arrived at each rank's expert.
        answers: what each rank held at the end. The expert of rank e has added 100 (e + 1) to each of its rows.
    """
    moments = {
        "tokens": [[_token(number) for number in own] for own in tokens],
        "after dispatch": [[_token(number) for number in own] for own in rows],
        "after combine": [[_token(number % 100, f"→{number // 100 - 1}") for number in own] for own in answers],
    }
    lengths = [len(own) for own in rows]
    home = all([number % 100 for number in got] == list(own) for own, got in zip(tokens, answers, strict=True))
    least, most = min(lengths), max(lengths)
    title = f"Experts get {least} to {most} tokens each" if least < most else f"Every expert gets {most} tokens"
    ending = "every answer returns to its own rank" if home else "not every answer is back in its place"
    under = (
        "2a is the first token of rank 2. After combine, a square holds the answer for that token, and the number under"
        " it is the expert that gave it. A square with a dark frame holds something different than before; an empty one"
        " holds nothing."
    )
    return where_tokens_are(moments, f"{title}, and {ending}", under)


def _token(number: int, mark: str = "") -> tuple[int, str]:
    rank, index = divmod(number, 10)
    return rank, f"{rank}{'abcdefghij'[index]}{chr(10) + mark if mark else ''}"


def crowd(rows: Sequence[Sequence[int]]) -> Figure:
    """Draw which tokens each rank's expert has got, as numbered in `tokens_there_and_back`; all ranks began alike."""
    ranks, total = len(rows), sum(map(len, rows))
    own = [[_token(10 * rank + index) for index in range(total // ranks)] for rank in range(ranks)]
    moments = {"tokens": own, "after dispatch": [[_token(number) for number in got] for got in rows]}
    busiest = max(range(ranks), key=lambda rank: len(rows[rank]))
    title = f"The expert of rank {busiest} gets {len(rows[busiest])} of {total} tokens"
    under = "2a is the first token of rank 2. A square with a dark frame holds something different than before."
    return where_tokens_are(moments, title, under)


def two_level_blocks(inside: Sequence[Sequence[int]], across: Sequence[Sequence[int]]) -> Figure:
    """Draw an all-to-all on two levels from a run: what each rank holds after the first level and after the second.

    Args:
        inside, across: of each rank, its blocks after each level; the block from rank r to rank s is 10 r + s.
    """
    ranks = len(across)
    start = [[10 * rank + other for other in range(ranks)] for rank in range(ranks)]
    steps = {"blocks": start, "after level 1, inside nodes": inside, "after level 2, between nodes": across}
    moments = {name: [[_block(number) for number in held] for held in every] for name, every in steps.items()}
    right = all(sorted(held) == [10 * other + rank for other in range(ranks)] for rank, held in enumerate(across))
    title = "After two levels, each rank has the blocks that all ranks have sent to it"
    under = (
        "3→0 is the block from rank 3 to rank 0. Ranks 0 and 1 are on one node, and ranks 2 and 3 on the other."
        " A square with a dark frame holds something different than before."
    )

    return where_tokens_are(moments, title if right else "Not every block is where it should be", under)


def _block(number: int) -> tuple[int, str]:
    source, target = divmod(number, 10)
    return source, f"{source}→{target}"


def expert_loads(loads: Mapping[str, Sequence[int]], ranks: int, title: str, subtitle: str = "") -> Figure:
    """Draw the load of each expert as a bar, and that of each rank as a line across the bars of its experts.

    Both are in multiples of a fair share, so a rank's load is the mean of those of its experts.

    Args:
        loads: for each model, the rows of each expert, which the ranks hold in this order, as many each.
    """
    marks = {
        "an expert's rows ÷ its fair share": Patch(facecolor=style.CURVES[0]),
        "a rank's rows ÷ its fair share": Line2D([], [], color=style.INK, linewidth=2),
    }
    above = style.legend_height(list(marks)) + 0.22
    picture, axes = style.new_picture(title, subtitle, heights=[1.1] * len(loads), between=0.6, above=above)
    texts = []
    for ax, (name, load) in zip(axes, loads.items(), strict=True):
        multiples = np.array(load) * len(load) / max(sum(load), 1)
        of_ranks = multiples.reshape(ranks, -1).mean(axis=1)
        places = np.arange(ranks)  # the bars of a rank take 0.9 of a unit
        width = 0.9 * ranks / len(load)
        starts = np.add.outer(places, width * np.arange(len(load) // ranks)).flatten()
        ax.bar(starts, multiples, width=0.9 * width, align="edge", color=style.CURVES[0])
        ax.hlines(of_ranks, places, places + 0.9 - 0.1 * width, color=style.INK, linewidth=2)
        ax.axhline(1, color=style.FAINT, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
        ax.set_xlim(-0.1, ranks)
        ax.set_xticks(places + 0.45, [f"rank {rank}" for rank in range(ranks)])
        ax.tick_params(axis="x", length=0)
        ax.yaxis.set_major_locator(MaxNLocator(3, steps=[1, 2, 5, 10]))
        label(ax, "", name, above=True, grid="y")
        texts.append(
            f"{name}: experts {_multiples_text(multiples)} times their fair share, "
            f"ranks {_multiples_text(of_ranks)} times"
        )
    top = max(ax.get_ylim()[1] for ax in axes)
    for ax in axes:
        ax.set_ylim(0, top)
    style.draw_legend(axes[0], marks, offset=0.28)
    picture.alt_text = as_sentences("Bars for experts, grouped by ranks", title, subtitle, *texts)
    return picture


def _multiples_text(multiples: Sequence[float]) -> str:
    return f"{number_text(min(multiples))} to {number_text(max(multiples))}"
