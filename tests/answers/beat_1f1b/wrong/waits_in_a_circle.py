"""Refused with: Who waits for whom, all round?"""

from course_utils.lessons.pipeline.actions import FORWARD, INPUT, WEIGHT, Action


def beat_1f1b(puzzle):
    schedule = []
    for rank in range(puzzle.ranks):
        ahead = 0 if rank == 0 else 1
        actions = [Action(FORWARD, rank, k) for k in range(ahead)]
        for k in range(puzzle.micro_batches):
            if ahead + k < puzzle.micro_batches:
                actions.append(Action(FORWARD, rank, ahead + k))
            actions += [Action(INPUT, rank, k), Action(WEIGHT, rank, k)]
        schedule.append(actions)
    return schedule
