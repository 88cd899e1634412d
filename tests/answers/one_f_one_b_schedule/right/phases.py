"""Three phases: fill, one of each in turn, drain."""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def one_f_one_b_schedule(ranks, micro_batches):
    schedule = []
    for rank in range(ranks):
        fill = min(ranks - 1 - rank, micro_batches)
        actions = [Action(FORWARD, rank, k) for k in range(fill)]
        for k in range(micro_batches - fill):
            actions += [Action(FORWARD, rank, fill + k), Action(BACKWARD, rank, k)]
        actions += [Action(BACKWARD, rank, k) for k in range(micro_batches - fill, micro_batches)]
        schedule.append(actions)
    return schedule
