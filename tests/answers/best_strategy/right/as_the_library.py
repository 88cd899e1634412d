from course_utils.lessons.strategy_search.search.metropolis import metropolis_accept, propose


def best_strategy(start, choices, makespan_of, fits, iterations, temperature, random):
    here, here_takes = start, makespan_of(start)
    best, best_takes = here, here_takes
    for _ in range(iterations):
        there = propose(here, choices, random)
        if fits(there):
            there_takes = makespan_of(there)
            if metropolis_accept(here_takes, there_takes, temperature, random):
                here, here_takes = there, there_takes
            if here_takes < best_takes:
                best, best_takes = here, here_takes
    return best
