"""What measurements of overlap say, in a sentence: written here once, chosen by the numbers."""

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from course_utils.lessons.overlap.step_times import ALONE, StepTimes
from course_utils.words import bytes_text, number_text, percent, seconds_text

if TYPE_CHECKING:
    from course_utils.lessons.overlap.compressed_training import Compressed

TIE = 0.05
"""Medians nearer than this are called equal."""


def line_text(alpha: float, beta: float, gradients: int, nbytes: int) -> str:
    """What all gradients cost one by one and as one vector, by alpha and beta."""
    each, flat = gradients * alpha + beta * nbytes, alpha + beta * nbytes
    return (
        f"alpha {seconds_text(alpha)}, beta {seconds_text(1e6 * beta)} for a MB. "
        f"{gradients} gradients one by one: {seconds_text(each)}; "
        f"all {bytes_text(nbytes)} at once: {seconds_text(flat)}"
    )


BUSY = "A step without messages took longer than one with them: the machine is busy. Run the cell again"


def is_busy(times: StepTimes) -> bool:
    """Whether a way that sends something was clearly faster than none: then other work has spoilt the measurement."""
    return any(times.median(way) < (1 - TIE) * times.median(ALONE) for way in times.seconds)


def hidden_share(times: StepTimes, way: str, plain: str) -> float:
    """Which share of the communication of `plain`, which hides nothing, hides with `way`; never below 0."""
    exposed = times.exposed(plain)
    return max(0.0, 1 - times.exposed(way) / exposed) if exposed else 0.0


def hiding_text(times: StepTimes, way: str, plain: str) -> str:
    """How much of the step's communication one way hides that another leaves exposed."""
    if is_busy(times):
        return BUSY
    before, after = times.exposed(plain), times.exposed(way)
    told = f"{plain}: {seconds_text(before)} of communication exposed; {way}: {seconds_text(after)}"
    if after < (1 - TIE) * before:
        return f"{told}. {percent(hidden_share(times, way, plain))} less"
    return f"{told}. Nothing is gained here: is the machine busy with other work?"


def batch_letter(before: StepTimes, after: StepTimes, way: str) -> str | None:
    """What became of a way's exposed communication: "a" much more, "b" as much, "c" less; None on a busy machine."""
    if is_busy(before) or is_busy(after):
        return None
    small, large = before.exposed(way), after.exposed(way)
    if abs(large - small) <= TIE * before.median(way):
        return "b"
    return "c" if large < small else "b" if large < 1.5 * small else "a"


def batch_text(before: StepTimes, after: StepTimes, way: str) -> str:
    """What of a way's communication is exposed with one batch and with twice as many images."""
    if is_busy(before) or is_busy(after):
        return BUSY
    small, large = seconds_text(before.exposed(way)), seconds_text(after.exposed(way))
    return f"{way}: {small} of communication exposed; with twice the images {large}"


def bars_text(times: StepTimes, plain: str, best: str) -> str:
    """The title of bars: how the best overlap compares with sending everything at the end."""
    if is_busy(times):
        return BUSY
    flat, ours = times.median(plain), times.median(best)
    free = times.median(ALONE)
    if flat <= (1 + TIE) * free:
        return "Communication costs next to nothing here"
    if ours >= (1 - TIE) * flat:
        return f"{best} is not much faster than {plain} in this run"
    share = hidden_share(times, best, plain)
    return f"{best} hides {percent(share)} of the communication of {plain}"


def same_text(times: StepTimes, ours: str, theirs: str) -> str:
    """Whether two ways take the same time, run by run."""
    ratios = [a / b for a, b in zip(times.seconds[ours], times.seconds[theirs], strict=True)]
    middle = statistics.median(ratios)
    spread = f"{min(ratios):.2f} to {max(ratios):.2f}"
    if abs(middle - 1) <= 2 * TIE:
        return f"{ours} takes {middle:.2f} times as long as {theirs} ({spread} in {len(ratios)} rounds): the same"
    faster, slower = (ours, theirs) if middle < 1 else (theirs, ours)
    return f"{faster} is faster here: {slower} takes {max(middle, 1 / middle):.2f} times as long (ratios {spread})"


