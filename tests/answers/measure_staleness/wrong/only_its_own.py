"""Refused with: Whose updates make a gradient old: only those of its own worker?"""


def measure_staleness(log):
    own, staleness = {}, []
    for what, worker in log:
        if what == "fetch":
            own[worker] = 0
        else:
            staleness.append(own[worker])
            own[worker] += 1
    return staleness
