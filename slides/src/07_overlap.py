"""The pictures of deck 7 that its page does not have like this: two ways of three, and what to show without links."""

from types import SimpleNamespace

from matplotlib.figure import Figure

from course_utils.lessons.data_parallel import report_figures
from course_utils.lessons.overlap import behind_the_step

PAGE = {"rounds": 5}
DRAFT = {"PAGE": {"batch": 4, "rounds": 1}}


def in_buckets(page: SimpleNamespace) -> Figure:
    """The page's step with hooks, and the one with buckets."""
    return behind_the_step({way: page.steps[way] for way in ("hooks", "buckets")}, "One step on node 0")


def traffic(page: SimpleNamespace) -> Figure:
    """Table 3 of the report, and the page's own; without links, its processors."""
    if page.several:
        return report_figures.traffic_by_workers(page.several)
    return report_figures.cpu_by_workers(list(page.same_work.values()))


FIGURES = {
    "07_in_buckets": in_buckets,
    "07_traffic": traffic,
}
