"""The sentences about parameter servers, stale gradients and local training, chosen by the measured numbers."""

import math
import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from course_utils.lessons.parameter_server.digits_trainings import Curve, Served
from course_utils.measuring import BUSY, NEAR, Compared, is_busy, larger, tied
from course_utils.words import bytes_text, count, join, percent, seconds_text

_FULL = 0.05  # a link within this share of its highest rate is full
MINUS = "\N{MINUS SIGN}"
_APART = 0.02  # accuracies nearer than this count as equal: 7 of the 360 test images


def link_title(workers: Sequence[int], server: Sequence[Sequence[float]], ring: Sequence[Sequence[float]]) -> str:
    """Return how long the two take with the most workers, or `BUSY`.

    Args:
        server, ring: for each number of workers the seconds of all runs.
    """
    if is_busy([server[-1], ring[-1]]):
        return BUSY
    through, around = seconds_text(statistics.median(server[-1])), seconds_text(statistics.median(ring[-1]))
    return f"With {workers[-1]} workers: {through} through the server, {around} around the ring"


def link_text(measured: Mapping[str, Sequence[Sequence[float]]], predicted: Mapping[str, Sequence[float]]) -> str:
    """Return for each method how far its times were from the calculation, from the lowest to the highest, or `BUSY`.

    Args:
        measured: method → for each number of workers the seconds of all runs.
        predicted: method → for each number of workers the seconds that were calculated.
    """
    if is_busy(runs for by_workers in measured.values() for runs in by_workers):
        return BUSY
    texts = []
    for name, by_workers in measured.items():
        errors = [statistics.median(runs) / plan - 1 for runs, plan in zip(by_workers, predicted[name], strict=True)]
        low, high = _signed(min(errors)), _signed(max(errors))
        texts.append(f"{name} {low}" if low == high else f"{name} {low} to {high}")
    return f"Measured against calculated: {', '.join(texts)}"


def _signed(share: float) -> str:
    """Return a share in percent with its sign: "+9%", "−9%", "0%"."""
    text = percent(abs(share))
    return text if text == percent(0) else f"{'+' if share > 0 else MINUS}{text}"


def staleness_text(workers: int, histograms: Mapping[str, Sequence[int]]) -> tuple[str, str]:
    """Return a title with the mean staleness of every setting and workers − 1, and a line on the oldest gradients."""
    means = [float(np.mean(ages)) for ages in histograms.values()]
    near = all(abs(mean - (workers - 1)) <= NEAR * max(1, workers - 1) for mean in means)
    means_text = join([f"{mean:.2f}" for mean in means])
    title = f"The mean staleness is {means_text}, " + (
        f"close to {workers} − 1" if near else f"but {workers - 1} was predicted"
    )
    oldest = join([f"{max(ages)} ({setting})" for setting, ages in histograms.items()])
    return title, f"Staleness of the oldest gradient: {oldest}"


def served_text(virtual: Sequence[Served], real: Sequence[Served]) -> tuple[str, str]:
    """Say how many workers fill the server's link, and how far virtual rates are from real ones.

    Args:
        virtual: by rising number of workers. real: some of these numbers.
    """
    most = max(run.rate for run in virtual)
    full = next(run for run in virtual if run.rate >= (1 - _FULL) * most)
    last = virtual[-1]
    if full is last:
        title = f"With {last.workers} virtual workers, the server's link is not full yet"
    else:
        title = f"{last.workers} virtual workers bring no more updates than {full.workers} do, but older gradients"
    rates = {run.workers: run.rate for run in virtual}
    if is_busy([[1 / run.rate] for run in real], planned=[1 / rates[run.workers] for run in real]):
        return title, BUSY
    errors = [abs(rates[run.workers] / run.rate - 1) for run in real]
    errors_text = [f"{percent(error)} with {run.workers}" for error, run in zip(errors, real, strict=True)]
    text = f"Virtual and real workers differ in updates per second by {join(errors_text)} workers"
    return title, text if real else ""


