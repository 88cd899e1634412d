"""How deck 7 runs its page, with more rounds than the page measures, and a picture with two of its three steps."""

from types import SimpleNamespace

from matplotlib.figure import Figure

from course_utils.lessons.overlap import behind_the_step

PAGE = {"rounds": 5}
DRAFT = {"PAGE": {"batch": 4, "rounds": 1}}


def in_buckets(page: SimpleNamespace) -> Figure:
    """Draw the page's step with hooks and the one with buckets. All three would be too small on a slide."""
    two = {name: page.steps[name] for name in ("hooks", "buckets")}
    return behind_the_step(two, "One step on rank 0, with hooks and with buckets")


FIGURES = {"07_in_buckets": in_buckets}