def best_text(predicted: int, measured: Mapping[int, Sequence[float]]) -> str:
    """The bucket size that was predicted to be best, against the one that was measured to be.

    Args:
        measured: bucket size → the seconds of all steps.
    """
    middle = {size: statistics.median(seconds) for size, seconds in measured.items()}
    best = min(middle, key=middle.__getitem__)
    near = min(middle, key=lambda size: abs(size - predicted))
    told = f"Best bucket: predicted {bytes_text(predicted)}, measured {bytes_text(best)}"
    if best == near:
        return told
    more = middle[near] / middle[best] - 1
    if more <= TIE or min(measured[near]) <= middle[best]:
        return f"{told}; the two are {percent(more)} apart, which is noise"
    return f"{told}, {percent(more)} faster"


def loopback_letter(times: StepTimes, plain: str, way: str) -> str:
    """ "a" where hiding made a step faster, "c" where it made it slower, "b" where the difference is noise."""
    gain, noise = _gain(times, plain, way)
    return "b" if abs(gain) <= noise else "a" if gain > 0 else "c"


def _gain(times: StepTimes, plain: str, way: str) -> tuple[float, float]:
    """How much faster a way is than another, and how large such a share is by chance."""
    gain = 1 - times.median(way) / times.median(plain)
    low, _, high = statistics.quantiles(times.seconds[plain], n=4, method="inclusive")
    return gain, max(TIE, (high - low) / times.median(plain))


def loopback_text(times: StepTimes, plain: str, way: str, cores: int, ranks: int) -> str:
    """Whether hiding pays where messages go through memory and every core is busy."""
    gain, noise = _gain(times, plain, way)
    busy = f"{ranks} ranks on {cores} cores"
    if abs(gain) <= noise:
        return f"{busy}: {way} and {plain} are {percent(abs(gain))} apart, within the noise of {percent(noise)}"
    if gain < 0:
        return f"{busy}: {way} is even {percent(-gain)} slower than {plain}"
    return f"{busy}: {way} is {percent(gain)} faster than {plain}; a core was free, or memory is slow"


def efficiency_text(kind: str, efficiencies: Mapping[int, float], cores: int) -> str:
    """Strong or weak scaling in words.

    Args:
        efficiencies: by the number of ranks.
    """
    told = ", ".join(f"{percent(value)} with {ranks}" for ranks, value in efficiencies.items())
    most = max(efficiencies)
    limit = f" (at most {percent(cores / most)} with {most} ranks on {cores} cores)" if most > cores else ""
    return f"{kind} scaling: {told}{limit}"


def compression_text(found: Mapping[str, "Compressed"]) -> str:
    """Which way of compressing sent least, and what that cost in accuracy against none."""
    plain = found["none"]
    if plain.bytes_per_step is None:
        best = max(found, key=lambda how: found[how].accuracy)
        return f"No links, so no bytes to count; {best} recognises most, {percent(found[best].accuracy)}"
    least = min(found, key=lambda how: found[how].bytes_per_step)
    times = number_text(plain.bytes_per_step / found[least].bytes_per_step)
    lost = round(100 * (plain.accuracy - found[least].accuracy), 1)
    cost = f"{lost:g} % fewer images" if lost > 0 else f"{-lost:g} % more images" if lost < 0 else "as many images"
    return f"{least} sends {times} times less and recognises {cost}"


def fewer_bytes_text(often: Sequence[int], once: Sequence[int], micro_batches: int) -> str:
    """How much less each node sent when only the last micro-batch talked."""
    times = statistics.fmean(often) / statistics.fmean(once)
    told = f"A node sent {bytes_text(statistics.fmean(often))} and {bytes_text(statistics.fmean(once))}"
    near = "as many as there are micro-batches" if abs(times / micro_batches - 1) <= TIE else "by the kernel's count"
    return f"{told}: {number_text(times)} times less, {near}"
