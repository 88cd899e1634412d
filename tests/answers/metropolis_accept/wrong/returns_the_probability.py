"""Refused with: Is the answer a probability, or yes or no?"""

import math


def metropolis_accept(old, new, temperature, random):
    return math.exp(-max(0, new - old) / temperature) if temperature else float(new <= old)
