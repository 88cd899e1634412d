"""What lesson 12's simulations and runs say, in a sentence: written here once, chosen by the numbers."""

import statistics
from collections import Counter
from collections.abc import Mapping, Sequence

from course_utils.lessons.strategy_search.graph.configurations import CUTS, Config, Strategy
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph
from course_utils.lessons.strategy_search.search.lower_bound import Bound
from course_utils.lessons.strategy_search.search.proved import ProvedSearch
from course_utils.measuring import BUSY, CALM, Compared, relative_errors, unless_busy
from course_utils.words import count, join, number_text, percent, seconds_text

_SAME = 0.005  # simulated times, which have no noise, are the same where they are nearer than this share

_NEAR = 0.3  # FlexFlow's authors report that their predictions are off by less than this share


def quickest_text(milliseconds: Mapping[str, float]) -> str:
    """How long each strategy takes, simulated, and which is the fastest, as a title."""
    times_text = ", ".join(f"{name} {number_text(ms)} ms" for name, ms in milliseconds.items())
    least = min(milliseconds.values())
    quick = [name for name, ms in milliseconds.items() if ms <= (1 + _SAME) * least]
    if len(quick) == len(milliseconds):
        return f"{times_text}: equally fast"
    how = "faster" if len(milliseconds) == 2 else "the fastest"
    return f"{times_text[:1].upper()}{times_text[1:]}: {join(quick)} {'is' if len(quick) == 1 else 'are'} {how}"


def arrived(walks: Sequence[Sequence[float]], best: float) -> int:
    """How many walks reached a strategy that takes no longer than `best`, at any moment."""
    return sum(min(costs) <= best for costs in walks)


def walks_text(walks: Mapping[str, Sequence[Sequence[float]]], best: float) -> str:
    """How many walks of each kind reached the best strategy, as a title."""
    texts = [f"{arrived(found, best)} of {len(found)} walks ({name})" for name, found in walks.items()]
    return f"The best strategy is reached by {join(texts)}"


def cut_text(config: Config) -> str:
    """A configuration in words: "by sample", "by sample and parameter", "by row", "on device 1"."""
    if config.row_cut:
        return "by row"
    cuts = [cut for cut, parts in zip(CUTS, config.parts, strict=True) if parts > 1]
    return f"by {join(cuts)}" if cuts else f"on device {config.devices[0]}"


def strategy_text(graph: OperatorGraph, strategy: Strategy) -> str:
    """A strategy in words, neighbours that are spread in the same way together: "conv1 to pool1 by sample, fc1 …"."""
    runs: list[tuple[str, list[str]]] = []
    for operator, config in list(zip(graph.operators, strategy, strict=True))[1:]:
        if not runs or runs[-1][0] != cut_text(config):
            runs.append((cut_text(config), []))
        runs[-1][1].append(operator.name)
    return ", ".join(
        f"{names[0]} {cut}" if len(names) == 1 else f"{names[0]} to {names[-1]} {cut}" for cut, names in runs
    )


def ratio_text(taken: Compared, predicted: float) -> str:
    """How many times as fast the first of two is as the second, beside what was predicted; a title.

    Args:
        predicted: the same factor, simulated.
    """
    return unless_busy(taken.is_busy, f"{taken.title}; predicted: {number_text(predicted)} times")


def timed_text(parts: int, spread: float) -> str:
    """How many parts were timed, and whether the machine was quiet enough to predict anything from them."""
    text = f"{parts} parts timed, spread {percent(spread)}"
    return text if spread <= CALM else f"{text}. {BUSY}"


def agreement(predicted: Sequence[float], measured: Sequence[float]) -> float:
    """Kendall's τ: 1 if both rank all pairs in the same order, −1 if in opposite ones.

    Source: Kendall 1938, "A New Measure of Rank Correlation"; without ties.
    """
    pairs = [(i, j) for i in range(len(predicted)) for j in range(i)]
    signs = [(predicted[i] - predicted[j]) * (measured[i] - measured[j]) for i, j in pairs]
    return sum((sign > 0) - (sign < 0) for sign in signs) / len(pairs)


def honesty_text(predicted: Sequence[float], measured: Sequence[float]) -> str:
    """How far predictions are off in the median and at worst, and whether they rank strategies correctly; a title."""
    off = relative_errors(predicted, measured)
    order = agreement(predicted, measured)
    text = f"off by {percent(statistics.median(off))} in the median, {percent(max(off))} at worst"
    if order == 1 and max(off) > _NEAR:
        return f"The simulated times are {text}, but their ranking is right"
    text = f"The simulator is {text}"
    if order == 1:
        return f"{text}; its ranking is right"
    pairs = len(off) * (len(off) - 1) // 2
    return f"{text}; {round((1 + order) / 2 * pairs)} of {pairs} pairs are ranked correctly"


