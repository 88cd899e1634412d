def metropolis_accept(old, new, temperature, random):
    if new <= old:
        return True
    return bool(new - old < random.exponential(temperature)) if temperature else False
