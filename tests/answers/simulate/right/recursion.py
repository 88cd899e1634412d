from functools import cache


def simulate(tasks):
    before = {}
    own = []
    for place, task in enumerate(tasks):
        own.append(before.get(task.device))
        before[task.device] = place

    @cache
    def end(place):
        return begin(place) + tasks[place].nanoseconds

    @cache
    def begin(place):
        waits = [*tasks[place].after] + ([own[place]] if own[place] is not None else [])
        return max((end(one) for one in waits), default=0)

    return [(begin(place), end(place)) for place in range(len(tasks))]
