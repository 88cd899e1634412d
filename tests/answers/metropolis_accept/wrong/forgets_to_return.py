"""Refused with: Does the function return what it found?"""

import math


def metropolis_accept(old, new, temperature, random):
    if new > old:
        return temperature > 0 and random.random() < math.exp((old - new) / temperature)
