"""Refused with: Does an update of the same worker change the weights, too?"""


def measure_staleness(log):
    others, staleness = {}, []
    for what, worker in log:
        if what == "fetch":
            others[worker] = 0
        else:
            staleness.append(others[worker])
            for other in others:
                if other != worker:
                    others[other] += 1
    return staleness
