"""Refused with: Where does all chance come from?"""

import math

import numpy as np


def metropolis_accept(old, new, temperature, random):
    if new <= old:
        return True
    return temperature > 0 and np.random.random() < math.exp((old - new) / temperature)
