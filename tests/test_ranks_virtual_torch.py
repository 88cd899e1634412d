"""torch.distributed on virtual ranks: values, bytes and deadlocks are those of gloo on real ranks."""

import _thread
import threading
import time

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import distributed_c10d

import course_utils as course
from course_utils.checks.judge import verdict_on_these
from course_utils.checks.registry import declared
from course_utils.errors import CourseError, RankError
from course_utils.lessons.data_parallel import replicas, training
from course_utils.lessons.experts.all_to_all import all_to_all_by_messages, exchanged
from course_utils.lessons.hybrid_and_sharded.zero1 import adam_shard, zero1_step
from course_utils.lessons.hybrid_and_sharded.zero_stages import train_sharded
from course_utils.lessons.long_texts.experiments import beside_one_process
from course_utils.lessons.long_texts.long_attention import attention_round_the_ring
from course_utils.lessons.long_texts.ulysses import ulysses_attention
from course_utils.lessons.long_texts.zigzag import zigzag
from course_utils.lessons.model_parallel.differentiable_collectives import all_gathered
from course_utils.lessons.model_parallel.parallel_block import parallelise_block
from course_utils.lessons.model_parallel.text import CHARACTERS, character_text, text_batches
from course_utils.lessons.model_parallel.transformer import Block, character_model
from course_utils.ranks.virtual_ranks import VirtualRanks


def own(length=6):
    return torch.randn(length, dtype=torch.float64, generator=torch.Generator().manual_seed(dist.get_rank()))


def every_collective():
    """What each call gives on this rank."""
    rank, size = dist.get_rank(), dist.get_world_size()
    found = []

    def reduced(op):
        x = own()
        dist.all_reduce(x, op=op)
        return x

    found += [reduced(op) for op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN, dist.ReduceOp.AVG)]
    x = own()
    dist.broadcast(x, src=size - 1)
    found.append(x.clone())
    y = own()
    dist.reduce(y, dst=1)
    found.append(y if rank == 1 else x)
    parts = [torch.empty_like(x) for _ in range(size)]
    dist.all_gather(parts, own())
    dist.gather(own(), parts if rank == 0 else None, dst=0)
    found += parts
    dist.scatter(x, [own() + place for place in range(size)] if rank == 1 else None, src=1)
    found.append(x.clone())
    whole = torch.empty(6 * size, dtype=torch.float64)
    dist.all_gather_into_tensor(whole, own())
    found.append(whole.clone())
    mine = torch.empty(6, dtype=torch.float64)
    dist.reduce_scatter_tensor(mine, whole * (rank + 1))
    found.append(mine.clone())
    dist.reduce_scatter(mine, [own() + place for place in range(size)])
    found.append(mine.clone())
    dist.all_to_all(parts, [own() + place for place in range(size)])
    found += parts
    sent, came = [place + 1 for place in range(size)], [rank + 1] * size
    rows = torch.empty(sum(came), 2, dtype=torch.float64)
    dist.all_to_all_single(rows, own(2 * sum(sent)).view(-1, 2), came, sent)
    found.append(rows)
    even = dist.new_group(list(range(0, size, 2)))
    if rank % 2 == 0:
        dist.all_reduce(mine, group=even)
        found += [mine.clone(), torch.tensor(dist.get_rank(even))]
    work = dist.all_reduce(whole, async_op=True)
    work.wait()
    found.append(whole)
    objects = [None] * size
    dist.all_gather_object(objects, {"rank": rank})
    found.append(torch.tensor([one["rank"] for one in objects]))
    dist.barrier()
    return found


def messages():
    rank, size = dist.get_rank(), dist.get_world_size()
    x, y = own(), torch.empty(6, dtype=torch.float64)
    works = [dist.isend(x, (rank + 1) % size), dist.irecv(y, (rank - 1) % size)]
    for work in works:
        work.wait()
    found = [y.clone()]
    if rank == 0:
        dist.send(x, 1, tag=5)
        found.append(torch.tensor(dist.recv(y)))
    elif rank == 1:
        dist.recv(y, 0, tag=5)
        dist.send(y, 0)
    calls = [
        dist.P2POp(dist.isend, x, (rank - 1) % size),
        dist.P2POp(dist.irecv, y, (rank + 1) % size),
    ]
    for work in dist.batch_isend_irecv(calls):
        work.wait()
    return [*found, y]


