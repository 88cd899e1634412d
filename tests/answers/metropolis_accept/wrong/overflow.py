"""Refused with: How large does the exponential become where the new strategy is very much quicker?"""

import math


def metropolis_accept(old, new, temperature, random):
    if temperature == 0:
        return new <= old
    return random.random() < math.exp((old - new) / temperature)
