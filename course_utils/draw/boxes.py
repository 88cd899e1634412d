"""Boxes in a row of time: what was done from when to when."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection

Corners = tuple[float, float, float, float]  # left and right in units of the axis, top and bottom in rows


def boxes(ax: Axes, corners: Sequence[Corners], **look) -> None:
    """Draw rectangles, all of them as one artist."""
    if corners:
        polygons = [[(x0, y0), (x1, y0), (x1, y1), (x0, y1)] for x0, x1, y0, y1 in corners]
        ax.add_collection(PolyCollection(polygons, **look), autolim=False)
