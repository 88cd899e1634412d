"""The look that all pictures share: one colour per meaning, sizes, units in words, and the Figure that shows itself."""

import base64
import html
import io
from collections.abc import Sequence
from functools import cache

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import RendererAgg
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.legend import Legend
from matplotlib.patches import Patch

from course_utils.words import percent as percent  # with the units in words below, for all pictures

# One colour per meaning, after Okabe & Ito 2008, "Color universal design": told apart with every kind of colour vision.
COLOURS = {
    "forward": "#0072B2",
    "computing": "#0072B2",  # forward and backward together
    "backward": "#E69F00",
    "weight gradient": "#F0E442",
    "step": "#009E73",
    "optimizer": "#009E73",
    "communication": "#CC79A7",
    "idle": "#BFBFBF",
    "wait": "#BFBFBF",
}
SEND, RECEIVE, TOGETHER = "#8F2D66", "#CC79A7", "#B65A8E"  # shades of communication
STUCK = "#D55E00"
INK, FAINT, GRID = "#222222", "#8A8A8A", "#E8E8E8"
OTHERS = ("#56B4E9", "#A6A1D6", "#C9B48A", "#7FB8A4", "#D8A6A0", "#9A9A9A")  # phases with names of their own
CURVES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#222222", "#8A8A8A")

Corners = tuple[float, float, float, float]  # of a box: left and right in units of the axis, top and bottom in rows

WIDTH = 7.0  # inches; shown 700 pixels wide
SLIDE_WIDTH = 10.5  # inches, for pictures that stand side by side
DOTS = 100  # pixels to the inch as shown
_PNG = "data:image/png;base64,"
_FINER = 2  # times as many in the PNG, for sharp screens
_LEAST = 0.8  # of its width, down to which a picture shrinks; its small letters then have 6.4 points
_DARK = "var(--jp-shadow-base-lightness, 0)"  # JupyterLab's themes: 0 if the page is light, 32 if it is dark
_ON_DARK_PAGES = f"invert(calc({_DARK} * 0.93 / 32)) hue-rotate(calc({_DARK} * 180deg / 32))"
"""White becomes the ground of JupyterLab's dark theme, and colours keep their hue: blue stays blue, and is lighter."""
TEXT, SMALL, TITLE = 9.0, 8.0, 11.0  # points


class Picture(Figure):
    """A matplotlib Figure that a notebook shows by itself, once, with a text alternative.

    A plain Figure made without pyplot shows as `<Figure size …>`; pyplot's own may show twice.

    Attributes:
        alt_text: what the picture shows, in words, for people who do not see it.
    """

    alt_text: str = ""

    def _repr_png_(self) -> bytes:
        """The picture as PNG, at twice the resolution at which it is shown."""
        file = io.BytesIO()
        self.savefig(file, format="png", dpi=_FINER * DOTS, metadata={"Description": self.alt_text, "Software": None})
        return file.getvalue()

    def data_url(self) -> str:
        """The picture as PNG, in an address that holds it all."""
        return _PNG + base64.b64encode(self._repr_png_()).decode()

    @property
    def html(self) -> str:
        """The picture for a page: it shrinks a little, then scrolls. On a dark page it is dark."""
        width = round(DOTS * self.get_figwidth())
        size = f"width: {width}px; min-width: {round(_LEAST * width)}px; max-width: 100%; height: auto"
        described = html.escape(self.alt_text, quote=True)
        return (
            '<div style="overflow-x: auto">'
            f'<img src="{self.data_url()}" width="{width}" alt="{described}" style="{size}; filter: {_ON_DARK_PAGES}">'
            "</div>"
        )

    def _repr_mimebundle_(self, include=None, exclude=None) -> tuple[dict, dict]:
        """IPython's hook. JupyterLab takes the HTML, which can carry the alternative text; others take the PNG."""
        width, height = (round(side * DOTS) for side in self.get_size_inches())
        bundle = {
            "image/png": self.data_url().removeprefix(_PNG),
            "text/html": self.html,
            "text/plain": self.alt_text,
        }
        return bundle, {"image/png": {"width": width, "height": height}}


def colours_of(names: Sequence[str]) -> dict[str, str]:
    """A colour for each name: the fixed one where the name has a meaning, else one that no other name here has."""
    unknown = [name for name in dict.fromkeys(names) if name not in COLOURS]
    own = {name: OTHERS[index % len(OTHERS)] for index, name in enumerate(unknown)}
    return {name: COLOURS.get(name) or own[name] for name in names}


@cache
def text_width(text: str, size: float = SMALL, bold: bool = False) -> float:
    """Width of a line of text of `size` points, in pixels at `DOTS` to the inch, as the PNG shows it.

    Letters are fitted to whole dots, so that a line is up to 4% wider there than with `DOTS` to the inch.
    """
    font = FontProperties(size=size, weight="bold" if bold else "normal")
    return _measure().get_text_width_height_descent(text, font, ismath=False)[0] / _FINER


@cache
def _measure() -> RendererAgg:
    return RendererAgg(1, 1, _FINER * DOTS)


def shorten(text: str, width: float, size: float = SMALL) -> str:
    """The text, cut with an ellipsis where it is wider than `width` pixels."""
    while text and text_width(text, size) > width:
        text = text[: -2 if text.endswith("…") else -1].rstrip() + "…" if len(text) > 2 else ""
    return text


