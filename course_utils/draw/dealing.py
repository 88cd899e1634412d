"""How a sampler deals images out: their order in each epoch, and which rank has which."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from course_utils.draw import style
from course_utils.errors import CourseError
from course_utils.words import count


def dealt(
    epochs: Mapping[str, Sequence[Sequence[int]]], title: str = "", batch: int = 0, width: float = style.WIDTH
) -> Figure:
    """Draw a row for each epoch: all images in the order in which they are used, coloured by rank.

    Args:
        epochs: a row's name → for each rank the numbers of its images, in order.
        title: said first; the finding (whether the order changes) then stands under it.
        batch: images of a global batch; a line stands after each. 0 for none.
    """
    if not epochs or not all(shares and shares[0] for shares in epochs.values()):
        raise CourseError("draw.dealt: an epoch with an image for rank 0 at least.")
    rows = {name: [image for turn in zip(*shares, strict=True) for image in turn] for name, shares in epochs.items()}
    ranks = len(next(iter(epochs.values())))
    found = dealt_finding(list(rows.values()))
    marks = {f"rank {rank}": Patch(facecolor=_light(rank)) for rank in range(ranks)}
    left = 0.3 + max(style.text_width(name, style.TEXT) for name in rows) / style.DOTS
    above = style.legend_height(list(marks), left)
    heading = (title, found) if title else (found, "")
    look = {"left": left, "right": 0.15, "below": 0.1, "above": above, "width": width}
    picture, (ax,) = style.new_picture(*heading, heights=[0.34 * len(rows)], **look)
    longest = max(map(len, rows.values()))
    ax.set_xlim(0, longest)
    ax.set_ylim(len(rows), 0)
    ax.axis("off")
    for y, (name, order) in enumerate(rows.items()):
        ax.text(-0.2, y + 0.5, name, ha="right", va="center_baseline", fontsize=style.TEXT, parse_math=False)
        for x, image in enumerate(order):
            ax.add_patch(Rectangle((x, y + 0.08), 0.94, 0.84, facecolor=_light(x % ranks), linewidth=0))
            ax.text(x + 0.47, y + 0.5, str(image), ha="center", va="center_baseline", fontsize=style.SMALL)
            if batch and x % batch == 0 and x:
                ax.plot([x - 0.03] * 2, [y, y + 1], color=style.INK, linewidth=1.6)
    style.draw_legend(ax, marks)
    told = "; ".join(f"{name}: {', '.join(map(str, order))}" for name, order in rows.items())
    picture.alt_text = f"Images in the order in which they are used, by rank. {title} {found}. {told}."
    return picture


def dealt_finding(rows: Sequence[Sequence[int]]) -> str:
    """Whether every epoch has an order of its own."""
    orders = len({tuple(order) for order in rows})
    if orders == len(rows):
        return f"{count(len(rows), 'epoch')}, {count(orders, 'order')}; every image once in each"
    return f"{count(len(rows), 'epoch')}, but only {count(orders, 'order')}"


def _light(rank: int) -> str:
    return ("#7DB9DE", "#F2C777", "#8FD1B8", "#E5B8D2")[rank % 4]
