"""Drawings that only lesson 19 needs: who has which slot of the batch and when, and which rank caches which heads."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from course_utils.draw import style
from course_utils.draw.block_frames import BlockFrames, BlockPiece, Frame
from course_utils.draw.block_panels import blocks
from course_utils.errors import CourseError
from course_utils.words import as_sentences

ROW = 0.3  # inches of a slot
IDLE = "#ECECEC"
MOST_STEPS = 80
"""Steps in one picture; in more, the boxes would be too narrow for their numbers."""


def cached_tokens(tokens: Sequence[Sequence[int]], names: Sequence[str], title: str) -> Figure:
    """Draw how many tokens each rank has cached at each moment: a square for each, for the heads of this rank.

    Args:
        tokens: for each moment, the tokens that each rank's cache holds.
        names: of the moments.
    """
    longest, ranks = max(map(max, tokens)), len(tokens[0])

    def square(rank: int, token: int) -> tuple[BlockPiece, ...]:
        return (BlockPiece(1.0, tuple(int(other == rank) for other in range(ranks)), str(token)),)

    frames = [
        Frame(
            name,
            tuple(
                tuple(square(rank, token) if token < held else () for token in range(longest))
                for rank, held in enumerate(row)
            ),
        )
        for name, row in zip(names, tokens, strict=True)
    ]
    return blocks(
        BlockFrames(tuple(frames)),
        title=title,
        subtitle="Each square holds the keys and values of one token, for the heads of its rank, in all layers. Its"
        " number is that of the token.",
    )


def slots(schedules: Mapping[str, Sequence[tuple[int, int, int]]], slots_of_batch: int, title: str) -> Figure:
    """Draw who has which slot in each step: slots are rows, and a box is a request with its number.

    Args:
        schedules: for each way of batching, (slot, begins, ends) of each request.
        slots_of_batch: how many rows there are.
    """
    steps = max((ends for stays in schedules.values() for *_, ends in stays), default=0)
    if not 1 <= steps <= MOST_STEPS:
        raise CourseError(f"slots: {steps} steps. The picture has room for 1 to {MOST_STEPS}.")
    heights = [ROW * slots_of_batch] * len(schedules)
    marks = {"a request, with its number": Patch(facecolor=style.COLOURS["computing"]), "idle": Patch(facecolor=IDLE)}
    above = style.legend_height(list(marks)) + 0.24
    picture, axes = style.new_picture(title, "", heights=heights, above=above, between=0.62, left=0.7)
    texts = []
    for ax, (name, stays) in zip(axes, schedules.items(), strict=True):
        ax.set(xlim=(0, steps), ylim=(slots_of_batch - 0.5, -0.5))
        last = max(ends for *_, ends in stays)
        ax.set_title(f"{name}: {last} steps", fontsize=style.TEXT, fontweight="bold", loc="left", pad=5)
        ax.set_yticks(range(slots_of_batch), [f"slot {slot}" for slot in range(slots_of_batch)])
        ax.tick_params(axis="y", length=0)
        for slot in range(slots_of_batch):
            ax.add_patch(Rectangle((0, slot - 0.42), last, 0.84, facecolor=IDLE, edgecolor="none"))
        for number, (slot, begins, ends) in enumerate(stays):
            blue = style.COLOURS["computing"]
            box = Rectangle((begins, slot - 0.42), ends - begins, 0.84, facecolor=blue, edgecolor="white")
            ax.add_patch(box)
            middle = (begins + ends) / 2
            ax.text(middle, slot, str(number), color="white", ha="center", va="center", fontsize=style.SMALL)
        texts.append(
            f"{name}: "
            + ", ".join(
                f"request {number} in slot {slot} from step {begins} to {ends - 1}"
                for number, (slot, begins, ends) in enumerate(stays)
            )
        )
    axes[-1].set_xlabel("step of decoding", fontsize=style.TEXT)
    style.draw_legend(axes[0], marks, offset=0.28)
    picture.alt_text = as_sentences(title, "Slots of the batch are rows, and steps go from left to right", *texts)
    return picture
