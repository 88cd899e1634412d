"""Drawings of lesson 11: who keeps what with each stage of ZeRO, where FSDP2's weights are when, Muon's matrices."""

from collections.abc import Mapping, Sequence
from itertools import pairwise

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from course_utils.draw import style
from course_utils.draw.bars import PARTS
from course_utils.draw.block_frames import Block, BlockFrames, BlockPiece, Frame
from course_utils.draw.block_panels import blocks
from course_utils.lessons.hybrid_and_sharded.fsdp import ShardMoment
from course_utils.lessons.hybrid_and_sharded.muon import MuonRun
from course_utils.words import count, join

WEIGHTS, GRADIENTS, STATE = PARTS["parameters"], PARTS["gradients"], PARTS["state"]
_LEFT, _RIGHT = 0.62, 0.1  # margins in inches
_HEAD, _GAP = 0.42, 0.14  # over a frame, between two blocks


def zero1_blocks(
    gradients: Sequence[torch.Tensor],
    sums: Sequence[torch.Tensor],
    updated: Sequence[torch.Tensor],
    gathered: Sequence[torch.Tensor],
) -> Figure:
    """Draw one step of ZeRO-1: whose gradients are in which block, and who has updated which block of the weights.

    Args:
        gradients: of each rank, before the step; all numbers of rank r are 2^r, so that the bits of a sum tell whose
            numbers are in it.
        sums: of each rank, its part after the reduce-scatter.
        updated: of each rank, the part of the weights that it has updated.
        gathered: of each rank, all weights after the all-gather.
    """
    size = len(gradients)
    before = [[_summed(part, size) for part in gradient.chunk(size)] for gradient in gradients]
    after = [[*own] for own in before]  # stage 1 keeps the whole gradient of the rank itself
    for rank, part in enumerate(sums):
        after[rank][rank] = _summed(part, size)
    own = [
        [_owned(part, updated) if index == rank else () for index in range(size)] for rank, part in enumerate(updated)
    ]
    everywhere = [[_owned(part, updated) for part in weights.chunk(size)] for weights in gathered]
    summing = BlockFrames((_frame("after the backward pass", before), _frame("after the reduce-scatter", after)))
    moving = BlockFrames((_frame("after the update", own), _frame("after the all-gather", everywhere)))
    right = all(piece.is_complete for rank, row in enumerate(after) for piece in row[rank]) and all(
        block == _owned(updated[index], updated) for row in everywhere for index, block in enumerate(row)
    )
    title = "Each rank adds up and updates one block; then every rank gets every block"
    under = (
        "Gradients: a stripe for each rank whose numbers are in the block; a tick marks the sum of all ranks. Weights:"
        " the colour of the rank that has updated the block; empty blocks are not updated yet. A dark frame marks what"
        " is new."
    )
    wrong = "Not every block is the sum of all ranks, or not every rank has every block"
    return blocks(summing, moving, titles=["gradients", "weights"], title=title if right else wrong, subtitle=under)


def _frame(name: str, rows: Sequence[Sequence[Block]]) -> Frame:
    return Frame(name, tuple(map(tuple, rows)))


def _summed(part: torch.Tensor, size: int) -> Block:
    """Whose numbers have been added up here, read from the bits."""
    value = float(part[0])
    if not bool((part == value).all()) or value != int(value) or not 0 <= value < 2**size:
        return (BlockPiece(1.0, (0,) * size, is_known=False),)
    return (BlockPiece(1.0, tuple(int(value) >> rank & 1 for rank in range(size))),)


def _owned(part: torch.Tensor, updated: Sequence[torch.Tensor]) -> Block:
    """Which rank has updated this part; an unknown piece where it is nobody's."""
    owners = tuple(int(part.shape == own.shape and bool((part == own).all())) for own in updated)
    return (BlockPiece(1.0, owners, is_known=sum(owners) == 1),)


def stages(ranks: int = 4) -> Figure:
    """Draw what each rank keeps with each stage of ZeRO and Adam, if all numbers take equally many bytes.

    Each row is a rank. A block is everything of one kind, cut into a part for each rank; a filled part is kept.
    """
    kinds = {"weights": WEIGHTS, "gradients": GRADIENTS, "mean": STATE, "square": STATE}
    divided = {"weights": 3, "gradients": 2, "mean": 1, "square": 1}  # from which stage on
    shares = [
        sum(1 / ranks if stage >= first else 1 for first in divided.values()) / len(divided) for stage in range(4)
    ]
    marks = {
        "weights": WEIGHTS,
        "gradients": GRADIENTS,
        "optimizer state: Adam's means of the gradients and of their squares": STATE,
    }
    texts = [f"{100 * share:.4g}%" for share in shares]
    title = f"Of all numbers, each of {ranks} ranks keeps {join(texts)} with stages 0 to 3"
    under = "A filled square is kept by this rank; an empty square is kept only by another rank."
    width, per_line = (style.WIDTH - _LEFT - _RIGHT) / 2 - 0.25, 2
    square = min(0.3, (width - _GAP * (len(kinds) - 1)) / (len(kinds) * ranks))
    high = _HEAD + ranks * square + 0.1
    picture, ax = _canvas(title, under, 2 * high, marks)
    for stage in range(4):
        line, column = divmod(stage, per_line)
        left, top = column * (width + 0.25), line * high
        ax.text(left, top + 0.12, f"stage {stage}", fontsize=style.TEXT, fontweight="bold", va="center")
        for index, (kind, colour) in enumerate(kinds.items()):
            x = left + index * (ranks * square + _GAP)
            middle = {"ha": "center", "va": "center", "color": "#555555"}
            ax.text(x + ranks * square / 2, top + 0.31, kind, fontsize=style.SMALL, **middle)
            for rank in range(ranks):
                held = [stage < divided[kind] or part == rank for part in range(ranks)]
                _parts(ax, x, top + _HEAD + rank * square, square * ranks, square, held, colour, 0.06 * square)
        if column == 0:
            _name_ranks(ax, top + _HEAD, square, ranks)
    rows = [f"stage {stage}: {text} of all numbers" for stage, text in enumerate(texts)]
    picture.alt_text = f"Blocks of weights, gradients and optimizer state on {ranks} ranks. {title}. {'; '.join(rows)}."
    return picture


