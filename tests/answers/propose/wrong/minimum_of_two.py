"""Refused with: Is each other configuration as likely as the next?"""


def propose(strategy, choices, random):
    number = random.choice([n for n, own in enumerate(choices) if len(own) > 1])
    others = [one for one in choices[number] if one != strategy[number]]
    proposed = list(strategy)
    proposed[number] = others[min(random.integers(len(others), size=2))]
    return proposed
