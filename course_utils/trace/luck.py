"""What went well by luck only: a run that came to its end, and need not have, or whose numbers need not be right."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from course_utils.trace.books import WORLD
from course_utils.trace.events import BYTES, OBJECT, Event
from course_utils.trace.waiting import mismatch_in_words, unlike
from course_utils.words import count, ranks_in_words

_MOST_EVENTS = 20_000
"""A longer run is not replayed: it would take seconds."""
_BUFFERED = ("Bsend",)


def by_luck(events: Sequence[Event], ranks: int) -> list[str]:
    """A sentence for each thing that MPI does not promise (MPI 4.1, sections 3.3, 3.5 and 6.1); none for a good run.

    Args:
        events: of a run.
        ranks: how many have taken part.
    """
    if len(events) > _MOST_EVENTS:
        return []
    in_order = sorted(events, key=lambda event: event.start)
    partners = matched(in_order)
    return [
        *_unlike_collectives(in_order),
        *_missing_in_collectives(in_order, ranks),
        *_never_received([event for event, other in partners.items() if other is None and event.kind == "send"]),
        *_unlike_types(partners),
        *_only_while_buffered(in_order),
    ]


def matched(in_order: Iterable[Event]) -> dict[Event, Event | None]:
    """For each send its receive and for each receive its send, None where there is none.

    The k-th send of a sender, receiver, tag and communicator goes with the k-th receive.
    """
    sends: dict[tuple, list[Event]] = defaultdict(list)
    receives: dict[tuple, list[Event]] = defaultdict(list)
    for event in in_order:
        if event.kind == "send":
            sends[event.comm, event.rank, event.peer, event.tag].append(event)
        elif event.kind == "recv" and math.isfinite(event.end):
            receives[event.comm, event.peer, event.rank, event.tag].append(event)
    partner: dict[Event, Event | None] = {}
    for key in sends.keys() | receives.keys():
        sent, received = sends[key], receives[key]
        longest = max(len(sent), len(received))
        for one, other in zip(
            sent + [None] * (longest - len(sent)), received + [None] * (longest - len(received)), strict=True
        ):
            partner |= {event: other if event is one else one for event in (one, other) if event is not None}
    return partner


def meetings(in_order: Iterable[Event]) -> dict[tuple[str, int], dict[int, Event]]:
    """For each communicator and number the collective that each rank has begun."""
    found: dict[tuple[str, int], dict[int, Event]] = defaultdict(dict)
    for event in in_order:
        if event.kind == "collective":
            found[event.comm, event.number][event.rank] = event
    return found


def _unlike_collectives(in_order: Sequence[Event]) -> Iterator[str]:
    for (_, number), by_rank in meetings(in_order).items():
        calls = {rank: event.call for rank, event in by_rank.items()}
        if unlike(calls.values()):
            lines = sorted({event.line for event in by_rank.values() if event.line})
            where = f", {_lines(lines)}" if lines else ""
            told = mismatch_in_words(number, calls)
            yield f"{told[0].upper()}{told[1:]}{where}. It ended, by luck; what came out may be wrong."
            return  # those after it are out of step


def _missing_in_collectives(in_order: Sequence[Event], ranks: int) -> Iterator[str]:
    """Collectives of all ranks to which some did not come: the root of a broadcast, say, goes on without them."""
    for (comm, _), by_rank in meetings(in_order).items():
        missing = [rank for rank in range(ranks) if rank not in by_rank]
        if comm == WORLD and missing:
            event = min(by_rank.values(), key=lambda event: event.start)
            came = ranks_in_words(sorted(by_rank))
            who = ranks_in_words(missing)
            yield f"{who[0].upper()}{who[1:]} never came to {call_in_words(event)}, which {came} called."
            return


def _unlike_types(partners: Mapping[Event, Event | None]) -> Iterator[str]:
    for sent, got in partners.items():
        if sent.kind == "send" and got is not None and _unlike_types_of(sent.call, got.call):
            yield (
                f"Rank {sent.rank} sends {sent.call} in {call_in_words(sent)}; rank {got.rank} takes it for {got.call} "
                f"in {call_in_words(got)}."
            )
            return


def _unlike_types_of(sent: str, got: str) -> bool:
    told = bool(sent and got)
    return told and sent != got and (OBJECT in (sent, got) or BYTES not in (sent, got))


def _never_received(lost: Sequence[Event]) -> Iterator[str]:
    if lost:
        first = min(lost, key=lambda event: event.start)
        more = f", and {count(len(lost) - 1, 'more message')}" if len(lost) > 1 else ""
        yield f"Nobody receives what rank {first.rank} sends in {call_in_words(first)}{more}."


def _only_while_buffered(in_order: Sequence[Event]) -> Iterator[str]:
    """The same run once more, with every send made synchronous: it ends only when its receive has begun."""
    stuck = replayed(in_order)
    sends = [event for event in stuck if event.kind == "send"]
    if sends:
        calls: dict[str, list[int]] = defaultdict(list)
        for event in sorted(sends, key=lambda event: event.rank):
            calls[f"{event.name}{f', line {event.line}' if event.line else ''}"].append(event.rank)
        who = "; ".join(f"{ranks_in_words(ranks)} would wait in {call}" for call, ranks in calls.items())
        yield f"This works only while MPI buffers small messages. With larger ones, {who}, for ever."


def replayed(in_order: Sequence[Event]) -> list[Event]:
    """What the ranks are stuck in when no message is buffered; empty where all come to their ends.

    Each rank goes through the beginnings and ends of its operations in the order in which they happened. It passes the
    end of a message when its other half has begun, and that of a collective when all its ranks have begun it.
    """
    partner, together = matched(in_order), {}
    for by_rank in meetings(in_order).values():
        together |= {event: list(by_rank.values()) for event in by_rank.values()}
    moments: dict[int, list[tuple[float, int, Event]]] = defaultdict(list)
    for place, event in enumerate(in_order):
        if event.kind in ("send", "recv", "collective"):
            moments[event.rank].append((event.start, 2 * place, event))
            if math.isfinite(event.end) and event.name not in _BUFFERED:
                moments[event.rank].append((event.end, 2 * place + 1, event))
    for mine in moments.values():
        mine.sort(key=lambda moment: moment[:2])
    begun: set[int] = set()
    passed = dict.fromkeys(moments, 0)

    def may_pass(order: int, event: Event) -> bool:
        if order % 2 == 0:
            begun.add(id(event))
            return True
        others = together.get(event) or [partner.get(event)]
        return all(other is None or id(other) in begun for other in others)

    moved = True
    while moved:
        moved = False
        for rank, mine in moments.items():
            while passed[rank] < len(mine) and may_pass(*mine[passed[rank]][1:]):
                passed[rank] += 1
                moved = True
    return [mine[passed[rank]][2] for rank, mine in moments.items() if passed[rank] < len(mine)]


def call_in_words(event: Event) -> str:
    """ "Send(dest=1), line 4"."""
    end = "" if event.peer is None else f"({'dest' if event.kind == 'send' else 'source'}={event.peer})"
    return f"{event.name}{end}{f', line {event.line}' if event.line else ''}"


def _lines(lines: Sequence[int]) -> str:
    return f"line{'s' if len(lines) > 1 else ''} {' and '.join(map(str, lines))}"
