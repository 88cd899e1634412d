"""Refused with: Does chance decide about slower ones?"""

import math


def metropolis_accept(old, new, temperature, random):
    if new <= old:
        return True
    return random.random() < math.exp((new - old) / temperature)
