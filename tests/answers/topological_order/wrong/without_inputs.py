"""Refused with: Do nodes without parents belong to the list?"""


def topological_order(last):
    order, seen = [], set()

    def visit(node):
        if node in seen or not node.parents:
            return
        seen.add(node)
        for parent in node.parents:
            visit(parent)
        order.append(node)

    visit(last)
    return order
