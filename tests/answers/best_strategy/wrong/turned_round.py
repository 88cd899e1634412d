"""Refused with: Does the walk go to quicker strategies more easily than to slower ones?"""

from course_utils.lessons.strategy_search.search.metropolis import metropolis_accept, propose


def best_strategy(start, choices, makespan_of, fits, iterations, temperature, random):
    now, time = list(start), makespan_of(start)
    best, least = now, time
    for _ in range(iterations):
        proposed = propose(now, choices, random)
        if not fits(proposed):
            continue
        new = makespan_of(proposed)
        if metropolis_accept(new, time, temperature, random):
            now, time = proposed, new
        if new < least:
            best, least = proposed, new
    return best
