"""Refused with: Is the update itself among those that lie before it?"""


def measure_staleness(log):
    version = 0
    fetched = {}
    staleness = []
    for what, worker in log:
        if what == "fetch":
            fetched[worker] = version
        else:
            version += 1
            staleness.append(version - fetched[worker])
    return staleness
