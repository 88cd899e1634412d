"""Refused with: Is a node listed when it is first met, or when all its parents are listed?"""


def topological_order(last):
    found = [last]
    for node in found:
        for parent in node.parents:
            if parent not in found:
                found.append(parent)
    return found[::-1]
