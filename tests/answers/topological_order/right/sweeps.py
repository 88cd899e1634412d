"""No recursion: again and again, those whose parents are all listed."""


def topological_order(last):
    found = [last]
    for node in found:  # the list grows while it is walked
        found += [parent for parent in dict.fromkeys(node.parents) if parent not in found]
    order = []
    while len(order) < len(found):
        order += [n for n in found if n not in order and all(parent in order for parent in n.parents)]
    return order
