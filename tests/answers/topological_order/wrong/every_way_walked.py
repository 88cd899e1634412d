"""Refused with: How many ways lead back to the first node, and must each be walked?"""


def topological_order(last):
    order = []

    def visit(node):
        for parent in node.parents:
            visit(parent)
        if node not in order:
            order.append(node)

    visit(last)
    return order
