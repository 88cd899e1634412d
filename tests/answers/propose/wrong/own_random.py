"""Refused with: Where does all chance come from?"""

import random as chance


def propose(strategy, choices, random):
    number = chance.choice([n for n, own in enumerate(choices) if len(own) > 1])
    proposed = list(strategy)
    proposed[number] = chance.choice([one for one in choices[number] if one != strategy[number]])
    return proposed
