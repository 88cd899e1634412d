"""Refused with: Does it work for a node without parents?"""


def topological_order(last):
    order = [last]
    while order[-1] is not order[-1].parents[0]:
        order.append(order[-1].parents[0])
    return order[::-1]
