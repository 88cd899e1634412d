"""Refused with: Does a fetch of one worker make the gradients of all others fresh?"""


def measure_staleness(log):
    staleness = []
    version = fetched = 0
    for what, _ in log:
        if what == "fetch":
            fetched = version
        else:
            staleness.append(version - fetched)
            version += 1
    return staleness
