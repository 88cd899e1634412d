"""A call that some rank should make and does not.

The class is "missing call" of MPI-CorrBench and part of "call matching" of the MPI Bugs Initiative: a send without its
receive, a receive without its send, a rank that leaves early or goes round a loop once less than the others.
"""

import subprocess
import sys
import time

import numpy as np
from mpi4py import MPI


def question_without_answer(comm):
    """Rank 1 takes the question and goes home, rank 0 waits for an answer that nobody sends.

    Finding: deadlock
    Words: recv, 0, 1
    """
    if comm.rank == 0:
        comm.send("how many cells?", dest=1, tag=1)
        comm.recv(source=1, tag=2)  # here
    else:
        question = comm.recv(source=0, tag=1)
        assert question.endswith("?")


def one_helper_does_not_listen(comm):
    """Rank 0 gives every helper its share, but only rank 1 takes one.

    Finding: deadlock
    Ranks: 3
    Words: Ssend, 0, 2
    """
    share = np.empty(5)
    if comm.rank == 0:
        for helper in range(1, comm.size):
            comm.Ssend(np.arange(5.0) * helper, dest=helper, tag=8)  # here
    elif comm.rank == 1:
        comm.Recv(share, source=0, tag=8)


def rank_without_work_returns(comm):
    """A rank that has no lines to count returns early, and rank 0 still waits for its number.

    Finding: deadlock
    Ranks: 4
    Words: recv, 0, 2
    """
    lines = {0: ["a", "b"], 1: ["c"], 2: [], 3: ["d"]}[comm.rank]
    if not lines:
        return
    if comm.rank > 0:
        comm.send(len(lines), dest=0)
        return
    total = len(lines)
    for source in range(1, comm.size):
        total += comm.recv(source=source)  # here


def sender_starts_at_one(comm):
    """The sender goes through one step less than the receiver.

    Finding: deadlock
    Words: Recv, 0, 1
    """
    steps = 5
    row = np.zeros(3)
    if comm.rank == 1:
        for step in range(1, steps):
            comm.Send(row + step, dest=0)
    else:
        for step in range(steps):
            comm.Recv(row, source=1)  # here


def last_rank_left_out(comm):
    """The condition that should shut out rank 0 also shuts out the last rank.

    Finding: deadlock
    Ranks: 4
    Words: recv, 0, 3
    """
    if 0 < comm.rank < comm.size - 1:
        comm.send(comm.rank**2, dest=0)
    if comm.rank == 0:
        squares = [comm.recv(source=r) for r in range(1, comm.size)]  # here
        assert squares


def one_worker_never_told_to_stop(comm):
    """The master tells all workers but the last to stop; that one waits for a task for ever.

    Finding: deadlock
    Ranks: 4
    Words: recv, 0, 3
    """
    if comm.rank == 0:
        for task in range(6):
            comm.send(task, dest=1 + task % 3)
        for worker in range(1, comm.size - 1):
            comm.send(None, dest=worker)
        return
    while True:
        task = comm.recv(source=0)  # here
        if task is None:
            break


def nobody_reads_the_report(comm):
    """Rank 1 sends a report that rank 0 never receives; it ends because the report is short.

    Finding: luck
    Words: send, 1, 0
    """
    if comm.rank == 1:
        comm.send({"errors": 0}, dest=0, tag=99)  # here
    comm.barrier()


def one_rank_converges_sooner(comm):
    """Rank 1 leaves the loop when its own error is small, and rank 0 goes on exchanging.

    Finding: deadlock
    Words: sendrecv, 0, 1
    """
    error = 1.0
    shrink = 0.5 if comm.rank == 0 else 0.1
    for _ in range(50):
        comm.sendrecv(error, dest=1 - comm.rank, source=1 - comm.rank)  # here
        error *= shrink
        if error < 1e-3:
            break


def every_worker_told_to_stop(comm):
    """The master deals out tasks in turn, and then tells every worker to stop.

    Finding: correct
    Ranks: 4
    """
    if comm.rank == 0:
        for task in range(6):
            comm.send(task, dest=1 + task % 3)
        for worker in range(1, comm.size):
            comm.send(None, dest=worker)
        return
    done = 0
    while comm.recv(source=0) is not None:
        done += 1
    assert done == 2


