"""Refused with: To how many of an operator's configurations does one step lead?"""


def propose(strategy, choices, random):
    number = random.choice([n for n, own in enumerate(choices) if len(own) > 1])
    index = choices[number].index(strategy[number])
    proposed = list(strategy)
    proposed[number] = choices[number][(index + 1) % len(choices[number])]
    return proposed