def largest_rate(rates: Sequence[float], accuracies: Sequence[float], target: float) -> float:
    """Return the largest rate that reached the target; 0 if none did."""
    return max([rate for rate, accuracy in zip(rates, accuracies, strict=True) if accuracy >= target], default=0.0)


def rates_text(
    rates: Sequence[float], fresh: Sequence[float], stale: Sequence[float], scaled: Sequence[float], target: float
) -> tuple[str, str]:
    """Return a title, how large the rate may be with old gradients, and a line on how large it may be if scaled.

    Args:
        fresh: the accuracy at each rate with one worker. stale: with many. scaled: with many and scaled rates.
        target: the accuracy at which a run counts as successful.
    """
    one, many, cured = (largest_rate(rates, accuracies, target) for accuracies in (fresh, stale, scaled))
    title = f"Largest rate that succeeds: {_rate_text(one)} with fresh gradients, {_rate_text(many)} with old ones"
    return title, f"Success: at least {percent(target)}. Rates divided by the staleness: up to {_rate_text(cured)}"


def _rate_text(rate: float) -> str:
    return f"{rate:g}" if rate else "none"


def median_to(runs: Sequence[Curve], target: float) -> float | None:
    """Return the median of the seconds to the target; None if half of the runs or more never reached it."""
    return _median([run.reached(target) for run in runs])


def _median(values: Sequence[float | None]) -> float | None:
    """Return the median of those that are not None; None if half of them or more are."""
    found = [value for value in values if value is not None]
    return statistics.median(found) if 2 * len(found) > len(values) else None


def first_to(ways: Mapping[str, Sequence[Curve]], target: float) -> list[str]:
    """Return the way that reaches the target first, by the median seconds, followed by those that tie with it.

    Two ways tie if the slowest run of the first took at least as long as the fastest run of the other, or if one isn't
    clearly faster round by round (`measuring.Compared`).
    """
    times = {name: median_to(runs, target) for name, runs in ways.items()}
    there = sorted((seconds, name) for name, seconds in times.items() if seconds is not None)
    names = [name for _, name in there]
    return names[:1] + [name for name in names[1:] if _ties(ways[names[0]], ways[name], target)]


def _ties(first: Sequence[Curve], other: Sequence[Curve], target: float) -> bool:
    """Return whether neither of two ways is clearly the first to reach the target; `first` has the lower median."""
    overlap = _most(first, target) >= _least(other, target)
    return overlap or compared(first, other, target).is_tie


def first_text(ways: Mapping[str, Sequence[Curve]], target: float) -> str:
    """Return which way reaches the target first, or between which ways there is no clear difference."""
    first = first_to(ways, target)
    if len(first) > 1:
        return f"no clear difference to {percent(target)} between {join(first)}"
    return f"{first[0]} reaches {percent(target)} first" if first else f"none reaches {percent(target)}"


def compared(first: Sequence[Curve], second: Sequence[Curve], target: float) -> Compared:
    """Return the seconds to the target of two ways that ran by turns, if at least one reached it in that round."""
    seconds = [[run.reached(target) for run in runs] for runs in (first, second)]
    ends = [[math.inf if end is None else end for end in each] for each in seconds]
    pairs = [pair for pair in zip(*ends, strict=True) if min(pair) < math.inf]
    return Compared(*zip(*pairs, strict=True))


def reached_table(rows: Mapping[str, Mapping[str, Sequence[Curve]]], target: float) -> str:
    """Return a table of the seconds to the target, with their range, and of the epochs, for every setting and way."""
    lines = [f"To {percent(target)}:"]
    for setting, ways in rows.items():
        for name, runs in ways.items():
            seconds, epochs = median_to(runs, target), _median([run.epochs_to(target) for run in runs])
            text = "not reached"
            if seconds is not None and epochs is not None:
                reach = f"{seconds_text(_least(runs, target))} to {seconds_text(_most(runs, target))}"
                text = f"{seconds_text(seconds):>7} ({reach}), {epochs:.1f} epochs"
            lines.append(f"  {setting:16}{name:14}{text}")
    return "\n".join(lines)


