"""Refused with: Does `last` itself belong to the list?"""


def topological_order(last):
    order, seen = [], set()

    def visit(node):
        for parent in node.parents:
            if parent not in seen:
                seen.add(parent)
                visit(parent)
                order.append(parent)

    visit(last)
    return order
