"""Refused with: What must have come before this action?"""

from course_utils.lessons.pipeline.actions import FORWARD, INPUT, WEIGHT, Action


def beat_1f1b(puzzle):
    schedule = []
    for rank in range(puzzle.ranks):
        ahead = min(puzzle.ranks - rank - 1, puzzle.micro_batches)
        actions = [Action(FORWARD, rank, k) for k in range(ahead)]
        for k in range(puzzle.micro_batches):
            if ahead + k < puzzle.micro_batches:
                actions.append(Action(FORWARD, rank, ahead + k))
            actions += [Action(WEIGHT, rank, k), Action(INPUT, rank, k)]
        schedule.append(actions)
    return schedule
