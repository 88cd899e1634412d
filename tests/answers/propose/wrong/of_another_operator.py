"""Refused with: Whose configurations does an operator get?"""


def propose(strategy, choices, random):
    every = [config for own in choices for config in own]
    proposed = list(strategy)
    proposed[random.integers(len(strategy))] = every[random.integers(len(every))].__class__(2, 2, 2, (0, 1, 2, 3))
    return proposed
