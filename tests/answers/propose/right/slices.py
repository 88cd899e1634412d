def propose(strategy, choices, random):
    movable = [place for place in range(len(strategy)) if len(choices[place]) > 1]
    place = movable[random.integers(0, len(movable))]
    others = list(choices[place])
    others.remove(strategy[place])
    new = others[random.integers(0, len(others))]
    return [*strategy[:place], new, *strategy[place + 1 :]]
