"""Refused with: Is it one list, or one for each rank?"""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def gpipe_schedule(ranks, micro_batches):
    schedule = [[]] * ranks
    for rank in range(ranks):
        for kind in (FORWARD, BACKWARD):
            for index in range(micro_batches):
                schedule[rank].append(Action(kind, rank, index))
    return schedule
