"""The trace: what is recorded, that recording changes no result, and what is counted in it."""

import math
import re
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest
import torch
import torch.distributed as dist
from mpi4py import MPI

from course_utils.errors import CourseError, RankError
from course_utils.ranks.virtual.virtual_ranks import VirtualRanks
from course_utils.trace.events import Event, bytes_sent, count_rounds, pair_messages, phase_seconds
from course_utils.trace.mpi.requests import origin_text
from course_utils.trace.recorder import NO_LINE, SourceLine, phase, recorder, warning_text
from course_utils.trace.torch.torch_distributed import TracedGroup, TracedWork


def send(rank, peer, start, end, size=8, tag=0):
    return Event(rank, "Send", "send", peer, tag, size, start, end)


def recv(rank, peer, start, end, size=8, tag=0):
    return Event(rank, "Recv", "recv", peer, tag, size, start, end)


def test_messages_are_paired_in_order_and_lost_ones_left_out() -> None:
    events = [send(0, 1, 0, 1, 10), send(0, 1, 2, 3, 20), send(0, 2, 4, 5), recv(1, 0, 0, 1.5), recv(1, 0, 2, 3.5)]
    assert [(sent.bytes, got.end) for sent, got in pair_messages(events)] == [(10, 1.5), (20, 3.5)]


def test_a_receive_that_never_ended_has_no_pair() -> None:
    assert pair_messages([send(0, 1, 0, 1), recv(1, 0, 0, math.inf)]) == []


def test_three_messages_of_one_sender_take_three_rounds() -> None:
    events = [e for k in range(3) for e in (send(0, k + 1, k, k + 0.1), recv(k + 1, 0, 0, k + 0.2))]
    assert count_rounds(events) == 3


def test_messages_that_cross_take_one_round() -> None:
    assert count_rounds([send(0, 1, 0, 1), recv(0, 1, 0, 1), send(1, 0, 0, 1), recv(1, 0, 0, 1)]) == 1


def test_a_fast_neighbour_does_not_make_a_round_more() -> None:
    """Everybody swaps with rank XOR 1, then with rank XOR 2; ranks 2 and 3 are far ahead in time."""
    events = []
    for rank in range(4):
        lag = 0 if rank >= 2 else 10
        for step, partner in enumerate((rank ^ 1, rank ^ 2)):
            events += [send(rank, partner, lag + 2 * step, 20 + step), recv(rank, partner, lag + 2 * step, 20 + step)]
    assert count_rounds(events) == 2


def test_what_overtakes_does_not_loop() -> None:
    events = [send(0, 1, 0, 1, tag=1), send(0, 1, 1, 2, tag=2), recv(1, 0, 0, 3, tag=2), recv(1, 0, 3, 4, tag=1)]
    assert count_rounds(events) >= 2


def test_bytes_and_phases_are_summed_per_rank() -> None:
    events = [send(0, 1, 0, 1, 10), Event(0, "Bcast", "collective", None, None, 5, 0, 1), recv(0, 1, 0, 1, 99)]
    assert bytes_sent(events, 0) == 15
    phases = [Event(1, "forward", "phase", None, None, 0, start, start + 2) for start in (0, 5)]
    assert phase_seconds(phases) == {(1, "forward"): 4}


# --- on four ranks ----------------------------------------------------------------------------------------------------


