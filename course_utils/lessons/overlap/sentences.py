"""What measurements of overlap say, in a sentence: written here once, chosen by the numbers."""

import statistics
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from course_utils.lessons.overlap.step_times import StepTimes
from course_utils.measuring import AGREEING, BUSY, TIE, Compared, tied
from course_utils.words import bytes_text, count, number_text, percent, seconds_text

if TYPE_CHECKING:
    from course_utils.lessons.overlap.compressed_training import Compressed


def line_text(alpha: float, beta: float, gradients: int, nbytes: int) -> str:
    """What all gradients cost one by one and as one vector, by alpha and beta."""
    each, flat = gradients * alpha + beta * nbytes, alpha + beta * nbytes
    return (
        f"alpha {seconds_text(alpha)}, beta {seconds_text(1e6 * beta)} for a MB. "
        f"{gradients} gradients one by one: {seconds_text(each)}; "
        f"all {bytes_text(nbytes)} at once: {seconds_text(flat)}"
    )


def hidden_share(times: StepTimes, method: str, plain: str) -> float:
    """Which share of the communication of `plain`, which hides nothing, hides with `method`; never below 0."""
    exposed = times.exposed(plain)
    return max(0.0, 1 - times.exposed(method) / exposed) if exposed else 0.0


def hiding_text(times: StepTimes, method: str, plain: str) -> str:
    """How much of the step's communication one way hides that another leaves exposed."""
    if times.is_busy:
        return BUSY
    before, after = (exposed_text(times.exposed(name)) for name in (plain, method))
    text, pair = f"{plain}: {before} of communication exposed; {method}: {after}", times.compared(method, plain)
    if pair.first_is_faster:
        return f"{text}. {percent(hidden_share(times, method, plain))} less"
    if pair.is_tie:
        return f"{text}. {count(len(times.seconds[method]), 'round')} show no clear difference"
    return f"{text}. It hides nothing here"


def exposed_text(seconds: float) -> str:
    """Exposed communication in words: "12 ms", or "none"."""
    return seconds_text(seconds) if seconds else "none"


def batch_letter(before: StepTimes, after: StepTimes, method: str) -> str:
    """What became of a way's exposed communication: "a" much more, "b" as much, "c" less."""
    small, large = before.exposed(method), after.exposed(method)
    if abs(large - small) <= TIE * before.median(method):
        return "b"
    return "c" if large < small else "b" if large < 1.5 * small else "a"


def batch_text(before: StepTimes, after: StepTimes, method: str) -> str:
    """What of a way's communication is exposed with one batch and with twice as many images."""
    if before.is_busy or after.is_busy:
        return BUSY
    small, large = (exposed_text(times.exposed(method)) for times in (before, after))
    return f"{method}: {small} of communication exposed; with twice the images {large}"


def best_text(predicted: int, measured: Mapping[int, Sequence[float]]) -> str:
    """The bucket size that was predicted to be best, against the one that was measured to be.

    Args:
        measured: bucket size → the seconds of all steps.
    """
    middle = {size: statistics.median(seconds) for size, seconds in measured.items()}
    best = min(middle, key=middle.__getitem__)
    near = min(middle, key=lambda size: abs(size - predicted))
    text = f"Best bucket: predicted {bytes_text(predicted)}, measured {bytes_text(best)}"
    if best == near:
        return text
    more = middle[near] / middle[best] - 1
    if Compared(measured[best], measured[near]).is_tie:
        return f"{text}; the two are {percent(more)} apart, which is noise"
    return f"{text}, which is {percent(more)} faster"


def loopback_letter(times: StepTimes, plain: str, method: str) -> str:
    """ "a" where hiding made a step faster, "c" where it made it slower, "b" where the two are a tie."""
    pair = times.compared(method, plain)
    return "b" if pair.is_tie else "a" if pair.first_is_faster else "c"


def loopback_text(times: StepTimes, plain: str, method: str, cores: int, ranks: int) -> str:
    """Whether hiding pays where messages go through memory and every core is busy."""
    pair = times.compared(method, plain)
    if pair.is_busy:
        return BUSY
    why = "; a core was free, or memory is slow" if pair.first_is_faster else ""
    return f"{ranks} ranks on {cores} cores: {pair}{why}"


def efficiency_text(kind: str, efficiencies: Mapping[int, float], cores: int) -> str:
    """Strong or weak scaling in words.

    Args:
        efficiencies: by the number of ranks.
    """
    text = ", ".join(f"{percent(value)} with {ranks}" for ranks, value in efficiencies.items())
    most = max(efficiencies)
    if most <= cores:
        return f"{kind} scaling: {text}"
    return f"{kind} scaling: {text} (at most {percent(cores / most)} with {most} ranks on {cores} cores)"


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
    text = f"A node sent {bytes_text(statistics.fmean(often))} and {bytes_text(statistics.fmean(once))}"
    near = "as many as there are micro-batches" if tied(times, micro_batches) else "by the kernel's count"
    return f"{text}: {number_text(times)} times less, {near}"


def width_text(channels: Sequence[int], shares: Sequence[Sequence[float]]) -> str:
    """What becomes of the messages' share of a step as the network grows wider.

    Args:
        channels: rising.
        shares: for each width, the exposed communication as a share of the step, round by round.
    """
    first, last = (statistics.median(each) for each in (shares[0], shares[-1]))
    text = (
        f"From {channels[0]} to {channels[-1]} channels messages go from {percent(first)} to {percent(last)} of a step"
    )
    agree = sum(
        (first_share > other) == (first > last) for first_share, other in zip(shares[0], shares[-1], strict=True)
    ) >= AGREEING * len(shares[0])
    return text if agree and not tied(first, last) else text + ": no clear difference"
