import copy


def propose(strategy, choices, random):
    movable = [n for n, own in enumerate(choices) if len(own) != 1]
    number = movable[int(random.random() * len(movable))]
    now = choices[number].index(strategy[number])
    chosen = int(random.random() * (len(choices[number]) - 1))
    proposed = copy.copy(strategy)
    proposed[number] = choices[number][chosen + (chosen >= now)]
    return tuple(proposed)
