"""Fitting a network's numbers to measured messages: one line for all sizes, or one for each protocol of the library."""

from collections.abc import Sequence
from itertools import combinations

import numpy as np

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.cost_model import Network
from course_utils.lessons.messages.ping_pong import fit_alpha_beta

FEWEST = 2  # measured sizes in a segment


def fit_network(
    nbytes: Sequence[float],
    seconds: Sequence[float],
    *,
    segments: int = 3,
) -> Network:
    """Fit a `Network` to the seconds that messages of this many bytes took one way.

    MPI libraries treat short, middling and long messages differently: copied at once, in pieces, or only after the
    receiver has answered. So there are up to `segments` lines, each over sizes of its own; where they meet is tried
    out. Every line makes the squared relative errors small, as `fit_alpha_beta` does.

    Args:
        nbytes: sizes of the messages, rising, no two equal.
        seconds: how long each took, positive; medians of several.
        segments: 1 for the α–β line of lesson 4, two numbers for everything.

    Raises:
        CourseError: sizes that do not rise, or too few of them.
    """
    sizes, times = np.asarray(nbytes, float), np.asarray(seconds, float)
    if len(sizes) != len(times) or (np.diff(sizes) <= 0).any() or len(sizes) < FEWEST * segments:
        raise CourseError(
            f"{segments} segments need at least {FEWEST * segments} sizes, rising, and a time for each; "
            f"here are {len(sizes)} sizes and {len(times)} times."
        )
    best, lines = np.inf, []
    for cuts in combinations(range(1, len(sizes)), segments - 1):
        bounds = [0, *cuts, len(sizes)]
        pieces = [slice(begin, end) for begin, end in zip(bounds, bounds[1:], strict=False)]
        if min(piece.stop - piece.start for piece in pieces) < FEWEST:
            continue
        fitted = [fit_alpha_beta(sizes[piece], times[piece]) for piece in pieces]
        error = sum(_squares(line, sizes[piece], times[piece]) for line, piece in zip(fitted, pieces, strict=True))
        if error < best:
            starts = [0.0, *(float(sizes[cut]) for cut in cuts)]
            best, lines = error, [(start, *line) for start, line in zip(starts, fitted, strict=True)]
    several = tuple(lines) if segments > 1 else ()
    return Network(lines[0][1], lines[-1][2], segments=several)


def _squares(line: tuple[float, float], sizes: np.ndarray, times: np.ndarray) -> float:
    """The sum of the squared relative errors of a line."""
    alpha, beta = line
    return float((((alpha + beta * sizes) / times - 1) ** 2).sum())
