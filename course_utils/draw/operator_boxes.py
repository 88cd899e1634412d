"""One operator cut along samples, attribute or parameter: what a device computes, has, and must fetch for it."""

from collections.abc import Mapping, Sequence
from itertools import pairwise, product

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Polygon

from course_utils.draw import style
from course_utils.draw.rows import paler
from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.graph.configurations import (
    Box,
    Config,
    common,
    input_box,
    output_box,
    replicas,
    volume,
)
from course_utils.lessons.strategy_search.graph.operator_graph import Operator
from course_utils.words import join

OWN, FETCHED, ELSEWHERE = "on this device", "fetched from another", "on others"
_COLOURS = {OWN: style.COLOURS["forward"], FETCHED: style.COLOURS["communication"], ELSEWHERE: "#DDDDDD"}
_SIZES = (0.62, 1.0, 1.0)  # inches along samples (into the depth), channels (to the right) and height (upwards)
_DEPTH = (0.62, 0.40)  # where an inch into the depth goes: to the right, upwards
_GAP = 0.55
_TINTS = {"front": 0.0, "side": 0.28, "top": 0.5}  # share of white


def operator_cuts(
    before: Operator, operator: Operator, configs: Mapping[str, Config], place: int = 0, title: str = ""
) -> Figure:
    """Draw, for each configuration, the input and the output of an operator as boxes, as one device sees them.

    The operator before is cut in the same way. Boxes reach from sample to sample into the depth, from channel to
    channel to the right, from row to row downwards.

    Args:
        before: makes the input; both have outputs of (samples, channels, height, width).
        place: which of a configuration's parts is looked at.
    """
    if not configs or len(before.shape) != 4 or len(operator.shape) != 4:
        raise CourseError("operator_cuts: one configuration at least, and operators that make images.")
    found = [cut_said(before, operator, config, place) for config in configs.values()]
    title = title or cuts_title(before, operator, configs, place)
    look = {"left": 0.12, "right": 0.08, "above": 0.52, "below": 0.46, "side_by_side": True}
    high = _SIZES[2] + _SIZES[0] * _DEPTH[1] + 0.1
    picture, axes = style.new_picture(title, heights=[high] * len(configs), **look)
    for ax, (name, config), (fetches, sums) in zip(axes, configs.items(), found, strict=True):
        width = _panel(ax, before, operator, config, place)
        inches = style.WIDTH / len(configs) - look["left"] - look["right"]
        ax.set_xlim(0, max(inches, width))
        ax.set_ylim(-0.05, high)
        ax.axis("off")
        ax.set_title(name, fontsize=style.TEXT, fontweight="bold", loc="left", pad=4)
        for row, text in enumerate((fetches, sums)):
            at = {"transform": ax.transAxes, "va": "top", "fontsize": style.SMALL, "color": style.INK}
            ax.text(0, -0.04 - row * 0.15 / high, text, **at)
    style.draw_legend(axes[0], {word: Patch(facecolor=colour) for word, colour in _COLOURS.items()}, offset=0.28)
    told = " ".join(f"{name}: {fetches}; {sums}." for name, (fetches, sums) in zip(configs, found, strict=True))
    picture.alt_text = f"An operator's input and output as boxes. {title}. {told}"
    return picture


def cuts_title(before: Operator, operator: Operator, configs: Mapping[str, Config], place: int) -> str:
    """Which ways fetch least forward, and which need no sum backward."""
    fetched = {name: fetched_numbers(before, operator, config, place) for name, config in configs.items()}
    least = [name for name, numbers in fetched.items() if numbers == min(fetched.values())]
    unsummed = [name for name, config in configs.items() if len(replicas(config)[0]) == 1]
    said = f"{join(least)} a device fetches {'least' if min(fetched.values()) else 'nothing'}"
    said += f"; {join(unsummed)} it sums no gradients" if unsummed else ""
    return said[:1].upper() + said[1:]


