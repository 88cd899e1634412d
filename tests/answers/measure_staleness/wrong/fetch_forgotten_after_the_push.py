"""Refused with: Has a worker that pushes again fetched again?"""


def measure_staleness(log):
    version = 0
    fetched = {}
    staleness = []
    for what, worker in log:
        if what == "fetch":
            fetched[worker] = version
        else:
            staleness.append(version - fetched.pop(worker))
            version += 1
    return staleness
