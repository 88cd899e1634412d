"""How many are under way, from change to change."""


def idle_share(computing, communication, begin, end):
    changes = [(begin, 0), (end, 0)]
    for a, b in [*computing, *communication]:
        if a < b:
            changes += [(a, 1), (b, -1)]
    idle, under_way, before = 0.0, 0, begin
    for moment, change in sorted(changes):
        moment_inside = min(max(moment, begin), end)
        if under_way == 0:
            idle += moment_inside - before
        before, under_way = moment_inside, under_way + change
    return idle / (end - begin) if end > begin else 0.0
