"""Refused with: Do the parents have parents too?"""


def topological_order(last):
    return [*dict.fromkeys(last.parents), last]
