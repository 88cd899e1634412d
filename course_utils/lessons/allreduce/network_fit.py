"""Fitting a network's numbers to measured messages: one line for all sizes, or one for each protocol of the library."""

import time
from collections.abc import Sequence
from itertools import combinations

import numpy as np

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.cost_model import Network
from course_utils.lessons.allreduce.shared_links import chain_seconds
from course_utils.lessons.messages.ping_pong import fit_alpha_beta

FEWEST = 2  # measured sizes in a segment
_BURSTS = range(0, 256_001, 2_000)  # bytes that are tried


def fit_network(
    nbytes: Sequence[float],
    seconds: Sequence[float],
    *,
    segments: int = 3,
    gamma: float = 0.0,
    shared: bool = False,
    overhead: float = 0.0,
) -> Network:
    """Fit a `Network` to the seconds that messages of this many bytes took one way.

    MPI libraries treat short, middling and long messages differently: copied at once, in pieces, or only after the
    receiver has answered. So there are up to `segments` lines, each over sizes of its own; where they meet is tried
    out. Every line makes the squared relative errors small, as `fit_alpha_beta` does.

    Args:
        nbytes: sizes of the messages, rising, no two equal.
        seconds: how long each took, positive; medians of several.
        segments: 1 for the α–β line of lesson 4, two numbers for everything.
        gamma: seconds per byte combined, measured elsewhere (`measure_gamma`).
        shared, overhead: nodes behind links; see `Network`.

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
    return Network(lines[0][1], lines[-1][2], gamma, several, shared, overhead)


def fit_links(
    nbytes: Sequence[int],
    seconds: Sequence[float],
    turns: Sequence[int],
    *,
    busy: tuple[int, float] | None = None,
    gamma: float = 0.0,
    overhead: float = 0.0,
) -> Network:
    """Fit a `Network` of nodes behind links to the seconds of a message that two nodes swap.

    Alpha is the shortest message, beta what further bytes add to the longest. Between lies what a link that has rested
    lets through at once, a burst: the number of bytes is taken that explains all sizes best.

    Args:
        nbytes: sizes of the messages, rising, the first next to nothing.
        seconds: how long each took when it was swapped `turns` times in a row, divided by `turns`.
        turns: for each size; in each turn the message goes once over the same links.
        busy: (ranks, more than two; seconds of the shortest message while this many swap with their neighbours), for
            `Network.work`.
        gamma, overhead: as in `Network`.

    Raises:
        CourseError: sizes that do not rise, or fewer than three.
    """
    if len(nbytes) < 3 or len(nbytes) != len(seconds) or list(nbytes) != sorted(set(nbytes)):
        raise CourseError(f"Links need at least 3 sizes, rising, and a time for each; here are {len(nbytes)} sizes.")
    work = max(0.0, (busy[1] - seconds[0]) / (busy[0] - 2)) if busy else 0.0
    alpha, beta = seconds[0], (seconds[-1] - seconds[-2]) / (nbytes[-1] - nbytes[-2])

    def network(burst: int, alpha: float) -> Network:
        lines = ((0.0, alpha, 0.0), (float(burst), alpha - beta * burst, beta))
        return Network(alpha, beta, gamma, lines, True, overhead, work)

    def error(burst: int) -> float:
        taken = [chain_seconds([(1, n)] * t, network(burst, alpha)) / t for n, t in zip(nbytes, turns, strict=True)]
        return sum(abs(one / measured - 1) for one, measured in zip(taken, seconds, strict=True))

    return network(min(_BURSTS, key=error), alpha - 2 * work)  # two ranks swap two messages


def _squares(line: tuple[float, float], sizes: np.ndarray, times: np.ndarray) -> float:
    """The sum of the squared relative errors of a line."""
    alpha, beta = line
    return float((((alpha + beta * sizes) / times - 1) ** 2).sum())


def median_error(network: Network, nbytes: Sequence[float], seconds: Sequence[float]) -> float:
    """The median relative error of `message_seconds` at measured messages: 0.04 is 4 %."""
    return float(np.median([abs(network.message_seconds(n) / t - 1) for n, t in zip(nbytes, seconds, strict=True)]))


def measure_gamma(nbytes: int = 1 << 22, repeats: int = 7) -> float:
    """Seconds per byte to add one float32 vector of this many bytes to another, here and now: the median of several."""
    ours, theirs = np.ones(nbytes // 4, np.float32), np.ones(nbytes // 4, np.float32)
    taken = []
    for _ in range(repeats):
        begin = time.perf_counter()
        np.add(ours, theirs, out=ours)
        taken.append(time.perf_counter() - begin)
    return float(np.median(taken)) / nbytes
