"""Blocks: what is where. Ranks are rows, squares are blocks of a vector, and each frame shows them after a round.

A square shows whose numbers are in it. Each rank has a stripe of its own, which is filled in its colour once its
numbers have been added. If data only move and nothing is added, the square has the colour of the rank they came from.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Protocol

from matplotlib.axes import Axes
from matplotlib.patches import Circle, Patch, Rectangle

from course_utils.draw import style
from course_utils.draw.block_frames import IN_AND_OUT, Block, BlockFrames, BlockPiece
from course_utils.errors import CourseError
from course_utils.words import count, join

RANK_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#5F5F5F")
"""One for each rank, after Okabe & Ito 2008; from the ninth rank on they begin again."""
WRONG = "#B00020"

_LEFT, _RIGHT, _BELOW = 0.62, 0.1, 0.1  # margins in inches
_LEAST_STRIPE = 0.06  # inches that "×2" needs
_HEAD, _BETWEEN, _PANEL_HEAD = 0.24, 0.22, 0.3  # over a frame, between frames, over a panel


class HasBlockFrames(Protocol):
    """What `blocks` draws: a run, or frames themselves."""

    @property
    def block_frames(self) -> BlockFrames:
        """What was where."""


def blocks(
    *runs: HasBlockFrames,
    titles: Sequence[str] | None = None,
    title: str | None = None,
    wrong: Iterable[tuple[int, int]] = (),
    subtitle: str | None = None,
) -> style.Picture:
    """Draw what is where in each of the runs, one panel for each.

    Args:
        runs: Runs, or `BlockFrames`.
        titles: a name for each run; needed where there are several.
        title: the finding; without it, it is read off the frames.
        wrong: blocks of the last frame, as (rank, block), to be marked as wrong.
        subtitle: how to read the squares; without it, a text that explains the marks of a run.
    """
    names = list(titles or ([""] if len(runs) == 1 else [chr(ord("A") + index) for index in range(len(runs))]))
    if not runs or len(names) != len(runs):
        raise CourseError(
            f"blocks: {count(len(runs), 'run')} and {count(len(names), 'title')}. "
            'Give runs, and as many titles: course.draw.blocks(loop, tree, titles=["loop", "tree"]).'
        )
    panels = [run.block_frames for run in runs]
    layout = _Layout(panels, bool(titles))
    most = max(panel.world_size for panel in panels)
    marked = frozenset(wrong)
    subtitle = _caption(panels, bool(marked)) if subtitle is None else subtitle
    labels = {f"rank {rank}": Patch(color=colour_of(rank)) for rank in range(min(most, len(RANK_COLOURS)))}
    above = style.legend_height(list(labels), _LEFT, _RIGHT)
    heading = title or _heading(panels, names, len(marked))
    picture, (ax,) = style.new_picture(
        heading, subtitle, heights=[layout.height], left=_LEFT, right=_RIGHT, below=_BELOW, above=above
    )
    ax.set(xlim=(0, layout.width), ylim=(layout.height, 0))
    ax.axis("off")
    for panel, name, (x, y) in zip(panels, names, layout.corners, strict=True):
        if name:
            at_left = x - (_LEFT - 0.15 if x == 0 else 0)
            ax.text(at_left, y + 0.1, name, fontsize=style.TEXT, fontweight="bold", va="center", parse_math=False)
        _draw_panel(ax, panel, layout, x, y + layout.panel_head, marked)
    style.draw_legend(ax, labels)
    picture.alt_text = _alt_text(heading, panels, names, marked)
    return picture


def colour_of(rank: int) -> str:
    """The colour of a rank's numbers."""
    return RANK_COLOURS[rank % len(RANK_COLOURS)]


