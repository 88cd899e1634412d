import math


def best_strategy(start, choices, makespan_of, fits, iterations, temperature, random):
    movable = [n for n, own in enumerate(choices) if len(own) > 1]
    now, time = list(start), makespan_of(start)
    best, least = list(now), time
    for _ in range(iterations):
        number = movable[random.integers(len(movable))]
        old = now[number]
        now[number] = choices[number][random.integers(len(choices[number]))]
        if not fits(now):
            now[number] = old
            continue
        new = makespan_of(now)
        if new <= time or random.random() < math.exp((time - new) / temperature):
            time = new
            if time < least:
                best, least = list(now), time
        else:
            now[number] = old
    return best
