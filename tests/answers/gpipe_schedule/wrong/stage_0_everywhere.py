"""Refused with: Which stage lies on rank r?"""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def gpipe_schedule(ranks, micro_batches):
    mine = [Action(kind, 0, index) for kind in (FORWARD, BACKWARD) for index in range(micro_batches)]
    return [list(mine) for rank in range(ranks)] if ranks == 1 else [mine[rank:] + mine[:rank] for rank in range(ranks)]
