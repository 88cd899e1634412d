"""The best schedules that are known for the shared puzzles: for each, its lines, its seconds, its idle share."""

BEST_KNOWN: dict[str, tuple[tuple[str, ...], float, float]] = {}
