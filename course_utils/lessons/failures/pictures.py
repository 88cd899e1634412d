"""Drawings that only lesson 18 needs: who takes part in which step, which piece goes where, and what a bit changes."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, Patch, Rectangle

from course_utils.draw import style
from course_utils.draw.block_panels import colour_of
from course_utils.lessons.failures.replica_processes import ReplicaRun
from course_utils.lessons.failures.sentences import lost_text, silent_text
from course_utils.words import count

DONE, LOST, HEALED = "#0072B2", "#E69F00", "#009E73"
"""A step that counts, a step that is lost, and a step before which the replica was healed."""
_ROW = 0.34  # inches


def attempts(run: ReplicaRun, then: str = "") -> Figure:
    """Draw replicas as rows and attempts at a step to the right: who took part, who died, and who was healed.

    Args:
        then: what happens after the death, for the title.
    """
    heading = lost_text(run, then)
    size = 1 + max(replica for attempt in run.attempts for replica in attempt.members)
    last = {attempt.step: index for index, attempt in enumerate(run.attempts)}
    marks = {
        "took part, and the step counts": Patch(facecolor=DONE),
        "took part, and the step is lost": Patch(facecolor=LOST),
    }
    if any(attempt.heals for attempt in run.attempts):
        marks["was healed, then took part"] = Patch(facecolor=HEALED)
    if any(len(attempt.members) < size for attempt in run.attempts):
        marks["did not take part"] = Patch(facecolor="none", edgecolor=style.INK, linewidth=0.8)
    if run.deaths:
        marks["died"] = Line2D([], [], color="black", marker="x", linestyle="none", markersize=5)
    left, right = 0.75, 0.15
    above = style.legend_height(list(marks), left, right) + 0.05
    picture, (ax,) = style.new_picture(heading, heights=[size * _ROW], left=left, right=right, below=0.45, above=above)
    ax.set(xlim=(0, len(run.attempts)), ylim=(size, 0))
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_yticks([row + 0.5 for row in range(size)], [f"replica {row}" for row in range(size)])
    ax.tick_params(length=0)
    ax.set_xticks([index + 0.5 for index in range(len(run.attempts))], [str(a.step + 1) for a in run.attempts])
    ax.tick_params(axis="x", labelsize=6.5)
    ax.set_xlabel("step", fontsize=style.TEXT)
    deaths = list(run.deaths)
    for index, attempt in enumerate(run.attempts):
        counts = last[attempt.step] == index
        for replica in range(size):
            corner = (index + 0.08, replica + 0.1)
            if replica not in attempt.members:
                ax.add_patch(Rectangle(corner, 0.84, 0.8, facecolor="none", edgecolor=style.INK, linewidth=0.8))
                continue
            colour = HEALED if replica in attempt.heals else DONE if counts else LOST
            ax.add_patch(Rectangle(corner, 0.84, 0.8, facecolor=colour, linewidth=0))
            if not counts and (replica, attempt.step) in deaths:
                deaths.remove((replica, attempt.step))
                ax.text(index + 0.5, replica + 0.5, "×", fontsize=13, ha="center", va="center_baseline")
        for newcomer, peer in attempt.heals.items():
            ends = (index + 0.5, peer + 0.5), (index + 0.5, newcomer + 0.2)
            ax.add_patch(FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=9, color=style.INK, linewidth=1.2))
    style.draw_legend(ax, marks)
    healed = [f"replica {new} from replica {peer}" for each in run.attempts for new, peer in each.heals.items()]
    told = f" Healed: {', '.join(healed)}." if healed else ""
    picture.alt_text = (
        f"Replicas as rows, {count(len(run.attempts), 'attempt')} at steps to the right. {heading}.{told}"
    )
    return picture


def pieces(
    saved: Sequence[tuple[int, int]], loaded: Mapping[str, Sequence[Sequence[tuple[int, int, int]]]], title: str
) -> Figure:
    """Draw which saved piece goes where: a bar for the files, and below it one for each way to load them.

    Args:
        saved: the (begin, end) of each file.
        loaded: for each number of ranks ("loaded by 3"), each rank's reads (file, first, last).
    """
    length = max(end for _, end in saved)
    own = [[(file, 0, end - begin)] for file, (begin, end) in enumerate(saved)]
    bars = {f"saved by {len(saved)}": own, **loaded}
    left, right = 0.95, 0.3
    picture, (ax,) = style.new_picture(
        title, "Colours show which file a number is in; a dark frame shows what a rank holds.",
        heights=[0.62 * len(bars)], left=left, right=right, below=0.4, above=0.05,
    )  # fmt: skip
    ax.set(xlim=(0, length), ylim=(len(bars), 0))
    ax.spines[["left", "bottom"]].set_visible(False)
    ax.set_yticks([row + 0.55 for row in range(len(bars))], list(bars))
    ax.tick_params(length=0)
    ax.set_xticks(sorted({begin for begin, _ in saved} | {length}))
    ax.set_xlabel("number in the vector", fontsize=style.TEXT)
    for row, of_ranks in enumerate(bars.values()):
        for rank, reads in enumerate(of_ranks):
            spans = [(saved[file][0] + first, saved[file][0] + last) for file, first, last in reads]
            for (file, _, _), (begin, end) in zip(reads, spans, strict=True):
                ax.add_patch(Rectangle((begin, row + 0.3), end - begin, 0.5, facecolor=colour_of(file), linewidth=0))
                words = {"fontsize": style.SMALL, "color": style.ink_on(colour_of(file)), "ha": "center"}
                ax.text((begin + end) / 2, row + 0.56, f"file {file}", va="center", **words)
            if spans:
                begin, end = spans[0][0], spans[-1][1]
                ax.add_patch(
                    Rectangle(
                        (begin, row + 0.3), end - begin, 0.5, facecolor="none", edgecolor=style.INK, linewidth=1.8
                    )
                )
                ax.text((begin + end) / 2, row + 0.17, f"rank {rank}", fontsize=style.SMALL, ha="center", va="center")
    sentences = [
        f"{name}: " + "; ".join(f"rank {rank} reads {len(reads)} pieces" for rank, reads in enumerate(of_ranks))
        for name, of_ranks in loaded.items()
    ]
    picture.alt_text = f"{len(saved)} files as blocks, and what ranks read of them. {title}. {'. '.join(sentences)}."
    return picture


def flipped_bits(loss: float, losses: Sequence[float]) -> Figure:
    """Draw by how much the loss changes if one of the 64 bits of a weight flips.

    Args:
        loss: without a flip.
        losses: with bit 0, 1, … flipped.
    """
    parts = {"fraction": "#56B4E9", "exponent": "#D55E00", "sign": "#5F5F5F"}
    least, most = 1e-17, 1e2
    marks = {name: Patch(facecolor=colour) for name, colour in parts.items()}
    title = silent_text(loss, losses)
    picture, (ax,) = style.new_picture(
        title, "Relative change of the loss. A missing bar is no change at all.",
        heights=[2.3], left=0.75, below=0.5, above=style.legend_height(list(marks)),
    )  # fmt: skip
    ax.set_yscale("log")
    ax.set(xlim=(-1, 64), ylim=(least, most))
    for bit, flipped in enumerate(losses):
        part = "sign" if bit == 63 else "exponent" if bit >= 52 else "fraction"
        if not math.isfinite(flipped):  # no number, so no bar
            ax.plot([bit], [most / 10], marker="^", color=parts[part], markersize=6, linestyle="none")
            ax.text(bit - 1, most / 10, f"bit {bit}: no finite loss", fontsize=style.SMALL, ha="right", va="center")
        elif flipped != loss:
            ax.bar(bit, min(abs(flipped / loss - 1), most), color=parts[part], width=0.8)
    ax.axhline(0.01, color=style.INK, linewidth=0.8)
    ax.text(0, 0.013, "1%", fontsize=style.SMALL, va="bottom")
    ax.set_ylabel("relative change", fontsize=style.TEXT)
    ax.set_xlabel("bit that is flipped", fontsize=style.TEXT)
    style.draw_legend(ax, marks)
    picture.alt_text = f"A bar for each of 64 bits on a logarithmic axis. {title}."
    return picture
