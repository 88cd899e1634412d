"""Reports name the arguments of calls, tags, types and counts among them, and the call that the learner wrote."""

import asyncio
import concurrent.futures
import threading

import numpy as np
import pytest
from mpi4py import MPI

from course_utils.errors import RankError
from course_utils.trace.call_texts import collective_text, event_text, function_text, receive_text, send_text
from course_utils.trace.events import BYTES, Agreement, BufferLayout, Event, read_layouts
from course_utils.trace.ledger import PROCESS_GROUPS, Ledger, read_snapshot
from course_utils.trace.mpi.call_errors import BufferTooSmall
from course_utils.trace.mpi.type_signatures import bytes_for_each, message_bytes, order_of, unit_of, vector_layout
from course_utils.trace.type_mismatches import in_units, mismatched_collective, mismatched_order
from course_utils.trace.wait_explanations import Mistake, explanation_text, near_misses
from course_utils.trace.wait_graph import (
    IS_DONE,
    WAITS,
    WORKS,
    Collective,
    CombinedNeed,
    Message,
    Receive,
    Snapshot,
    WaitGraph,
)

W = "world"
DUPLICATE = "world/1/0"

# --- tags, ranks and communicators ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (send_text("Ssend", 1, 0), "Ssend(dest=1)"),
        (send_text("Ssend", 1, 7), "Ssend(dest=1, tag=7)"),
        (send_text("sendrecv", 1, 7), "sendrecv(dest=1, sendtag=7)"),
        (receive_text("recv", None, None), "recv(source=ANY_SOURCE)"),
        (receive_text("recv", 1, 0), "recv(source=1, tag=0)"),
        (receive_text("Sendrecv", 1, 3), "Sendrecv(source=1, recvtag=3)"),
        (receive_text("recv", 1, 3, 1), "recv(source=1, tag=3)"),
        (receive_text("recv", 1, 3, 2), "recv(source=1, which is rank 2, tag=3)"),
        (collective_text("Bcast", 0), "Bcast"),
        (collective_text("Bcast", 2), "Bcast(root=2)"),
        (event_text(Event(0, "Send", "send", 1, 4, 8, 0.0, 1.0, 9)), "Send(dest=1, tag=4), line 9"),
    ],
)
def test_calls_are_named_with_the_arguments_that_matter(text, said) -> None:
    assert text == said


def waiting(*wanted: Message, **more) -> Snapshot:
    return Snapshot(WAITS, Receive(wanted[0]), **more)


def sender(*messages: Message, state: str = IS_DONE) -> Snapshot:
    return Snapshot(state, sent={message: 1 for message in messages})


@pytest.mark.parametrize(
    ("wanted", "sent", "mistake"),
    [
        (Message(W, 1, 0), Message(W, 0, 1), Mistake.TAG),
        (Message(W, None, 0), Message(W, 0, 1), Mistake.TAG),
        (Message(W, 2, 5), Message(W, 0, 5), Mistake.SOURCE),
        (Message(W, 1, 5), Message(DUPLICATE, 0, 5), Mistake.COMMUNICATOR),
        (Message(W, 1, 5), Message(W, 2, 5), Mistake.DESTINATION),
        (Message(W, 1, None), Message(W, 2, 5), Mistake.DESTINATION),
        (Message(W, 2, 0), Message(W, 0, 5), None),  # another rank and another tag: meant for another receive
        (Message(W, None, 0), Message(W, 2, 0), None),
        (Message(W, 1, 5), Message("world/window 1/post", 0, 5), None),  # nothing that a learner has sent
    ],
)
def test_a_message_that_lies_there_explains_a_wait_where_one_thing_is_wrong(wanted, sent, mistake) -> None:
    snapshots = {0: waiting(wanted), 1: sender(sent), 2: Snapshot(IS_DONE)}
    assert [found.mistake for found in near_misses(snapshots, [0])] == ([] if mistake is None else [mistake])


