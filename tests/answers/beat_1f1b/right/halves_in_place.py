"""1F1B with every backward pass cut in two."""

from course_utils.lessons.pipeline.actions import BACKWARD, INPUT, WEIGHT, Action
from course_utils.lessons.pipeline.interleaved import interleaved_schedule


def one_f_one_b(ranks, micro_batches):
    schedule = []
    for rank in range(ranks):
        ahead = min(ranks - rank - 1, micro_batches)
        order = ["F"] * ahead + ["F", "B"] * (micro_batches - ahead) + ["B"] * ahead
        times = {"F": 0, "B": 0}
        actions = []
        for kind in order:
            actions.append(Action(kind, rank, times[kind]))
            times[kind] += 1
        schedule.append(actions)
    return schedule


def beat_1f1b(puzzle):
    if puzzle.micro_batches % puzzle.ranks == 0:
        plain = interleaved_schedule(puzzle.ranks, puzzle.micro_batches, 1)
    else:
        plain = one_f_one_b(puzzle.ranks, puzzle.micro_batches)
    return [
        [
            half
            for one in actions
            for half in (
                [Action(INPUT, one.stage, one.micro_batch), Action(WEIGHT, one.stage, one.micro_batch)]
                if one.kind == BACKWARD
                else [one]
            )
        ]
        for actions in plain
    ]
