"""Refused with: What follows each new forward pass?"""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def one_f_one_b_schedule(ranks, micro_batches):
    schedule = []
    for rank in range(ranks):
        ahead = min(ranks - rank, micro_batches)
        actions = [Action(FORWARD, rank, index) for index in range(ahead)]
        left = list(range(ahead, micro_batches))
        back = list(range(micro_batches))
        while left or back:
            actions += [Action(BACKWARD, rank, index) for index in back[:2]]
            actions += [Action(FORWARD, rank, index) for index in left[:2]]
            left, back = left[2:], back[2:]
        schedule.append(actions)
    return schedule
