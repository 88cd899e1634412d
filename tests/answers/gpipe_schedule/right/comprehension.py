"""One expression."""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def gpipe_schedule(ranks, micro_batches):
    return [
        [Action(kind, rank, index) for kind in (FORWARD, BACKWARD) for index in range(micro_batches)]
        for rank in range(ranks)
    ]
