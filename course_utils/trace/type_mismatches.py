"""What was sent and the room for it: of different types, of different sizes, or in different memory orders.

MPI moves bytes, and trusts that both sides mean the same by them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple

from course_utils.trace.call_texts import event_text
from course_utils.trace.events import BYTES, OBJECT, Event, Layout
from course_utils.trace.type_signatures import in_units
from course_utils.words import capital, ranks_in_words

_PARTS_OF_ANY_SIZE = "v", "w"
"""How names of collectives end in which the room may be larger than what comes."""


class Transfer(NamedTuple):
    """What one rank gives to another in one call.

    Attributes:
        sent, got: the events of both.
        given, room: how it lies on both sides.
        size, room_size: in bytes; None where that is not known.
    """

    sent: Event
    got: Event
    given: Layout
    room: Layout
    size: int | None = None
    room_size: int | None = None


def types_differ(sent: str, got: str) -> bool:
    """Whether both sides say of which type the numbers are, and not the same; bytes may be a part of anything."""
    known = bool(sent and got)
    return known and sent != got and (OBJECT in (sent, got) or BYTES not in (sent, got))


def mismatched_messages(pairs: Iterable[tuple[Event, Event]]) -> Iterator[str]:
    """A sentence on the first message of another type than the room for it, and one on the first in another order."""
    pairs = list(pairs)
    for sent, got in pairs:
        if types_differ(sent.holds, got.holds):
            yield _types_text(sent.holds, got.holds, [sent], [got])
            break
    for sent, got in pairs:
        if sent.layouts and got.layouts and sent.layouts[0] and got.layouts[0]:
            transfer = Transfer(sent, got, sent.layouts[0], got.layouts[0])
            if orders_differ(transfer.given, transfer.room):
                yield _orders_text(transfer)
                break


def mismatched_collective(by_rank: Mapping[int, Event]) -> str:
    """A sentence on types or sizes in one collective that are not the same on both sides; "" where all are."""
    transfers = list(_transfers(by_rank))
    wrong = [each for each in transfers if each.size != 0 and types_differ(each.given.unit, each.room.unit)]
    if wrong:
        units = wrong[0].given.unit, wrong[0].room.unit
        alike = [each for each in wrong if (each.given.unit, each.room.unit) == units]
        return _types_text(*units, [each.sent for each in alike], [each.got for each in alike])
    wrong = list(filter(_does_not_fit, transfers))
    return _sizes_text(wrong[0]) if wrong else ""


def mismatched_order(by_rank: Mapping[int, Event]) -> str:
    """A sentence on the memory orders of arrays in one collective that are not the same; "" where all are."""
    for transfer in _transfers(by_rank):
        if orders_differ(transfer.given, transfer.room) or _rows_are_taken_for_columns(transfer):
            return _orders_text(transfer)
    return ""


def _transfers(by_rank: Mapping[int, Event]) -> Iterator[Transfer]:
    """What goes from rank to rank, where both sides have said how it lies."""
    ranks = sorted(by_rank)
    for to_position, receiver in enumerate(ranks):
        for from_position, sender in enumerate(ranks):
            given, room = _side(by_rank[sender], 0), _side(by_rank[receiver], 1)
            if given and room:
                size = _size_for(given, to_position, len(ranks))
                room_size = _size_for(room, from_position, len(ranks))
                yield Transfer(by_rank[sender], by_rank[receiver], given, room, size, room_size)


def _side(event: Event, side: int) -> Layout | None:
    return event.layouts[side] if len(event.layouts) > side else None


def _size_for(layout: Layout, position: int, ranks: int) -> int | None:
    """Bytes that a rank has for the one at this position; None where that is not known."""
    if len(layout.sizes) == 1:
        return layout.sizes[0]
    return layout.sizes[position] if len(layout.sizes) == ranks else None


def _does_not_fit(transfer: Transfer) -> bool:
    size, room = transfer.size, transfer.room_size
    if size is None or room is None:
        return False
    return size > room if transfer.got.name.endswith(_PARTS_OF_ANY_SIZE) else size != room


def orders_differ(given: Layout, room: Layout) -> bool:
    """Whether an array lies by columns on one side and by rows on the other, and that is not meant.

    It is meant where the one has the shape of the other transposed: then it arrives as it was.
    """
    if not given.shape or not room.shape or given.by_columns == room.by_columns:
        return False
    columns, rows = (given, room) if given.by_columns else (room, given)
    rest = len(columns.shape) - 1
    return rows.shape[-rest:] == columns.shape[1:]


def _rows_are_taken_for_columns(transfer: Transfer) -> bool:
    """Whether an array is cut into pieces, or made of them, that are meant to be rows, and lie by columns."""
    given, room, name = transfer.given, transfer.room, transfer.sent.name.lower().removeprefix("i")
    cuts = name.startswith(("scatter", "alltoall")) and given.by_columns and not room.shape
    joins = name.startswith(("gather", "allgather", "alltoall")) and room.by_columns and not given.shape
    return cuts or joins


# --- sentences --------------------------------------------------------------------------------------------------------


def _types_text(sent: str, got: str, senders: Collection[Event], receivers: Collection[Event]) -> str:
    sending, send, call = _who_and_where(senders)
    receiving, receive, their_call = _who_and_where(receivers)
    there = "" if their_call == call else f" in {their_call}"
    if sending == receiving and not there:
        return f"{capital(sending)} send{send} {sent} in {call}, but receive{receive} it as {got}."
    return f"{capital(sending)} send{send} {sent} in {call}; {receiving} receive{receive} it as {got}{there}."


def _sizes_text(transfer: Transfer) -> str:
    sent, got, size, room = transfer.sent, transfer.got, transfer.size or 0, transfer.room_size or 0
    amount, place = in_units(size, transfer.given.unit), in_units(room, transfer.room.unit)
    return (
        f"Rank {sent.rank} sends {amount} to rank {got.rank} in {event_text(sent)}; "
        f"rank {got.rank} has room for {place} in {event_text(got)}."
    )


def _orders_text(transfer: Transfer) -> str:
    sent, got = transfer.sent, transfer.got
    where, there = event_text(sent), event_text(got)
    if transfer.given.by_columns:
        return (
            f"Rank {sent.rank} sends an array in column order, as a transposed one is, in {where}; rank {got.rank} "
            f"receives it in row order in {there}, so it arrives untransposed. Send np.ascontiguousarray(array)."
        )
    return (
        f"Rank {sent.rank} sends an array in row order in {where}; rank {got.rank} receives it into one in column "
        f"order, as a transposed one is, in {there}, so it arrives transposed. Receive into an array in row order."
    )


def _who_and_where(events: Collection[Event]) -> tuple[str, str, str]:
    """The ranks of events, the ending of what they do, and the call of the first."""
    ranks = sorted({event.rank for event in events})
    first = min(events, key=lambda event: event.rank)
    return ranks_in_words(ranks), "s" if len(ranks) == 1 else "", event_text(first)
