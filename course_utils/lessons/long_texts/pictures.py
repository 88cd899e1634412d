"""Drawings that only lesson 17 needs: who holds whose keys and values, and whose work which part of the mask is."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from course_utils.draw import style
from course_utils.draw.block_frames import Block, BlockFrames, BlockPiece, Frame
from course_utils.draw.block_panels import blocks, colour_of
from course_utils.errors import CourseError
from course_utils.lessons.long_texts.work import pairs_seen
from course_utils.words import number_text

SIDE, BETWEEN = 2.5, 0.3
"""Inches of a mask's side at most, and between two masks."""


def ring_blocks(held: Sequence[Sequence[torch.Tensor]], shares: Sequence[torch.Tensor]) -> Figure:
    """Draw whose keys and values each rank holds in each round of a ring, found by comparing the numbers.

    Args:
        held: for each rank, the keys and values (stacked) that it had in each round.
        shares: for each rank, its own keys and values.
    """
    rounds = list(zip(*held, strict=True))
    owners = [[owner_of(kv, shares) for kv in frame] for frame in rounds]
    frames = [
        Frame(f"round {number}", tuple(_pair(owner, len(shares)) for owner in row)) for number, row in enumerate(owners)
    ]
    met = [{row[rank] for row in owners} for rank in range(len(held))]
    everyone = all(seen == set(range(len(shares))) for seen in met)
    title = f"In {len(rounds)} rounds, the keys and values of all {len(shares)} ranks visit each rank"
    wrong = "Not every rank is visited by the keys and values of all ranks"
    return blocks(
        BlockFrames(tuple(frames)),
        title=title if everyone else wrong,
        subtitle="Keys are on the left, values on the right. Colour and number show which rank they belong to. A dark"
        " frame marks what has just arrived.",
    )


def gathered_blocks(gathered: Sequence[torch.Tensor], shares: Sequence[torch.Tensor]) -> Figure:
    """Draw whose keys and values each rank holds before and after an all-gather, found by comparing the numbers.

    Args:
        gathered: for each rank, all keys and values (stacked) after the all-gather.
        shares: for each rank, its own before it.
    """
    size = len(shares)
    nothing: tuple[Block, ...] = ((), ())
    before = tuple(
        tuple(block for part in range(size) for block in (_pair(part, size) if part == rank else nothing))
        for rank in range(size)
    )
    owners = [[owner_of(part, shares) for part in kv.chunk(size, dim=3)] for kv in gathered]
    after = tuple(tuple(block for owner in row for block in _pair(owner, size)) for row in owners)
    everywhere = all(sorted(row) == list(range(size)) for row in owners)
    title = f"After one all-gather, each rank holds the keys and values of all {size} ranks"
    return blocks(
        BlockFrames((Frame("before", before), Frame("after the all-gather", after))),
        title=title if everywhere else "Not every rank holds the keys and values of all ranks",
        subtitle="Each pair of squares shows one rank's keys and values, with its colour and its number.",
    )


def owner_of(kv: torch.Tensor, shares: Sequence[torch.Tensor]) -> int:
    """The rank whose keys and values these are; -1 if they are nobody's."""
    equal = [rank for rank, share in enumerate(shares) if torch.equal(kv, share)]
    return equal[0] if equal else -1


def _pair(owner: int, size: int) -> tuple[Block, Block]:
    """The squares of a rank's keys and values."""
    counts = tuple(int(rank == owner) for rank in range(size))
    keys, values = (BlockPiece(1.0, counts, f"{name}{owner}", is_known=owner >= 0) for name in "kv")
    return (keys,), (values,)


def masks(ways: Mapping[str, Sequence[torch.Tensor]], title: str, starts: torch.Tensor | None = None) -> Figure:
    """Draw the causal mask of a text for each way to deal it out: queries down, keys across, coloured by rank.

    Args:
        ways: for each way ("in order") the positions of every rank's tokens; together the same text each time.
        starts: for each token, where its document begins in a pack; None for a single text.
    """
    sizes = {(len(positions), sum(map(len, positions))) for positions in ways.values()}
    if len(sizes) != 1:
        raise CourseError("masks: one text and one number of ranks at least, and the same for all ways.")
    [(ranks, length)] = sizes
    colours = [colour_of(rank) for rank in range(ranks)]
    marks = {f"rank {rank}": Patch(facecolor=colour) for rank, colour in enumerate(colours)}
    left, right = 0.55, 0.2
    room = (style.WIDTH - left - right) / len(ways)
    side = min(SIDE, room - BETWEEN)
    lines = "\n" if side < SIDE else ": "  # under a small mask's name there is room for the shares
    above = style.legend_height(list(marks), left) + (0.45 if side < SIDE else 0.25)
    picture, (first,) = style.new_picture(title, heights=[side], left=left, right=right, below=0.4, above=above)
    box = first.get_position()
    step, width = box.width / len(ways), side / picture.get_figwidth()
    sentences = []
    for index, (name, positions) in enumerate(ways.items()):
        ax = first if index == 0 else picture.add_axes((box.x0 + index * step, box.y0, width, box.height))
        ax.set_position((box.x0 + index * step, box.y0, width, box.height))
        ax.imshow(
            _owners(positions, length, starts),
            cmap=ListedColormap(["#FFFFFF", *colours]),
            vmin=0,
            vmax=ranks,
            aspect="auto",
        )
        for spine in ax.spines.values():
            spine.set_visible(False)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel("keys", fontsize=style.TEXT)
        if index == 0:
            ax.set_ylabel("queries", fontsize=style.TEXT)
        pairs = pairs_seen(positions, starts)
        shares = ", ".join(f"{number_text(100 * seen / sum(pairs))}%" for seen in pairs)
        ax.set_title(f"{name}{lines}{shares}", fontsize=style.TEXT, loc="left")
        sentences.append(f"{name}: ranks 0 to {ranks - 1} have {shares} of the pairs.")
    style.draw_legend(first, marks, offset=0.5 if side < SIDE else 0.3)
    picture.alt_text = " ".join([f"The causal mask of {length} tokens, coloured by rank. {title}.", *sentences])
    return picture


def _owners(positions: Sequence[torch.Tensor], length: int, starts: torch.Tensor | None) -> np.ndarray:
    """For each pair that is seen, the query's rank from 1; 0 where the mask is."""
    whose = np.zeros(length, int)
    for rank, own in enumerate(positions):
        whose[own.numpy()] = rank + 1
    begin = np.zeros(length, int) if starts is None else starts.numpy()
    seen = np.arange(length)[None, :] >= begin[:, None]
    return np.tril(np.where(seen, whose[:, None], 0))
