"""Refused with: Do you return a list of the nodes themselves?"""


def topological_order(last):
    order, seen = [], set()

    def visit(node):
        if node not in seen:
            seen.add(node)
            for parent in node.parents:
                visit(parent)
            order.append(node.name)

    visit(last)
    return order