class Summed(torch.autograd.Function):
    """Forward nothing moves; backward an all-reduce."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        gradient = gradient.clone()
        dist.all_reduce(gradient)
        return gradient


def backward_pass():
    x = own().requires_grad_()
    branch = Summed.apply(x * 2)
    (Summed.apply(branch.sin()) * own() + branch).sum().backward()
    return [x.grad]


def trained(replicate):
    x, y, *test = course.data.digits("float64")
    history = training.train_parallel((x[:96], y[:96], *test), replicate=replicate, batch_size=24)
    return [history.parameters, torch.tensor(history.losses)]


def three_steps_of_zero1():
    parameters = torch.arange(11.0, dtype=torch.float64)
    state = adam_shard(parameters)
    for _ in range(3):
        zero1_step(parameters, own(11), state)
    return [parameters]


def text_model() -> nn.Sequential:
    return character_model(len(CHARACTERS), 16, heads=2, depth=2, context=8).double()


def sharded(stage):
    made = text_batches(character_text().training, batch=8, context=8, steps=2)
    return list(train_sharded(stage, text_model, made, bucket_bytes=8192).parameters.values())


def cut_block():
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    block = Block(16, 4, 0.0, generator).double()
    parallelise_block(block)
    x = torch.randn(2, 5, 16, generator=generator).double().requires_grad_()
    block(x).square().sum().backward()
    return [x.grad, all_gathered(block.mlp.up.weight.grad, 0)]


def dispatched(way):
    rank, size = dist.get_rank(), dist.get_world_size()
    sent, came = [s - rank + 4 for s in range(size)], [rank - s + 4 for s in range(size)]
    sent[rank] = came[rank] = 0
    rows = own(sum(sent)).unsqueeze(1).requires_grad_()
    if way == "messages":
        return [all_to_all_by_messages(rows.detach(), sent, came)]
    out = exchanged(rows, sent, came)
    out.backward(out.detach())
    return [out.detach(), rows.grad]


def long_text(attend):
    found = beside_one_process(attend, zigzag(16, dist.get_world_size()))
    assert max(found.values()) <= 1e-12
    return [torch.tensor(len(found))]


RUNS = {
    "every collective": (every_collective,),
    "messages": (messages,),
    "backward": (backward_pass,),
    "6, all-reduce": (trained, replicas.all_reduce_flat),
    "6, gather and scatter": (trained, replicas.through_rank_0),
    "6, DistributedDataParallel": (trained, replicas.torch_ddp),
    "11, ZeRO-1": (three_steps_of_zero1,),
    "11, stage 2": (sharded, 2),
    "11, FSDP": (sharded, 3),
    "9, a block": (cut_block,),
    "16, the collective": (dispatched, "collective"),
    "16, messages": (dispatched, "messages"),
    "17, a ring": (long_text, attention_round_the_ring),
    "17, Ulysses": (long_text, ulysses_attention),
}


def counted(run):
    """What moved on each rank, in order: the call, how many bytes, and what had to be alike."""
    moves = [event for event in run.events if event.kind != "phase"]
    return [
        [(e.name, e.kind, e.bytes, e.peer, (e.holds, e.agreement), e.comm) for e in moves if e.rank == rank]
        for rank in range(4)
    ]


@pytest.mark.parametrize("name", RUNS)
def test_values_and_bytes_are_those_of_real_ranks(name, four_ranks):
    real, virtual = (ranks.run(*RUNS[name], backend="gloo") for ranks in (four_ranks, VirtualRanks(4)))
    for ours, theirs in zip(virtual.results, real.results, strict=True):
        for one, other in zip(ours, theirs, strict=True):
            torch.testing.assert_close(one.detach(), other.detach(), rtol=1e-12, atol=1e-12)
    assert virtual.bytes_per_rank == real.bytes_per_rank and virtual.messages == real.messages
    assert [sorted(own, key=str) for own in counted(virtual)] == [sorted(own, key=str) for own in counted(real)]


JUDGED = [
    exercise
    for exercise in declared()
    if exercise.needs_torch and exercise.lesson[:2] in ("06", "09", "11", "16", "17")
]


@pytest.mark.parametrize("exercise", JUDGED, ids=lambda exercise: exercise.name)
def test_a_right_answer_passes(exercise):
    verdict = verdict_on_these(exercise, exercise.written.right[0].function(), VirtualRanks(4))
    assert verdict.passed, f"{verdict}  [COURSE_SEED={verdict.seed}]"


def test_the_same_run_twice_is_the_same_in_every_number():
    runs = [VirtualRanks(8).run(every_collective, backend="gloo") for _ in range(2)]
    assert runs[0].events == runs[1].events and runs[0].seconds == runs[1].seconds > 0
    for ours, theirs in zip(runs[0].results, runs[1].results, strict=True):
        assert all(map(torch.equal, ours, theirs))


def test_a_collective_behind_a_computation_costs_what_is_left_of_it():
    def step(overlap):
        x = torch.zeros(1000)
        work = dist.all_reduce(x, async_op=True)
        if not overlap:
            work.wait()
        dist.group.WORLD.compute(0.5)
        work.wait()

    ranks = VirtualRanks(4)
    behind, before = (ranks.run(step, overlap, backend="gloo").seconds for overlap in (True, False))
    assert behind == pytest.approx(0.5) and before > behind


def test_each_rank_keeps_what_torch_keeps_by_thread():
    def draws():
        torch.manual_seed(dist.get_rank())
        with torch.set_grad_enabled(dist.get_rank() == 0):
            dist.barrier()
            return torch.is_grad_enabled(), torch.rand(1).item(), torch.get_num_threads()

    state, cores = torch.get_rng_state(), torch.get_num_threads()
    results = VirtualRanks(3).run(draws, backend="gloo").results
    drawn = [torch.rand(1, generator=torch.Generator().manual_seed(rank)).item() for rank in range(3)]
    assert results == [(rank == 0, drawn[rank], 1) for rank in range(3)]
    assert torch.equal(state, torch.get_rng_state()) and torch.get_num_threads() == cores


def test_nothing_is_left_of_a_run():
    VirtualRanks(5).run(dist.barrier, backend="gloo")
    assert not dist.is_initialized() and not isinstance(distributed_c10d._world.default_pg, dist.ProcessGroup)
    assert not [thread for thread in threading.enumerate() if thread.name == "virtual rank"]


def never_ends(begun):
    dist.barrier()
    begun.touch()
    while True:
        pass


def test_a_learner_can_stop_it(tmp_path):
    begun = tmp_path / "begun"

    def press():
        while not begun.exists():
            time.sleep(0.01)
        _thread.interrupt_main()

    threading.Thread(target=press, daemon=True).start()
    with pytest.raises(RankError, match="stopped by you"):
        VirtualRanks(3).run(never_ends, begun, backend="gloo")
    assert not [thread for thread in threading.enumerate() if thread.name == "virtual rank"]
    assert VirtualRanks(2).run(dist.get_rank, backend="gloo").results == [0, 1]


def stops_in_backward():
    x = torch.ones(2, requires_grad=True)
    if dist.get_rank():
        Summed.apply(x).sum().backward()
    else:
        dist.recv(torch.empty(2), src=1)


def of_unlike_sizes():
    dist.all_reduce(torch.ones(4 + dist.get_rank()))


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (stops_in_backward, "deadlock: rank 0 waits for 1, 1 for 0. rank 0 waits in recv(src=1), line "),
        (of_unlike_sizes, "deadlock: collective number 1 is not the same on all ranks"),
    ],
)
def test_a_deadlock_is_known_at_once(function, told):
    with pytest.raises(RankError) as caught:
        VirtualRanks(2).run(function, backend="gloo")
    assert told in str(caught.value) and "test_ranks_virtual_torch.py" in str(caught.value)
    assert VirtualRanks(2).run(dist.get_rank, backend="gloo").results == [0, 1]


def test_an_error_on_a_rank_is_told_with_its_line():
    def divides():
        dist.barrier()
        return 1 / dist.get_rank()

    with pytest.raises(RankError, match="rank 0 raised ZeroDivisionError: division by zero, line"):
        VirtualRanks(2).run(divides, backend="gloo")


def starts_a_thread():
    threading.Thread(target=print).start()


def test_what_virtual_ranks_cannot_do_is_said_in_a_line():
    with pytest.raises(CourseError, match="cannot start a thread"):
        VirtualRanks(2).run(starts_a_thread, backend="gloo")
    with pytest.raises(CourseError, match='cannot use backend=.nccl.: they compute on processors, as "gloo" does'):
        VirtualRanks(2).run(dist.barrier, backend="nccl")
    with pytest.raises(CourseError, match="2,000 virtual ranks with torch would be 2,000 threads"):
        VirtualRanks(2000).run(dist.barrier, backend="gloo")
