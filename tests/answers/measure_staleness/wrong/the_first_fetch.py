"""Refused with: Which of its fetches gave the worker these weights?"""


def measure_staleness(log):
    version = 0
    fetched = {}
    staleness = []
    for what, worker in log:
        if what == "fetch":
            fetched.setdefault(worker, version)
        else:
            staleness.append(version - fetched[worker])
            version += 1
    return staleness
