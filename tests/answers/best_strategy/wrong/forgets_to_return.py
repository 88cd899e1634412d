"""Refused with: Does the function return what it found?"""

from course_utils.lessons.strategy_search.search.metropolis import metropolis_accept, propose


def best_strategy(start, choices, makespan_of, fits, iterations, temperature, random):
    now, time = list(start), makespan_of(start)
    for _ in range(iterations):
        proposed = propose(now, choices, random)
        if not fits(proposed):
            continue
        if metropolis_accept(time, makespan_of(proposed), temperature, random):
            now, time = proposed, makespan_of(proposed)
    print(now, time)
