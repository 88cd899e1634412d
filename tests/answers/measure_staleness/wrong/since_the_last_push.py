"""Refused with: Is the staleness counted from the last fetch, or from the last push?"""


def measure_staleness(log):
    version = 0
    fetched = {}
    staleness = []
    for what, worker in log:
        if what == "fetch":
            fetched.setdefault(worker, 0)
        else:
            staleness.append(version - fetched[worker])
            version += 1
            fetched[worker] = version
    return staleness
