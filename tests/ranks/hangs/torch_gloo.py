"""Mistakes with torch.distributed on the gloo backend: collectives, groups, messages and asynchronous work.

The ideas are those of the classes "Call ordering", "Parameter matching" and "Request life cycle" of the MPI Bugs
Initiative, MPI-BugBench and MPI-CorrBench, carried over to torch.distributed; none is copied.
"""


def metric_reduced_on_rank_0_only():
    """Only rank 0 writes the metric down, and only rank 0 calls all_reduce for it.

    Finding: deadlock
    Words: all_reduce, 0
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    hits = torch.tensor([3.0 + dist.get_rank()])
    if dist.get_rank() == 0:
        dist.all_reduce(hits)  # here
        print("hits", hits.item())


def source_broadcasts_a_shorter_tensor():
    """The source has two numbers, the other ranks make room for three; the last one is never written.

    Finding: luck
    Words: broadcast, 0
    Ranks: 3
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    rates = torch.tensor([0.1, 0.01]) if dist.get_rank() == 0 else torch.zeros(3)
    dist.broadcast(rates, src=0)  # here


def each_rank_is_the_source_of_its_broadcast():
    """src is the rank itself, so both give and nobody receives.

    Finding: deadlock
    Words: broadcast, 0, 1
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    torch.manual_seed(dist.get_rank())
    weights = torch.randn(4)
    dist.broadcast(weights, src=dist.get_rank())  # here


def both_send_first():
    """Both ranks send their gradient of 4 MB before they receive.

    Finding: deadlock
    Words: send, 0, 1
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    other = 1 - dist.get_rank()
    mine, theirs = torch.ones(1000, 1000), torch.empty(1000, 1000)
    dist.send(mine, dst=other)  # here
    dist.recv(theirs, src=other)


def both_receive_first():
    """Both ranks wait for the activations of the other before they give their own.

    Finding: deadlock
    Words: recv, 0, 1
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    def swap(x, other):
        y = torch.empty_like(x)
        dist.recv(y, src=other)  # here
        dist.send(x, dst=other)
        return y

    swap(torch.ones(3), 1 - dist.get_rank())


def last_stage_waits_for_the_first_not_the_middle():
    """In a pipeline of three stages the last receives from rank 0, but rank 1 is the one that sends to it.

    Finding: deadlock
    Words: recv, 2
    Ranks: 3
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    rank, x = dist.get_rank(), torch.ones(2, 4)
    if rank > 0:
        dist.recv(x, src=0)  # here
    if rank < 2:
        dist.send(x * 2, dst=rank + 1)  # here


def asynchronous_sum_never_waited_for():
    """all_reduce is started with async_op=True, its work is thrown away, and the tensor is used at once.

    Finding: luck
    Words: all_reduce
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    loss = torch.tensor([1.0 + dist.get_rank()])
    dist.all_reduce(loss, async_op=True)  # here
    return loss / dist.get_world_size()


def received_tensor_used_before_wait():
    """Rank 1 uses the tensor of irecv and waits for it only afterwards.

    Finding: luck
    Words: irecv, 1
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    if dist.get_rank() == 0:
        dist.send(torch.full((5,), 2.0), dst=1)
    else:
        x = torch.zeros(5)
        work = dist.irecv(x, src=0)  # here
        x.mean()  # here
        work.wait()


def tensor_changed_before_isend_is_done():
    """Rank 0 fills the tensor with the next value while isend may still read the last one.

    Finding: luck
    Words: isend, 0
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    x = torch.zeros(3)
    works = []
    for step in range(3):
        if dist.get_rank() == 0:
            x.fill_(step)  # here
            works.append(dist.isend(x, dst=1, tag=step))  # here
        else:
            dist.recv(x, src=0, tag=step)
    for work in works:
        work.wait()


def jobs_done_in_opposite_orders():
    """Rank 1 goes through the jobs from the end, so its broadcast meets the all_reduce of rank 0.

    Finding: deadlock
    Words: all_reduce, broadcast, 1
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    scale, shift = torch.ones(2), torch.full((2,), 0.5)
    jobs = [(dist.all_reduce, scale), (dist.broadcast, shift)]
    for call, tensor in jobs if dist.get_rank() == 0 else jobs[::-1]:
        call(tensor, **({"src": 0} if call is dist.broadcast else {}))  # here


