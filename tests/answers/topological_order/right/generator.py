"""Recursion with yield from, and a dict that keeps the order."""


def topological_order(last):
    seen = {}

    def walk(node):
        if id(node) in seen:
            return
        seen[id(node)] = node
        for parent in reversed(node.parents):
            yield from walk(parent)
        yield node

    return list(walk(last))