def borders_with_proc_null(comm):
    """Borders go both ways, and the ranks at the ends talk to nobody on their outer side.

    Finding: correct
    Ranks: 3
    """
    cells = np.full(10, float(comm.rank))
    left = comm.rank - 1 if comm.rank > 0 else MPI.PROC_NULL
    right = comm.rank + 1 if comm.rank < comm.size - 1 else MPI.PROC_NULL
    comm.Sendrecv(cells[-2:-1], dest=right, recvbuf=cells[:1], source=left)
    comm.Sendrecv(cells[1:2], dest=left, recvbuf=cells[-1:], source=right)
    assert cells[0] == max(comm.rank - 1, 0) and cells[-1] == min(comm.rank + 1, comm.size - 1)


def one_rank_runs_a_program(comm):
    """Rank 1 starts another program that takes a second and sends what it printed; the others wait that long.

    Finding: correct
    Ranks: 3
    """
    if comm.rank == 1:
        code = "import time; time.sleep(1); print(6 * 7)"
        answer = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=True).stdout
        for r in (0, 2):
            comm.send(int(answer), dest=r)
    else:
        assert comm.recv(source=1) == 42


def everyone_computes_a_different_time(comm):
    """Both ranks go through the same number of steps, but rank 0 takes much longer over its own.

    Finding: correct
    """
    for step in range(3):
        end = time.perf_counter() + (0.5 if comm.rank == 0 else 0)
        while time.perf_counter() < end:
            np.sin(np.arange(1000)).sum()
        assert comm.sendrecv(step, dest=1 - comm.rank, source=1 - comm.rank) == step


def one_value_too_many(comm):
    """The sender sends the end of the range too, and the receiver stops before it.

    Finding: luck
    Words: Send, 0, 1
    """
    n = 4
    x = np.zeros(1)
    if comm.rank == 0:
        for i in range(n + 1):
            x[0] = i
            comm.Send(x, dest=1, tag=5)  # here
    else:
        for i in range(n):
            comm.Recv(x, source=0, tag=5)
            assert x[0] == i


def error_swallowed_before_the_send(comm):
    """Rank 1 cannot read its number, keeps quiet about it, and skips the send.

    Finding: deadlock
    Ranks: 3
    Words: recv, 0, 1
    """
    text = ["1.5", "n/a", "2.5"][comm.rank]
    try:
        value = float(text)
        if comm.rank != 0:
            comm.send(value, dest=0)
    except ValueError:
        pass
    if comm.rank == 0:
        for r in (2, 1):
            value += comm.recv(source=r)  # here


def borders_go_only_to_the_right(comm):
    """Every rank wants a border from each side, but the borders are only sent to the right.

    Finding: deadlock
    Ranks: 3
    Words: Recv, 0, 1
    """
    cells = np.full(10, float(comm.rank))
    left, right = comm.rank - 1, comm.rank + 1
    if right < comm.size:
        comm.Send(cells[-2:-1], dest=right)
    if left >= 0:
        comm.Recv(cells[:1], source=left)
    if right < comm.size:
        comm.Recv(cells[-1:], source=right)  # here


def large_result_without_a_receiver(comm):
    """Rank 0 only takes the result if the flag says so, and rank 1 sends its four megabytes in any case.

    Finding: deadlock
    Words: Send, 1, 0
    """
    image = np.zeros((1000, 500))
    want_image = False
    if comm.rank == 1:
        comm.Send(image, dest=0, tag=30)  # here
    elif want_image:
        comm.Recv(image, source=1, tag=30)


def rank_without_work_says_so(comm):
    """A rank that has no lines sends an empty list, so that rank 0 hears from everybody.

    Finding: correct
    Ranks: 4
    """
    lines = {0: ["a", "b"], 1: ["c"], 2: [], 3: ["d"]}[comm.rank]
    if comm.rank > 0:
        comm.send(lines, dest=0)
        return
    for source in range(1, comm.size):
        lines += comm.recv(source=source)
    assert len(lines) == 4
