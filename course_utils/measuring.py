"""Measuring on a machine that others may use too."""

from collections.abc import Callable


def interleaved(measures: dict[str, Callable[[], float]], runs: int) -> dict[str, list[float]]:
    """Take every measure `runs` times, by turns: A B A B …"""
    taken: dict[str, list[float]] = {name: [] for name in measures}
    for _ in range(runs):
        for name, measure in measures.items():
            taken[name].append(measure())
    return taken
