"""Titles and sentences of the report's figures, chosen by the numbers: what was found here and in the report."""

import statistics
from collections.abc import Mapping, Sequence

from course_utils.lessons.data_parallel.timed_steps import ONE_PROCESS
from course_utils.measuring import larger, tied
from course_utils.words import count, number_text, seconds_text

EACH, FLAT, GATHER, OVERLAPPED, DDP = "all-reduce, each", "all-reduce, flat", "gather-scatter", "overlapped", "DDP"
TASKS = {ONE_PROCESS: "task 1", GATHER: "task 2a", EACH: "task 2b", DDP: "task 3"}
"""The methods that the report compares, with its own names for them."""
ORDER = (DDP, EACH, GATHER)
"""From fast to slow, as the report found it."""
PUBLISHED_RATES = {GATHER: 0.6, DDP: 0.8}
"""By the report's text on its figure 11, task 2b sends less than this many times what these send in a second."""
EVEN = 1.15
"""Loads that differ by no more than this factor are called even."""


def named(method: str) -> str:
    """Return the method with the report's name for it."""
    return f"{method} ({TASKS[method]})" if method in TASKS else method


def order_finding(seconds: Mapping[str, float], one_process: bool = False) -> str:
    """Say which method is fastest and which slowest, and whether the order is that of the report.

    Args:
        seconds: of a step, by method, on the same number of ranks.
        one_process: one process is in the picture, too, so the text says that the others are compared.
    """
    if len(seconds) < 2:
        return "; ".join(f"A step takes {seconds_text(value)} with {method}" for method, value in seconds.items())
    fast, slow = min(seconds, key=seconds.__getitem__), max(seconds, key=seconds.__getitem__)
    times = seconds[slow] / seconds[fast]
    if tied(times, 1):
        found = "All methods with several ranks take the same time" if one_process else "All methods take the same time"
    else:
        among = f"Of {count(len(seconds), 'method')} with several ranks, " if one_process else ""
        found = f"{among}“{fast}” is the fastest, and “{slow}” takes {number_text(times)} times as long"
    known = [seconds[method] for method in ORDER if method in seconds]
    if len(known) < len(ORDER):
        return found
    pairs = list(zip(known, known[1:], strict=False))
    order = " < ".join(f"“{method}”" for method in ORDER)
    if all(early < late for early, late in pairs):
        return f"{found}. The order is that of the report: {order}"
    if not any(larger(early, late) for early, late in pairs):
        return f"{found}. The report has {order}; here two of them are too close to tell apart"
    return f"{found}. The report has a different order, {order}"


def epoch_finding(seconds: Mapping[str, float]) -> str:
    """Say how long an epoch takes with the fastest and with the slowest method.

    Args:
        seconds: of an epoch, by method.
    """
    fast, slow = min(seconds, key=seconds.__getitem__), max(seconds, key=seconds.__getitem__)
    if tied(seconds[fast], seconds[slow]):
        return f"50,000 images take about {seconds_text(seconds[fast])} with every method"
    return (
        f"50,000 images take {seconds_text(seconds[fast])} with “{fast}”, {seconds_text(seconds[slow])} with “{slow}”"
    )


def split_finding(shares: Mapping[str, float]) -> str:
    """Say which takes longer, the backward pass or the messages after it.

    Args:
        shares: of communication in both together, by method.
    """
    longer = [method for method, share in shares.items() if share > 0.5]
    if len(longer) == len(shares):
        return "The messages take longer than the backward pass before them"
    if not longer:
        return "The backward pass takes longer than the messages after it"
    return f"With {' and '.join(longer)} the messages take longer than the backward pass before them"


def forward_finding(times: float, published: float, workers: int, cores: int) -> str:
    """Say how much faster the forward pass of a batch is on several ranks than on one."""
    found = f"The forward pass is {number_text(times)} times as fast on {workers} ranks as on one "
    found += f"(report: {published:g} times"
    if workers > cores:
        return f"{found}, but there each node had its own cores, and here {workers} ranks share {cores})."
    return f"{found})."


