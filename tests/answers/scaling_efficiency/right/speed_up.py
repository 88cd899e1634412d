"""Through the speed-up."""


def scaling_efficiency(seconds_alone, seconds_together, world_size, kind="strong"):
    if any(number <= 0 for number in (seconds_alone, seconds_together, world_size)):
        raise ValueError("only numbers above zero")
    ideal = {"strong": world_size, "weak": 1}
    if kind not in ideal:
        raise ValueError(f"{kind}?")
    speed_up = seconds_alone / seconds_together
    return speed_up / ideal[kind]
