"""Refused with: Is a node listed when it is first met, or when all its parents are listed?"""


def topological_order(last):
    order, seen = [], set()

    def visit(node):
        if node not in seen:
            seen.add(node)
            order.append(node)
            for parent in node.parents:
                visit(parent)

    visit(last)
    return order[::-1]