def operation_differs():
    """Rank 0 wants the mean of the losses by SUM, rank 1 still has MAX from an old version.

    Finding: luck
    Words: all_reduce, 0, 1
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    op = dist.ReduceOp.SUM if dist.get_rank() == 0 else dist.ReduceOp.MAX
    losses = torch.tensor([0.5, 0.25]) * (dist.get_rank() + 1)
    dist.all_reduce(losses, op=op)  # here


def monitored_barrier_without_rank_1():
    """Rank 1 does not come to monitored_barrier, and rank 0 names it after one second.

    Finding: error
    Words: monitored_barrier, 1
    Group: gloo
    """
    from datetime import timedelta

    import torch.distributed as dist

    if dist.get_rank() != 1:
        dist.monitored_barrier(timeout=timedelta(seconds=1))  # here


def barrier_skipped_after_a_failed_download():
    """Rank 2 returns early because it has no file; the others wait for it in barrier.

    Finding: deadlock
    Words: barrier, 2
    Ranks: 3
    Group: gloo
    """
    import torch.distributed as dist

    shards = {0: "part-0", 1: "part-1"}
    if shards.get(dist.get_rank()) is None:
        return
    dist.barrier()  # here


def new_group_called_by_its_members_only():
    """All ranks must call new_group, also those that are not in it; rank 2 does not, and this version lets it pass.

    Finding: luck
    Words: new_group, 2
    Ranks: 3
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    if dist.get_rank() in (0, 1):
        pair = dist.new_group([0, 1])  # here
        dist.all_reduce(torch.ones(1), group=pair)


def future_of_a_sum_that_rank_0_does_not_come_to():
    """Who waits for a future waits in torch's C++.

    Finding: deadlock
    Words: all_reduce, 0
    Ranks: 2
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    if dist.get_rank() == 1:
        work = dist.all_reduce(torch.ones(3), async_op=True)  # here
        work.get_future().wait()


def future_of_the_first_of_two_sums():
    """Rank 1 begins its second sum when rank 0 has told it that the first one is there.

    Finding: correct
    Ranks: 2
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    rank, works = dist.get_rank(), []
    for _ in range(2 - rank):
        works.append(dist.all_reduce(torch.ones(3), async_op=True))
    works[0].get_future().then(lambda done: done.value()).wait()
    if rank == 0:
        dist.send(torch.ones(1), dst=1)
        works[1].wait()
    else:
        dist.recv(torch.ones(1), src=0)
        dist.all_reduce(torch.ones(3))


def new_group_without_one_of_its_members():
    """Rank 1 has given up; the two others wait for it while the group is made, in torch's C++.

    Finding: deadlock
    Words: new_group, 1
    Ranks: 3
    Group: gloo
    """
    import torch.distributed as dist

    if dist.get_rank() != 1:
        dist.new_group([0, 1, 2])  # here


def outsider_calls_the_sum_of_a_group():
    """Rank 0 is not in the group; its all_reduce does nothing but warn, and its value stays as it was.

    Finding: luck
    Words: all_reduce, 0
    Ranks: 3
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    workers = dist.new_group([1, 2])
    count = torch.tensor([dist.get_rank()])
    dist.all_reduce(count, group=workers)  # here


def source_outside_of_the_group():
    """In the group of ranks 1 and 2 the source is given as 0, meant as the first of the group.

    Finding: error
    Words: broadcast, 1, 2
    Ranks: 3
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    workers = dist.new_group([1, 2])
    if dist.get_rank() > 0:
        dist.broadcast(torch.zeros(3), src=0, group=workers)  # here


def one_rank_has_nothing_to_gather():
    """Rank 1 found no examples and leaves gather_object out instead of giving an empty list.

    Finding: deadlock
    Words: gather_object, 0, 1
    Ranks: 3
    Group: gloo
    """
    import torch.distributed as dist

    rank = dist.get_rank()
    found = [] if rank == 1 else [f"picture {rank}"]
    if found:
        table = [None] * dist.get_world_size() if rank == 0 else None
        dist.gather_object(found, table, dst=0)  # here


def configuration_never_broadcast():
    """Rank 1 waits for the configuration, but rank 0 reads it from its file and forgets to share it.

    Finding: deadlock
    Words: broadcast_object_list, 1
    Group: gloo
    """
    import torch.distributed as dist

    config = [None]
    if dist.get_rank() == 0:
        config[0] = {"lr": 0.1, "epochs": 3}
    else:
        dist.broadcast_object_list(config, src=0)  # here
    return config[0]["lr"]


def both_ends_are_receives_in_a_batch():
    """Both ranks put only an irecv into their batch: the isend of rank 1 was copied wrongly.

    Finding: deadlock
    Words: batch_isend_irecv, wait
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    other = 1 - dist.get_rank()
    ghost = torch.zeros(2)
    ops = [dist.P2POp(dist.irecv, ghost, other)]  # here
    for work in dist.batch_isend_irecv(ops):  # here
        work.wait()  # here


def output_of_all_gather_too_small():
    """The output holds the part of one rank, and must hold those of both.

    Finding: error
    Words: all_gather_into_tensor
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    mine = torch.arange(3.0) + dist.get_rank()
    whole = torch.empty(3)
    dist.all_gather_into_tensor(whole, mine)  # here


