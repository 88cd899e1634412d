"""How often in a row something runs on ranks without an error, and ends as one process does."""

import sys
from collections.abc import Callable, Mapping

from workshop.bench.rows import Row


def clean_rows(bench: str, gaps: Mapping[str, Callable[[], float]], equal: float, repeats: int) -> list[Row]:
    """A row for each name: how many of `repeats` runs in a row are clean; all should be.

    Args:
        gaps: by name, what runs once and gives back how far its result is from that of one process.
        equal: no farther is clean.
    """
    rows = []
    for name, gap in gaps.items():
        good = sum(is_clean(name, gap, equal) for _ in range(repeats))
        rows.append(Row(bench, f"{name}: clean runs", good, f"of {repeats}", "higher", repeats, 0.0, repeats))
    return rows


def is_clean(name: str, gap: Callable[[], float], equal: float) -> bool:
    """Run once. An error is printed and does not end the bench: the next run is to be counted, too."""
    try:
        return gap() <= equal
    except Exception as error:
        print(f"{name}: {error}", file=sys.stderr)
        return False
