def simulate(tasks):
    waits = []
    last = {}
    for place, task in enumerate(tasks):
        needed = set(task.after)
        if task.device in last:
            needed.add(last[task.device])
        last[task.device] = place
        waits.append(needed)
    spans = [None] * len(tasks)
    left = set(range(len(tasks)))
    while left:
        ready = [place for place in sorted(left) if not waits[place] & left]
        for place in ready:
            begin = max((spans[one][1] for one in waits[place]), default=0)
            spans[place] = [begin, begin + tasks[place].nanoseconds]
        left -= set(ready)
    return spans
