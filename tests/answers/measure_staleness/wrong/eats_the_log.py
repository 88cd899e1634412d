"""Refused with: Does whoever wrote the log still have it after you have read it?"""


def measure_staleness(log):
    version, fetched, staleness = 0, {}, []
    while log:
        what, worker = log.pop(0)
        if what == "fetch":
            fetched[worker] = version
        else:
            staleness.append(version - fetched[worker])
            version += 1
    return staleness
