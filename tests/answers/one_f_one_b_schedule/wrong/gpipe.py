"""Refused with: Does a rank need all forward passes before its first backward pass?"""

from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action


def one_f_one_b_schedule(ranks, micro_batches):
    return [
        [Action(kind, rank, index) for kind in (FORWARD, BACKWARD) for index in range(micro_batches)]
        for rank in range(ranks)
    ]
