"""Process groups, stores and RPC that the learner starts on the ranks, as tutorials of PyTorch do.

Each takes a free port, where tutorials have a fixed one.
"""

import os
import socket
import time
import warnings


def _free_port(comm):
    port = None
    if comm.rank == 0:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
    return comm.bcast(port)


def _set_address(comm):
    os.environ["MASTER_ADDR"] = "127.0.0.1"
    os.environ["MASTER_PORT"] = str(_free_port(comm))


def sum_without_rank_0_in_a_tcp_group(comm):
    """All ranks meet at an address, and all but rank 0 sum.

    Finding: deadlock
    Ranks: 4
    Words: all_reduce, 0
    Unsaid: computes, computing, NCCL
    Group: own
    """
    import torch
    import torch.distributed as dist

    address = f"tcp://127.0.0.1:{_free_port(comm)}"
    dist.init_process_group("gloo", init_method=address, rank=comm.rank, world_size=comm.size)
    total = torch.ones(3)
    if comm.rank > 0:
        dist.all_reduce(total)  # here
    comm.barrier()
    dist.destroy_process_group()


def world_size_counts_a_rank_that_is_not_there(comm):
    """The world size is copied from a machine with one more GPU, so all ranks wait for a rank that is not there.

    Finding: deadlock
    Words: init_process_group
    Unsaid: computes, computing, NCCL
    Group: own
    """
    import torch.distributed as dist

    _set_address(comm)
    dist.init_process_group("gloo", rank=comm.rank, world_size=comm.size + 1)  # here
    dist.destroy_process_group()


def rank_2_does_not_join_the_group(comm):
    """Rank 2 has no data and returns before the group is made.

    Finding: deadlock
    Ranks: 3
    Words: init_process_group, 2
    Group: own
    """
    import torch
    import torch.distributed as dist

    _set_address(comm)
    data = {0: [1.0], 1: [2.0]}.get(comm.rank)
    if data is None:
        return
    dist.init_process_group("gloo", rank=comm.rank, world_size=comm.size)  # here
    dist.all_reduce(torch.tensor(data))
    dist.destroy_process_group()


def key_that_nobody_sets(comm):
    """Rank 1 asks the store for a key that rank 0 writes in another way.

    Finding: deadlock
    Words: get, 1
    Unsaid: computes, computing
    Group: own
    """
    import torch.distributed as dist

    store = dist.TCPStore("127.0.0.1", _free_port(comm), comm.size, is_master=comm.rank == 0)
    if comm.rank == 0:
        store.set("learning-rate", "0.1")
    else:
        store.get("learning_rate")  # here
    comm.barrier()


def half_of_a_new_group_sums(comm):
    """Ranks 0 and 1 have a group of their own inside the learner's, and only rank 0 sums in it.

    Finding: deadlock
    Ranks: 4
    Words: all_reduce, 0, 1
    Group: own
    """
    import torch
    import torch.distributed as dist

    _set_address(comm)
    dist.init_process_group("gloo", rank=comm.rank, world_size=comm.size)
    pair = dist.new_group([0, 1])
    loss = torch.ones(1)
    if comm.rank == 0:
        dist.all_reduce(loss, group=pair)  # here
    dist.barrier()
    dist.destroy_process_group()


def rpc_without_one_of_its_workers(comm):
    """Three workers are to call each other, and rank 2 never starts RPC.

    Finding: deadlock
    Ranks: 3
    Words: init_rpc
    Unsaid: computes, computing
    Group: own
    """
    import torch.distributed.rpc as rpc

    _set_address(comm)
    if comm.rank < 2:
        rpc.init_rpc(f"worker{comm.rank}", rank=comm.rank, world_size=comm.size)  # here
        rpc.shutdown()


def rank_given_as_text_on_rank_1(comm):
    """Rank 1 takes its number from the environment and forgets that it is text; rank 0 waits for it.

    Finding: error
    Words: 1, init_process_group
    Group: own
    """
    import torch.distributed as dist

    _set_address(comm)
    rank = str(comm.rank) if comm.rank == 1 else comm.rank
    dist.init_process_group("gloo", rank=rank, world_size=comm.size)  # here
    dist.barrier()
    dist.destroy_process_group()