class _Layout:
    """Where panels and frames go, in inches: frames from left to right, and on a new line where there is no room."""

    def __init__(self, panels: Sequence[BlockFrames], named: bool) -> None:
        self.width = style.WIDTH - _LEFT - _RIGHT
        self.panel_head = _PANEL_HEAD if named else 0.0
        columns = max(len(row) for panel in panels for frame in panel.frames for row in frame.held)
        most = max(len(panel.frames) for panel in panels)
        size = max(panel.world_size for panel in panels)
        several = len(panels) > 2 and most == 2  # before and after: several panels on a line
        lines_of_frames = math.ceil(most / (5 if columns <= 4 else 4))
        together = 6 if several else math.ceil(most / lines_of_frames)
        room = (self.width - (0.9 if several else 0.0)) / together
        self.square = max(0.13, min(0.36, (room - _BETWEEN) / max(columns, 1), 2.6 / size))
        self.columns = columns
        self.frame_width = columns * self.square + _BETWEEN
        self.per_line = together
        self.frame_height = size * self.square + _HEAD + 0.1
        self.corners: list[tuple[float, float]] = []
        x = y = 0.0
        for panel in panels:
            lines = math.ceil(len(panel.frames) / self.per_line)
            wide = min(len(panel.frames), self.per_line) * self.frame_width
            if x and (not several or x + wide > self.width + _BETWEEN):
                x, y = 0.0, y + self._line
            self.corners.append((x, y))
            self._line = lines * self.frame_height + self.panel_head + 0.1
            x += wide + (0.28 if several else self.width)
        self.height = y + self._line - 0.1

    def corner(self, index: int, x: float, y: float) -> tuple[float, float]:
        """The upper left corner of a panel's frame."""
        line, column = divmod(index, self.per_line)
        return x + column * self.frame_width, y + line * self.frame_height


def _draw_panel(
    ax: Axes, panel: BlockFrames, layout: _Layout, x: float, y: float, wrong: frozenset[tuple[int, int]]
) -> None:
    before = None
    for index, frame in enumerate(panel.frames):
        left, top = layout.corner(index, x, y)
        middle = left + max(map(len, frame.held)) * layout.square / 2
        ax.text(middle, top + _HEAD / 2, frame.name, fontsize=style.SMALL, ha="center", va="center", color="#555555")
        for rank, row in enumerate(frame.held):
            down = top + _HEAD + rank * layout.square
            if left == 0:
                ax.text(-0.08, down + layout.square / 2, f"rank {rank}", fontsize=style.SMALL, ha="right", va="center")
            for column, block in enumerate(row):
                corner = (left + column * layout.square, down)
                changed = before is not None and bool(block) and before.held[rank][column] != block
                _draw_block(ax, block, corner, layout.square, panel.adds, changed)
                if index == len(panel.frames) - 1 and (rank, column) in wrong:
                    _mark_wrong(ax, corner, layout.square)
        before = frame


def _draw_block(ax: Axes, block: Block, corner: tuple[float, float], square: float, adds: bool, changed: bool) -> None:
    margin = 0.07 * square
    x, y = corner[0] + margin, corner[1] + margin
    side = square - 2 * margin
    start = x
    for piece in block:
        wide = piece.share * side
        if not piece.is_known:
            _draw_unknown(ax, start, y, wide, side)
        elif adds:
            _draw_stripes(ax, piece, start, y, wide, side)
        else:
            owner = next((rank for rank, times in enumerate(piece.counts) if times), None)
            if owner is not None:
                ax.add_patch(Rectangle((start, y), wide, side, facecolor=colour_of(owner), linewidth=0))
                if piece.label:
                    ink = style.ink_on(colour_of(owner))
                    at = (start + wide / 2, y + side / 2)
                    ax.text(*at, piece.label, fontsize=6.5, ha="center", va="center_baseline", color=ink)
        start += wide
    if adds and block and all(piece.is_complete for piece in block):
        _draw_tick(ax, x + side / 2, y + side / 2, side)
    edge = {"edgecolor": style.INK, "linewidth": 1.4} if changed else {"edgecolor": "#B5B5B5", "linewidth": 0.8}
    ax.add_patch(Rectangle((x, y), side, side, facecolor="none", **edge))


def _draw_stripes(ax: Axes, piece: BlockPiece, x: float, y: float, wide: float, high: float) -> None:
    """A stripe for each rank from top to bottom, filled where the rank's numbers are in."""
    each = high / len(piece.counts)
    for rank, times in enumerate(piece.counts):
        if times:
            ax.add_patch(Rectangle((x, y + rank * each), wide, each, facecolor=colour_of(rank), linewidth=0))
        if times > 1 and each < _LEAST_STRIPE:  # too low for letters: a dark line through the stripe
            ax.plot((x, x + wide), [y + (rank + 0.5) * each] * 2, color=style.INK, linewidth=0.8, solid_capstyle="butt")
        elif times > 1:
            middle = (x + 0.36 * wide, y + (rank + 0.5) * each)  # a cross in the corner leaves it free
            ink = style.ink_on(colour_of(rank))
            ax.text(*middle, f"×{times}", fontsize=5.5, ha="center", va="center_baseline", color=ink)


def _draw_unknown(ax: Axes, x: float, y: float, wide: float, high: float) -> None:
    """Hatch a piece whose value is no sum of the ranks' numbers."""
    ax.add_patch(Rectangle((x, y), wide, high, facecolor="#EEEEEE", edgecolor="#777777", hatch="xxxxx", linewidth=0))