def every_operation(comm):
    """Each operation on a traced communicator, beside the plain MPI communicator under it."""
    rank, size, plain = comm.rank, comm.size, comm.inner
    right, left = (rank + 1) % size, (rank - 1) % size
    mine = np.arange(3.0) + rank
    checks = {}

    request = comm.Isend(mine, right)
    got = np.empty(3)
    comm.Recv(got, source=left)
    request.Wait()
    checks["Isend/Recv"] = np.array_equal(got, np.arange(3.0) + left)

    receive = comm.irecv(source=left, tag=4)
    comm.send({"from": rank}, right, tag=4)
    checks["irecv"] = receive.wait() == {"from": left}
    checks["sendrecv"] = comm.sendrecv(rank, right, 5, source=left, recvtag=5) == left
    comm.Sendrecv(mine, right, 6, got, left, 6)
    checks["Sendrecv"] = np.array_equal(got, np.arange(3.0) + left)

    requests = [comm.Irecv(got, left, 7), comm.Isend(mine, right, 7)]
    MPI.Request.Waitall(requests)
    checks["Waitall"] = np.array_equal(got, np.arange(3.0) + left)

    for name in ("Allreduce", "Scan"):
        traced, wanted = np.empty(3), np.empty(3)
        getattr(comm, name)(mine, traced)
        getattr(plain, name)(mine, wanted)
        checks[name] = np.array_equal(traced, wanted)
    in_place = mine.copy()
    comm.Allreduce(MPI.IN_PLACE, in_place, MPI.MAX)
    checks["IN_PLACE"] = np.array_equal(in_place, np.arange(3.0) + size - 1)

    vector = np.arange(3.0) if rank == 1 else np.empty(3)
    comm.Bcast(vector, root=1)
    checks["Bcast"] = np.array_equal(vector, np.arange(3.0))
    parts = np.empty((size, 3))
    comm.Allgather(mine, parts)
    checks["Allgather"] = np.array_equal(parts, [np.arange(3.0) + r for r in range(size)])
    comm.Alltoall(np.full(size, float(rank)), column := np.empty(size))
    checks["Alltoall"] = np.array_equal(column, np.arange(size))
    comm.Gather(mine, parts if rank == 0 else None, root=0)
    comm.Scatter(parts if rank == 0 else None, got, root=0)
    checks["Gather/Scatter"] = np.array_equal(got, mine)

    for name in ("bcast", "allgather", "allreduce", "scan", "gather", "reduce"):
        thing = [rank, "x"] if name in ("bcast", "allgather", "gather") else rank
        checks[name] = getattr(comm, name)(thing) == getattr(plain, name)(thing)
    checks["exscan"] = comm.exscan(rank) == plain.exscan(rank)
    checks["alltoall"] = comm.alltoall([rank] * size) == plain.alltoall([rank] * size)
    checks["scatter"] = comm.scatter(list("abcd"[:size]) if rank == 0 else None) == "abcd"[rank]
    comm.Barrier()
    comm.barrier()
    half = comm.Split(rank % 2)
    checks["Split"] = half.allgather(rank) == list(range(rank % 2, size, 2))
    return [name for name, right in checks.items() if not right]


def test_every_operation_gives_what_mpi_gives_and_is_recorded(four_ranks) -> None:
    run = four_ranks.run(every_operation)
    assert run.results == [[]] * 4
    names = {event.name for event in run.events}
    assert names >= {
        "Isend",
        "Recv",
        "send",
        "irecv",
        "sendrecv",
        "Sendrecv",
        "Allreduce",
        "Bcast",
        "scatter",
        "barrier",
    }
    assert all(0 <= event.start <= event.end < math.inf for event in run.events)


def test_bytes_of_buffers_are_exact_and_pickles_cost_more(four_ranks) -> None:
    def one_message(comm, lower):
        vector = np.zeros(100)
        if comm.rank == 0:
            comm.send(vector, 1) if lower else comm.Send(vector, 1)
        elif comm.rank == 1:
            comm.recv(source=0) if lower else comm.Recv(vector, source=0)

    assert four_ranks.run(one_message, False).bytes_per_rank == [800, 0, 0, 0]
    assert four_ranks.run(one_message, True).bytes > 800


def test_a_message_of_a_part_of_the_ranks_names_ranks_of_the_run(four_ranks) -> None:
    def odd_ones_talk(comm):
        part = comm.Split(comm.rank % 2)
        if comm.rank % 2:
            part.sendrecv("hello", 1 - part.rank, source=1 - part.rank)

    events = four_ranks.run(odd_ones_talk).events
    assert {(e.rank, e.peer) for e in events if e.kind == "send"} == {(1, 3), (3, 1)}


