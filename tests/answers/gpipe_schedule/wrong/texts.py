"""Refused with: Of what are the lists made, and in which order does an Action take its three parts?"""


def gpipe_schedule(ranks, micro_batches):
    return [[f"{rank}{kind}{index}" for kind in "FB" for index in range(micro_batches)] for rank in range(ranks)]
