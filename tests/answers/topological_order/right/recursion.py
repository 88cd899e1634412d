"""A function inside that visits the parents first."""


def topological_order(last):
    order, seen = [], set()

    def visit(node):
        if node in seen:
            return
        seen.add(node)
        for parent in node.parents:
            visit(parent)
        order.append(node)

    visit(last)
    return order