def test_a_message_that_was_received_or_has_its_receive_explains_nothing() -> None:
    sent, wanted = Message(W, 0, 1), Message(W, 1, 0)
    taken = waiting(wanted, received={Message(W, 1, 1): 1})
    posted = waiting(wanted, posted=[Message(W, None, 1), wanted])
    for receiver in (taken, posted):
        assert not list(near_misses({0: receiver, 1: sender(sent)}, [0]))
    twice = {0: posted, 1: Snapshot(IS_DONE, sent={sent: 2})}
    assert [found.mistake for found in near_misses(twice, [0])] == [Mistake.TAG]


def test_what_a_rank_at_work_receives_is_not_known() -> None:
    snapshots = {0: waiting(Message(W, 1, 5)), 1: sender(Message(W, 2, 5)), 2: Snapshot(WORKS)}
    assert not list(near_misses(snapshots, [0]))
    snapshots[2] = waiting(Message(W, 0, 9))
    assert not list(near_misses(snapshots, [0])), "rank 2 may receive it one day"


def test_messages_are_put_together_and_other_ranks_are_named() -> None:
    sent = [Message(W, 0, tag) for tag in (1, 4)]
    graph = WaitGraph({0: waiting(Message(W, 1, 0)), 1: sender(*sent)}, {W: [0, 1]})
    assert explanation_text(graph) == "Messages from rank 1 with tags 1 and 4 are there, but rank 0 asks for tag 0."
    both = {rank: Snapshot(WAITS, Receive(Message(W, 1 - rank, 2)), {Message(W, 1 - rank, 1): 1}) for rank in (0, 1)}
    assert explanation_text(WaitGraph(both, {W: [0, 1]})) == (
        "A message from rank 1 with tag 1 is there, but rank 0 asks for tag 2. It is the same on rank 1."
    )


def test_what_lies_on_a_communicator_that_was_freed_is_forgotten_by_the_next_run() -> None:
    ledger = Ledger()
    for label in (DUPLICATE, "world/2/0"):
        ledger.add_send(label, [0, 1], 1, 3)
    ledger.freed.add(DUPLICATE)
    assert len(ledger.sent) == 2, "another rank may still wait for it"
    ledger.begin()
    assert list(ledger.sent) == [Message("world/2/0", 1, 3)]


def other_tag(comm):
    comm.send("sum", dest=0, tag=comm.rank) if comm.rank == 1 else comm.recv(
        source=1, tag=0
    ) if comm.rank == 0 else None


def other_tag_for_a_request(comm):
    if comm.rank == 1:
        comm.Send_init(np.ones(2), dest=0, tag=3).Start()
    elif comm.rank == 0:
        request = comm.Recv_init(np.ones(2), source=1, tag=4)
        request.Start()
        request.Wait()


def other_tags_in_an_exchange(comm):
    other = comm.rank ^ 1
    comm.sendrecv(0, dest=other, sendtag=1, source=other, recvtag=2)


def on_a_duplicate(comm):
    duplicate = comm.Dup()
    if comm.rank == 1:
        duplicate.send("x", dest=0)
    elif comm.rank == 0:
        comm.recv(source=1)


def nothing_was_sent(comm):
    if comm.rank == 0:
        comm.recv(source=1)


def to_the_wrong_rank(comm):
    if comm.rank == 1:
        comm.send("x", dest=2)
    elif comm.rank == 0:
        comm.recv(source=1)


def barriers_of_two_communicators(comm):
    duplicate = comm.Dup()
    (comm if comm.rank < 2 else duplicate).Barrier()


def without_the_root(comm):
    if comm.rank != 2:
        comm.bcast(None, root=2)


@pytest.mark.parametrize(
    ("function", "doing", "explanation"),
    [
        (
            other_tag,
            r"Rank 0 is waiting in recv\(source=1, tag=0\), ",
            "with tag 1 is there, but rank 0 asks for tag 0.",
        ),
        (
            other_tag_for_a_request,
            r"in Wait for Recv_init\(source=1, tag=4\) of line ",
            "with tag 3 is there, but rank 0 asks for tag 4.",
        ),
        (other_tags_in_an_exchange, r"in sendrecv\(source=1, recvtag=2\)", "It is the same on ranks 1, 2 and 3."),
        (on_a_duplicate, r"in recv\(source=1\), ", "but it was sent on a different communicator, "),
        (
            nothing_was_sent,
            r"in recv\(source=1\), ",
            "ranks 1, 2 and 3 have returned.",
        ),  # and nothing of the run before
        (to_the_wrong_rank, r"in recv\(source=1\), ", "A message from rank 1 went to rank 2, which never received it."),
        (barriers_of_two_communicators, "in Barrier, ", "Ranks 0 and 1 call Barrier on a different communicator than "),
        (without_the_root, r"Ranks 0, 1 and 3 are waiting in bcast\(root=2\), ", "rank 2 has returned."),
    ],
)
def test_a_deadlock_is_told_with_arguments_and_explained(four_ranks, function, doing, explanation) -> None:
    with pytest.raises(RankError, match=doing) as error:
        four_ranks.run(function)
    assert explanation in str(error.value)
    assert function is not nothing_was_sent or str(error.value).endswith(explanation)


