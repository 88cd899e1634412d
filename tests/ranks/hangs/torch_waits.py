"""Ranks that take their time beside torch's collectives: threads, loaders with workers, polling, long validation."""

import threading
import time

import numpy as np


def _compute(seconds):
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        np.linalg.svd(np.ones((40, 40)))


def thread_sums_without_rank_1():
    """The losses are summed in a thread on rank 0, and rank 1 has no such thread.

    Finding: deadlock
    Words: all_reduce, 0, 1
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    loss = torch.ones(1)
    if dist.get_rank() == 0:
        summing = threading.Thread(target=lambda: dist.all_reduce(loss))  # here
        summing.start()
        summing.join()  # here


def asks_for_ever_whether_the_sum_is_there():
    """Rank 0 polls the sum that rank 1 never starts; it might give up, so nobody can know.

    Finding: soft
    Words: is_completed, 0
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    if dist.get_rank() == 0:
        work = dist.all_reduce(torch.ones(2), async_op=True)  # here
        while not work.is_completed():  # here
            time.sleep(0.01)


def one_sum_more_after_the_validation_of_rank_0():
    """Rank 0 validates for two seconds, and sums its accuracy with nobody, while rank 1 waits for its weights.

    Finding: deadlock
    Words: all_reduce, broadcast, 0, 1
    Unsaid: NCCL
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    weights = torch.ones(5)
    if dist.get_rank() == 0:
        _compute(2.0)
        accuracy = torch.tensor([0.9])
        dist.all_reduce(accuracy)  # here
    dist.broadcast(weights, src=0)  # here


def loaders_worker_waits_for_a_file_that_never_comes():
    """The loader of rank 1 has a worker that waits for a file, and the others wait for the gradients.

    Finding: soft
    Words: all_reduce, 0, 1
    Unsaid: computes, computing, NCCL
    Ranks: 3
    Group: gloo
    """
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader, Dataset

    class Waiting(Dataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            time.sleep(40.0)
            return torch.ones(2)

    if dist.get_rank() == 1:
        for batch in DataLoader(Waiting(), num_workers=1):  # here
            dist.all_reduce(batch)
    dist.all_reduce(torch.ones(1, 2))


def waits_for_the_rank_that_only_saves():
    """Rank 1 waits for the new rate from rank 2, which saves for a second and returns; rank 0 has it.

    Finding: deadlock
    Words: recv, 1, 2
    Ranks: 3
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    rank, rate = dist.get_rank(), torch.zeros(1)
    if rank == 2:
        time.sleep(1.0)
    elif rank == 1:
        dist.recv(rate, src=2)  # here


def validation_of_rank_0_takes_long():
    """Rank 0 validates for two and a half seconds, while the others wait in all_reduce.

    Finding: correct
    Ranks: 3
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    if dist.get_rank() == 0:
        _compute(2.5)
    total = torch.ones(2)
    dist.all_reduce(total)
    assert total.tolist() == [3.0, 3.0]


def sum_in_a_thread_while_the_main_program_computes():
    """Each rank sums in a thread and computes meanwhile, rank 1 for longer than rank 0.

    Finding: correct
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    loss = torch.ones(1)
    if dist.get_rank() == 1:
        _compute(1.5)
    summing = threading.Thread(target=lambda: dist.all_reduce(loss))
    summing.start()
    _compute(0.3)
    summing.join()
    assert loss.item() == 2.0


def asks_until_the_sum_is_there():
    """Rank 0 polls its sum; rank 1 comes to it a second and a half later.

    Finding: correct
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    total = torch.ones(2)
    if dist.get_rank() == 1:
        time.sleep(1.5)
    work = dist.all_reduce(total, async_op=True)
    while not work.is_completed():
        time.sleep(0.01)
    work.wait()
    assert total.tolist() == [2.0, 2.0]


def loaders_worker_is_slow():
    """The loader of rank 1 has a slow worker, and the others wait for the gradients.

    Finding: correct
    Ranks: 3
    Group: gloo
    """
    import torch
    import torch.distributed as dist
    from torch.utils.data import DataLoader, Dataset

    class Slow(Dataset):
        def __len__(self):
            return 2

        def __getitem__(self, index):
            time.sleep(0.7 * (dist.is_initialized() and dist.get_rank() == 1))
            return torch.ones(2)

    for batch in DataLoader(Slow(), num_workers=1):
        dist.all_reduce(batch)
        assert batch.sum() == 6.0


def rank_0_saves_while_the_others_wait_in_barrier():
    """Rank 0 writes the checkpoint and is slow about it; the others read it after the barrier.

    Finding: correct
    Ranks: 3
    Group: gloo
    """
    import tempfile

    import torch
    import torch.distributed as dist

    names = [None]
    if dist.get_rank() == 0:
        with tempfile.NamedTemporaryFile(suffix=".pt", delete=False) as file:
            names = [file.name]
    dist.broadcast_object_list(names, src=0)
    if dist.get_rank() == 0:
        time.sleep(1.5)
        torch.save({"step": 3}, names[0])
    dist.barrier()
    assert torch.load(names[0])["step"] == 3
    dist.barrier()
    if dist.get_rank() == 0:
        import os

        os.remove(names[0])
