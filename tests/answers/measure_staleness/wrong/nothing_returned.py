"""Refused with: Do you return the list?"""


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
