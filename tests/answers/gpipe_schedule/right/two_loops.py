"""Two loops with append."""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def gpipe_schedule(ranks, micro_batches):
    schedule = []
    for rank in range(ranks):
        mine = []
        for index in range(micro_batches):
            mine.append(Action(FORWARD, rank, index))
        for index in range(micro_batches):
            mine.append(Action(BACKWARD, rank, index))
        schedule.append(mine)
    return schedule