def times_text(rates: Mapping[str, float]) -> str:
    """How many strategies a second each way of simulating judges, the last beside the one before; as a title."""
    rates_text = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
    before, last = list(rates)[-2:]
    factor = number_text(rates[last] / rates[before])
    return f"Strategies a second: {rates_text}; {last} is {factor} times as fast as {before}"


def found_text(seconds: float, others: Mapping[str, float]) -> str:
    """How much quicker the found strategy is, simulated, than the quickest that people had; as a title.

    Args:
        seconds: of a step with what was found; `others`: with what was known.
    """
    name = min(others, key=others.__getitem__)
    gain = 1 - seconds / others[name]
    text = f"Found: {seconds_text(seconds)} a step, simulated"
    if abs(gain) <= _SAME:
        return f"{text}: as quick as {name}, which was the quickest of those known"
    return f"{text}; {percent(abs(gain))} {'less' if gain > 0 else 'more'} than {name}"


def links_text(known: Mapping[str, Sequence[float]]) -> str:
    """Which of the known strategies is the fastest on how many links, as a title.

    Args:
        known: by name, the seconds of a step on each link.
    """
    fastest = Counter(min(zip(each, known, strict=True))[1] for each in zip(*known.values(), strict=True))
    if len(fastest) == 1:
        return f"Of the known strategies, {join(list(fastest))} is the fastest on all {fastest.total()} links"
    texts = [f"{name} on {count(number, 'link')}" for name, number in fastest.items()]
    return f"The fastest known strategy: {join(texts)}"


def bound_text(found: int, took: float, bound: Bound | None) -> str:
    """How far what walks found is from the best, and the time that both searches took.

    Args:
        found: its nanoseconds. took: seconds of the walks.
        bound: of all strategies; None where the search for it gave up.
    """
    if bound is None:
        return "Too many partial strategies are left, so nothing is proved"
    times = f"walks {seconds_text(took)}, proof {seconds_text(bound.took)}"
    if bound.nanoseconds == found:
        return f"Proved: no strategy is quicker than {seconds_text(found / 1e9)}, simulated ({times})"
    gap = 1 - bound.nanoseconds / found
    return (
        f"The best takes {seconds_text(bound.nanoseconds / 1e9)}, simulated; the walks are {gap:.2%} from it ({times})"
    )


def gaps_table(searches: Sequence[ProvedSearch]) -> str:
    """A row for each search: the walks' best, the bound, the gap in percent, and the seconds of each."""
    rows = [("", "walks' best", "bound", "gap", "walks took", "bound took", "check took")]
    for each in searches:
        found, bound = each.walks, each.bound
        gap = percent(each.gap, 2 if each.gap else 0)
        proved = (f"{bound.nanoseconds / 1e6:.2f} ms", gap) if bound else ("none", "unknown")
        times = seconds_text(found.seconds), seconds_text(bound.took) if bound else "gave up"
        checked = "not run" if each.checked is None else seconds_text(each.checked)
        rows.append((case_text(each), f"{found.nanoseconds / 1e6:.2f} ms", *proved, *times, checked))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def case_text(search: ProvedSearch) -> str:
    """ "AlexNet, 2 devices"."""
    return f"{search.graph.name}, {search.devices} devices"


def gaps_text(searches: Sequence[ProvedSearch]) -> str:
    """In how many cases the walks' best is proved to be the best, and how far it is from it in the others; a title."""
    gaps = [each.gap for each in searches if each.bound]
    missed, unknown = [gap for gap in gaps if gap], len(searches) - len(gaps)
    texts = [f"The walks' best is proved to be the best in {gaps.count(0)} of {len(searches)} cases"]
    texts += [f"{count(len(missed), 'other')} could save up to {percent(max(missed), 2)} of the time"] if missed else []
    texts += [f"nothing is proved in {unknown}"] if unknown else []
    return "; ".join(texts)


def slow_device_text(speeds: Sequence[float], shares: Sequence[float]) -> str:
    """What a device gets of the work as it grows slower, as a title.

    Args:
        speeds: of the device, as factors on the others'. shares: of all work, at each speed.
    """
    idle, busy = idle_and_busy(speeds, shares)
    if busy is None:
        return "The last device gets no work at any speed"
    gets = f"speed {busy:g} the slow device gets {percent(shares[list(speeds).index(busy)])} of the work"
    return f"Even at {gets}" if idle is None else f"At {gets}, at {idle:g} nothing"


def idle_and_busy(speeds: Sequence[float], shares: Sequence[float]) -> tuple[float | None, float | None]:
    """The highest speed at which a device gets nothing, and the lowest one above it; None where there is none."""
    idle = max((speed for speed, share in zip(speeds, shares, strict=True) if not share), default=None)
    return idle, min((speed for speed in speeds if idle is None or speed > idle), default=None)
