"""The pictures of deck 4 that its page does not have: the token's way, and timelines side by side."""

from types import SimpleNamespace

from matplotlib.figure import Figure

import course_utils as course
from course_utils.lessons.messages import pass_the_token


def token_timeline(page: SimpleNamespace) -> Figure:
    """Draw four messages in four rounds."""
    return page.ranks.run(pass_the_token, course.per_rank([10, 20, 30, 40])).timeline()


def broadcast_timelines(page: SimpleNamespace) -> Figure:
    """Draw the page's two broadcasts, the loop and the tree."""
    return course.draw.timelines(page.loop, page.tree, titles=["loop", "tree"], side_by_side=True)


def who_waits(page: SimpleNamespace) -> Figure:
    """Draw the page's two runs for which rank 3 is late, a broadcast and an all-reduce."""
    return course.draw.timelines(*page.runs.values(), titles=list(page.runs), side_by_side=True, title=page.title)


FIGURES = {"04_token": token_timeline, "04_broadcast_timelines": broadcast_timelines, "04_who_waits": who_waits}
