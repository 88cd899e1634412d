"""Sentences of lesson 17 about a run, chosen by the numbers."""

from collections.abc import Mapping, Sequence

from course_utils.measuring import BUSY, is_busy
from course_utils.words import bytes_text, join, number_text, percent, ranks, seconds_text


def growth_text(lengths: Sequence[int], kept: Mapping[str, Sequence[float]]) -> str:
    """Say by which factor the bytes grow with a text twice as long, from the last two lengths.

    Args:
        lengths: each twice the one before.
        kept: bytes at each length, by the version of attention.
    """
    growth = [f"{number_text(line[-1] / line[-2])} ({name})" for name, line in kept.items()]
    return f"From {lengths[-2]:,} to {lengths[-1]:,} tokens, the bytes grow by a factor of {join(growth)}"


def work_text(pairs: Mapping[str, Sequence[int]]) -> str:
    """Say how the busiest rank's work compares with that of the least busy, for each way to distribute the tokens."""
    ratios = [f"{number_text(max(line) / min(line))} ({name})" for name, line in pairs.items()]
    return f"The work of the busiest rank, divided by that of the least busy: {join(ratios)}"


def exposed_share(
    seconds: Mapping[str, Sequence[float]], overlapped: str, plain: str, without_messages: str
) -> float | None:
    """Return what sending adds in `overlapped`, as a share of what it adds in `plain`; None if nothing can be judged.

    It is an upper bound of the waiting, because sending can also slow down the computing. Nothing can be judged on a
    busy machine (`is_busy`), if sending adds hardly anything in `plain`, or if the share is clearly below 0 or
    above 1: then something other than the messages has decided how long the runs took.

    We compare the fastest run of each, because whatever else the machine does makes a run longer, never shorter.

    Args:
        seconds: of each version, round by round: `without_messages` only computes, `plain` sends and then computes.
    """
    if is_busy(seconds.values()):
        return None
    fastest = {name: min(line) for name, line in seconds.items()}
    added = fastest[plain] - fastest[without_messages]
    if added <= 0.1 * fastest[plain]:
        return None
    share = (fastest[overlapped] - fastest[without_messages]) / added
    return min(1.0, max(0.0, share)) if -0.1 <= share <= 1.1 else None


def exposed_text(seconds: Mapping[str, Sequence[float]], overlapped: str, plain: str, without_messages: str) -> str:
    """Say how much less time sending adds if the messages travel behind the computing."""
    share = exposed_share(seconds, overlapped, plain, without_messages)
    if share is None:
        return BUSY
    return f"Sending during the computation adds {percent(1 - share)} less time than sending after it"


def transfer_text(transfer: float, computing: float) -> str:
    """Say whether a transfer can hide behind the computing of a round, and how much of it stays exposed; in seconds."""
    both = f"A transfer takes {seconds_text(transfer)} and the computation of a round {seconds_text(computing)}"
    if transfer <= computing:
        return f"{both}, so every transfer can be hidden."
    return f"{both}, so {seconds_text(transfer - computing)} of every transfer stay exposed."


def added_by_sending(seconds: Mapping[str, Sequence[float]], without_messages: str) -> dict[str, dict[str, float]]:
    """Return bars for each version that sends, by the fastest run of each: the computing alone, and the time beyond it.

    What is beyond it may be waiting, or computing that the sending has slowed down.
    """
    fastest = {name: min(line) for name, line in seconds.items()}
    computing = min(fastest.values())
    return {
        name: {"computing": computing, "added by sending": value - computing}
        for name, value in fastest.items()
        if name != without_messages
    }


def sends_text(ring: float, ulysses: float, world_size: int) -> str:
    """Say which of the two sends less, and how much each sends."""
    amounts = f"{ranks(world_size)}: ring {bytes_text(ring)}, Ulysses {bytes_text(ulysses)}"
    if abs(ring - ulysses) <= 0.001 * ulysses:
        return f"{amounts}; both send the same"
    less, more = sorted([ring, ulysses])
    name, other = ("Ulysses", "the ring") if ulysses < ring else ("the ring", "Ulysses")
    return f"{amounts}; {name} sends {percent(less / more)} of what {other} sends"


def difference_text(found: Sequence[Mapping[str, float]]) -> str:
    """Say how far the output and the gradients of all ranks are from those of one process at most."""
    worst = max(max(differences.values()) for differences in found)
    names = join([name for name in found[0] if name != "output"])
    both = f"the output and the gradients of {names}"
    return f"{ranks(len(found))}: {both} differ from those of one process by at most {worst:.0e}"


def packed_text(pairs: Mapping[str, Sequence[int]]) -> str:
    """Say how the busiest rank's work compares with the mean in a pack, for each way to distribute the tokens."""
    ratios = [f"{number_text(max(line) * len(line) / sum(line))} ({name})" for name, line in pairs.items()]
    return f"In this pack, the busiest rank's work divided by the mean is {join(ratios)}"


def needed_text(crowding: Mapping[str, float], needed: Mapping[str, float]) -> str:
    """Say what balance costs: the work of the busiest rank and the keys of other ranks that are needed, for each order.

    Args:
        crowding: the busiest rank's work divided by the mean.
        needed: the share of the gathered keys that the rank which gathers them needs.
    """
    best, cheapest = (min(numbers, key=lambda name: numbers[name]) for numbers in (crowding, needed))
    if best == cheapest:
        return f"“{best}” has the best balance and needs the fewest keys of other ranks"
    return (
        f"“{best}” has the best balance and needs {percent(needed[best])} of the keys of other ranks, "
        f"“{cheapest}” only {percent(needed[cheapest])}"
    )


def longest_title(grown: Mapping[str, float], world_size: int) -> str:
    """Say how much longer a text may be on several ranks than on one, for each version of attention."""
    factors = [f"{number_text(factor)} times as long ({name})" for name, factor in grown.items()]
    return f"On {ranks(world_size)} instead of one, a text may be {join(factors)}"