@pytest.mark.parametrize(
    ("dtype", "length", "words"),
    [("float64", 5, "has room for 24"), ("float32", 5, "not a whole number of float64")],
)
@pytest.mark.parametrize("call", ["Recv", "Irecv"])
def test_a_message_that_does_not_fit_is_an_error_and_not_the_end(four_ranks, dtype, length, words, call) -> None:
    def too_much(comm):
        if comm.rank == 0:
            comm.Send(np.zeros(length, dtype), 1)
        elif comm.rank == 1:
            into = np.zeros(3)
            comm.Recv(into, source=0) if call == "Recv" else comm.Irecv(into, source=0).Wait()

    pids = four_ranks.pids
    with pytest.raises(RankError, match=words if call == "Recv" or dtype == "float32" else "rank 1 raised"):
        four_ranks.run(too_much)
    assert four_ranks.pids == pids, "no rank has died of it"


def test_a_rank_that_does_not_exist_is_named(four_ranks) -> None:
    with pytest.raises(RankError, match=r"there is no rank 4; the ranks are 0 to 3"):
        four_ranks.run(lambda comm: comm.send(1, dest=comm.rank + 1) if comm.rank == 3 else None)


def test_send_with_capital_and_recv_without_says_so(four_ranks) -> None:
    def mixed(comm):
        if comm.rank == 0:
            comm.Send(np.zeros(3), 1)
        elif comm.rank == 1:
            comm.recv(source=0)

    with pytest.raises(RankError, match="Send goes with Recv"):
        four_ranks.run(mixed)


def test_a_request_never_waited_for_is_no_danger(four_ranks) -> None:
    def forgets(comm):
        comm.Irecv(np.empty(1000), source=(comm.rank + 1) % comm.size)
        comm.Isend(np.zeros(1000), dest=(comm.rank - 1) % comm.size)

    for _ in range(3):
        assert four_ranks.run(forgets).messages == 0
    assert four_ranks.run(every_operation).results == [[]] * 4


@pytest.fixture
def ranges(monkeypatch) -> list[str]:
    """What NVIDIA's profilers are told, in order, by a torch that says it has initialised CUDA."""
    told: list[str] = []
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda.nvtx, "range_push", told.append)
    monkeypatch.setattr(torch.cuda.nvtx, "range_pop", lambda: told.append("/"))
    return told


def test_phases_are_nvtx_ranges_that_close_whatever_happens_inside(ranges) -> None:
    with pytest.raises(ZeroDivisionError), phase("step"):
        with phase("forward of {layer}"):
            pass
        with phase("backward"):
            1 / 0  # noqa: B018
    assert ranges == ["step", "forward of {layer}", "/", "backward", "/", "/"]


def test_without_cuda_a_phase_tells_nvidia_nothing(ranges, monkeypatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    with phase("forward"):
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)  # as `.cuda()` in the phase would
    assert ranges == []


@pytest.mark.parametrize("module", [None, SimpleNamespace()], ids=["torch is not there", "torch is being imported"])
def test_a_phase_does_not_need_torch(module, ranges, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "torch.cuda", module)
    with phase("forward"):
        pass
    assert ranges == []


def test_ranks_without_processes_open_no_nvtx_range(ranges) -> None:
    def meet(comm) -> None:
        with phase("forward"):
            comm.Barrier()  # here the next rank goes on, in the same thread

    run = VirtualRanks(3).run(meet)
    assert sum(event.name == "forward" for event in run.events) == 3
    assert ranges == []


def test_phases_are_recorded(four_ranks) -> None:
    def work(comm):
        from course_utils.trace.recorder import phase

        for _ in range(3):
            with phase("forward"):
                comm.Barrier()

    events = four_ranks.run(work).events
    assert sum(e.kind == "phase" and e.name == "forward" and e.rank == 2 for e in events) == 3


