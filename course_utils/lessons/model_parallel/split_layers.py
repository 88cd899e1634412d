"""Whole layers on different ranks: what fits on no rank fits on several, and one of them works at a time."""

from collections.abc import Sequence

from course_utils.errors import CourseError


def split_layers(costs: Sequence[float], ranks: int) -> list[int]:
    """Cut a row of layers into consecutive pieces, one for each rank.

    The most expensive piece is as cheap as it can be, and every rank gets at least one layer.
    Costs may be bytes, where the model must fit, or seconds, where all stages should take equally
    long. Of several best cuts, the one whose first pieces are longest.

    Args:
        costs: of each layer, not below 0.
        ranks: how many pieces, at most as many as layers.

    Returns:
        How many layers each rank gets; they add up to `len(costs)`.

    Raises:
        CourseError: no rank, more ranks than layers, or a cost below 0.

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
