import numpy as np


def metropolis_accept(old, new, temperature, random):
    if temperature == 0:
        return new <= old
    probability = np.exp(min(0.0, (old - new) / temperature))
    return random.uniform() < probability or new <= old