def torch_collective(name):
    import torch
    import torch.distributed as dist

    rank, size = dist.get_rank(), dist.get_world_size()
    x = torch.full((5,), float(rank))
    if name == "all_reduce":
        dist.all_reduce(x)
    elif name == "broadcast":
        dist.broadcast(x, src=2)
    elif name == "send":
        if rank == 0:
            dist.send(x + 9, dst=3)
        elif rank == 3:
            dist.recv(x, src=0)
    elif name == "gather":
        parts = [torch.empty(5) for _ in range(size)] if rank == 0 else None
        dist.gather(x, parts, dst=0)
        x = sum(parts) if rank == 0 else x
    elif name == "all_gather_single":
        parts = torch.empty(20)
        dist.all_gather_into_tensor(parts, x)  # the older name of the same
        x = parts.view(4, 5).sum(0)
    elif name == "reduce_scatter":
        dist.reduce_scatter(x, [x.clone() for _ in range(size)])
    elif name == "reduce_scatter_single":
        dist.reduce_scatter_single(x, x.repeat(size), dist.ReduceOp.SUM, None, False)
    return x.tolist()


@pytest.mark.parametrize(
    ("name", "kind", "number", "size", "result"),
    [
        ("all_reduce", "collective", 4, 20, [6.0] * 5),
        ("broadcast", "collective", 4, 20, [2.0] * 5),
        ("gather", "collective", 4, 20, [6.0] * 5),
        ("all_gather_single", "collective", 4, 20, [6.0] * 5),
        ("reduce_scatter", "collective", 4, 80, [6.0] * 5),
        ("reduce_scatter_single", "collective", 4, 80, [6.0] * 5),
        ("send", "send", 1, 20, [9.0] * 5),
    ],
)
def test_torch_distributed_is_recorded(four_ranks, name, kind, number, size, result) -> None:
    run = four_ranks.run(torch_collective, name, backend="gloo")
    found = [event for event in run.events if event.name == name]
    assert [(event.kind, event.bytes) for event in found] == [(kind, size)] * number
    assert run.results[{"gather": 0, "send": 3}.get(name, 1)] == result


def sums_of_unlike_sizes() -> None:
    import torch
    import torch.distributed as dist

    dist.all_reduce(torch.ones(5 if dist.get_rank() == 1 else 4))


def test_tensors_of_unlike_sizes_are_told_apart(four_ranks) -> None:
    with pytest.raises(CourseError, match=r"rank 1 all_reduce of 5 float32"):
        four_ranks.run(sums_of_unlike_sizes, backend="gloo")
    if not four_ranks.healthy:
        four_ranks.restart()
    assert four_ranks.run(torch_collective, "all_reduce", backend="gloo").results[0] == [6.0] * 5


def sends_without_the_ledger(comm) -> float | None:
    import numpy as np
    from mpi4py import MPI

    numbers = np.full(3, float(comm.rank))
    if comm.rank == 0:
        request = comm.Send_init([numbers, MPI.DOUBLE], dest=1)
        request.Start()
        request.Wait()
    elif comm.rank == 1:
        comm.Recv(numbers, source=0)
    return numbers[0]


def test_calls_that_are_not_recorded_make_no_false_alarm(four_ranks) -> None:
    assert four_ranks.run(sends_without_the_ledger).results == [0.0, 0.0, 2.0, 3.0]


def asked_late():
    import time

    import torch
    import torch.distributed as dist

    begin = time.perf_counter()
    work = dist.all_reduce(torch.ones(3), async_op=True)
    while not work.get_future().done():
        time.sleep(0.001)
    sleep_began = time.perf_counter()
    time.sleep(0.2)
    work.wait()
    return sleep_began - begin, time.perf_counter() - begin


def test_an_asynchronous_collective_ends_when_it_is_done_not_when_somebody_asks(four_ranks) -> None:
    run = four_ranks.run(asked_late, backend="gloo")
    for (done, asked), event in zip(run.results, sorted(run.events, key=lambda event: event.rank), strict=True):
        assert event.name == "all_reduce" and event.bytes == 12
        assert event.end - event.start < (done + asked) / 2