def slowed_finding(method: str, times: float, workers: int, cores: int) -> str:
    """Say whether the backward pass takes longer while messages travel.

    Args:
        times: its time over that of the methods whose messages wait until it has ended.
    """
    if not larger(times, 1):
        return f"With {method}, messages that travel during the backward pass do not slow it down."
    found = f"With {method} the backward pass takes {number_text(times)} times as long as without messages"
    if workers > cores:
        return f"{found}, because {workers} ranks and their messages share {cores} cores. Hiding them is not free."
    return f"{found}. Hiding messages is not free."


def rates_finding(rates: Mapping[str, float], gradients: Mapping[str, float]) -> str:
    """Compare what all-reduce sends in a second with gather-scatter and DDP, here and in the report, and say why.

    Args:
        rates: bytes that a node sends in a second, as the mean of the nodes, by method.
        gradients: how many it sends in a step, by method.
    """
    others = [method for method in PUBLISHED_RATES if method in rates]
    if EACH not in rates or not others:
        return ""
    times = {method: number_text(rates[EACH] / rates[method]) for method in others}
    comparisons = [
        f"{times[method]} times what {method} sends (report: less than {PUBLISHED_RATES[method]:g})"
        for method in others
    ]
    found = f"With all-reduce a node sends, in a second, {' and '.join(comparisons)}."
    amounts = [gradients[method] for method in (EACH, *others)]
    if max(amounts) <= EVEN * min(amounts):
        found += (
            f" In a step it sends the same with every method, {number_text(gradients[EACH])} gradients on average. "
        )
        found += "So the faster the step is, the more a node sends in a second."
    return found


def load_finding(sent: Mapping[str, Sequence[float]]) -> str:
    """Say which node carries the load with each method: rank 0 or all alike."""
    through = {method: nodes for method, nodes in sent.items() if busiest(nodes) == 0}
    others = {method: nodes for method, nodes in sent.items() if method not in through}
    times = {method: nodes[0] / statistics.fmean(nodes[1:]) for method, nodes in through.items()}
    findings = [
        f"with {method}, rank 0 sends {number_text(times[method])} times what the others send" for method in through
    ]
    uneven = [method for method, nodes in others.items() if max(nodes) > EVEN * min(nodes)]
    if others and not uneven:
        findings.append("with the other methods all nodes send the same" if through else "all nodes send the same")
    elif others:
        findings.append(f"with {' and '.join(uneven)} some nodes send more than others")
    found = "; ".join(findings)
    return found[:1].upper() + found[1:]


def busiest(nodes: Sequence[float]) -> int | None:
    """Return the node that sends more than `EVEN` times what each other node sends, or None."""
    most = max(range(len(nodes)), key=nodes.__getitem__)
    rest = [value for node, value in enumerate(nodes) if node != most]
    return most if rest and nodes[most] > EVEN * max(rest) else None


def speed_up_finding(seconds: Mapping[int, float], published: Mapping[int, float], cores: int) -> str:
    """Say how much faster several workers are than one, here and in the report."""
    if 1 not in seconds or len(seconds) < 2:
        return "Time of an epoch by number of workers"
    most = max(seconds)
    ours = seconds[1] / seconds[most]
    words = f"{most} workers are {number_text(ours)} times as fast as one"
    if tied(ours, 1):
        words = f"{most} workers are no faster than one"
    elif ours < 1:
        words = f"{most} workers take {number_text(1 / ours)} times as long as one"
    theirs = ""
    if most in published:
        theirs = f" (report: {number_text(published[1] / published[most])} times as fast)"
    shared = f", but only {cores} cores compute here" if most > cores else ""
    return words + theirs + shared


def traffic_finding(sent: Mapping[int, float], published: Mapping[int, float]) -> str:
    """Compare the gradients that a node sends in a step with 2 (P − 1)/P, here and in the report."""
    amounts = []
    for workers, value in sent.items():
        theory = 2 * (workers - 1) / workers
        report = f", report {published[workers]:.2f}" if workers in published else ""
        amounts.append(f"{value:.2f} with {workers} workers (least possible {theory:.2f}{report})")
    return f"In a step a node sends this many times the gradients: {', '.join(amounts)}."