def _draw_tick(ax: Axes, x: float, y: float, side: float) -> None:
    """A tick on a white disc: this block holds the sum of all ranks."""
    radius = 0.27 * side
    ax.add_patch(Circle((x, y), radius, facecolor="white", linewidth=0, zorder=3))
    across, down = (-0.5, -0.12, 0.55), (0.05, 0.45, -0.42)
    points = [x + radius * part for part in across], [y + radius * part for part in down]
    ax.plot(*points, color=style.INK, linewidth=max(1.0, 5.0 * side), zorder=4)


def _mark_wrong(ax: Axes, corner: tuple[float, float], square: float) -> None:
    """A red frame, and a cross in the corner for those who do not see red."""
    margin = 0.04 * square
    side = square - 2 * margin
    frame = {"facecolor": "none", "edgecolor": WRONG, "linewidth": 1.8, "zorder": 5}
    ax.add_patch(Rectangle((corner[0] + margin, corner[1] + margin), side, side, **frame))
    badge = min(0.36 * square, 0.13)
    x, y = corner[0] + square - margin - badge, corner[1] + margin
    ax.add_patch(Rectangle((x, y), badge, badge, facecolor="white", edgecolor=WRONG, linewidth=1.0, zorder=6))
    inset = 0.25 * badge
    for ends in ((y + inset, y + badge - inset), (y + badge - inset, y + inset)):
        ax.plot((x + inset, x + badge - inset), ends, color=WRONG, linewidth=1.3, zorder=7)


def _caption(panels: Sequence[BlockFrames], marked: bool) -> str:
    """How to read the squares."""
    blocks_ = [block for panel in panels for frame in panel.frames for row in frame.held for block in row]
    pieces = [piece for block in blocks_ for piece in block]
    texts = ["Colours show whose numbers a block holds"]
    if any(panel.adds for panel in panels):
        texts[0] += "; several stripes mean that they have been added up"
    if any(block and all(piece.is_complete for piece in block) for block in blocks_):
        texts.append("A tick marks the sum of all ranks")
    if not all(piece.is_known for piece in pieces):
        texts.append("A hatched block holds something that is no sum of the ranks' numbers")
    texts.append("A thick frame marks what is new")
    if marked:
        texts.append("Blocks with a cross are wrong")
    texts.append("To draw this, the function was run again with each rank's numbers marked")
    return ". ".join(texts) + "."


def _heading(panels: Sequence[BlockFrames], names: Sequence[str], wrong: int) -> str:
    """The finding, which is what is wrong where something is."""
    if len(panels) > 1:
        return _comparison(panels, names)
    if not wrong:
        return panels[0].finding()
    held = count(sum(map(len, panels[0].frames[-1].held)), "block")
    when = f"after {count(panels[0].rounds, 'round')}" if panels[0].ended else "when nothing moves any more"
    return f"{wrong} of {held} {'is' if wrong == 1 else 'are'} wrong {when}"


def _comparison(panels: Sequence[BlockFrames], names: Sequence[str]) -> str:
    if all(panel.rounds == 1 for panel in panels):
        return IN_AND_OUT
    needed = [f"{count(panel.rounds, 'round')} ({name})" for name, panel in zip(names, panels, strict=True)]
    return f"Who holds what after each round: {join(needed)}"


def _alt_text(
    heading: str, panels: Sequence[BlockFrames], names: Sequence[str], wrong: frozenset[tuple[int, int]]
) -> str:
    texts = [f"{heading}."]
    for name, panel in zip(names, panels, strict=True):
        for frame in (panel.frames[0], panel.frames[-1]):
            rows = [f"rank {rank}: {_row_text(row)}" for rank, row in enumerate(frame.held)]
            texts.append(f"{name + ', ' if name else ''}{frame.name}: {'; '.join(rows)}.")
    if wrong:
        texts.append("Wrong: " + "; ".join(f"block {block} of rank {rank}" for rank, block in sorted(wrong)) + ".")
    return " ".join(texts)


def _row_text(row: Sequence[Block]) -> str:
    return ", ".join(_block_text(block) for block in row)


def _block_text(block: Block) -> str:
    texts = []
    for piece in block:
        ranks = [
            f"{rank}" + (f" {times} times" if times > 1 else "") for rank, times in enumerate(piece.counts) if times
        ]
        texts.append(piece.label or "+".join(ranks) or ("nothing" if piece.is_known else "no sum"))
    return " then ".join(texts) or "nothing"