def test_a_rank_missing_from_a_torch_collective_is_named_and_the_next_works(four_ranks) -> None:
    def one_skips():
        import torch
        import torch.distributed as dist

        if dist.get_rank() != 2:
            dist.all_reduce(torch.ones(3))

    for _ in range(2):
        with pytest.raises(RankError) as error:
            four_ranks.run(one_skips, backend="gloo")
        assert four_ranks.run(lambda comm: comm.rank).results == [0, 1, 2, 3]
    waiting = r"Ranks? ([013](, | and )?)+ (is|are) waiting in all_reduce"
    assert re.search(waiting, str(error.value)) and "rank 2 has returned" in str(error.value)
    assert four_ranks.run(torch_collective, "all_reduce", backend="gloo").results[0] == [6.0] * 5


def round_the_ring(kind: str) -> float:
    import torch
    import torch.distributed as dist

    rank, size = dist.get_rank(), dist.get_world_size()
    sent = torch.nn.Parameter(torch.tensor(float(rank))) if kind == "parameter" else torch.full((2, 3), rank)
    sent = sent if kind == "parameter" else sent.to(getattr(torch, kind))
    sending, got = dist.isend(sent, (rank + 1) % size), torch.empty_like(sent, requires_grad=False)
    dist.recv(got, (rank - 1) % size)
    sending.wait()
    return got.detach().real.float().max().item()


@pytest.mark.parametrize("kind", ["bfloat16", "complex64", "bool", "int64", "parameter"])
def test_tensors_of_any_dtype_are_sent_under_the_trace(four_ranks, kind: str) -> None:
    wanted = [True, False, True, True] if kind == "bool" else [3.0, 0.0, 1.0, 2.0]
    assert four_ranks.run(round_the_ring, kind, backend="gloo").results == wanted


def called_without_python_below() -> list[float]:
    import _thread
    import time

    import torch
    import torch.distributed as dist

    x = torch.full((3,), float(dist.get_rank()))
    _thread.start_new_thread(dist.group.WORLD.allreduce, ([x], dist.AllreduceOptions()))
    end = time.monotonic() + 10
    while not bool((x == 6).all()) and time.monotonic() < end:
        time.sleep(0.01)
    return x.tolist()


def test_a_thread_of_torchs_may_call_as_a_backward_pass_on_a_gpu_does(four_ranks) -> None:
    assert four_ranks.run(called_without_python_below, backend="gloo").results == [[6.0] * 3] * 4


def everyday_torch(what: str) -> None:
    """Rank 2 does less than the others."""
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    from torch.nn.parallel import DistributedDataParallel

    last = dist.get_rank() == 2
    network = torch.nn.Linear(4, 2)
    if what == "monitored_barrier" and not last:
        dist.monitored_barrier()
    elif what == "all_gather_object" and not last:
        dist.all_gather_object([None] * dist.get_world_size(), "hello")
    elif what == "all_reduce in backward":
        network = DistributedDataParallel(network)
        for _ in range(2 if last else 3):
            network(torch.ones(3, 4)).sum().backward()
    elif what == "all_gather_single in forward":
        fully_shard(network, mesh=init_device_mesh("cpu", (4,)))
        for _ in range(2 if last else 3):
            network(torch.ones(3, 4)).sum().backward()
    elif what == "recv(src=2)" and not last:
        dist.batch_isend_irecv([dist.P2POp(dist.irecv, torch.ones(3), 2)])[0].wait()


@pytest.mark.parametrize(
    "what",
    [
        "monitored_barrier",
        "all_gather_object",
        "all_reduce in backward",
        "all_gather_single in forward",
        "irecv(src=2)",
    ],
)
def test_everyday_torch_with_a_rank_too_few_is_told_and_the_ranks_live_on(four_ranks, what) -> None:
    with pytest.raises(RankError) as error:
        four_ranks.run(everyday_torch, what.replace("irecv", "recv"), backend="gloo")
    waiting = rf"Ranks? ([013](, | and )?)+ (is|are) waiting in {re.escape(what)}"
    assert re.search(waiting, str(error.value)) and "rank 2 has returned" in str(error.value)
    assert four_ranks.run(torch_collective, "all_reduce", backend="gloo").results[0] == [6.0] * 5


