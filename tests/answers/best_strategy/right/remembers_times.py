from course_utils.lessons.strategy_search.search.metropolis import metropolis_accept, propose


def best_strategy(start, choices, makespan_of, fits, iterations, temperature, random):
    known = {}

    def time_of(strategy):
        key = tuple(strategy)
        if key not in known:
            known[key] = makespan_of(strategy) if fits(strategy) else float("inf")
        return known[key]

    now = list(start)
    time_of(now)
    for _ in range(iterations):
        proposed = propose(now, choices, random)
        time = time_of(proposed)
        if time < float("inf") and metropolis_accept(time_of(now), time, temperature, random):
            now = proposed
    return list(min(known, key=known.get))
