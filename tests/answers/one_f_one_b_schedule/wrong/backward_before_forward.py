"""Refused with: What follows each new forward pass?"""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def one_f_one_b_schedule(ranks, micro_batches):
    schedule = []
    for rank in range(ranks):
        ahead = min(ranks - rank, micro_batches)
        actions = [Action(FORWARD, rank, index) for index in range(ahead)]
        done = 0
        for index in range(ahead, micro_batches):
            if rank == 0 and index == micro_batches - 1:
                actions.append(Action(FORWARD, rank, index))
                actions.append(Action(BACKWARD, rank, done))
            else:
                actions.append(Action(BACKWARD, rank, done))
                actions.append(Action(FORWARD, rank, index))
            done += 1
        actions += [Action(BACKWARD, rank, index) for index in range(done, micro_batches)]
        schedule.append(actions)
    return schedule
