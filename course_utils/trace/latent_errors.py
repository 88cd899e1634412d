"""What went well by luck only: a run that came to its end, and need not have, or whose numbers need not be right."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from course_utils.trace.call_texts import event_text
from course_utils.trace.events import Event, pair_messages
from course_utils.trace.ledger import WORLD
from course_utils.trace.type_mismatches import mismatched_collective, mismatched_messages, mismatched_order
from course_utils.trace.wait_graph import differ, mismatch_text
from course_utils.words import capital, count, ranks_in_words

_MOST_EVENTS = 20_000
"""A longer run is not replayed: it would take seconds."""
_BUFFERED = ("Bsend",)
CollectiveCalls = dict[tuple[str, int], dict[int, Event]]
"""For each communicator and number of a collective: by rank, the event in which it was begun."""


def latent_errors(events: Sequence[Event], ranks: int, unfinished: Collection[int] = ()) -> list[str]:
    """A sentence for each thing that MPI does not promise (MPI 4.1, sections 3.3, 3.5 and 6.1); none for a good run.

    Args:
        events: of a run.
        ranks: how many have taken part.
        unfinished: ranks of which threads go on, so that there are no events of what they will still do.
    """
    if len(events) > _MOST_EVENTS:
        return []
    in_order = sorted(events, key=lambda event: event.start)
    pairs, collectives = pair_messages(in_order), group_collectives(in_order)
    received = {sent for sent, _ in pairs}
    return [
        *(
            f"{sentence} The run came to an end, but its results may be wrong."
            for sentence in mismatched_collectives(in_order)
        ),
        *_absent_ranks(collectives, ranks, unfinished),
        *_unreceived_sends(
            [
                event
                for event in in_order
                if event.kind == "send" and event not in received and event.peer not in unfinished
            ]
        ),
        *mismatched_messages(pairs),
        *_mismatched_orders(collectives),
        *_buffering_dependence(replay_unbuffered(in_order, pairs, collectives)),
    ]


def group_collectives(in_order: Iterable[Event]) -> CollectiveCalls:
    """The collectives of a run, put together."""
    found: CollectiveCalls = defaultdict(dict)
    for event in in_order:
        if event.kind == "collective":
            found[event.comm, event.number][event.rank] = event
    return found


def mismatched_collectives(in_order: Iterable[Event]) -> Iterator[str]:
    """A sentence on the first collective that is not the same on all ranks, or moves what does not fit.

    Those after it are out of step.
    """
    for (_, number), by_rank in group_collectives(in_order).items():
        if sentence := _differing_calls(number, by_rank) or mismatched_collective(by_rank):
            yield sentence
            return


def _differing_calls(number: int, by_rank: Mapping[int, Event]) -> str:
    """A sentence on a collective that is not the same on all ranks; "" where it is."""
    calls = {rank: event.agreement for rank, event in by_rank.items() if event.agreement}
    if not differ(calls.values()):
        return ""
    lines = sorted({event.line for event in by_rank.values() if event.line})
    where = f", {_lines_text(lines)}" if lines else ""
    return f"{capital(mismatch_text(number, calls))}{where}."


def _mismatched_orders(collectives: CollectiveCalls) -> Iterator[str]:
    for by_rank in collectives.values():
        if sentence := mismatched_order(by_rank):
            yield sentence
            return


def _absent_ranks(collectives: CollectiveCalls, ranks: int, unfinished: Collection[int]) -> Iterator[str]:
    """Collectives of all ranks to which some did not come: the root of a broadcast, say, goes on without them."""
    for (comm, _), by_rank in collectives.items():
        missing = [rank for rank in range(ranks) if rank not in by_rank and rank not in unfinished]
        if comm == WORLD and missing:
            event = min(by_rank.values(), key=lambda event: event.start)
            came = ranks_in_words(sorted(by_rank))
            yield f"{capital(ranks_in_words(missing))} never called {event_text(event)}, but {came} did."
            return


def _unreceived_sends(lost: Sequence[Event]) -> Iterator[str]:
    if lost:
        first = min(lost, key=lambda event: event.start)
        more = f", and {count(len(lost) - 1, 'more message')}" if len(lost) > 1 else ""
        yield f"No rank receives what rank {first.rank} sends in {event_text(first)}{more}."


def _buffering_dependence(stuck: Iterable[Event]) -> Iterator[str]:
    sends = [event for event in stuck if event.kind == "send"]
    if sends:
        calls: dict[str, list[int]] = defaultdict(list)
        for event in sorted(sends, key=lambda event: event.rank):
            calls[f"{event.name}{f', line {event.line}' if event.line else ''}"].append(event.rank)
        who = "; ".join(f"{ranks_in_words(ranks)} would wait in {call}" for call, ranks in calls.items())
        yield f"This works only as long as MPI buffers small messages. With larger ones, {who}, forever."


def replay_unbuffered(
    in_order: Sequence[Event], pairs: Iterable[tuple[Event, Event]], collectives: CollectiveCalls
) -> list[Event]:
    """What the ranks are stuck in when no message is buffered; empty where all come to their ends.

    Each rank goes through the beginnings and ends of its operations in the order in which they happened. It passes the
    end of a message when its other half has begun, and that of a collective when all its ranks have begun it. Ends for
    which it did not stand still hold nobody up.
    """
    others: dict[Event, Iterable[Event]] = {}
    for sent, got in pairs:
        others |= {sent: [got], got: [sent]}
    for by_rank in collectives.values():
        others |= dict.fromkeys(by_rank.values(), by_rank.values())
    moments: dict[int, list[tuple[float, int, Event]]] = defaultdict(list)
    for position, event in enumerate(in_order):
        if event.kind in ("send", "recv", "collective"):
            moments[event.rank].append((event.start, 2 * position, event))
            if event.awaited and math.isfinite(event.end) and event.name not in _BUFFERED:
                moments[event.rank].append((event.end, 2 * position + 1, event))
    for own_moments in moments.values():
        own_moments.sort(key=lambda moment: moment[:2])
    begun: set[int] = set()
    passed = dict.fromkeys(moments, 0)

    def may_pass(order: int, event: Event) -> bool:
        if order % 2 == 0:
            begun.add(id(event))
            return True
        return all(id(other) in begun for other in others.get(event, ()))

    progressed = True
    while progressed:
        progressed = False
        for rank, own_moments in moments.items():
            while passed[rank] < len(own_moments) and may_pass(*own_moments[passed[rank]][1:]):
                passed[rank] += 1
                progressed = True
    return [own_moments[passed[rank]][2] for rank, own_moments in moments.items() if passed[rank] < len(own_moments)]


def _lines_text(lines: Sequence[int]) -> str:
    return f"line{'s' if len(lines) > 1 else ''} {' and '.join(map(str, lines))}"
