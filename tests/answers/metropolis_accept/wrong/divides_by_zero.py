"""Refused with: What is accepted at temperature 0?"""

import math


def metropolis_accept(old, new, temperature, random):
    return random.random() < min(1.0, math.exp(min(0.0, (old - new) / temperature)))
