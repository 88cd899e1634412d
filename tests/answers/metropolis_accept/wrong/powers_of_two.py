"""Refused with: Is it 2 or e to which a power is taken?"""


def metropolis_accept(old, new, temperature, random):
    if new <= old:
        return True
    return temperature > 0 and random.random() < 2 ** ((old - new) / temperature)