def fetched_numbers(before: Operator, operator: Operator, config: Config, place: int) -> int:
    """How many numbers of its input the part at `place` needs from other devices."""
    own, read = _boxes(before, operator, config, place)
    return volume(read) - volume(common(own, read))


def cut_said(before: Operator, operator: Operator, config: Config, place: int) -> tuple[str, str]:
    """What the part fetches forward, and which gradients are summed backward, in words."""
    numbers = fetched_numbers(before, operator, config, place)
    fetches = f"fetches {numbers:,} numbers" if numbers else "fetches nothing"
    shared = len(replicas(config)[0]) > 1
    weights = operator.parameters // config.parameter
    return fetches, f"sums {weights:,} gradients" if shared else "sums no gradients"


def _boxes(before: Operator, operator: Operator, config: Config, place: int) -> tuple[Box, Box]:
    """What the device has of the input, and what it reads."""
    return output_box(before, config, place), input_box(operator, config, place, before.shape)


def _panel(ax: Axes, before: Operator, operator: Operator, config: Config, place: int) -> float:
    """Input and output side by side; returns how far to the right they reach, in inches."""
    own, read = _boxes(before, operator, config, place)
    made = output_box(operator, config, place)
    _block(ax, 0.0, before.shape, {FETCHED: read, OWN: own})
    wide = _SIZES[1] + _SIZES[0] * _DEPTH[0]
    _block(ax, wide + _GAP, operator.shape, {OWN: made})
    arrow = {"arrowstyle": "-|>", "color": style.FAINT, "linewidth": 1.2}
    middle = _SIZES[2] / 2 + 0.1
    ax.annotate("", (wide + _GAP - 0.08, middle), (wide + 0.05, middle), arrowprops=arrow)
    for x, name in ((0.0, before.name), (wide + _GAP, operator.name)):
        at = {"ha": "center", "va": "center", "fontsize": style.SMALL, "color": style.INK, "zorder": 9}
        at |= {"bbox": {"facecolor": "white", "alpha": 0.8, "linewidth": 0, "pad": 1.5}}
        ax.text(x + _SIZES[1] / 2, 0.82 * _SIZES[2], name, **at)
    return 2 * wide + _GAP


def _block(ax: Axes, x: float, shape: Sequence[int], marked: Mapping[str, Box]) -> None:
    """A tensor as a box, cut into cells where a marked box begins or ends; a later mark lies over an earlier one."""
    bounds = [sorted({0, shape[d], *(end for box in marked.values() for end in box[d])}) for d in range(3)]
    cells = list(product(*(list(pairwise(edges)) for edges in bounds)))
    for samples, channels, rows in sorted(cells, key=lambda cell: (-cell[0][0], -cell[2][0], cell[1][0])):
        meaning = ELSEWHERE
        for name, box in marked.items():
            if all(b <= low and high <= e for (low, high), (b, e) in zip((samples, channels, rows), box, strict=False)):
                meaning = name
        z, c, r = (
            tuple(size * edge / length for edge in edges)
            for size, edges, length in zip(_SIZES, (samples, channels, rows), shape, strict=False)
        )
        _cuboid(ax, x, c, (_SIZES[2] - r[1], _SIZES[2] - r[0]), z, _COLOURS[meaning])


def _cuboid(ax: Axes, x: float, across: tuple, up: tuple, deep: tuple, colour: str) -> None:
    """The three faces that one sees of a box."""

    def at(a: float, u: float, d: float) -> tuple[float, float]:
        return x + a + d * _DEPTH[0], u + d * _DEPTH[1]

    (left, right), (low, high), (near, far) = across, up, deep
    faces = {
        "front": [(left, low, near), (right, low, near), (right, high, near), (left, high, near)],
        "side": [(right, low, near), (right, low, far), (right, high, far), (right, high, near)],
        "top": [(left, high, near), (right, high, near), (right, high, far), (left, high, far)],
    }
    for name, corners in faces.items():
        face = paler(colour, _TINTS[name])
        ax.add_patch(Polygon([at(*corner) for corner in corners], facecolor=face, edgecolor="white", linewidth=0.7))
