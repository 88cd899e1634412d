"""A training that was killed and went on: the loss over the steps of each try, and what was done twice."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from course_utils.draw import style
from course_utils.lessons.gpu_nodes.tries import Try, tries_said

_BROKEN, _AGAIN, _WHOLE = style.STUCK, "#0072B2", "#D0D0D0"


def tries(taken: Sequence[Try], undisturbed: Sequence[float], title: str = "", width: float = style.WIDTH) -> Figure:
    """Draw every try's loss over the steps, with a cross where a rank was killed and an arrow back to the checkpoint.

    Args:
        taken: the tries, in order.
        undisturbed: the loss at the end of each epoch of the same training when nobody is killed.
        title: said first; the finding (steps done twice, where it ended) then stands under it.
    """
    found = tries_said(taken, undisturbed[-1])
    heading = (title, found) if title else (found, "")
    picture, (ax,) = style.new_picture(*heading, heights=[2.6], left=0.75, right=0.3, above=0.25, width=width)
    per_epoch = taken[-1].steps[-1] // len(undisturbed)
    steps = [per_epoch * (epoch + 1) for epoch in range(len(undisturbed))]
    ax.plot(steps, undisturbed, color=_WHOLE, linewidth=12, solid_capstyle="round", zorder=1)
    words = {"fontsize": style.TEXT, "textcoords": "offset points", "parse_math": False}
    third = len(steps) // 4
    at = (steps[third], undisturbed[third])
    ax.annotate("nobody killed", at, xytext=(9, 6), color="#777777", fontweight="bold", **words)
    top = max(undisturbed)
    for index, one in enumerate(taken):
        colour = _AGAIN if one.died is None else _BROKEN
        look = {"linewidth": 1.8 if one.died is None else 4.5, "markersize": 4 if one.died is None else 7}
        ax.plot(one.steps, one.losses, color=colour, marker="o", zorder=3 + index, **look)
        if one.died is None:
            continue
        y = one.losses[-1] if one.losses else top
        ax.plot([one.died], [y], marker="X", color=_BROKEN, markersize=11, zorder=9)
        note = f"rank {one.rank} is killed after step {one.died}"
        ax.annotate(note, (one.died, y), xytext=(8, 12), color=_BROKEN, fontweight="bold", **words)
        if index + 1 < len(taken):
            _back(ax, one.died, taken[index + 1].began, top)
    ax.set_xlim(0, steps[-1] * 1.02)
    ax.set_ylim(0, top * 1.22)
    ax.set_xlabel("step", fontsize=style.TEXT)
    ax.set_title("loss on all training images", fontsize=style.TEXT, loc="left", color="#555555", pad=4)
    ax.grid(axis="y", color=style.GRID, linewidth=0.7)
    parts = [
        f"try {n + 1} from step {one.began} to {one.ended}" + (", killed" if one.died is not None else "")
        for n, one in enumerate(taken)
    ]
    picture.alt_text = f"Loss over steps. {title} {found}. {'; '.join(parts)}."
    return picture


def _back(ax, died: int, began: int, top: float) -> None:
    """A band over the steps that are done twice, and an arrow back over it."""
    ax.axvspan(began, died, color="#F7E3D4", zorder=0)
    high = top * 1.06
    ax.annotate("", (began, high), (died, high), arrowprops={"arrowstyle": "-|>", "color": _AGAIN, "linewidth": 1.8})
    text = f"back to the checkpoint of step {began}"
    middle = {"ha": "center", "va": "bottom", "fontsize": style.TEXT, "color": _AGAIN, "fontweight": "bold"}
    ax.annotate(text, ((began + died) / 2, high), xytext=(0, 3), textcoords="offset points", **middle)
