"""Refused with: Which micro-batch has been in memory longest?"""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def one_f_one_b_schedule(ranks, micro_batches):
    schedule = []
    for rank in range(ranks):
        ahead = min(ranks - rank - 1, micro_batches)
        kept = list(range(ahead))
        actions = [Action(FORWARD, rank, index) for index in range(ahead)]
        for index in range(ahead, micro_batches):
            actions.append(Action(FORWARD, rank, index))
            kept.append(index)
            actions.append(Action(BACKWARD, rank, kept.pop()))
        actions += [Action(BACKWARD, rank, index) for index in kept[::-1]]
        schedule.append(actions)
    return schedule