def two_between_groups(comm):
    low = comm.rank < 2
    inter = comm.Split(0 if low else 1).Create_intercomm(0, comm, 2 if low else 0)
    if low:
        inter.gather(None, root=MPI.ROOT if comm.rank == 0 else MPI.PROC_NULL)
    elif comm.rank == 2:
        inter.gather("mine", root=0)


def sends_over_torch():
    import torch
    import torch.distributed as dist

    if dist.get_rank() == 0:
        dist.isend(torch.ones(3), 1)


def sends_to_all(comm):
    if comm.rank == 0:
        for other in range(1, comm.size):
            comm.send(1, dest=other, tag=5)


def sends_later(comm):
    if comm.rank == 0:
        threading.Timer(1, comm.send, ("late", 1)).start()


def keeps_a_thread(comm):
    if comm.rank == 0:
        comm.send("lost", dest=1, tag=8)
        threading.Timer(1, int).start()


def receives_from_0(comm):
    if comm.rank == 1:
        comm.recv(source=0)


def test_only_what_this_run_sends_explains_a_wait(four_ranks) -> None:
    """Whatever the calls before it have left behind."""
    for leave_behind, more in [(sends_over_torch, {"backend": "gloo"}), (sends_to_all, {}), (keeps_a_thread, {})]:
        four_ranks.run(leave_behind, **more)
        with pytest.raises(RankError, match=r"ranks 0, 2 and 3 have returned\.$"):
            four_ranks.run(receives_from_0)
    with pytest.raises(
        RankError, match=r"gather\(root=MPI.ROOT\), .* rank 1 is waiting in gather\(root=MPI.PROC_NULL\)"
    ):
        four_ranks.run(two_between_groups)
    with pytest.raises(RankError, match=r"ranks 0, 2 and 3 have returned\.$"):
        four_ranks.run(receives_from_0)
    four_ranks.run(sends_later)
    with pytest.raises(RankError, match=r"it was sent with the communicator of an earlier run, and only"):
        four_ranks.run(receives_from_0)


def test_what_an_earlier_cell_has_sent_is_named_as_such(four_ranks) -> None:
    four_ranks.execute(
        "from mpi4py import MPI\nduplicate = MPI.COMM_WORLD.Dup()\n"
        "if duplicate.rank == 0: duplicate.send(1, dest=1, tag=5)"
    )
    with pytest.raises(RankError, match="with tag 5 is there, sent in an earlier run or cell, but rank 1 asks for"):
        four_ranks.execute("if duplicate.rank == 1: duplicate.recv(source=0, tag=6)")
    with pytest.raises(RankError, match=r"ranks 0, 2 and 3 have returned\.$"):
        four_ranks.execute("if duplicate.rank == 1: MPI.COMM_WORLD.recv(source=0)")
    with pytest.raises(RankError, match="sent on a different communicator"):
        four_ranks.execute(
            "if duplicate.rank == 0: duplicate.send(1, dest=1)\nif duplicate.rank == 1: MPI.COMM_WORLD.recv(source=0)"
        )
    four_ranks.execute("del duplicate")


