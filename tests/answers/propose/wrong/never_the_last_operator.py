"""Refused with: Which operators are never drawn?"""


def propose(strategy, choices, random):
    movable = [n for n, own in enumerate(choices) if len(own) > 1]
    number = movable[random.integers(len(movable) - 1)]
    others = [one for one in choices[number] if one != strategy[number]]
    proposed = list(strategy)
    proposed[number] = others[random.integers(len(others))]
    return proposed
