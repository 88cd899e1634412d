"""Refused with: On which side of the probability is yes?"""

import math


def metropolis_accept(old, new, temperature, random):
    if new <= old:
        return True
    return temperature > 0 and random.random() > math.exp((old - new) / temperature)
