"""Refused with: What is proposed for an operator that has no other configuration?"""


def propose(strategy, choices, random):
    number = random.integers(len(strategy))
    others = [one for one in choices[number] if one != strategy[number]]
    proposed = list(strategy)
    proposed[number] = others[random.integers(len(others))]
    return proposed