def gathers(moments: Sequence[Sequence[ShardMoment]]) -> Figure:
    """Draw what each rank holds of each layer's weights and gradients, at each moment of a step of FSDP2.

    Args:
        moments: of each rank, as `ShardWatch` has noted them.
    """
    ranks, layers = len(moments), len(moments[0][0].weights)
    frames = list(zip(*moments, strict=True))
    per_line = -(-len(frames) // 2)
    wide = (style.WIDTH - _LEFT - _RIGHT) / per_line - 0.2
    square = min(0.34, wide / layers)
    pitch = square + 0.07
    high = _HEAD + ranks * pitch + 0.12
    title = _gathers_finding([moment for moment, *_ in frames])
    under = (
        "Each column is a layer. The upper strip shows its weights and the lower strip its gradients, each cut into"
        f" {count(ranks, 'part')}. The rank holds the coloured parts of the layer. Buffers for messages are not drawn."
    )
    picture, ax = _canvas(title, under, 2 * high, {"weights": WEIGHTS, "gradients": GRADIENTS})
    for index, frame in enumerate(frames):
        line, column = divmod(index, per_line)
        left, top = column * (wide + 0.2), line * high
        ax.text(left, top + 0.12, frame[0].name, fontsize=style.SMALL, fontweight="bold", va="center")
        for layer in range(layers):
            x = left + layer * square
            middle = {"ha": "center", "va": "center", "color": "#555555"}
            ax.text(x + square / 2, top + 0.31, str(layer), fontsize=style.SMALL, **middle)
            for rank, moment in enumerate(frame):
                y, inset = top + _HEAD + rank * pitch, 0.05 * square
                for start, share, amount, colour in (
                    (0.0, 0.58, moment.weights[layer], WEIGHTS),
                    (0.58, 0.42, moment.gradients[layer], GRADIENTS),
                ):
                    held = [amount == 1 or (amount > 0 and part == rank) for part in range(ranks)]
                    _parts(ax, x, y + start * square, square, share * square, held, colour, inset, framed=False)
        if column == 0:
            _name_ranks(ax, top + _HEAD, pitch, ranks)
    texts = [f"{moment.name}: whole on rank 0 are layers {_whole(moment) or 'none'}" for moment, *_ in frames]
    picture.alt_text = f"Blocks of weights and gradients on {ranks} ranks. {title}. {'; '.join(texts)}."
    return picture


def muon(ways: Mapping[str, Sequence[MuonRun]], serial: MuonRun) -> Figure:
    """Draw which rows of each matrix a rank keeps in each way of using Muon, and which it has when it orthogonalises.

    What a rank has is found by comparing its numbers with those of one process, so take runs of one step, in which all
    ways have the same numbers.

    Args:
        ways: the runs of all ranks, by the way's name.
        serial: the run of one process.
    """
    ranks, matrices = len(next(iter(ways.values()))), len(serial.updates)
    held = {
        name: [(_rows_found(run.rows, serial.rows, ranks), _rows_found(run.given, serial.given, ranks)) for run in runs]
        for name, runs in ways.items()
    }
    width = (style.WIDTH - _LEFT - _RIGHT) / 2 - 0.25
    square = (width - _GAP * (matrices - 1)) / (matrices * ranks)
    high = _HEAD + ranks * square + 0.1
    title = _muon_finding(held)
    under = f"Each strip is a matrix, cut into {count(ranks, 'part')} of its rows. The rank has the coloured parts."
    marks = {"kept from step to step": WEIGHTS, "there when the rank orthogonalises": STATE}
    picture, ax = _canvas(title, under, len(ways) * high, marks)
    for line, (name, of_ranks) in enumerate(held.items()):
        top = line * high
        ax.text(0, top + 0.12, name, fontsize=style.TEXT, fontweight="bold", va="center")
        for column, colour in enumerate((WEIGHTS, STATE)):
            for matrix in range(matrices):
                x = column * (width + 0.25) + matrix * (ranks * square + _GAP)
                middle = {"ha": "center", "va": "center", "color": "#555555"}
                ax.text(x + ranks * square / 2, top + 0.31, f"matrix {matrix}", fontsize=style.SMALL, **middle)
                for rank, frames in enumerate(of_ranks):
                    y = top + _HEAD + rank * square
                    _parts(ax, x, y, square * ranks, square, frames[column][matrix], colour, 0.06 * square)
        _name_ranks(ax, top + _HEAD, square, ranks)
    texts = [f"{name}: rank 0 has {_matrices_text(of_ranks[0][1])}" for name, of_ranks in held.items()]
    picture.alt_text = f"Rows of matrices on {ranks} ranks. {title}. When it orthogonalises, {'; '.join(texts)}."
    return picture


Held = list[list[bool]]
"""For each matrix, which parts of its rows a rank has."""


def _rows_found(tensors: Sequence[torch.Tensor], whole: Sequence[torch.Tensor], ranks: int) -> Held:
    """Which parts of the rows of the whole matrices are somewhere among the tensors of a rank."""
    parts = [part for tensor in tensors for part in tensor.split(len(whole[0]) // ranks)]

    def is_there(rows: torch.Tensor) -> bool:
        return any(torch.allclose(part, rows, rtol=0, atol=1e-9) for part in parts)

    return [[is_there(rows) for rows in matrix.chunk(ranks)] for matrix in whole]


def _muon_finding(held: Mapping[str, Sequence[tuple[Held, Held]]]) -> str:
    """In which ways each matrix is whole on a rank that orthogonalises it, and in which it never is."""
    never = [
        name
        for name, ranks in held.items()
        if not all(any(all(given[matrix]) for _, given in ranks) for matrix in range(len(ranks[0][1])))
    ]
    right = [name for name in held if name not in never]
    finding = (
        f"A rank has whole matrices to orthogonalise with {join(right)}" if right else "No rank has whole matrices"
    )
    return f"{finding}, but not with {join(never)}" if right and never else finding


def _matrices_text(given: Held) -> str:
    whole, parts = sum(map(all, given)), sum(any(parts) and not all(parts) for parts in given)
    texts = [f"{count(whole, 'matrix')} whole".replace("matrixs", "matrices")] * (whole > 0)
    texts += [f"a part of {parts}"] * (parts > 0)
    return join(texts) or "nothing"


def _whole(moment: ShardMoment) -> str:
    return ", ".join(str(layer) for layer, share in enumerate(moment.weights) if share == 1)


def _gathers_finding(moments: Sequence[ShardMoment]) -> str:
    """How many layers a rank has whole at a time, and how often each of them has become whole."""
    whole = [[share == 1 for share in moment.weights] for moment in moments]
    most = max(map(sum, whole))
    steps = list(pairwise([[False] * len(whole[0]), *whole]))
    times = {sum(not before[layer] and now[layer] for before, now in steps) for layer in range(len(whole[0]))}
    often = {frozenset({1}): "once", frozenset({2}): "twice"}.get(frozenset(times), "several times")
    layers = "one layer has all of its weights" if most == 1 else f"{most} layers have all of their weights"
    return f"Each layer is gathered {often} in a step, and at most {layers} at a time"


def _canvas(title: str, subtitle: str, height: float, colours: Mapping[str, str]) -> tuple[style.Picture, Axes]:
    marks = {name: Patch(color=colour) for name, colour in colours.items()}
    above = style.legend_height(list(marks), _LEFT, _RIGHT)
    margins = {"left": _LEFT, "right": _RIGHT, "below": 0.05, "above": above}
    picture, (ax,) = style.new_picture(title, subtitle, heights=[height], **margins)
    ax.set(xlim=(0, style.WIDTH - _LEFT - _RIGHT), ylim=(height, 0))
    ax.axis("off")
    style.draw_legend(ax, marks)
    return picture, ax


def _name_ranks(ax: Axes, top: float, square: float, ranks: int) -> None:
    for rank in range(ranks):
        at = (-0.08, top + (rank + 0.5) * square)
        ax.text(*at, f"rank {rank}", fontsize=style.SMALL, ha="right", va="center")


def _parts(
    ax: Axes,
    x: float,
    y: float,
    wide: float,
    high: float,
    held: Sequence[bool],
    colour: str,
    inset: float,
    framed: bool = True,
) -> None:
    """Draw a block cut into parts from left to right; framed parts are squares of their own."""
    each = (wide if framed else wide - 2 * inset) / len(held)
    left = x if framed else x + inset
    faint = {"edgecolor": "#B5B5B5", "linewidth": 0.8}
    for part, there in enumerate(held):
        gap = inset if framed else 0.0
        corner, size = (left + part * each + gap, y + inset), (each - 2 * gap, high - 2 * inset)
        face = colour if there else "none"
        ax.add_patch(Rectangle(corner, *size, facecolor=face, **(faint if framed else {"linewidth": 0})))
    if not framed:
        ax.add_patch(Rectangle((left, y + inset), wide - 2 * inset, high - 2 * inset, facecolor="none", **faint))
