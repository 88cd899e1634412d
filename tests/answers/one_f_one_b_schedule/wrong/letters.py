"""Refused with: Of what are the lists made, and in which order does an Action take its three parts?"""


def one_f_one_b_schedule(ranks, micro_batches):
    schedule = []
    for rank in range(ranks):
        ahead = min(ranks - rank - 1, micro_batches)
        actions = [("F", rank, index) for index in range(ahead)]
        for index in range(micro_batches):
            if ahead + index < micro_batches:
                actions.append(("F", rank, ahead + index))
            actions.append(("B", rank, index))
        schedule.append(actions)
    return schedule
