"""W as late as in ZB-H1, where the memory allows it."""

from course_utils.lessons.pipeline.actions import FORWARD, INPUT, WEIGHT, Action


def beat_1f1b(puzzle):
    schedule = []
    for rank in range(puzzle.ranks):
        ahead = min(puzzle.ranks - rank - 1, puzzle.micro_batches)
        late = min(rank, puzzle.memory[rank] - min(puzzle.ranks - rank, puzzle.micro_batches))
        actions = [Action(FORWARD, rank, k) for k in range(ahead)]
        for k in range(puzzle.micro_batches + late):
            if ahead + k < puzzle.micro_batches:
                actions.append(Action(FORWARD, rank, ahead + k))
            if k < puzzle.micro_batches:
                actions.append(Action(INPUT, rank, k))
            if 0 <= k - late < puzzle.micro_batches:
                actions.append(Action(WEIGHT, rank, k - late))
        schedule.append(actions)
    return schedule
