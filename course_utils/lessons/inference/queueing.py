"""How long a request waits for a slot: a formula, and requests that arrive at random to hold it against.

Time passes in steps. In each step a request arrives with probability p, whatever came before. This is the discrete form
of the queue M/D/1 or, with answers of different lengths, M/G/1.
"""

from collections.abc import Sequence

import numpy as np

from course_utils.errors import CourseError
from course_utils.lessons.inference.batching import TextRequest


def random_requests(
    generator: np.random.Generator, number: int, probability: float, lengths: Sequence[int]
) -> list[TextRequest]:
    """Draw requests: in each step one arrives with this probability, and its answer has one of these lengths.

    All lengths are equally likely. The generator decides everything, so the same seed gives the same requests.
    """
    steps = np.cumsum(generator.geometric(probability, number)) - 1
    return [TextRequest(int(step), int(tokens)) for step, tokens in zip(steps, generator.choice(lengths, number))]


def mean_waiting_steps(probability: float, lengths: Sequence[int]) -> float:
    """Return how many steps a request waits on average if there is one slot, and none ever gives up.

    A request finds, on average, as many others in the queue as arrive while one waits (Little's law), and each of them
    takes the mean length. If the slot is busy, it also waits for what is left of that answer.

    Args:
        probability: that a request arrives in a step.
        lengths: of the answers, all equally likely.

    Raises:
        CourseError: more arrives than the slot can serve, so that the queue grows for ever.

    Source: the formula of Pollaczek and Khinchine for time in steps (Geo/G/1); Hunter 1983, "Mathematical Techniques of
    Applied Probability", vol. 2, ch. 9.
    """
    mean = float(np.mean(lengths))
    utilisation = probability * mean
    if utilisation >= 1:
        raise CourseError(
            f"In each step {utilisation:.2f} steps of work arrive, but one slot does 1. The queue grows for ever."
        )
    left_over = probability * float(np.mean([length * (length - 1) / 2 for length in lengths]))
    return left_over / (1 - utilisation)