def test_a_second_group_inside_a_run_is_rejected_and_the_next_run_is_fresh(four_ranks) -> None:
    def again():
        import torch.distributed as dist

        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:1", rank=0, world_size=1)

    with pytest.raises(RankError, match="twice"):
        four_ranks.run(again, backend="gloo")
    assert four_ranks.run(torch_collective, "all_reduce", backend="gloo").results[0] == [6.0] * 5


def test_a_rank_that_leaves_a_torch_group_is_named(four_ranks) -> None:
    def one_leaves():
        import torch
        import torch.distributed as dist

        if dist.get_rank() == 3:
            raise RuntimeError("I am off")
        dist.all_reduce(torch.ones(3))

    with pytest.raises(
        RankError, match="rank 3 raised RuntimeError: I am off.*ranks 0, 1 and 2 are waiting in all_reduce"
    ):
        four_ranks.run(one_leaves, backend="gloo")
    assert four_ranks.run(torch_collective, "all_reduce", backend="gloo").results[0] == [6.0] * 5


def where_the_group_met() -> str:
    from torch.distributed import distributed_c10d

    return distributed_c10d._get_default_store().underlying_store.path


def used(how: str) -> None:
    import torch
    import torch.distributed as dist

    if how == "another group":
        dist.new_group([0, 1])
    elif how == "an error" and dist.get_rank() == 2:
        raise ValueError
    elif how == "not waited for":
        dist.all_reduce(torch.ones(3), async_op=True)
    elif how == "destroyed":
        dist.destroy_process_group()


@pytest.mark.parametrize("how", ["clean", "another group", "an error", "not waited for", "destroyed", "two ranks"])
def test_a_torch_group_serves_again_unless_something_may_be_left_in_it(four_ranks, how) -> None:
    before = four_ranks.run(where_the_group_met, backend="gloo").results
    size = 2 if how == "two ranks" else 4
    four_ranks.attempt(used, [(how,)] * size, with_comm=False, backend="gloo")
    now = four_ranks.run(where_the_group_met, backend="gloo").results
    assert len(set(before)) == len(set(now)) == 1
    assert (now == before) == (how == "clean")
    assert four_ranks.run(torch_collective, "all_reduce", backend="gloo").results[0] == [6.0] * 5


def test_an_error_inside_mpi4py_has_the_line_of_the_learners_call(four_ranks) -> None:
    def no_room(comm):
        import numpy as np

        if comm.rank == 0:
            comm.Send(np.zeros(4), dest=1)
        elif comm.rank == 1:
            comm.Irecv(np.zeros(2), source=0).Wait()

    with pytest.raises(RankError, match=r"(?s)rank 1 raised .* of test_trace\.py"):
        four_ranks.run(no_room)


@pytest.mark.parametrize(
    ("first", "then", "said"),
    [
        (SourceLine("<one>", 3), SourceLine("<two>", 7), " of line 3"),
        (SourceLine("<one>", 3), SourceLine("course/messages.py", 7), " of line 3 of your cell"),
        (NO_LINE, SourceLine("<two>", 7), ""),
    ],
)
def test_a_wait_says_in_which_line_its_request_began(first: SourceLine, then: SourceLine, said: str) -> None:
    assert origin_text(first, then) == said


def test_a_rank_that_waits_for_a_request_says_so(four_ranks) -> None:
    def waits(comm):
        if comm.rank == 0:
            request = comm.Irecv(bytearray(8), source=1)
            request.Wait()

    trouble = four_ranks.attempt(waits, [()] * 2, patience=1.0).trouble
    assert re.search(r"Rank 0 is waiting in Wait for Irecv\(source=1\) of line \d+, line \d+ of test_trace.py", trouble)


