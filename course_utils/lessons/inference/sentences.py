"""Sentences of lesson 19 about a run, chosen by the numbers."""

import math
from collections.abc import Mapping, Sequence

from course_utils.measuring import BUSY, Compared, Measured, is_busy, relative_errors
from course_utils.words import count, number_text, percent, seconds_text

CLOSE = 0.25
"""A prediction of a step's time that is off by no more than this share is close."""


def reading_text(seconds: Mapping[int, Measured]) -> str:
    """Say how many times longer a pass takes that reads many tokens at once, from the seconds for each number."""
    few, many = min(seconds), max(seconds)
    compared = Compared(seconds[few].values, seconds[many].values)
    if is_busy(measured.values for measured in seconds.values()):
        return BUSY
    times = number_text(compared.times)
    return f"A pass over {many} tokens takes {times} times as long as a pass over {count(few, 'token')}"


def step_text(seconds: Mapping[str, Sequence[float]], predicted: float) -> str:
    """Say what the messages of a step of decoding add to it, and what the line predicts.

    Args:
        seconds: of a step "with" its all-reduces and "without", round by round.
        predicted: seconds of the all-reduces alone.
    """
    pairs = zip(seconds["with"], seconds["without"], strict=True)
    differences = Measured(tuple(whole - computing for whole, computing in pairs))
    # A step without messages is so short that it may scatter a lot and still not disturb the difference.
    if is_busy([seconds["with"], differences.values]):
        return BUSY
    added = differences.median
    share = added / Measured(tuple(seconds["with"])).median
    close = relative_errors([predicted], [added])[0] <= CLOSE
    also = "as the line predicts" if close else f"and the line predicts {seconds_text(predicted)}"
    return f"A token waits {seconds_text(added)} for messages, {percent(share)} of its time, {also}"


def batching_text(steps: Mapping[str, int]) -> str:
    """Say how many steps each way of batching takes for the same requests."""
    ways = [f"{taken} steps with {name} batching" for name, taken in steps.items()]
    return f"The same answers take {' and '.join(ways)}"


def apart_text(even: Mapping[float, float]) -> str:
    """Say from which link on moving a cache pays even for a single running answer.

    Args:
        even: for each rate of the link in Gbit/s, rising, the running answers at which both cost the same.
    """
    pairs = list(zip(even.items(), list(even.items())[1:], strict=False))
    for (slower, many), (faster, few) in pairs:
        if few < 1 <= many:
            # Both axes are logarithmic: between two links, the answers fall along a straight line.
            part = math.log(many) / math.log(many / few)
            rate = slower * (faster / slower) ** part
            return f"From about {number_text(rate)} Gbit/s on, moving the cache pays even for a single running answer"
    rate, answers = next(iter(even.items()))
    if answers < 1:
        return f"Even at {number_text(rate)} Gbit/s, moving the cache pays for a single running answer"
    return f"At {number_text(rate)} Gbit/s, moving the cache pays from {number_text(answers)} running answers on"
