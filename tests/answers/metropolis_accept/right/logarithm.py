import math


def metropolis_accept(old, new, temperature, random):
    drawn = 1.0 - random.random()  # above 0
    return new - old <= -temperature * math.log(drawn)
