"""Refused with: Do you return a list of the nodes themselves?"""


def topological_order(last):
    seen = set()

    def visit(node):
        for parent in node.parents:
            if parent not in seen:
                visit(parent)
        seen.add(node)

    visit(last)
    return seen