def test_two_threads_that_call_collectives_of_one_group_in_different_orders() -> None:
    group = f"{PROCESS_GROUPS}gloo 1"
    first, second = Agreement("all_reduce"), Agreement("gather_object")

    def rank(main: int, thread: int, *begun: Agreement, of_threads: bool = True) -> Snapshot:
        needs = Collective(group, main, first), Collective(group, thread, second)
        return Snapshot(WAITS, CombinedNeed(needs, False, of_threads), collectives={group: (2, begun)})

    graph = WaitGraph({0: rank(1, 2, first, second), 1: rank(2, 1, second, first)}, {group: [0, 1]})
    assert explanation_text(graph).startswith(
        "On ranks 0 and 1, two threads call collectives on the same process group at once"
    )
    of_one_thread = {0: rank(1, 2, first, second, of_threads=False), 1: rank(2, 1, second, first, of_threads=False)}
    assert not explanation_text(WaitGraph(of_one_thread, {group: [0, 1]}))
    ledger = Ledger()
    need = CombinedNeed((Receive(Message(W, 1, 0)), Receive(Message(W, 1, 1))), False, of_threads=True)
    assert read_snapshot(WAITS, ledger.snapshot(need, []))[0].need == need


def test_functions_of_the_standard_library_are_named_with_their_module() -> None:
    functions = [asyncio.run, concurrent.futures.wait, threading.Thread.join, sends_later]
    names = ["asyncio.run", "concurrent.futures.wait", "Thread.join", "sends_later"]
    assert [function_text(function.__code__) for function in functions] == names


# --- the call that the learner wrote ----------------------------------------------------------------------------------


def aliased(comm):
    x = np.ones(3)
    comm.Allreduce(x, x)


def tag_below_zero(comm):
    comm.send(1, dest=0, tag=-3)


def no_such_root(comm):
    comm.Reduce(np.ones(2), np.ones(2), root=7)


def null_communicator(comm):
    comm.Split(MPI.UNDEFINED).bcast(1)


def freed_communicator(comm):
    duplicate = comm.Dup()
    duplicate.Free()
    duplicate.allreduce(1)


def count_too_large(comm):
    comm.Bcast([np.ones(2), 5, MPI.DOUBLE])


def unlike_counts(comm):
    comm.Allreduce(np.ones(2), np.ones(3))


def what_does_not_divide(comm):
    comm.Scatter(np.ones(9), np.ones(2), root=comm.rank)


def a_column(comm):
    comm.Bcast(np.ones((3, 3))[:, 1])


def a_list(comm):
    comm.Allreduce([1, 2, 3], np.ones(3))


def objects(comm):
    comm.Bcast(np.array([None]))


def too_little_room(comm):
    comm.Isend(np.zeros(3), dest=comm.rank)
    comm.Irecv(np.zeros(2), source=comm.rank).Wait()


def unlike_lengths_of_a_broadcast(comm):
    comm.Bcast(np.ones(8 if comm.rank else 12))


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (
            aliased,
            "Allreduce: the send and the receive buffer are the same array. Use MPI.IN_PLACE, or a second array, ",
        ),
        (tag_below_zero, "send: Invalid tag, value is -3"),
        (no_such_root, "Reduce: root=7 is not a rank of this communicator, line "),
        (null_communicator, "bcast: Null communicator (it was freed, or this rank is not in it), line "),
        (freed_communicator, "allreduce: Null communicator (it was freed, or this rank is not in it), line "),
        (count_too_large, "Bcast: the count is 5, and the array has room for 2, line "),
        (unlike_counts, "Allreduce: mismatch in send count 2 and receive count 3, line "),
        (what_does_not_divide, "Scatter: an array of 9 numbers cannot be cut into 4 equal parts, one for each rank. "),
        (a_column, "Bcast: the array is not contiguous in memory, as a column is not. "),
        (a_list, "Allreduce: it needs an array, and was given a list. allreduce, with a small letter, takes any "),
        (objects, "Bcast: the array holds Python objects (dtype=object)"),
        (
            too_little_room,
            "MessageTruncated: Irecv: the message from rank 0 has 24 bytes, the array for it has room ",
        ),
        (
            unlike_lengths_of_a_broadcast,
            "(rank 0 Bcast(root=0) of 12 float64, ranks 1, 2 and 3 Bcast(root=0) of 8 float64)",
        ),
    ],
)
def test_an_error_names_the_call_that_the_learner_wrote(four_ranks, function, text) -> None:
    with pytest.raises(RankError) as error:
        four_ranks.run(function)
    assert text in str(error.value)
    assert "message:" not in str(error.value) and "Test:" not in str(error.value)


