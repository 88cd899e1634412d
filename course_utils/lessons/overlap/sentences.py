"""Sentences about measurements of overlap, chosen by the numbers."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from course_utils.lessons.overlap.step_times import StepTimes
from course_utils.measuring import AGREEING, BUSY, TIE, Compared, tied, times_text
from course_utils.words import bytes_text, count, join, number_text, percent, seconds_text

CLOSE = 0.1
"""Steps that differ from the calculation by less than this share confirm it."""

if TYPE_CHECKING:
    from course_utils.lessons.overlap.compressed_training import Compressed


def line_text(alpha: float, beta: float, gradients: int, nbytes: int) -> str:
    """Return alpha and beta in words, and what all gradients cost by them: sent one by one, and as one vector."""
    each, flat = gradients * alpha + beta * nbytes, alpha + beta * nbytes
    return (
        f"alpha is {seconds_text(alpha)}, and beta is {seconds_text(1e6 * beta)} per MB. By the formula, sent one "
        f"by one, the {gradients} gradients take {seconds_text(each)}, and all {bytes_text(nbytes)} in one message "
        f"take {seconds_text(flat)}."
    )


def hidden_share(times: StepTimes, method: str, plain: str) -> float:
    """Return the share of the communication exposed by `plain` that `method` hides; never below 0."""
    exposed = times.exposed(plain)
    return max(0.0, 1 - times.exposed(method) / exposed) if exposed else 0.0


def hiding_text(times: StepTimes, method: str, plain: str) -> str:
    """Return what communication adds to a step with each of the two, and whether that is a difference."""
    if times.is_busy:
        return BUSY
    before, after = (exposed_text(times.exposed(name)) for name in (plain, method))
    text, pair = f"Communication adds {before} with {plain}, {after} with {method}", times.compared(method, plain)
    if pair.first_is_faster:
        return f"{text}, {percent(hidden_share(times, method, plain))} less"
    if pair.is_tie:
        return f"{text}; {count(len(times.seconds[method]), 'round')} are too few to tell them apart"
    return f"{text}; nothing is gained here"


def exposed_text(seconds: float) -> str:
    """Return the seconds in words: "12 ms", or "none"."""
    return seconds_text(seconds) if seconds else "none"


def batch_text(times: Mapping[int, StepTimes], method: str) -> str:
    """Return what communication adds to a step of a method with a smaller and a larger batch, and whether that differs.

    Args:
        times: by the number of images on a rank, measured by turns; the smallest and the largest are compared.
    """
    if any(each.is_busy for each in times.values()):
        return BUSY
    small, large = min(times), max(times)
    before, after = times[small].exposed_by_round(method), times[large].exposed_by_round(method)
    middle = times[large].exposed(method) - times[small].exposed(method)
    agreeing = sum((late < early) == (middle < 0) for early, late in zip(before, after, strict=True))
    adds = [exposed_text(times[batch].exposed(method)) for batch in (small, large)]
    text = f"Communication adds {adds[0]} with {small} images and {adds[1]} with {large}"
    if abs(middle) <= TIE * times[small].median(method) or agreeing < AGREEING * len(before):
        return f"{text}: no clear difference"
    return f"{text}: {'more is hidden' if middle < 0 else 'the larger batch hides no more here'}"


def best_text(predicted: int, measured: Mapping[int, Sequence[float]]) -> str:
    """Return the bucket size that was calculated to be the best, and the one that was measured to be.

    Args:
        measured: bucket size → the seconds of all steps.
    """
    middle = {size: statistics.median(seconds) for size, seconds in measured.items()}
    best = min(middle, key=middle.__getitem__)
    near = min(middle, key=lambda size: abs(size - predicted))
    text = f"Best bucket size: {bytes_text(predicted)} calculated, {bytes_text(best)} measured"
    if best == near:
        return text
    more = middle[near] / middle[best] - 1
    if Compared(measured[best], measured[near]).is_tie:
        return f"{text}; the {percent(more)} between their steps are within the spread"
    return f"{text}, whose step is {percent(more)} faster"


def calculation_text(measured: Mapping[int, Sequence[float]], calculated: Callable[[int], float]) -> str:
    """Return how far measured steps are from the calculated ones.

    Args:
        measured: bucket size → the seconds of all steps.
        calculated: the seconds of a step for a bucket size.
    """
    beyond = [statistics.median(seconds) / calculated(size) - 1 for size, seconds in measured.items()]
    least, most = min(beyond), max(beyond)
    if max(-least, most) <= CLOSE:
        return f"Every measured step is within {percent(CLOSE)} of the calculated one"
    sizes = count(len(beyond), "size")
    if least > 0:
        return f"At all {sizes} the step took longer than calculated, by {percent(least)} to {percent(most)}"
    if most < 0:
        return f"At all {sizes} the step took less time than calculated, by {percent(-most)} to {percent(-least)}"
    return f"The measured steps take between {percent(-least)} less and {percent(most)} more time than calculated"


def loopback_letter(times: StepTimes, plain: str, method: str) -> str:
    """Return "a" if hiding made a step faster, "c" if it made it slower, "b" if the two are a tie."""
    pair = times.compared(method, plain)
    return "b" if pair.is_tie else "a" if pair.first_is_faster else "c"


def loopback_text(times: StepTimes, plain: str, method: str, cores: int, ranks: int) -> str:
    """Return whether hiding pays if messages go through memory and every core is busy."""
    pair = times.compared(method, plain)
    if pair.is_busy:
        return BUSY
    why = "; probably a core was free, or the memory is slow" if pair.first_is_faster else ""
    return f"{ranks} ranks on {cores} cores: {pair}{why}"


def efficiency_text(kind: str, efficiencies: Mapping[int, float], cores: int) -> str:
    """Return the efficiency of strong or weak scaling in words.

    Args:
        efficiencies: by the number of ranks.
    """
    text = ", ".join(f"{percent(value)} with {ranks}" for ranks, value in efficiencies.items())
    most = max(efficiencies)
    if most <= cores:
        return f"{kind} scaling: {text}"
    return f"{kind} scaling: {text} (at most {percent(cores / most)} with {most} ranks on {cores} cores)"


def speed_up_text(speed_ups: Mapping[int, float], cores: int) -> str:
    """Return how many times as fast several ranks are as one, and whether they have to share cores.

    Args:
        speed_ups: by the number of ranks; the largest is reported.
        cores: of this computer.
    """
    most = max(speed_ups)
    speed_up = speed_ups[most]
    if tied(speed_up, 1):
        text = f"{most} ranks are no faster than one"
    elif speed_up > 1:
        text = f"{most} ranks are {times_text(speed_up)} times as fast as one"
    else:
        text = f"{most} ranks take {times_text(1 / speed_up)} times as long as one"
    return f"{text}, but they share {count(cores, 'core')}" if most > cores else text


def amdahl_text(share: float, by_formula: Mapping[int, float], speed_ups: Mapping[int, float]) -> str:
    """Return what Amdahl's formula concludes from two ranks, next to what was measured with more.

    Args:
        share: of the work that two ranks could not divide; 1 or more if two ranks are not faster than one.
        by_formula: the formula's speed-up, by the number of ranks.
        speed_ups: measured, by the number of ranks; two are among them.
    """
    two = times_text(speed_ups[2])
    if share >= 1:
        return (
            f"Two ranks are {two} times as fast as one here, which is no gain. By the formula, then, none of the work "
            "can be divided"
        )
    if share <= 0:
        return f"Two ranks are {two} times as fast as one, so the formula finds no work that can't be divided"
    factors = []
    for number, factor in by_formula.items():
        seen = f" (measured: {times_text(speed_ups[number])})" if number in speed_ups else ""
        factors.append(f"{number} ranks are {times_text(factor)} times as fast as one{seen}")
    return (
        f"Two ranks are {two} times as fast as one, so {percent(share)} of the work can't be divided. "
        f"According to the formula, {join(factors)}"
    )


def compression_text(found: Mapping[str, "Compressed"]) -> str:
    """Return which compression sent the fewest bytes, and what that cost in accuracy."""
    plain = found["none"]
    if plain.bytes_per_step is None:
        best = max(found, key=lambda how: found[how].accuracy)
        return f"Without links no bytes are counted; {best} recognises the most, {percent(found[best].accuracy)}"
    least = min(found, key=lambda how: found[how].bytes_per_step)
    times = number_text(plain.bytes_per_step / found[least].bytes_per_step)
    lost = round(100 * (plain.accuracy - found[least].accuracy), 1)
    cost = f"{lost:g}% fewer images" if lost > 0 else f"{-lost:g}% more images" if lost < 0 else "as many images"
    return f"{least} sends {times} times less and recognises {cost}"


def block_size_text(sizes: Sequence[int], errors: Sequence[Sequence[float]]) -> str:
    """Return what the largest outlier does to the other numbers, with small blocks and with one scale for all.

    Args:
        sizes: of the blocks, rising; the last one holds all numbers.
        errors: for each outlier, the relative error of the other numbers with each size.
    """
    first, last = (max(of_size) for of_size in list(zip(*errors, strict=True))[:: len(sizes) - 1])
    small, whole = f"with a scale for {sizes[0]} numbers", "with one scale for all"
    if tied(first, last):
        return f"The other numbers are {percent(last)} off, {whole} as well as {small}"
    return f"The other numbers are {percent(last)} off {whole}, but {percent(first)} {small}"


def learning_text(losses: Mapping[str, Sequence[float]], plain: str) -> str:
    """Return how far the loss of each method is from that of plain gradients, on average over the steps."""
    apart = [
        f"{statistics.fmean(abs(loss - whole) for loss, whole in zip(curve, losses[plain], strict=True)):.2g} "
        f"with {method}"
        for method, curve in losses.items()
        if method != plain
    ]
    return f"The loss is {join(apart)} away from that of plain gradients, on average"


def fewer_bytes_text(often: Sequence[int], once: Sequence[int], micro_batches: int) -> str:
    """Return what share of the bytes each rank sent if only the last micro-batch's backward pass sends."""
    share = statistics.fmean(once) / statistics.fmean(often)
    every, last = (bytes_text(statistics.fmean(sent)) for sent in (often, once))
    text = f"A rank sent {every} when every backward pass sent its gradients, and {last} when only the last one did"
    why = f", because it was one backward pass of {micro_batches}" if tied(share, 1 / micro_batches) else ""
    return f"{text}. That is {percent(share)} of the bytes{why}"


def width_text(channels: Sequence[int], shares: Sequence[Sequence[float]]) -> str:
    """Return what happens to the share of a step that messages take as the network grows wider.

    Args:
        channels: rising.
        shares: for each width, the exposed communication as a share of the step, round by round.
    """
    first, last = (statistics.median(each) for each in (shares[0], shares[-1]))
    text = (
        f"From {channels[0]} to {channels[-1]} channels, messages go from {percent(first)} to {percent(last)} of a step"
    )
    agree = sum(
        (first_share > other) == (first > last) for first_share, other in zip(shares[0], shares[-1], strict=True)
    ) >= AGREEING * len(shares[0])
    return text if agree and not tied(first, last) else text + ": no clear difference"
