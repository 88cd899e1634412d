"""Refused with: How does the probability fall with the difference?"""


def metropolis_accept(old, new, temperature, random):
    if new <= old:
        return True
    return temperature > 0 and random.random() < 1 / (1 + (new - old) / temperature)