def _least(runs: Sequence[Curve], target: float) -> float:
    return min(s for s in (run.reached(target) for run in runs) if s is not None)


def _most(runs: Sequence[Curve], target: float) -> float:
    return max(s for s in (run.reached(target) for run in runs) if s is not None)


def races_text(rows: Mapping[str, Mapping[str, Sequence[Curve]]], target: float, busy: bool = False) -> str:
    """Return for every setting which way reaches the target first, in seconds; nothing on a busy machine."""
    if busy:
        return ""
    return ". ".join(
        f"{setting[:1].upper()}{setting[1:]}: {first_text(ways, target)}" for setting, ways in rows.items()
    )


def local_text(local_steps: Sequence[int], nbytes: Sequence[float], accuracies: Sequence[float]) -> str:
    """Say how far local steps cut the bytes, and whether the accuracy paid for it."""
    few, most, kept = accuracies[0], accuracies[-1], holds_up_to(local_steps, accuracies)
    start = f"{local_steps[-1]} local steps send {bytes_text(nbytes[-1])} instead of {bytes_text(nbytes[0])}"
    if kept == local_steps[-1]:
        return f"{start} and lose no accuracy ({percent(most)} against {percent(few)})"
    return f"{start}, but beyond {kept} the accuracy falls, from {percent(few)} to {percent(most)}"


def holds_up_to(local_steps: Sequence[int], accuracies: Sequence[float]) -> int:
    """Return the largest number of local steps that cost no accuracy."""
    return max(k for k, each in zip(local_steps, accuracies, strict=True) if each >= accuracies[0] - _APART)


def slower(rows: Mapping[str, Mapping[str, Sequence[Curve]]]) -> dict[str, float]:
    """Return by which factor each way takes longer in the last setting than in the first, from their medians."""
    first, *_, last = rows.values()
    return {
        name: statistics.median(run.seconds[-1] for run in last[name])
        / statistics.median(run.seconds[-1] for run in first[name])
        for name in first
    }


def is_busy_race(rows: Mapping[str, Mapping[str, Sequence[Curve]]], planned: float | None = None) -> bool:
    """Return whether the machine was too busy to compare trainings (`measuring.is_busy`).

    Args:
        rows: setting → way → its runs.
        planned: seconds that "synchronous" training takes in the first setting by calculation. A busy machine may
            stretch all runs alike, and then their scatter does not show it.
    """
    if is_busy([run.seconds[-1] for run in runs] for ways in rows.values() for runs in ways.values()):
        return True
    first = next(iter(rows.values()))
    return planned is not None and is_busy([[run.seconds[-1] for run in first["synchronous"]]], planned=[planned])


def straggler_text(times: Mapping[str, float], busy: bool = False) -> str:
    """Return how many times as long each way takes for the same number of gradients with a straggler, or `BUSY`.

    Args:
        times: the way → the factor, as `slower` returns it.
        busy: the result of `is_busy_race`.
    """
    if busy:
        return BUSY
    factors = join([f"{factor:.1f} ({name})" for name, factor in times.items()])
    return f"With a straggler, the same work takes {factors} times as long"


def rounds_to(accuracies: Sequence[float], target: float) -> int | None:
    """Return after how many rounds the target was first reached; None if it never was."""
    return next((number for number, share in enumerate(accuracies, 1) if share >= target), None)


