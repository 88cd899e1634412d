"""What measurements of all-reduces mean, as decisions and as sentences: written here once, chosen by the numbers."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, auto

from course_utils.lessons.allreduce.bandwidth import bus_bandwidth
from course_utils.lessons.allreduce.cost_model import Network
from course_utils.measuring import BUSY, NEAR, Compared, is_busy, larger, relative_errors
from course_utils.words import bytes_text, capital, join, percent, ranks_in_words, seconds_text


def network_text(network: Network) -> str:
    """α and β in words."""
    return (
        f"A message takes {seconds_text(network.alpha)}, plus {seconds_text(1e6 * network.beta)} for each MB, "
        f"which is a rate of {bytes_text(1 / network.beta)}/s."
    )


# --- predictions against measurements -------------------------------------------------------------------------------


class Nearer(Enum):
    """Which of two formulas the measured times bear out."""

    OURS = auto()
    UNCLEAR = auto()
    BUSY = auto()


def nearer(runs: Sequence[float], ours: float, theirs: float) -> Nearer:
    """Whether our formula, which counts have confirmed, is also nearer to the seconds of most runs.

    A clock cannot overrule a count, so if theirs is nearer, the clock decides nothing.
    """
    if is_busy([runs]):
        return Nearer.BUSY
    times = sum(abs(ours / seconds - 1) < abs(theirs / seconds - 1) for seconds in runs)
    return Nearer.OURS if 2 * times > len(runs) else Nearer.UNCLEAR


def formula_text(runs: Sequence[float], ours: float, theirs: float) -> str:
    """What our formula and the report's predict, what was measured, and whether that decides anything."""
    found = nearer(runs, ours, theirs)
    if found is Nearer.BUSY:
        return f"{BUSY}."
    ends = {
        Nearer.OURS: "which is nearer to our formula.",
        Nearer.UNCLEAR: "so the clock does not settle it here. The counts do.",
    }
    predictions = f"Our formula predicts {seconds_text(ours)}, and the report's {seconds_text(theirs)}."
    return f"{predictions} We measured {seconds_text(statistics.median(runs))}, {ends[found]}"


class Trust(Enum):
    """How far calculated times can be trusted on this machine."""

    CLOSE = "So you can rely on it here."
    ROUGH = "That is good enough to choose an algorithm, but not to promise a time."
    FAR = "So you cannot rely on it here."
    BUSY = f"{BUSY}."


def trust(predicted: Sequence[float], runs: Sequence[Sequence[float]]) -> Trust:
    """Whether predictions are near the medians of the runs always, as a rule, or not even as a rule."""
    if is_busy(runs):
        return Trust.BUSY
    errors = relative_errors(predicted, map(statistics.median, runs))
    if statistics.median(errors) > NEAR:
        return Trust.FAR
    return Trust.CLOSE if max(errors) <= NEAR else Trust.ROUGH


def error_text(predicted: Sequence[float], runs: Sequence[Sequence[float]]) -> str:
    """How far calculated times are off, in the middle and at worst, and what that means.

    Args:
        predicted: seconds, for each case.
        runs: for each case, the seconds of all its runs.
    """
    found = trust(predicted, runs)
    if found is Trust.BUSY:
        return found.value
    errors = relative_errors(predicted, map(statistics.median, runs))
    middle, worst = percent(statistics.median(errors)), percent(max(errors))
    return (
        f"In {len(errors)} cases, the calculated time is off by {middle} of the measured one in the median, and by "
        f"{worst} at most. {found.value}"
    )


class AgainstModel(Enum):
    """What a comparison on the emulated nodes says about the time that was calculated for a real network."""

    AGREES = auto()
    NO_DIFFERENCE = auto()
    CONTRADICTS = auto()
    BUSY = auto()


def against_model(pair: Compared) -> AgainstModel:
    """Whether the runs agree with a calculation in which the first of the two is faster."""
    if pair.is_busy:
        return AgainstModel.BUSY
    if pair.is_tie:
        return AgainstModel.NO_DIFFERENCE
    return AgainstModel.AGREES if pair.first_is_faster else AgainstModel.CONTRADICTS


def comparison_text(pair: Compared) -> str:
    """What the emulated nodes show of two algorithms, of which the first is faster by the calculation."""
    cores = "All nodes share the cores of this computer, and more messages are more work for these cores."
    return {
        AgainstModel.AGREES: f"The emulated nodes agree: {pair}.",
        AgainstModel.NO_DIFFERENCE: f"On the emulated nodes there is no clear difference. {cores}",
        AgainstModel.CONTRADICTS: f"On the emulated nodes it is the other way round, as {pair}. {cores}",
        AgainstModel.BUSY: f"{BUSY}.",
    }[against_model(pair)]


# --- bus bandwidth, and rounding ------------------------------------------------------------------------------------


