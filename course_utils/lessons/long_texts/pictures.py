"""Drawings that only lesson 17 needs: whose work which part of the causal mask is."""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from course_utils.draw import style
from course_utils.errors import CourseError
from course_utils.lessons.long_texts.work import pairs_seen
from course_utils.words import number_text

SIDE = 2.5
"""Inches of a mask's side."""


def masks(ways: Mapping[str, Sequence[torch.Tensor]], title: str) -> Figure:
    """Draw the causal mask of a text for each way to deal it out: queries down, keys across, coloured by rank.

    Args:
        ways: for each way ("in order") the places of every rank's tokens; together the same text each time.
    """
    sizes = {(len(places), sum(map(len, places))) for places in ways.values()}
    if len(sizes) != 1:
        raise CourseError("masks: one text and one number of ranks at least, and the same for all ways.")
    [(ranks, length)] = sizes
    colours = [style.CURVES[rank % len(style.CURVES)] for rank in range(ranks)]
    marks = {f"rank {rank}": Patch(facecolor=colour) for rank, colour in enumerate(colours)}
    picture, (first,) = style.new_picture(
        title, heights=[SIDE], left=0.55, right=0.2, below=0.4, above=style.legend_height(list(marks), 0.55) + 0.25
    )
    box = first.get_position()
    step, width = box.width / len(ways), SIDE / picture.get_figwidth()
    sentences = []
    for index, (name, places) in enumerate(ways.items()):
        ax = first if index == 0 else picture.add_axes((box.x0 + index * step, box.y0, width, box.height))
        ax.set_position((box.x0 + index * step, box.y0, width, box.height))
        ax.imshow(
            _owners(places, length), cmap=ListedColormap(["#FFFFFF", *colours]), vmin=0, vmax=ranks, aspect="auto"
        )
        for spine in ax.spines.values():
            spine.set_visible(False)
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_xlabel("keys", fontsize=style.TEXT)
        if index == 0:
            ax.set_ylabel("queries", fontsize=style.TEXT)
        pairs = pairs_seen(places)
        shares = ", ".join(number_text(100 * seen / sum(pairs)) for seen in pairs)
        ax.set_title(f"{name}: {shares} %", fontsize=style.TEXT, loc="left")
        sentences.append(f"{name}: ranks 0 to {ranks - 1} have {shares} percent of the pairs.")
    style.draw_legend(first, marks, offset=0.3)
    picture.alt_text = " ".join([f"The causal mask of {length} tokens, coloured by rank. {title}.", *sentences])
    return picture


def _owners(places: Sequence[torch.Tensor], length: int) -> np.ndarray:
    """For each pair that is seen, the query's rank from 1; 0 where the mask is."""
    whose = np.zeros(length, int)
    for rank, own in enumerate(places):
        whose[own.numpy()] = rank + 1
    return np.tril(np.broadcast_to(whose[:, None], (length, length)))
