"""Refused with: May two nodes bear the same name?"""


def topological_order(last):
    order, seen = [], set()

    def visit(node):
        if node.name in seen:
            return
        seen.add(node.name)
        for parent in node.parents:
            visit(parent)
        order.append(node)

    visit(last)
    return order
