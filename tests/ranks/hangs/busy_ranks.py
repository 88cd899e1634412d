"""Errors on one rank while another is busy, and waits that are none of MPI's: queues, locks, events, programs."""

import asyncio
import queue
import subprocess
import sys
import threading
import time

import numpy as np


def error_while_another_sleeps(comm):
    """Rank 1 fails at once, and rank 0 sleeps for long: who waits for it debugs the wrong rank.

    Finding: soft
    Ranks: 3
    Words: ValueError, 1
    Unsaid: free
    """
    if comm.rank == 1:
        raise ValueError("no such column")  # here
    if comm.rank == 0:
        time.sleep(40.0)


def error_while_another_computes(comm):
    """Rank 1 fails at once, and rank 0 computes for long.

    Finding: soft
    Words: KeyError, 1
    Unsaid: free
    """
    if comm.rank == 1:
        return {}["weights"]  # here
    until = time.monotonic() + 40.0
    while time.monotonic() < until:
        np.linalg.svd(np.ones((40, 40)))


def error_while_another_waits_in_a_queue(comm):
    """Rank 1 fails at once; rank 0 waits for a queue that nobody fills.

    Finding: soft
    Words: ZeroDivisionError, 1
    Unsaid: free, computes, computing
    """
    if comm.rank == 1:
        return 1 / 0  # here
    queue.Queue().get()


def error_while_one_sleeps_and_one_sums():
    """Rank 2 fails, rank 1 waits for its gradient, and rank 0 sleeps.

    Finding: soft
    Ranks: 3
    Words: IndexError, 2
    Unsaid: free, NCCL
    Group: gloo
    """
    import torch
    import torch.distributed as dist

    if dist.get_rank() == 2:
        return [][0]  # here
    if dist.get_rank() == 0:
        time.sleep(40.0)
    dist.all_reduce(torch.ones(2))


def thread_dies_before_it_sends(comm):
    """The thread that should send raises an error, which ends nothing but the thread.

    Finding: deadlock
    Words: recv, 1
    """

    def send():
        comm.send({}["result"], dest=1)

    if comm.rank == 0:
        sender = threading.Thread(target=send)
        sender.start()
        sender.join()
    else:
        return comm.recv(source=0)  # here


def queue_that_nobody_fills(comm):
    """The thread that should fill the queue has ended, and the others wait in a barrier.

    Finding: soft
    Words: Queue.get, 0
    Unsaid: computes, computing
    """
    if comm.rank == 0:
        jobs = queue.Queue()
        threading.Thread(target=lambda: None).start()
        jobs.get()  # here
    comm.barrier()


def lock_taken_twice(comm):
    """Rank 0 takes a lock that it holds already.

    Finding: soft
    Words: 0, Barrier
    Unsaid: computes, computing
    """
    if comm.rank == 0:
        lock = threading.Lock()
        with lock, lock:  # here
            pass
    comm.Barrier()


def program_that_waits_for_input(comm):
    """Rank 1 starts a program that waits, and waits for it.

    Finding: soft
    Words: 1, barrier
    Unsaid: computes, computing
    """
    if comm.rank == 1:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(40)"], check=True)  # here
    comm.barrier()


def future_that_nobody_fulfils(comm):
    """Rank 0 awaits a future of asyncio to which nobody gives a result.

    Finding: soft
    Words: 0, recv
    Unsaid: computes, computing
    """

    async def wait_for_the_answer():
        await asyncio.get_running_loop().create_future()  # here

    if comm.rank == 0:
        asyncio.run(wait_for_the_answer())
        comm.send("done", dest=1)
    else:
        return comm.recv(source=0)


def failure_agreed_on_by_all(comm):
    """Rank 1 fails, and all ranks agree on it before they go on.

    Finding: correct
    Ranks: 3
    """
    try:
        if comm.rank == 1:
            raise ValueError("no such column")
        well = True
    except ValueError:
        well = False
    assert comm.allreduce(well) == 2


def queue_filled_a_second_later(comm):
    """A timer fills the queue of rank 0, and rank 1 waits in a barrier.

    Finding: correct
    """
    if comm.rank == 0:
        jobs = queue.Queue()
        threading.Timer(1.5, jobs.put, ("job",)).start()
        assert jobs.get() == "job"
    comm.barrier()


def lock_released_after_a_second(comm):
    """A thread of rank 0 holds the lock for a second; then the main program sends.

    Finding: correct
    """
    if comm.rank == 1:
        assert comm.recv(source=0) == "mine"
        return
    lock, taken = threading.Lock(), threading.Event()

    def hold():
        with lock:
            taken.set()
            time.sleep(1.0)

    threading.Thread(target=hold).start()
    taken.wait()
    with lock:
        comm.send("mine", dest=1)


def program_that_takes_a_second(comm):
    """Rank 1 waits for a program that takes a second.

    Finding: correct
    """
    if comm.rank == 1:
        subprocess.run([sys.executable, "-c", "import time; time.sleep(1)"], check=True)
    comm.barrier()


def answer_awaited_with_a_limit(comm):
    """Rank 0 awaits an answer for a second, gives up, and sends.

    Finding: correct
    """

    async def wait_for_the_answer():
        try:
            await asyncio.wait_for(asyncio.get_running_loop().create_future(), 1.0)
        except TimeoutError:
            return "no answer"

    if comm.rank == 0:
        comm.send(asyncio.run(wait_for_the_answer()), dest=1)
    else:
        assert comm.recv(source=0) == "no answer"


def thread_fails_and_the_main_program_sends_anyway(comm):
    """The computation in a thread fails, and the main program sends None for its result.

    Finding: correct
    """
    from concurrent.futures import ThreadPoolExecutor

    def compute():
        time.sleep(0.5)
        return {}["result"]

    if comm.rank == 0:
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(compute)
        comm.send(None if future.exception() else future.result(), dest=1)
    else:
        assert comm.recv(source=0) is None
