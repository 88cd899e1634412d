"""Refused with: Which entries of the log are updates?"""


def measure_staleness(log):
    version = 0
    fetched = {}
    staleness = []
    for what, worker in log:
        if what == "fetch":
            fetched[worker] = version
            staleness.append(0)
        else:
            staleness.append(version - fetched[worker])
            version += 1
    return staleness
