import math


def metropolis_accept(old, new, temperature, random):
    return new <= old or (temperature > 0 and random.random() < math.exp((old - new) / temperature))