# --- types, counts and memory orders ----------------------------------------------------------------------------------


def test_the_type_of_a_buffer_is_that_of_its_numbers_or_of_its_datatype() -> None:
    numbers = np.ones(4)
    pair = MPI.DOUBLE.Create_contiguous(2)
    mixed = MPI.Datatype.Create_struct([1, 1], [0, 8], [MPI.DOUBLE, MPI.INT])
    assert unit_of(numbers) == unit_of([numbers, MPI.DOUBLE]) == unit_of([bytearray(32), 4, MPI.DOUBLE]) == "float64"
    assert unit_of([numbers, 2, pair]) == "float64" and unit_of([numbers, 1, mixed]) == BYTES
    assert unit_of(np.ones(2, "q")) == unit_of(np.ones(2, "l")) == unit_of([None, 1, MPI.LONG_LONG]) == "int64"
    for neutral in (
        b"bytes",
        [numbers, MPI.BYTE],
        [numbers, MPI.CHAR],
        np.zeros(2, "i4,f8"),
        [numbers, 1, MPI.DOUBLE_INT],
    ):
        assert unit_of(neutral) == BYTES
    assert unit_of(np.float32(1)) == "float32" and unit_of(None) == unit_of(MPI.IN_PLACE) == BYTES
    pair.Free()
    mixed.Free()


def test_the_bytes_of_a_message_are_those_of_its_count() -> None:
    numbers = np.ones(8)
    assert message_bytes(numbers) == 64 and message_bytes(numbers, 4) == 16 and message_bytes(numbers, 3) is None
    assert (
        message_bytes([numbers, 3, MPI.DOUBLE]) == message_bytes([numbers, 3]) == message_bytes([numbers, (3, 2)]) == 24
    )
    assert message_bytes([MPI.BOTTOM, 3, MPI.DOUBLE]) == 24
    column = MPI.DOUBLE.Create_vector(4, 1, 2)
    assert message_bytes([numbers, column]) is None, "as often as its extent goes into the array"
    assert message_bytes([numbers, 1, column]) == 32
    column.Free()
    with pytest.raises(BufferTooSmall, match="the count is 4 for each of 4 ranks, and the array has room for 8"):
        message_bytes([numbers, 4, MPI.DOUBLE], 4)


def test_each_rank_has_the_bytes_of_its_own_count() -> None:
    numbers = np.ones(10)
    assert bytes_for_each(numbers, 4) == (24, 24, 16, 16), "as mpi4py shares them out"
    assert bytes_for_each([numbers, [4, 0, 6]], 3) == bytes_for_each([numbers, ([4, 0, 6], None)], 3) == (32, 0, 48)
    assert bytes_for_each([numbers, np.array([1, 2]), [8, 0], MPI.DOUBLE], 2) == (8, 16)
    assert vector_layout([numbers, [1, 2, 3]], [2, 0, 1]) == BufferLayout("float64", (16, 24, 8)), (
        "in the order of the run"
    )
    with pytest.raises(BufferTooSmall, match="as far as number 11, and the array has 10"):
        bytes_for_each([numbers, [1, 2], [0, 9], MPI.DOUBLE], 2)


def test_the_order_of_an_array_matters_where_it_has_several_rows_and_columns() -> None:
    table = np.ones((3, 8))
    assert order_of(table) == ((3, 8), False) and order_of(table.T) == ((8, 3), True)
    for neutral in (np.ones(4), np.ones((1, 4)), np.ones((4, 1)).T, None, [b"x", MPI.BYTE], table[:, 1:3]):
        assert order_of(neutral) == ((), False)
    assert order_of(table.T, 4) == ((8, 3), True), "its rows are meant"
    assert order_of(np.asfortranarray(table), 4) == ((), False), "its columns are meant"


def test_amounts_in_words() -> None:
    assert in_units(24, "float64") == "3 float64" and in_units(24, BYTES) == "24 bytes"
    assert (
        in_units(24, "bfloat16") == "12 bfloat16"
        and in_units(3, "bool") == "3 bool"
        and in_units(10, "float64") == "10 bytes"
    )


