"""Refused with: What is proposed for an operator that has no other configuration?"""


def propose(strategy, choices, random):
    number = random.integers(1, len(strategy))
    new = list(strategy)
    while new == list(strategy):
        new[number] = random.choice(choices[number])
    return new