def every_rank_gives_a_scatter_list():
    """All ranks give the list of parts, but only the source may.

    Finding: error
    Words: scatter, 1
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    parts = list(torch.arange(4.0).split(2))
    mine = torch.empty(2)
    dist.scatter(mine, parts, src=0)  # here


def two_ranks_wait_for_each_others_scatter():
    """Each rank takes the other one for the source of scatter, so both wait for a part.

    Finding: deadlock
    Words: scatter, 0, 1
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    mine = torch.empty(2)
    dist.scatter(mine, None, src=1 - dist.get_rank())  # here


def tags_of_send_and_recv_differ():
    """Rank 0 sends with the number of the epoch as the tag, rank 1 waits with the number of the next one.

    Finding: deadlock
    Words: recv, 1
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    x = torch.zeros(2)
    for epoch in range(2):
        if dist.get_rank() == 0:
            dist.send(x, dst=1, tag=epoch)  # here
        else:
            dist.recv(x, src=0, tag=epoch + 1)  # here


def waits_in_another_order():
    """Both ranks start the same two sums in the same order; they may wait for them in any order.

    Finding: correct
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    a, b = torch.ones(2), torch.full((3,), 2.0)
    works = [dist.all_reduce(a, async_op=True), dist.all_reduce(b, async_op=True)]
    for work in works if dist.get_rank() == 0 else works[::-1]:
        work.wait()
    assert a.sum() == 4 and b.sum() == 12


def even_sends_odd_receives():
    """The even rank sends first and the odd one receives first.

    Finding: correct
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    rank, other = dist.get_rank(), 1 - dist.get_rank()
    mine, theirs = torch.full((1000, 1000), float(rank)), torch.empty(1000, 1000)
    steps = [lambda: dist.send(mine, dst=other), lambda: dist.recv(theirs, src=other)]
    for step in steps if rank % 2 == 0 else reversed(steps):
        step()
    assert theirs[0, 0] == other


def neighbours_of_the_ring_in_a_batch():
    """Each rank gives the send to the right and the receive from the left in one batch and waits for both.

    Finding: correct
    Ranks: 3
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    rank, size = dist.get_rank(), dist.get_world_size()
    mine, ghost = torch.full((2,), float(rank)), torch.zeros(2)
    ops = [dist.P2POp(dist.isend, mine, (rank + 1) % size), dist.P2POp(dist.irecv, ghost, (rank - 1) % size)]
    for work in dist.batch_isend_irecv(ops):
        work.wait()
    assert ghost[0] == (rank - 1) % size


def group_made_by_its_members_with_local_synchronization():
    """With use_local_synchronization=True only the members call new_group.

    Finding: correct
    Ranks: 3
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    if dist.get_rank() in (0, 2):
        pair = dist.new_group([0, 2], use_local_synchronization=True)
        x = torch.ones(1)
        dist.all_reduce(x, group=pair)
        assert x == 2
    dist.barrier()


def group_made_by_all_used_by_its_members():
    """All ranks call new_group, and then only the members broadcast in the group, with the global rank as source.

    Finding: correct
    Ranks: 3
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    workers = dist.new_group([1, 2])
    x = torch.tensor([dist.get_rank()])
    if dist.get_rank() > 0:
        dist.broadcast(x, src=2, group=workers)
        assert x == 2


def scatter_list_on_the_source_only():
    """The source gives the parts and the others None; then everybody gathers them with an empty list for rank 1.

    Finding: correct
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    parts = list(torch.arange(4.0).split(2)) if dist.get_rank() == 0 else None
    mine = torch.empty(2)
    dist.scatter(mine, parts, src=0)
    everything = [None, None]
    dist.all_gather_object(everything, mine.tolist() if dist.get_rank() == 0 else [])
    assert everything == [[0, 1], []]


def last_batch_is_smaller_on_rank_1():
    """Ranks gather their results, of which there are fewer where the last batch was smaller.

    Finding: deadlock
    Words: all_gather, 16, 7
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    mine = torch.ones(16 if dist.get_rank() == 0 else 7)
    parts = [torch.empty_like(mine) for _ in range(2)]
    dist.all_gather(parts, mine)  # here


def key_is_set_after_a_second():
    """Rank 0 prepares something and says so in the store, for which the others wait without a message.

    Finding: correct
    Group: gloo
    """
    import time

    import torch.distributed as dist

    store = dist.distributed_c10d._get_default_store()
    if dist.get_rank() == 0:
        time.sleep(1.0)
        store.set("ready", "yes")
    store.wait(["ready"])
    dist.barrier()
