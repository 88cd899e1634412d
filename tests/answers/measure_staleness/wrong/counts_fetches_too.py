"""Refused with: Does a fetch change the weights?"""


def measure_staleness(log):
    version = 0
    fetched = {}
    staleness = []
    for what, worker in log:
        if what == "fetch":
            version += 1
            fetched[worker] = version
        else:
            staleness.append(version - fetched[worker])
            version += 1
    return staleness