def clinics_text(by_epochs: Mapping[int, Sequence[float]], target: float, nbytes: float) -> str:
    """Say how many bytes a clinic sends to reach the target, and how many local epochs it computes for that.

    Args:
        by_epochs: local epochs → the accuracy after every round. nbytes: what a clinic sends in a round.
    """
    texts = []
    for epochs, accuracies in by_epochs.items():
        rounds = rounds_to(accuracies, target)
        name = count(epochs, "local epoch")
        if rounds is None:
            texts.append(f"{name}: not reached in {len(accuracies)} rounds")
        else:
            texts.append(f"{name}: {bytes_text(rounds * nbytes)}, {count(rounds * epochs, 'epoch')} computed")
    return f"Up to {percent(target)}, {'; '.join(texts)}"


def mean_text(weighted: float, unweighted: float) -> str:
    """Say whether counting every clinic alike costs accuracy."""
    start = f"{percent(weighted)} are recognised if clinics count by images, {percent(unweighted)} if they count alike"
    if weighted - unweighted > _APART:
        return f"{start}. Counted alike, the three small clinics outweigh the large one"
    if unweighted - weighted > _APART:
        return f"{start}. The small clinics happen to help here, which could not be known in advance"
    return f"{start}. With 360 test images, that is no difference"


def outer_text(sent: Mapping[str, Sequence[float]], losses: Mapping[str, Sequence[float]]) -> str:
    """Say which way ends with the lowest loss, and what it and the others have sent.

    Args:
        sent: the way → bytes of one rank up to each point.
        losses: the way → the loss there.
    """
    best = min(losses, key=lambda name: losses[name][-1])
    others = join([f"{losses[name][-1]:.2g} ({name}, {bytes_text(sent[name][-1])})" for name in losses if name != best])
    start = f"A loss of {losses[best][-1]:.2g} with {best}, for {bytes_text(sent[best][-1])}"
    return f"{start}, against {others}"


def neighbours_text(neighbours: Sequence[float], everybody: Sequence[float]) -> str:
    """Compare the last losses of ranks that average with their neighbours and of ranks that all-reduce gradients."""
    neighbours_loss, other = neighbours[-1], everybody[-1]
    if tied(neighbours_loss, other):
        return "Averaging with neighbours ends at the same loss as the all-reduce"
    side = "above" if neighbours_loss > other else "below"
    share = percent(abs(neighbours_loss / other - 1))
    return f"Averaging with neighbours ends with a loss {share} {side} that of the all-reduce"


def backup_text(ways: Mapping[str, Sequence[Curve]], waits: str, drops: str, busy: bool = False) -> str:
    """Say how much time a synchronous server saves that drops the latest gradients, for the same number of images.

    Args:
        ways: the runs of each way of training, all through the same number of images.
        waits, drops: the way that waits for all workers, and the one with a backup worker.
        busy: whether the runs scatter too much to compare them.
    """
    if busy:
        return BUSY
    slow, quick = (statistics.median(run.seconds[-1] for run in ways[name]) for name in (waits, drops))
    ends = f"{seconds_text(quick)} against {seconds_text(slow)} for the same number of images"
    if larger(slow, quick):
        return f"A backup worker saves {percent(1 - quick / slow)} of the time: {ends}"
    return f"A backup worker saves no time here: {ends}"


def ages_text(oldest: Mapping[str, int]) -> str:
    """Say how many updates old the oldest answer was that a trainer has used, in each run."""
    ages = [f"{count(age, 'update')} ({name})" for name, age in oldest.items()]
    return f"The oldest answer that was used: {join(ages)}"


def lag_text(limits: Sequence[int], accuracies: Mapping[str, Sequence[float]]) -> str:
    """Say how many test images a network recognises that has learnt from fresh answers, and from the oldest ones.

    Args:
        limits: the largest staleness, rising from 0.
        accuracies: for each way to count old answers, the accuracy with each limit.
    """
    ways = [f"{percent(values[-1])} ({name})" for name, values in accuracies.items()]
    fresh = max(values[0] for values in accuracies.values())
    return (
        f"With answers {limits[-1]} updates old, {join(ways)} of the test images are recognised, "
        f"with fresh ones {percent(fresh)}"
    )
