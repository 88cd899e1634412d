"""Refused with: What if a node is reached a second time, by another way?"""


def topological_order(last):
    order = []
    for parent in last.parents:
        order += topological_order(parent)
    return [*order, last]
