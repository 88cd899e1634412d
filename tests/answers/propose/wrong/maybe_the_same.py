"""Refused with: Can the operator get the configuration that it has?"""


def propose(strategy, choices, random):
    number = random.choice([n for n, own in enumerate(choices) if len(own) > 1])
    proposed = list(strategy)
    proposed[number] = choices[number][random.integers(len(choices[number]))]
    return proposed
