"""Refused with: Is the last strategy of a walk the best that it met?"""

from course_utils.lessons.strategy_search.search.metropolis import metropolis_accept, propose


def best_strategy(start, choices, makespan_of, fits, iterations, temperature, random):
    now, time = list(start), makespan_of(start)
    best, least = now, time
    for _ in range(iterations):
        proposed = propose(now, choices, random)
        if not fits(proposed):
            continue
        new = makespan_of(proposed)
        if metropolis_accept(time, new, temperature, random):
            now[:] = proposed
            time = new
            if time < least:
                best, least = now, time
    return best
