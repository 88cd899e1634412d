"""Why ranks that seem to wait for each other never meet: a wrong tag, a wrong rank, or a different communicator.

Often the message that was meant lies there, and no call asks for it.
"""

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import NamedTuple

from course_utils.trace.ledger import EARLIER_RUNS, PROCESS_GROUPS
from course_utils.trace.wait_graph import (
    IS_DONE,
    WORKS,
    Collective,
    CombinedNeed,
    Message,
    Need,
    Receive,
    Snapshot,
    WaitGraph,
    matches,
    single_needs,
)
from course_utils.words import capital, join, ranks_in_words

_OF_THE_LEDGER = "/leaders", "/post", "/complete", " neighbours", " partitions"
"""How names of communicators end on which the ledger alone sends messages, in the place of something else of MPI's."""


class Mistake(IntEnum):
    """What keeps a message from the receive for which it may be meant, the likeliest first."""

    TAG = 0
    COMMUNICATOR = 1
    SOURCE = 2
    DESTINATION = 3


class NearMiss(NamedTuple):
    """A message that nobody receives, and a receive that waits in vain.

    Attributes:
        sender, receiver: of the message.
        message: as it was sent.
        waiting: the rank that waits.
        wanted: what it waits for.
        sent_before: whether it was sent in an earlier run or cell.
    """

    mistake: Mistake
    sender: int
    receiver: int
    message: Message
    waiting: int
    wanted: Message
    sent_before: bool = False


def explanation_text(waits: WaitGraph) -> str:
    """A sentence or two that may explain a deadlock; "" where nothing does."""
    return _unreceived_text(waits) or _threads_text(waits) or _communicators_text(waits)


def _unreceived_text(waits: WaitGraph) -> str:
    """On messages that lie there unreceived: what it is on the first rank that waits, and where it is the same."""
    by_mistake: dict[tuple[bool, Mistake], dict[int, list[NearMiss]]] = defaultdict(lambda: defaultdict(list))
    for near_miss in near_misses(waits.snapshots, waits.stuck()):
        by_mistake[near_miss.sent_before, near_miss.mistake][near_miss.waiting].append(near_miss)
    if not by_mistake:
        return ""
    by_rank = by_mistake[min(by_mistake)]
    first, *others = sorted(by_rank)
    also = f" It is the same on {ranks_in_words(others)}." if others else ""
    return f"{_sentence(by_rank[first])}{also}"


def _threads_text(waits: WaitGraph) -> str:
    """On threads of a rank that call collectives on the same communicator, in an order that differs between ranks."""
    for communicator in waits.members:
        ranks = [rank for rank in waits.stuck() if _several_threads_call(communicator, waits.need(rank))]
        waiting = {need.number for rank in ranks for need in _collectives_on(communicator, waits.need(rank))}
        if any(waits.mismatch(communicator, number) for number in waiting):
            group = communicator.startswith(PROCESS_GROUPS)
            kind = "process group" if group else "communicator"
            own = 'a group of its own, as in `async_save(..., process_group=dist.new_group(backend="gloo"))`'
            return (
                f"On {ranks_in_words(ranks)}, two threads call collectives on the same {kind} at once, so that the "
                f"ranks begin these in different orders. Give each thread {own if group else 'a Dup of its own'}."
            )
    return ""


def _several_threads_call(communicator: str, need: Need | None) -> bool:
    """Do at least two threads of a rank wait for collectives on this communicator?"""
    threads = need.needs if isinstance(need, CombinedNeed) and need.of_threads else ()
    return sum(any(_collectives_on(communicator, each)) for each in threads) > 1


def _collectives_on(communicator: str, need: Need | None) -> Iterator[Collective]:
    return (each for each in single_needs(need) if isinstance(each, Collective) and each.communicator == communicator)


def _communicators_text(waits: WaitGraph) -> str:
    """On a collective that ranks wait for on different communicators, though they could meet on one."""
    ranks: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for rank in waits.stuck():
        if isinstance(need := waits.need(rank), Collective):
            ranks[need.agreement.name][need.communicator].append(rank)
    for name, by_communicator in ranks.items():
        for (first, here), (second, there) in itertools.combinations(by_communicator.items(), 2):
            if not set(waits.members[first]).isdisjoint(there) or not set(waits.members[second]).isdisjoint(here):
                kind = "process group" if first.startswith(PROCESS_GROUPS) else "communicator"
                call = f"call{'s' if len(here) == 1 else ''} {name}"
                return f"{capital(ranks_in_words(here))} {call} on a different {kind} than {ranks_in_words(there)}."
    return ""


