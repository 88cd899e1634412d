"""The picture of deck 9 that its page does not have: gelu of a sum, and the sum of gelus."""

import torch
from matplotlib.figure import Figure
from torch.nn.functional import gelu

import course_utils as course

DRAFT = {"PAGE": {"width": 32, "row_counts": [8, 512], "steps": 2}}


def gelus() -> Figure:
    """The gelu of a sum is not the sum of gelus."""
    a = torch.linspace(-3, 3, 7)
    lines = {"gelu(a) + gelu(−a)": (gelu(a) + gelu(-a)).tolist(), "gelu(a − a)": gelu(a - a).tolist()}
    title = "The terms a and −a: gelu of their sum is 0, the sum of their gelus is not"
    return course.draw.over_numbers(a.tolist(), lines, title, across="a", up="value")


FIGURES = {"09_gelu": gelus}
