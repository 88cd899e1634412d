"""Refused with: Do you return a list with one number for each push?"""


def measure_staleness(log):
    version = 0
    fetched = {}
    staleness = []
    for what, worker in log:
        if what == "fetch":
            fetched[worker] = version
        else:
            staleness.append(version - fetched[worker])
            version += 1
    return sum(staleness) / max(1, len(staleness))