def near_misses(snapshots: Mapping[int, Snapshot], stuck: Iterable[int]) -> Iterator[NearMiss]:
    """For each receive that waits in vain the messages that differ from what it wants in one thing alone.

    What was sent in an earlier run or cell was hardly meant, if more than its tag or its rank had to be different.
    """
    lost = list(_unreceived(snapshots))
    for rank in stuck:
        needs = single_needs(snapshots[rank].need)
        messages = [need.message for need in needs if isinstance(need, Receive)]
        for wanted in [message for message in messages if not message.communicator.endswith(_OF_THE_LEDGER)]:
            for sender, receiver, message, sent_before in lost:
                mistake = _mistake(sender, receiver, message, rank, wanted)
                may_come = mistake is Mistake.DESTINATION and snapshots[receiver].state != IS_DONE
                is_unrelated = sent_before and mistake in (Mistake.COMMUNICATOR, Mistake.DESTINATION)
                if mistake is not None and not may_come and not is_unrelated:
                    yield NearMiss(mistake, sender, receiver, message, rank, wanted, sent_before)


def _unreceived(snapshots: Mapping[int, Snapshot]) -> Iterator[tuple[int, int, Message, bool]]:
    """Sender, receiver and message of each kind that no receive has taken, nor will take by itself.

    And whether all that lies there of it was sent in an earlier run or cell: what was sent first is received first.
    """
    for receiver, snapshot in snapshots.items():
        if snapshot.state == WORKS:  # what it receives is not known
            continue
        arrived: Counter[tuple[int, Message]] = Counter()
        for sender, other in snapshots.items():
            for message, number in other.sent.items():
                if message.peer == receiver and not message.communicator.endswith(_OF_THE_LEDGER):
                    received = snapshot.received.get(Message(message.communicator, sender, message.tag), 0)
                    arrived[sender, message] = number - received
        for wanted in snapshot.posted:
            for sender, message in arrived:
                as_received = Message(message.communicator, sender, message.tag)
                if arrived[sender, message] > 0 and matches(as_received, wanted):
                    arrived[sender, message] -= 1
                    break
        for (sender, message), number in arrived.items():
            other = snapshots[sender]
            sent_now = other.sent[message] - other.sent_before.get(message, 0)
            if number > 0 and (sent_now or not message.communicator.startswith(EARLIER_RUNS)):
                yield sender, receiver, message, not sent_now


def _mistake(sender: int, receiver: int, message: Message, waiting: int, wanted: Message) -> Mistake | None:
    """What alone keeps a message from a receive; None where that is nothing, or more than one thing.

    Nothing that torch sends was meant for a receive of MPI's, and vice versa.
    """
    if message.communicator.startswith(PROCESS_GROUPS) != wanted.communicator.startswith(PROCESS_GROUPS):
        return None
    wrong = [
        *([Mistake.TAG] if wanted.tag not in (None, message.tag) else []),
        *([Mistake.COMMUNICATOR] if message.communicator != wanted.communicator else []),
        *([Mistake.SOURCE] if wanted.peer not in (None, sender) else []),
        *([Mistake.DESTINATION] if receiver != waiting else []),
    ]
    if receiver != waiting and wanted.peer is None:
        return None
    return wrong[0] if len(wrong) == 1 else None


def _sentence(found: list[NearMiss]) -> str:
    """On messages that one rank does not receive, all for the same reason."""
    senders, tags = sorted({each.sender for each in found}), sorted({each.message.tag or 0 for each in found})
    mistake, waiting, wanted = found[0].mistake, found[0].waiting, found[0].wanted
    several = len(found) > 1
    messages, are, they, were = ("Messages", "are", "they", "were") if several else ("A message", "is", "it", "was")
    source = ranks_in_words(senders)
    there = f"{are} there{', sent in an earlier run or cell' if found[0].sent_before else ''}"
    if mistake is Mistake.TAG:
        with_tags = f"with tag{'s' if len(tags) > 1 else ''} {join(list(map(str, tags)))}"
        return f"{messages} from {source} {with_tags} {there}, but rank {waiting} asks for tag {wanted.tag}."
    if mistake is Mistake.COMMUNICATOR:
        names = [each.message.communicator for each in found]
        if all(name.startswith(EARLIER_RUNS) for name in names):
            on_which, that = "with the communicator of an earlier run", "communicator"
        elif names[0].startswith(PROCESS_GROUPS):
            on_which, that = "over a different process group", "group"
        else:
            on_which, that = "on a different communicator", "communicator"
        return (
            f"{messages} from {source} {are} there, but {they} {were} sent {on_which}, "
            f"and only a receive on that {that} gets what was sent there."
        )
    if mistake is Mistake.SOURCE:
        asked = f"rank {waiting} asks for one from rank {wanted.peer}"
        return f"{messages} from {source} {there}, but {asked}."
    receivers = ranks_in_words(sorted({each.receiver for each in found}))
    return f"{messages} from {source} went to {receivers}, which never received {'them' if several else 'it'}."
