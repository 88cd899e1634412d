"""Every node's longest way from an input, then sorted by it; a tuple is returned, and something printed."""

import sys


def topological_order(last):
    depth = {}

    def deep(node):
        if id(node) not in depth:
            depth[id(node)] = (1 + max([deep(parent) for parent in node.parents], default=0), node)
        return depth[id(node)][0]

    deep(last)
    print("found", len(depth), "nodes", file=sys.stderr)
    return tuple(node for _, node in sorted(depth.values(), key=lambda pair: pair[0]))
