"""What the measurements of lesson 9 say: sentences chosen by the numbers."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from course_utils.words import bytes_text, count, join, number_text, percent
from course_utils.words import ranks as ranks_text

if TYPE_CHECKING:
    from course_utils.ranks.run import Run

_NEAR = 0.05  # a share that is off by no more is the predicted one


def idle_text(share: float, ranks: int) -> str:
    """How much of the ranks' time nobody used, beside (P - 1)/P."""
    wanted = (ranks - 1) / ranks
    text = f"{ranks_text(ranks)}, one at a time: {percent(share)} of their time is idle"
    if abs(share - wanted) <= _NEAR:
        return f"{text}; ({ranks} − 1)/{ranks} was predicted"
    return f"{text}, {'more' if share > wanted else 'less'} than the predicted {percent(wanted)}"


def cuts_text(moved: Mapping[str, float], examples: int) -> str:
    """Which cut moves least, and how many times as much the worst one.

    Args:
        moved: bytes of a rank, forward and backward, by the cut's name.
        examples: in the batch.
    """
    best, worst = min(moved, key=moved.__getitem__), max(moved, key=moved.__getitem__)
    start = f"{examples} examples: {best} moves least, {bytes_text(moved[best])}"
    if moved[worst] <= moved[best]:
        return f"{examples} examples: all cuts move {bytes_text(moved[best])}"
    return f"{start}; {worst} {number_text(moved[worst] / moved[best])} times as much"


def sizes_text(examples: Sequence[int], moved: Mapping[str, Sequence[float]]) -> str:
    """From how many examples on the cut that sends the weights' gradients is the cheapest.

    Args:
        moved: for each cut its bytes at each number of examples; "by batch" is the cut in question.
    """
    others = [min(moved[method][i] for method in moved if method != "by batch") for i in range(len(examples))]
    cheap = [n for n, own, other in zip(examples, moved["by batch"], others, strict=True) if own < other]
    if not cheap:
        return f"Up to {examples[-1]} examples, cutting the weights moves less than cutting the batch"
    if len(cheap) == len(examples):
        return f"From {examples[0]} examples on, cutting the batch moves less than cutting the weights"
    return f"Fewest bytes: cut the weights; from {cheap[0]} examples on, the batch"


def collectives_text(runs: Mapping[str, "Run"]) -> str:
    """How many collectives each way needs, and how much a rank puts in."""
    texts = [f"{name} {run.collectives} ({bytes_text(run.bytes_per_rank[0])})" for name, run in runs.items()]
    return f"Collectives: {', '.join(texts)}"


def apart_text(distances: Mapping[str, Sequence[float]]) -> str:
    """Whose copies of the same weights drift apart, and how far.

    Args:
        distances: the largest difference between ranks after each step, by where ranks have seeds of their own.
    """
    far = [name for name, line in distances.items() if line[-1] > 0]
    near = [name for name in distances if name not in far]
    texts = [
        f"{name}: copies are {line[-1]:.2g} apart after {count(len(line), 'step')}"
        for name, line in distances.items()
        if name in far
    ]
    if near:
        texts.append(f"{join(near)}: they are equal")
    return f"Own dropout seeds {'; '.join(texts)}"


def sequence_text(plain: tuple[float, float], sequence: tuple[float, float]) -> str:
    """What cutting the sequence too changes.

    Args:
        plain, sequence: bytes that a rank sends in a step's blocks, and bytes of activations that it keeps.
    """
    (sent, kept), (sent_now, kept_now) = plain, sequence
    same = abs(sent_now / sent - 1) <= 2 * _NEAR
    start = "As many bytes sent, or nearly" if same else f"{number_text(sent_now / sent)} times the bytes sent"
    if kept_now < kept:
        return f"{start}; {percent(1 - kept_now / kept)} less of activations kept"
    return f"{start}; no less of activations kept"
