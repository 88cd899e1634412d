"""Refused with: Do you return the whole strategy, with a configuration for each operator?"""


def propose(strategy, choices, random):
    number = random.choice([n for n, own in enumerate(choices) if len(own) > 1])
    others = [one for one in choices[number] if one != strategy[number]]
    return number, others[random.integers(len(others))]
