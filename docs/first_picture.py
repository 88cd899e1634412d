"""Draws a picture of two runs: a broadcast on four ranks, one after the other and by doubling. Run it from anywhere:

    .venv/bin/python docs/first_picture.py

It writes first_picture.png beside itself and prints the alternative text. Of 25 runs of each kind the fastest is
drawn: the one least disturbed by whatever else the machine was doing.
"""

from pathlib import Path

import numpy as np

import course_utils as course
from course_utils.draw.message_timeline.timeline_text import extent
from course_utils.lessons.messages import flat_broadcast, tree_broadcast


def fastest(ranks, broadcast, tries: int = 25):
    """The run in which the messages took the least time from the first send to the last receive."""
    vectors = course.per_rank([np.full(4_000_000, rank, np.float32) for rank in range(4)])
    runs = [ranks.run(broadcast, vectors) for _ in range(tries)]
    return min(runs, key=lambda run: extent(run.events)[1] - extent(run.events)[0])


def main() -> None:
    """Start four ranks, broadcast both ways, draw."""
    ranks = course.start(4)
    try:
        runs = [fastest(ranks, broadcast) for broadcast in (flat_broadcast, tree_broadcast)]
    finally:
        ranks.stop()
    figure = course.draw.timelines(*runs, titles=["one after the other", "doubling"], side_by_side=True)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=200, metadata={"Software": None})
    print(figure.alt_text)


if __name__ == "__main__":
    main()