def call(name: str, *layouts: tuple[BufferLayout | None, BufferLayout | None]) -> dict[int, Event]:
    def event(rank: int) -> Event:
        return Event(rank, name, "collective", None, None, 8, 0.0, 1.0, 3, W, 1, layouts=layouts[rank])

    return {rank: event(rank) for rank in range(len(layouts))}


def of(unit: str, *sizes: int) -> BufferLayout:
    return BufferLayout(unit, sizes)


@pytest.mark.parametrize(
    ("events", "text"),
    [
        (
            call("Scatter", (of("int64", 8), of("float64", 8)), (None, of("float64", 8))),
            "Rank 0 sends int64 in Scatter, line 3; ranks 0 and 1 receive it as float64.",
        ),
        (call("Scatter", (of("int64", 8), of("int64", 8)), (None, of(BYTES, 8))), ""),
        (call("Scatter", (of("int64", 0), of("float64", 0)), (None, of("float64", 0))), ""),
        (
            call("Igather", (of("int64", 8), of("int64", 16)), (of("int64", 8), None)),
            "Rank 1 sends 1 int64 to rank 0 in Igather, line 3; rank 0 has room for 2 int64.",
        ),
        (call("Igatherv", (of("int64", 8), of("int64", 16, 16)), (of("int64", 8), None)), ""),
        (
            call("Gatherv", (of("int64", 8), of("int64", 16, 16)), (of("int64", 24), None)),
            "Rank 1 sends 3 int64 to rank 0 in Gatherv, line 3; rank 0 has room for 2 int64.",
        ),
        (
            call("Alltoallv", (of(BYTES, 8, 8), of(BYTES, 8, 9)), (of(BYTES, 8, 8), of(BYTES, 8, 8))),
            "Rank 1 sends 8 bytes to rank 0 in Alltoallv, line 3; rank 0 has room for 9 bytes.",
        ),
        (
            call("Gatherv", (of("int64", 8), of("int64", 16, 16, 16)), (of("int64", 24), None)),
            "",
        ),  # rank 2 did not come
        (call("Allgather", (of("int64"), of("int64")), (of("int64", 8), of("int64", 8))), ""),
        (call("Barrier", (), ()), ""),
    ],
)
def test_what_is_sent_and_the_room_for_it_must_be_alike(events, text) -> None:
    assert mismatched_collective(events) == text


def lies(*shape: int, by_columns: bool = False) -> BufferLayout:
    return BufferLayout("float64", (), shape, by_columns)


@pytest.mark.parametrize(
    ("name", "given", "room", "differs"),
    [
        ("Bcast", lies(3, 2, by_columns=True), lies(3, 2), True),
        ("Bcast", lies(3, 2), lies(3, 2, by_columns=True), True),
        ("Bcast", lies(3, 3, by_columns=True), lies(3, 3), True),
        ("Bcast", lies(3, 2, by_columns=True), lies(3, 2, by_columns=True), False),
        ("Bcast", lies(3, 2, by_columns=True), lies(2, 3), False),  # the receiver wants it as it was
        ("Bcast", lies(3, 2, by_columns=True), lies(), False),
        ("Scatter", lies(8, 3, by_columns=True), lies(4, 3), True),
        ("Scatter", lies(8, 3, by_columns=True), lies(), True),
        ("Iscatterv", lies(8, 3, by_columns=True), lies(), True),
        ("Gather", lies(), lies(2, 3, by_columns=True), True),
        ("Allgather", lies(3, 4, by_columns=True), lies(2, 3, 4), True),
        ("Allgather", lies(3, 4), lies(2, 3, 4), False),
    ],
)
def test_arrays_in_different_memory_orders_are_told(name, given, room, differs) -> None:
    text = mismatched_order(call(name, (given, None), (None, room)))
    assert bool(text) == differs
    assert not differs or ("untransposed" in text) == given.by_columns


def test_layouts_from_outside_are_read_with_suspicion() -> None:
    assert read_layouts([None, ["float64", [8, 8], [], False]]) == (None, BufferLayout("float64", (8, 8)))
    for wrong in (
        [["float64", ["8"], [], False]],
        [["float64", [8], [], 0]],
        [[7, [8], [], False]],
        [["float64"]],
        [3],
    ):
        with pytest.raises(TypeError):
            read_layouts(wrong)
