"""Refused with: Which end of the list is the loss at?"""


def topological_order(last):
    order, seen = [], set()

    def visit(node):
        if node not in seen:
            seen.add(node)
            for parent in node.parents:
                visit(parent)
            order.insert(0, node)

    visit(last)
    return order
