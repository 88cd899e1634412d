"""One forward pass more ahead, then backward and forward in turn: the same order."""

from itertools import zip_longest

from course_utils.lessons.pipeline.actions import Action


def one_f_one_b_schedule(ranks, micro_batches):
    def of(rank):
        forward = [Action("F", rank, k) for k in range(micro_batches)]
        backward = [Action("B", rank, k) for k in range(micro_batches)]
        ahead = ranks - rank
        pairs = zip_longest(backward, forward[ahead:])
        return forward[:ahead] + [one for pair in pairs for one in pair if one is not None]

    return [of(rank) for rank in range(ranks)]
