"""What measurements of all-reduces say, in a sentence: written here once, chosen by the numbers."""

import statistics
from collections.abc import Callable, Mapping, Sequence

from course_utils.lessons.allreduce.bandwidth import bus_bandwidth
from course_utils.lessons.allreduce.cost_model import Network
from course_utils.measuring import BUSY, NEAR, is_busy, relative_errors, unless_busy
from course_utils.words import bytes_text, percent, seconds_text


def network_text(network: Network) -> str:
    """α and β in words."""
    return (
        f"A message costs {seconds_text(network.alpha)}, and {seconds_text(1e6 * network.beta)} for each MB: "
        f"{bytes_text(1 / network.beta)}/s."
    )


def formula_text(runs: Sequence[float], formulas: Mapping[str, float]) -> str:
    """Which of several predictions the seconds of most runs bear out, and what the others say."""
    nearest = [min(formulas, key=lambda name: abs(formulas[name] / seconds - 1)) for seconds in runs]
    if is_busy([runs]):
        return BUSY
    near, seconds = statistics.mode(nearest), statistics.median(runs)
    predictions = ", ".join(f"{name} says {seconds_text(value)}" for name, value in formulas.items())
    nearer = f"{near} is nearer in {nearest.count(near)} of {len(runs)} runs"
    return f"measured {seconds_text(seconds)}; {predictions}: {nearer}"


def error_text(predicted: Sequence[float], measured: Sequence[float], busy: bool = False) -> str:
    """How far predictions are off, in the middle and at worst.

    Args:
        predicted, measured: seconds of each case.
        busy: whether the machine was too busy to compare them, by all runs of each case (`measuring.is_busy`).
    """
    if busy:
        return BUSY
    errors = relative_errors(predicted, measured)
    middle, worst = percent(statistics.median(errors)), percent(max(errors))
    off = f"off by {middle} in the median of {len(errors)} cases, by {worst} at worst"
    if statistics.median(errors) > NEAR:
        return f"{off}: do not trust it here"
    return f"{off}: right" if max(errors) <= NEAR else f"{off}: right as a rule, not in every case"


def bus_text(world_size: int, nbytes: float, seconds: float) -> str:
    """The bus bandwidth of an all-reduce."""
    return f"{bytes_text(bus_bandwidth('all_reduce', world_size, nbytes, seconds))}/s"


def kept_text(measured: Mapping[str, Mapping[str, Sequence[Sequence[float]]]]) -> str:
    """Which share of its bus bandwidth each algorithm keeps from the first number of ranks to the last.

    Args:
        measured: for each number of ranks ("4 ranks") and algorithm, the seconds of all runs at each size; the last
            size counts.
    """
    few, many = list(measured)[0], list(measured)[-1]

    def rate(panel: str, name: str) -> float:
        return bus_bandwidth("all_reduce", int(panel.split()[0]), 1.0, statistics.median(measured[panel][name][-1]))

    shares = [f"{name} keeps {percent(rate(many, name) / rate(few, name))}" for name in measured[many]]
    ends = [runs[-1] for panel in (few, many) for runs in measured[panel].values()]
    return unless_busy(is_busy(ends), f"From {few} to {many}: {', '.join(shares)}")


def rounding_text(errors: Mapping[str, float], loss: float) -> str:
    """How much smaller the error of a sum is than the loss of accuracy that it was suspected of."""
    worst = max(errors.values())
    times = float(f"{loss / worst:.1g}")
    return f"at most {worst:.0e} of the largest sum: about {times:,.0f} times less than {percent(loss)}"


def predictors(world_size: int, names: Sequence[str], time: Callable[..., float], network: Network) -> dict:
    """For each algorithm a function of the size: what `time` (`predicted_seconds`) says of this network."""
    return {name: lambda nbytes, name=name: time(name, world_size, nbytes, network) for name in names}