def both_ranks_call_themselves_rank_0(comm):
    """The cell of the tutorial has rank=0, and every rank runs it: the second one cannot open the port again.

    Finding: error
    Words: init_process_group
    Group: own
    """
    import torch.distributed as dist

    _set_address(comm)
    comm.barrier()
    if comm.rank == 1:
        time.sleep(0.3)
    dist.init_process_group("gloo", rank=0, world_size=comm.size)  # here
    dist.destroy_process_group()


def sum_of_all_in_a_tcp_group(comm):
    """All ranks meet at an address, and all sum; rank 0 comes a second and a half later.

    Finding: correct
    Ranks: 4
    Group: own
    """
    import torch
    import torch.distributed as dist

    address = f"tcp://127.0.0.1:{_free_port(comm)}"
    dist.init_process_group("gloo", init_method=address, rank=comm.rank, world_size=comm.size)
    total = torch.ones(3)
    if comm.rank == 0:
        time.sleep(1.5)
    dist.all_reduce(total)
    dist.destroy_process_group()
    assert total.tolist() == [4.0] * 3


def model_in_ddp_as_in_the_tutorial(comm):
    """Set up, wrap the model, one step, clean up; and the same again, as when a cell is run twice.

    Finding: correct
    Group: own
    """
    import torch
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel

    for _ in range(2):
        _set_address(comm)
        dist.init_process_group("gloo", rank=comm.rank, world_size=comm.size)
        torch.manual_seed(0)
        model = DistributedDataParallel(torch.nn.Linear(10, 5))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
        torch.nn.functional.mse_loss(model(torch.randn(20, 10)), torch.randn(20, 5)).backward()
        optimizer.step()
        dist.destroy_process_group()


def rank_2_joins_the_group_late(comm):
    """Rank 2 reads its data first, and the others wait for it in init_process_group.

    Finding: correct
    Ranks: 3
    Group: own
    """
    import torch
    import torch.distributed as dist

    _set_address(comm)
    if comm.rank == 2:
        time.sleep(2.0)
    dist.init_process_group("gloo", rank=comm.rank, world_size=comm.size)
    total = torch.ones(1)
    dist.all_reduce(total)
    dist.destroy_process_group()
    assert total.item() == 3.0


def key_that_is_set_two_seconds_later(comm):
    """Rank 1 waits for a key of the store, which rank 0 sets when it is ready.

    Finding: correct
    Group: own
    """
    import torch.distributed as dist

    store = dist.TCPStore("127.0.0.1", _free_port(comm), comm.size, is_master=comm.rank == 0)
    if comm.rank == 0:
        time.sleep(2.0)
        store.set("learning_rate", "0.1")
    else:
        store.wait(["learning_rate"])
        assert store.get("learning_rate") == b"0.1"
    comm.barrier()


def members_of_a_new_group_sum(comm):
    """Ranks 0 and 1 sum in a group of their own inside the learner's, and the others wait for them in barrier.

    Finding: correct
    Ranks: 4
    Group: own
    """
    import torch
    import torch.distributed as dist

    _set_address(comm)
    dist.init_process_group("gloo", rank=comm.rank, world_size=comm.size)
    pair = dist.new_group([0, 1])
    loss = torch.ones(1)
    if comm.rank < 2:
        time.sleep(comm.rank)
        dist.all_reduce(loss, group=pair)
    dist.barrier()
    dist.destroy_process_group()
    assert loss.item() == (2.0 if comm.rank < 2 else 1.0)


def one_worker_lets_the_other_add(comm):
    """Rank 0 calls a function on rank 1 by RPC, and both shut down together.

    Finding: correct
    Group: own
    """
    import torch
    import torch.distributed.rpc as rpc

    warnings.filterwarnings("ignore", message="You are using a Backend")  # torch's RPC warns of torch's own group
    _set_address(comm)
    rpc.init_rpc(f"worker{comm.rank}", rank=comm.rank, world_size=comm.size)
    if comm.rank == 0:
        assert rpc.rpc_sync("worker1", torch.add, (torch.ones(2), 3)).tolist() == [4.0, 4.0]
        later = rpc.rpc_async("worker1", time.sleep, (1.0,))
        later.wait()
    rpc.shutdown()