def bus_text(world_size: int, nbytes: float, seconds: float) -> str:
    """The bus bandwidth of an all-reduce."""
    return f"{bytes_text(bus_bandwidth('all_reduce', world_size, nbytes, seconds))}/s"


def kept_shares(measured: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]) -> dict[str, float]:
    """Which share of its bus bandwidth each algorithm keeps from the first number of ranks to the last.

    Args:
        measured: for each number of ranks ("4 ranks") and algorithm, the seconds of all runs at each size; the last
            size counts.
    """
    few, many = list(measured)[0], list(measured)[-1]

    def rate(panel: str, name: str) -> float:
        return bus_bandwidth("all_reduce", int(panel.split()[0]), 1.0, statistics.median(measured[panel][name][-1]))

    return {name: rate(many, name) / rate(few, name) for name in measured[many]}


def kept_text(measured: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]) -> str:
    """In a sentence, what `kept_shares` returns."""
    few, many = list(measured)[0].split()[0], list(measured)[-1]
    if is_busy([by_size[-1] for by_name in measured.values() for by_size in by_name.values()]):
        return f"{BUSY}."
    shares = join([f"{percent(share)} with {name}" for name, share in kept_shares(measured).items()])
    return f"Of the bus bandwidth on {few} ranks, {many} still have {shares}."


def rounding_text(errors: Mapping[str, float], loss: float) -> str:
    """How much smaller the error of a sum is than the loss of accuracy that it was suspected of."""
    worst = max(errors.values())
    times = float(f"{loss / worst:.1g}")
    return f"at most {worst:.0e} of the largest sum, about {times:,.0f} times less than {percent(loss)}"


# --- titles of pictures ---------------------------------------------------------------------------------------------


def fastest_text(ends: Mapping[str, tuple[Sequence[str], ...]], smallest: float, largest: float) -> str:
    """Which algorithm is the fastest for the smallest and for the largest vector.

    Args:
        ends: for each number of ranks ("4 ranks"), the fastest for the smallest and for the largest vector; several
            names where they tie.
        smallest, largest: bytes.
    """
    panels: dict[tuple[Sequence[str], ...], list[str]] = {}
    for panel, names in ends.items():
        panels.setdefault(names, []).append(panel)
    clauses = []
    for names, alike in panels.items():
        short, long = names
        if short == long:
            text = f"{_fastest(short)} at both ends"
        elif len(short) == len(long) == 1:
            text = f"{_fastest(short)} for {bytes_text(smallest)} and {long[0]} for {bytes_text(largest)}"
        else:
            text = f"{_fastest(short)} for {bytes_text(smallest)}, and {_fastest(long)} for {bytes_text(largest)}"
        clauses.append(f"on {join(alike)}, {text}")
    return capital("; ".join(clauses))


def _fastest(names: Sequence[str]) -> str:
    return f"{join(names)} {'is the fastest' if len(names) == 1 else 'tie'}"


def circles_text(sizes: Mapping[str, Sequence[float]]) -> str:
    """From which sizes on another algorithm is the fastest, by the calculation.

    Args:
        sizes: for each number of ranks, the sizes in bytes at which that changes.
    """
    changes = [f"on {panel} at {join([bytes_text(size) for size in own])}" for panel, own in sizes.items() if own]
    if not changes:
        return "According to the formula, the same algorithm is the fastest for all these sizes"
    return f"According to the formula, the fastest algorithm changes {join(changes)}"


def ranking_text(values: Mapping[str, Sequence[float]], world_size: int) -> str:
    """Which method's line ends the highest, on this many ranks; those that end within a tie of it are named, too."""
    last = {name: line[-1] for name, line in values.items()}
    best = max(last, key=lambda name: last[name])
    equal = [name for name, value in last.items() if not larger(last[best], value)]
    noun, verb = ("method", "is") if len(equal) == 1 else ("methods", "are")
    return f"the fastest {noun} on {world_size:,} ranks {verb} {join(equal)}"


def idle_text(idle: Mapping[str, float]) -> str:
    """How much of the time links carry nothing, for each of several runs."""
    shares = [f"{percent(share)} of the time with {name}" for name, share in idle.items()]
    return f"The links are idle for {join(shares)}"


def inner_text(busy: Sequence[int], trees: int) -> str:
    """Which ranks pass sums on in all of several trees."""
    those = f"{trees} trees" if trees != 2 else "both trees"
    if not busy:
        return f"No rank has to pass sums on in {those}"
    return f"{capital(ranks_in_words(list(busy)))} {'has' if len(busy) == 1 else 'have'} to pass sums on in {those}"


def predictors(world_size: int, names: Sequence[str], time: Callable[..., float], network: Network) -> dict:
    """For each algorithm a function of the size: the seconds that `time` (`predicted_seconds`) gives here."""
    return {name: lambda nbytes, name=name: time(name, world_size, nbytes, network) for name in names}
