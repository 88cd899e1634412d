"""Kahn's algorithm from the loss: a node is taken when all that came from it are taken; then turned round."""

from collections import Counter


def topological_order(last):
    uses, todo, known = Counter(), [last], {last}
    while todo:
        for parent in todo.pop().parents:
            uses[parent] += 1
            if parent not in known:
                known.add(parent)
                todo.append(parent)
    order, free = [], [last]
    while free:
        node = free.pop()
        order.append(node)
        for parent in node.parents:
            uses[parent] -= 1
            if uses[parent] == 0:
                free.append(parent)
    return order[::-1]
