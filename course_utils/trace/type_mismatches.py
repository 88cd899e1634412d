"""What was sent and the room for it: of different types, of different sizes, or in different memory orders.

MPI moves bytes, and trusts that both sides mean the same by them.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from course_utils.trace.call_texts import event_text
from course_utils.trace.events import BYTES, OBJECT, BufferLayout, Event, unit_bytes
from course_utils.words import capital, ranks_in_words

_MAY_HAVE_ROOM_LEFT = "scatterv", "gatherv"
"""Collectives in which the room may be larger than what comes."""


class Transfer(NamedTuple):
    """What one rank gives to another in one call.

    Attributes:
        sent, got: the events of both.
        given, room: how it lies on both sides.
        size, room_size: in bytes; None where that is not known.
    """

    sent: Event
    got: Event
    given: BufferLayout
    room: BufferLayout
    size: int | None = None
    room_size: int | None = None


_NO_LAYOUTS = BufferLayout(""), BufferLayout("")


def types_differ(sent: str, got: str) -> bool:
    """Whether both sides say of which type the numbers are, and not the same; bytes may be a part of anything."""
    known = bool(sent and got)
    return known and sent != got and (OBJECT in (sent, got) or BYTES not in (sent, got))


def mismatched_messages(pairs: Iterable[tuple[Event, Event]]) -> Iterator[str]:
    """A sentence on the first message of another type than the room for it, and one on the first in another order."""
    pairs = list(pairs)
    for sent, got in pairs:
        if sent.bytes and types_differ(sent.holds, got.holds):
            yield _both_sides([Transfer(sent, got, *_NO_LAYOUTS)], sent.holds, f"it as {got.holds}")
            break
    for sent, got in pairs:
        if sent.layouts and got.layouts and sent.layouts[0] and got.layouts[0]:
            transfer = Transfer(sent, got, sent.layouts[0], got.layouts[0])
            if orders_differ(transfer.given, transfer.room):
                yield _orders_text([transfer])
                break


def mismatched_collective(by_rank: Mapping[int, Event]) -> str:
    """A sentence on types or sizes in one collective that are not the same on both sides; "" where all are."""
    transfers = list(_transfers(by_rank))
    wrong = [each for each in transfers if each.size != 0 and types_differ(each.given.unit, each.room.unit)]
    if wrong:
        units = wrong[0].given.unit, wrong[0].room.unit
        alike = [each for each in wrong if (each.given.unit, each.room.unit) == units]
        return _both_sides(alike, units[0], f"it as {units[1]}")
    wrong = list(filter(_does_not_fit, transfers))
    return _sizes_text(min(wrong, key=lambda each: each.sent.rank == each.got.rank)) if wrong else ""


def mismatched_order(by_rank: Mapping[int, Event]) -> str:
    """A sentence on the memory orders of arrays in one collective that are not the same; "" where all are."""
    wrong = [
        each
        for each in _transfers(by_rank)
        if orders_differ(each.given, each.room) or _rows_are_taken_for_columns(each)
    ]
    return _orders_text(wrong) if wrong else ""


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


def _side(event: Event, side: int) -> BufferLayout | None:
    return event.layouts[side] if len(event.layouts) > side else None


def _size_for(layout: BufferLayout, position: int, ranks: int) -> int | None:
    """Bytes that a rank has for the one at this position; None where that is not known."""
    if len(layout.sizes) == 1:
        return layout.sizes[0]
    return layout.sizes[position] if len(layout.sizes) == ranks else None


def _does_not_fit(transfer: Transfer) -> bool:
    size, room = transfer.size, transfer.room_size
    if size is None or room is None:
        return False
    return size > room if _blocking_name(transfer.got) in _MAY_HAVE_ROOM_LEFT else size != room


def _blocking_name(event: Event) -> str:
    """The name of a collective in small letters, of all its forms: "scatter" of Iscatter and Scatter_init."""
    return event.name.lower().removeprefix("i").removesuffix("_init")


def orders_differ(given: BufferLayout, room: BufferLayout) -> bool:
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
    given, room, name = transfer.given, transfer.room, _blocking_name(transfer.sent)
    cuts = name.startswith(("scatter", "alltoall")) and given.by_columns and not room.shape
    joins = name.startswith(("gather", "allgather", "alltoall")) and room.by_columns and not given.shape
    return cuts or joins


# --- sentences --------------------------------------------------------------------------------------------------------


_BY_COLUMNS = "an array in column order (a transposed one, for example)"


def _both_sides(transfers: Sequence[Transfer], what: str, as_what: str) -> str:
    """ "Rank 0 sends float64 in Send(dest=1), line 4; rank 1 receives it as int64 in Recv(source=0), line 6."."""
    sending, send, call = _who_and_where([each.sent for each in transfers])
    receiving, receive, their_call = _who_and_where([each.got for each in transfers])
    there = "" if their_call == call else f" in {their_call}"
    but = ", but" if sending == receiving and not there else f"; {receiving}"
    return f"{capital(sending)} send{send} {what} in {call}{but} receive{receive} {as_what}{there}."


def _orders_text(transfers: Sequence[Transfer]) -> str:
    """Of the transfers from ranks that send as the first one does."""
    by_columns = transfers[0].given.by_columns
    alike = [each for each in transfers if each.given.by_columns == by_columns]
    if by_columns:
        sides = _both_sides(alike, _BY_COLUMNS, "it in row order")
        return f"{sides} It arrives untransposed, because MPI sends memory. Send np.ascontiguousarray(array)."
    sides = _both_sides(alike, "an array in row order", f"it into {_BY_COLUMNS}")
    return f"{sides} It arrives transposed, because MPI sends memory. Receive into an array in row order."


def _sizes_text(transfer: Transfer) -> str:
    sent, got, size, room = transfer.sent, transfer.got, transfer.size or 0, transfer.room_size or 0
    amount, room_for = in_units(size, transfer.given.unit), in_units(room, transfer.room.unit)
    call, their_call = event_text(sent), event_text(got)
    there = "" if their_call == call else f" in {their_call}"
    return (
        f"Rank {sent.rank} sends {amount} to rank {got.rank} in {call}; rank {got.rank} has room for {room_for}{there}."
    )


def in_units(size: int, unit: str) -> str:
    """So many bytes in words: "3 float64", "80 bytes"."""
    item = unit_bytes(unit)
    return f"{size // item} {unit}" if item and size % item == 0 else f"{size} bytes"


def _who_and_where(events: Collection[Event]) -> tuple[str, str, str]:
    """The ranks of events, the ending of what they do, and the call of the first."""
    ranks = sorted({event.rank for event in events})
    first = min(events, key=lambda event: event.rank)
    return ranks_in_words(ranks), "s" if len(ranks) == 1 else "", event_text(first)
