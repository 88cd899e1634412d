"""Different layers on different ranks: which rank gets which, so that the fullest has as little as possible."""

from collections.abc import Sequence

from course_utils.errors import CourseError


def split_layers(costs: Sequence[float], ranks: int) -> list[int]:
    """Cut a row of layers into consecutive pieces, one for each rank.

    The most expensive piece costs as little as possible, and every rank gets at least one layer.
    Costs can be bytes, if the model has to fit, or seconds, if all stages should take equally
    long. If several cuts are equally good, return the one with the longest first piece; among
    those, the one with the longest second piece, and so on.

    Args:
        costs: the cost of each layer, at least 0. Sums of them need no rounding.
        ranks: the number of pieces, at most the number of layers.

    Returns:
        How many layers each rank gets; they add up to `len(costs)`.

    Raises:
        CourseError: `ranks` is below 1 or above the number of layers, or a cost is below 0.

    Source: the linear partition problem, solved by dynamic programming: Skiena, "The Algorithm
    Design Manual", §10.7.
    """
    layers = len(costs)
    if not 1 <= ranks <= layers:
        raise CourseError(f"{layers} layers cannot be cut into {ranks} pieces. Every rank needs at least one layer.")
    if min(costs) < 0:
        raise CourseError("A layer costs less than nothing. Give bytes or seconds, 0 or more.")
    # worst[k][i]: the most expensive of k pieces, cut as well as can be from layer i on
    worst = [[float("inf")] * (layers + 1) for _ in range(ranks + 1)]
    worst[0][layers] = 0.0
    # A cut into k pieces is a first piece and a cut of the rest into k − 1,
    # which the table has already.
    for pieces in range(1, ranks + 1):
        for first in range(layers):
            for end in range(first + 1, layers + 1):
                candidate = max(sum(costs[first:end]), worst[pieces - 1][end])
                worst[pieces][first] = min(worst[pieces][first], candidate)
    # Walk through the table from the first layer: the longest piece that keeps to the best limit.
    sizes, first = [], 0
    for pieces in range(ranks, 0, -1):
        ends = range(layers, first, -1)
        limit = worst[ranks][0]
        best = next(e for e in ends if max(sum(costs[first:e]), worst[pieces - 1][e]) <= limit)
        sizes.append(best - first)
        first = best
    return sizes