def test_a_warning_names_the_line_and_not_a_file_of_the_notebooks() -> None:
    said = warning_text("overflow encountered in exp", RuntimeWarning, "/tmp/ipykernel_7/12.py", 2)
    assert said == "RuntimeWarning: overflow encountered in exp, line 2 of your cell\n"


class _Stream(threading.local):
    """What a thread has queued on the GPU, in order: each thread has a current stream of its own."""

    def __init__(self) -> None:
        self.queue: list[str] = []


class _WorkOnGpu:
    """A collective of NCCL's that is over: `wait` only puts it before what the calling thread queues next."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream

    def is_completed(self) -> bool:
        return True

    def wait(self) -> bool:
        self._stream.queue.append("collective")
        return True


@pytest.mark.parametrize("text", ["all_reduce", "reduce_scatter_single", "recv(src=1)"])
def test_what_comes_after_a_wait_is_queued_behind_the_collective(text) -> None:
    stream, ends = _Stream(), []
    work = TracedWork(_WorkOnGpu(stream), text, "", ends.append, None, by_learner=True, on_gpu=True, can_be_polled=True)
    work.wait()
    stream.queue.append("kernel that reads the sum")
    assert stream.queue == ["collective", "kernel that reads the sum"]
    assert len(ends) == 1


class _EventOnGpu:
    """A mark in the GPU's queue that it comes to after some looks."""

    looks = 0

    def record(self) -> None:
        type(self).looks = 0

    def query(self) -> bool:
        type(self).looks += 1
        return self.looks > 3


@pytest.mark.parametrize("recorded_as_a_graph", [False, True])
def test_a_collective_for_which_torch_makes_no_work_is_waited_for_in_the_gpus_queue(monkeypatch, recorded_as_a_graph):
    """Synchronous collectives of NCCL's are put behind what the GPU has to do, and give nothing back."""
    monkeypatch.setattr(torch.cuda, "Event", _EventOnGpu)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: recorded_as_a_graph)
    plain = SimpleNamespace(allreduce=lambda *_: None)
    group = TracedGroup(dist.HashStore(), 0, 1)
    group._plain = plain
    recorder.begin(0)
    work = TracedGroup.allreduce(group, [torch.ones(2)], dist.AllreduceOptions())
    if recorded_as_a_graph:
        assert work is None
        return
    assert work.wait() and _EventOnGpu.looks > 3
    assert [(event.kind, event.bytes) for event in recorder.events] == [("collective", 8)]


def hang_on_a_gpu() -> str:
    """Ranks 0 to 2 add up over a group like NCCL's, whose operations never end in the GPU's queue; rank 3 does not."""
    from types import SimpleNamespace

    import torch
    import torch.distributed as dist

    from course_utils.trace.torch.torch_distributed import TracedGroup

    class Never:
        def record(self) -> None: ...

        def query(self) -> bool:
            return False

    if dist.get_rank() == 3:
        return "has not come"
    kept = torch.cuda.Event, torch.cuda.is_current_stream_capturing
    torch.cuda.Event, torch.cuda.is_current_stream_capturing = Never, lambda: False
    try:
        group = TracedGroup(dist.HashStore(), dist.get_rank(), 4)
        group.introduce("nccl", [0, 1, 2, 3], set(), awaited=True)
        group._plain = SimpleNamespace(allreduce=lambda *_: None)
        group.allreduce([torch.ones(2)], dist.AllreduceOptions()).wait()
    finally:
        torch.cuda.Event, torch.cuda.is_current_stream_capturing = kept
    return "ended"


def test_a_hang_over_nccl_is_reported_like_any_other(four_ranks) -> None:
    with pytest.raises(
        RankError, match=r"deadlock: .* Ranks 0, 1 and 2 are waiting in all_reduce.*; rank 3 has returned"
    ):
        four_ranks.run(hang_on_a_gpu, backend="gloo")
    assert four_ranks.run(lambda comm: comm.allreduce(1)).results == [4] * 4
