"""The form all benches share: rows with a value, a target and a verdict, and comparisons measured by turns."""

import dataclasses
import json
import statistics
from collections.abc import Sequence
from typing import Literal

from course_utils.measuring import Compared, Measured


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One measured quantity.

    Args:
        bench, metric: which bench measured what.
        value: the median of the runs, in `unit`.
        better: "higher" or "lower".
        target: what it should reach, in `unit`; None where the row is only there to be seen.
        spread: half the distance between the quartiles, in `unit`.
        runs: how many times it was measured.
    """

    bench: str
    metric: str
    value: float
    unit: str
    better: Literal["higher", "lower"]
    target: float | None
    spread: float
    runs: int

    @property
    def ok(self) -> bool:
        """Whether the target is reached; where there is none, it is."""
        if self.target is None:
            return True
        return self.value <= self.target if self.better == "lower" else self.value >= self.target

    def as_json(self) -> str:
        """One JSON object on one line: the fields, and `ok`."""
        return json.dumps({**dataclasses.asdict(self), "ok": self.ok})


def spread(values: Sequence[float]) -> float:
    """Half the distance between the quartiles; 0 for a single value."""
    return Measured(tuple(values)).width / 2


def value_row(
    bench: str,
    metric: str,
    values: Sequence[float],
    unit: str,
    *,
    target: float | None = None,
    better: Literal["higher", "lower"] = "lower",
) -> Row:
    """The median of a quantity, in `unit`."""
    return Row(bench, metric, statistics.median(values), unit, better, target, spread(values), len(values))


def seconds_row(bench: str, metric: str, seconds: Sequence[float], target: float | None = None) -> Row:
    """A duration: less is better."""
    return value_row(bench, metric, seconds, "s", target=target)


def ratio_row(
    bench: str,
    metric: str,
    values: Sequence[float],
    references: Sequence[float],
    *,
    target: float | None = None,
    unit: str = "×",
    better: Literal["higher", "lower"] = "lower",
) -> Row:
    """The median of value ÷ reference, each pair measured one right after the other."""
    ratios = Compared(references, values).ratios.values
    return value_row(bench, metric, ratios, unit, target=target, better=better)


def table(rows: Sequence[Row]) -> str:
    """The rows as a table for people, the verdict at the end of each."""
    head = ("metric", "value", "spread", "target", "runs", "verdict")
    lines = [head, *(_cells(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if column in (0, 5) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def _cells(row: Row) -> tuple[str, ...]:
    sign = "≤" if row.better == "lower" else "≥"
    target, verdict = ("–", "–") if row.target is None else (f"{sign} {row.target:.3g}", "✓" if row.ok else "✗ missed")
    return row.metric, f"{row.value:.3g} {row.unit}", f"± {row.spread:.2g}", target, str(row.runs), verdict
