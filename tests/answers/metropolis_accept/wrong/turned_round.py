"""Refused with: Is a quicker strategy always accepted?"""

import math


def metropolis_accept(old, new, temperature, random):
    if new >= old:
        return True
    return temperature > 0 and random.random() < math.exp((new - old) / temperature)
