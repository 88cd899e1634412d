import numpy as np


def best_strategy(start, choices, makespan_of, fits, iterations, temperature, random):
    now = best = tuple(start)
    least = makespan_of(best)
    for _ in range(iterations):
        number = random.choice([n for n in range(len(now)) if len(choices[n]) > 1])
        others = [one for one in choices[number] if one != now[number]]
        proposed = (*now[:number], others[random.integers(len(others))], *now[number + 1 :])
        if not fits(proposed):
            continue
        took, new = makespan_of(now), makespan_of(proposed)
        if new <= took or random.random() < np.exp((took - new) / temperature):
            now = proposed
        if new < least:
            best, least = proposed, new
    return list(best)