def wrap(text: str, size: float, bold: bool = False, width: float = (WIDTH - 0.3) * DOTS) -> list[str]:
    """Break a text at its spaces (not at those that must not break) into lines that fit on the picture."""
    lines: list[str] = []
    for word in filter(None, text.split(" ")):
        if lines and text_width(f"{lines[-1]} {word}", size, bold) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def new_picture(
    title: str | None,
    subtitle: str = "",
    *,
    heights: Sequence[float],
    between: float = 0.75,
    left: float = 0.8,
    right: float = 0.2,
    below: float = 0.5,
    above: float = 0.0,
    width: float = WIDTH,
    side_by_side: bool = False,
) -> tuple[Picture, list[Axes]]:
    """An empty picture: a title that states the finding, and axes one under the other, or side by side.

    Args:
        title: without one, the subtitle takes its place.
        heights: height of each axes' area, in inches; `between` is the room from one to the next below it.
        left, right, below: margins, in inches; `above` is extra room under the titles, for a legend.
        side_by_side: divide the `width` among the axes; each has these margins.
    """
    title, subtitle = (title, subtitle) if title else (subtitle, "")
    picture = Picture(figsize=(width, 1.0), dpi=DOTS, facecolor="white")
    lines = [(line, TITLE, True) for line in wrap(title, TITLE, True, (width - 0.3) * DOTS)]
    lines += [(line, TEXT, False) for line in wrap(subtitle, TEXT, False, (width - 0.3) * DOTS)]
    top = 0.12 + sum(size * 1.45 / 72 for _, size, _ in lines) + 0.1 + above
    high = max(heights) if side_by_side else sum(heights) + between * (len(heights) - 1)
    height = top + high + below
    picture.set_size_inches(width, height)
    y = height - 0.12
    for line, size, bold in lines:
        weight, colour = ("bold", INK) if bold else ("normal", "#555555")
        at = {"x": 0.15 / width, "y": y / height, "va": "top", "ha": "left", "parse_math": False}
        picture.text(s=line, fontsize=size, fontweight=weight, color=colour, **at)
        y -= size * 1.45 / 72
    axes, y = [], height - top
    share = width / len(heights) if side_by_side else width
    for index, each in enumerate(heights):
        x = left + (index * share if side_by_side else 0)
        axes.append(picture.add_axes((x / width, (y - each) / height, (share - left - right) / width, each / height)))
        y -= 0 if side_by_side else each + between
    for ax in axes:
        ax.spines[["top", "right"]].set_visible(False)
        ax.spines[["left", "bottom"]].set_color(FAINT)
        ax.tick_params(labelsize=TEXT, color=FAINT)
    return picture, axes


def legend_rows(labels: Sequence[str], width: float) -> list[list[str]]:
    """Break the words of a legend into rows of at most `width` pixels."""
    rows: list[list[str]] = []
    used = 0.0
    for label in labels:
        need = text_width(label) + 34
        if not rows or used + need > width:
            rows.append([])
            used = 0.0
        rows[-1].append(label)
        used += need
    return rows


def legend_height(labels: Sequence[str], left: float = 0.8, right: float = 0.2) -> float:
    """Inches that the rows of a legend need above axes with these margins."""
    return 0.2 * len(legend_rows(labels, (WIDTH - left - right) * DOTS)) + 0.1 if labels else 0.0


def draw_legend(ax: Axes, handles: dict[str, Patch], offset: float = 0.06) -> None:
    """Put swatches with words in rows above the axes, from the left, `offset` inches above."""
    figure = ax.figure
    box = ax.get_position()
    width = (1 - box.x0) * figure.get_figwidth() * DOTS
    rows = legend_rows(list(handles), width)
    for index, row in enumerate(rows):
        up = (len(rows) - 1 - index) * 0.2 + offset
        legend = Legend(  # not ax.legend, which would draw the last row a second time
            ax,
            [handles[label] for label in row],
            row,
            loc="lower left",
            bbox_to_anchor=(0, 1 + up / (box.height * figure.get_figheight())),
            ncols=len(row),
            frameon=False,
            fontsize=SMALL,
            borderaxespad=0,
            borderpad=0,
            handlelength=1.3,
            handleheight=0.9,
            handletextpad=0.5,
            columnspacing=1.3,
        )
        ax.add_artist(legend).set_clip_on(False)  # else a deck's picture is cut at the axes


def boxes(ax: Axes, corners: Sequence[Corners], **properties) -> None:
    """Draw rectangles, all of them as one artist."""
    if corners:
        polygons = [[(x0, y0), (x1, y0), (x1, y1), (x0, y1)] for x0, x1, y0, y1 in corners]
        ax.add_collection(PolyCollection(polygons, **properties), autolim=False)


def paler(colour: str, share: float = 0.7) -> tuple[float, float, float]:
    """The colour mixed with `share` of white."""
    return tuple(1 - (1 - part) * (1 - share) for part in to_rgb(colour))


def ink_on(colour: str) -> str:
    """White or `INK`: what can be read better on this colour.

    Source: WCAG 2.1, definitions of relative luminance and of contrast ratio.
    """
    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(colour)]
    luminance = 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]
    return "white" if luminance < 0.21 else INK
