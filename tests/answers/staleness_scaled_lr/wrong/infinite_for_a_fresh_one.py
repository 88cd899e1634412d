"""Refused with: How far may a fresh gradient move the weights?"""

import math


def staleness_scaled_lr(rate, staleness):
    if staleness < 0:
        raise ValueError
    return rate / staleness if staleness else math.inf
