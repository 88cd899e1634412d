"""Sentences about the measurements of lesson 9, chosen by the numbers."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from course_utils.words import count, percent
from course_utils.words import ranks as ranks_text

if TYPE_CHECKING:
    from course_utils.ranks.run import Run

_NEAR = 0.05  # a share that is off by no more is the predicted one
_SEEDS = {
    "nowhere": "equal dropout seeds",
    "inside": "separate dropout seeds only inside attention",
    "everywhere": "separate dropout seeds everywhere",
}


def idle_text(share: float, ranks: int) -> str:
    """Say how much of the ranks' time is idle, and whether it is (P - 1)/P."""
    wanted = (ranks - 1) / ranks
    text = f"{ranks_text(ranks)} working in turn are idle for {percent(share)} of the time"
    if abs(share - wanted) <= _NEAR:
        return f"{text}, close to ({ranks} − 1)/{ranks}"
    return f"{text}, {'more' if share > wanted else 'less'} than the calculated {percent(wanted)}"


def sizes_text(rows: Sequence[int], moved: Mapping[str, Sequence[float]]) -> str:
    """Say between which two of the given numbers of rows the batch cut becomes the cheapest.

    Args:
        rows: of x, in ascending order.
        moved: for each cut its bytes at each number of rows. One of them is the "batch cut".
    """
    others = [min(line[i] for cut, line in moved.items() if cut != "batch cut") for i in range(len(rows))]
    cheap = [n for n, own, other in zip(rows, moved["batch cut"], others, strict=True) if own < other]
    if not cheap:
        return f"Up to {rows[-1]} rows, cutting W sends less than cutting the batch"
    if len(cheap) == len(rows):
        return f"From {rows[0]} rows on, cutting the batch sends less than cutting W"
    last = len(rows) - len(cheap) - 1
    best = min((cut for cut in moved if cut != "batch cut"), key=lambda cut: moved[cut][last])
    return f"At {rows[last]} rows the {best} sends the least, and at {cheap[0]} rows the batch cut"


def collectives_text(runs: Mapping[str, "Run"]) -> str:
    """Say how many collectives each run needs."""
    return ". ".join(f"{name.capitalize()}: {count(run.collectives, 'collective')}" for name, run in runs.items())


def apart_text(distances: Mapping[str, Sequence[float]]) -> str:
    """Say where separate dropout seeds make copies of the same weights drift apart, and how far.

    Args:
        distances: the largest difference between ranks after each step, by where ranks have seeds of their own.
    """
    far = [name for name, line in distances.items() if line[-1] > 0]
    near = [_SEEDS[name] for name in distances if name not in far]
    texts = [
        f"with {_SEEDS[name]}, copies differ by {distances[name][-1]:.2g} after {count(len(distances[name]), 'step')}"
        for name in far
    ]
    if near:
        texts.append(f"with {' or '.join(near)}, they stay equal")
    text = "; ".join(texts)
    return text[:1].upper() + text[1:]


def sequence_text(plain: tuple[float, float], sequence: tuple[float, float]) -> str:
    """Say what changes if the sequence is cut, too.

    Args:
        plain, sequence: bytes that a rank sends in a step, and bytes of activations that it keeps.
    """
    (sent, kept), (sent_now, kept_now) = plain, sequence
    more = sent_now / sent - 1
    start = f"{percent(abs(more))} {'more' if more >= 0 else 'fewer'} bytes are sent"
    if kept_now < kept:
        return f"{start}, and the activations take {percent(1 - kept_now / kept)} less memory"
    return f"{start}, and the activations take no less memory"
