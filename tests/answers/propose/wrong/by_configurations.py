"""Refused with: Is an operator with many configurations drawn more often?"""


def propose(strategy, choices, random):
    moves = [(n, one) for n, own in enumerate(choices) for one in own if one != strategy[n]]
    number, config = moves[random.integers(len(moves))]
    proposed = list(strategy)
    proposed[number] = config
    return proposed
