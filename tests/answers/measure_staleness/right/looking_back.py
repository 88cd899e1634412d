"""For each push, look for the worker's last fetch and count the pushes behind it."""


def measure_staleness(log):
    staleness = []
    for place, (what, worker) in enumerate(log):
        if what == "push":
            fetch = max(k for k in range(place) if log[k] == ("fetch", worker))
            staleness.append(sum(kind == "push" for kind, _ in log[fetch:place]))
    return staleness
