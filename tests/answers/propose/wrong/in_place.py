"""Refused with: Who else holds the list that you change?"""


def propose(strategy, choices, random):
    number = random.choice([n for n, own in enumerate(choices) if len(own) > 1])
    others = [one for one in choices[number] if one != strategy[number]]
    strategy[number] = others[random.integers(len(others))]
    return strategy
