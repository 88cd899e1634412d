"""The sentences over the figures, chosen from the numbers: what was found, and whether the report found the same."""

import statistics
from collections.abc import Mapping, Sequence

from course_utils.lessons.data_parallel.timed_steps import ONE_PROCESS
from course_utils.measuring import larger, tied
from course_utils.words import count, number_text, seconds_text

EACH, FLAT, GATHER, OVERLAPPED, DDP = "all-reduce, each", "all-reduce, flat", "gather-scatter", "overlapped", "DDP"
TASKS = {ONE_PROCESS: "task 1", GATHER: "task 2a", EACH: "task 2b", DDP: "task 3"}
"""The ways that the report has, by its names."""
ORDER = (DDP, EACH, GATHER)
"""From fast to slow, as the report found it."""
PUBLISHED_RATES = {GATHER: 0.6, DDP: 0.8}
"""By the report's text on its figure 11, task 2b sends less than this many times what these send in a second."""
EVEN = 1.15
"""Loads that differ by no more than this factor are called even."""


def named(method: str) -> str:
    """The way, and the report's task."""
    return f"{method} ({TASKS[method]})" if method in TASKS else method


def order_finding(seconds: Mapping[str, float], one_process: bool = False) -> str:
    """Which way is fastest and which slowest, and whether the report's order holds here.

    Args:
        seconds: way → of a step, on the same number of ranks.
        alone: one process is in the picture too; then it is said that the others are compared.
    """
    if len(seconds) < 2:
        return "; ".join(f"{method}: {seconds_text(value)} for a step" for method, value in seconds.items())
    fast, slow = min(seconds, key=seconds.__getitem__), max(seconds, key=seconds.__getitem__)
    times = seconds[slow] / seconds[fast]
    if tied(times, 1):
        found = "All ways to share take the same time" if one_process else "All ways take the same time"
    else:
        among = f"Of {count(len(seconds), 'way')} to share, " if one_process else ""
        found = f"{among}“{fast}” is fastest; “{slow}” takes {number_text(times)} times as long"
    known = [seconds[method] for method in ORDER if method in seconds]
    if len(known) < len(ORDER):
        return found
    pairs = list(zip(known, known[1:], strict=False))
    order = " < ".join(f"“{method}”" for method in ORDER)
    if all(early < late for early, late in pairs):
        return f"{found}: {order}, as in the report"
    if not any(larger(early, late) for early, late in pairs):
        return f"{found}: {order} in the report; here two of them are too close to tell apart"
    return f"{found}: unlike in the report, where {order}"


def epoch_finding(seconds: Mapping[str, float]) -> str:
    """What an epoch takes with the fastest way and with the slowest.

    Args:
        seconds: way → of an epoch.
    """
    fast, slow = min(seconds, key=seconds.__getitem__), max(seconds, key=seconds.__getitem__)
    if tied(seconds[fast], seconds[slow]):
        return f"50,000 images take about {seconds_text(seconds[fast])}, whichever way"
    return (
        f"50,000 images take {seconds_text(seconds[fast])} with “{fast}”, {seconds_text(seconds[slow])} with “{slow}”"
    )


def split_finding(shares: Mapping[str, float]) -> str:
    """Which takes longer, the backward pass or the messages after it.

    Args:
        shares: way → share of communication in both together.
    """
    longer = [method for method, share in shares.items() if share > 0.5]
    if len(longer) == len(shares):
        return "The messages take longer than the backward pass before them"
    if not longer:
        return "The backward pass takes longer than the messages after it"
    return f"The messages take longer than the backward pass before them: {' and '.join(longer)}"


def forward_finding(times: float, published: float, workers: int, cores: int) -> str:
    """How much faster the forward pass of a batch is on several ranks than on one."""
    found = f"Forward: {number_text(times)} times as fast on {workers} ranks as on one (report: {published:g} times"
    if workers > cores:
        return f"{found}, with cores of its own for each node; here {workers} ranks share {cores} cores)."
    return f"{found})."


def slowed_finding(method: str, times: float, workers: int, cores: int) -> str:
    """Whether the backward pass is longer where messages travel behind it.

    Args:
        times: its length over that of the ways whose messages wait for its end.
    """
    if not larger(times, 1):
        return f"Messages that travel behind {method}'s backward pass do not slow it down."
    found = f"With {method} the backward pass takes {number_text(times)} times as long as where nothing travels"
    if workers > cores:
        return f"{found}: {workers} ranks and their messages share {cores} cores, so what is hidden is not free."
    return f"{found}: what is hidden is not free."


def rates_finding(rates: Mapping[str, float], gradients: Mapping[str, float]) -> str:
    """What all-reduce sends in a second beside gather-scatter and DDP, here and in the report, and why.

    Args:
        rates: way → bytes that a node sends in a second, as the mean of the nodes.
        gradients: way → gradients that it sends in a step.
    """
    others = [method for method in PUBLISHED_RATES if method in rates]
    if EACH not in rates or not others:
        return ""
    times = {method: number_text(rates[EACH] / rates[method]) for method in others}
    comparisons = [
        f"{times[method]} times what {method} sends (report: less than {PUBLISHED_RATES[method]:g})"
        for method in others
    ]
    found = f"In a second a node sends with all-reduce {' and '.join(comparisons)}."
    amounts = [gradients[method] for method in (EACH, *others)]
    if max(amounts) <= EVEN * min(amounts):
        found += f" In a step it sends as much every way, {number_text(gradients[EACH])} gradients as the mean of all "
        found += "nodes: the faster the step, the more in a second."
    return found


def load_finding(sent: Mapping[str, Sequence[float]]) -> str:
    """Through which node the load goes: way by way, rank 0's against the others'."""
    through = {method: nodes for method, nodes in sent.items() if busiest(nodes) == 0}
    others = {method: nodes for method, nodes in sent.items() if method not in through}
    times = {method: nodes[0] / statistics.fmean(nodes[1:]) for method, nodes in through.items()}
    findings = [
        f"{method} sends through rank 0: {number_text(times[method])} times what another sends" for method in through
    ]
    uneven = [method for method, nodes in others.items() if max(nodes) > EVEN * min(nodes)]
    if others and not uneven:
        findings.append("with the other ways all nodes send alike" if through else "all nodes send alike")
    elif others:
        findings.append(f"not all nodes send alike: {' and '.join(uneven)}")
    found = "; ".join(findings)
    return found[:1].upper() + found[1:]


def busiest(nodes: Sequence[float]) -> int | None:
    """The node that sends more than all others by more than `EVEN`; None where there is none."""
    most = max(range(len(nodes)), key=nodes.__getitem__)
    rest = [value for node, value in enumerate(nodes) if node != most]
    return most if rest and nodes[most] > EVEN * max(rest) else None


def speed_up_finding(seconds: Mapping[int, float], published: Mapping[int, float], cores: int) -> str:
    """How much faster several workers are than one, here and in the report."""
    if 1 not in seconds or len(seconds) < 2:
        return "Time of an epoch, worker by worker"
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
    shared = f"; only {cores} cores compute here" if most > cores else ""
    return words + theirs + shared


def traffic_finding(sent: Mapping[int, float], published: Mapping[int, float]) -> str:
    """Gradients that a node sends in a step, against 2 (P − 1)/P, here and in the report."""
    amounts = []
    for workers, value in sent.items():
        theory = 2 * (workers - 1) / workers
        report = f", report {published[workers]:.2f}" if workers in published else ""
        amounts.append(f"{workers} workers {value:.2f} (least possible {theory:.2f}{report})")
    return f"Gradients that a node sends in a step: {'; '.join(amounts)}."
