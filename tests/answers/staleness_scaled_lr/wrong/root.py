"""Refused with: Does the rate fall like 1/τ, or in another way?"""

import math


def staleness_scaled_lr(rate, staleness):
    if staleness < 0:
        raise ValueError
    return rate / math.sqrt(max(1, staleness))
