"""Refused with: Which configurations are never given?"""


def propose(strategy, choices, random):
    number = random.choice([n for n, own in enumerate(choices) if len(own) > 1])
    others = [one for one in choices[number] if one != strategy[number]]
    proposed = list(strategy)
    proposed[number] = others[random.integers(0, len(others) - 1)]
    return proposed
