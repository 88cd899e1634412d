"""Threads of the learner's own: some outlive the function that starts them, some wait for what never arrives.

A rank whose thread still lives may send later, so that nobody can know that another rank waits in vain.
"""

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np


def listener_thread_hears_nothing(comm):
    """Rank 0 listens in a thread and joins it, but rank 1 returns without a word.

    Finding: deadlock
    Words: recv, 0, 1
    """
    heard = []

    def listen():
        heard.append(comm.recv(source=1, tag=4))  # here

    if comm.rank == 0:
        listener = threading.Thread(target=listen)
        listener.start()
        listener.join()  # here
        return heard


def pool_asks_for_one_answer_too_many(comm):
    """A pool of threads collects an answer from each rank, and rank 2 gives none.

    Finding: deadlock
    Ranks: 3
    Words: recv, 0, 2
    """
    if comm.rank == 0:
        with ThreadPoolExecutor(2) as pool:
            return list(pool.map(lambda source: comm.recv(source=source), [1, 2]))  # here
    if comm.rank == 1:
        comm.send("one", dest=0)


def each_joins_its_receiver_before_it_sends(comm):
    """Both ranks receive in a thread, which they join before they send.

    Finding: deadlock
    Words: Recv, 0, 1
    """
    other, got = 1 - comm.rank, np.empty(3)
    receiver = threading.Thread(target=lambda: comm.Recv(got, source=other))  # here
    receiver.start()
    receiver.join()  # here
    comm.Send(np.full(3, comm.rank + 1.0), dest=other)


def timer_sends_with_the_tag_of_another_step(comm):
    """A timer sends the state of step 7 later, and rank 1 waits for that of step 8; then no thread is left.

    Finding: deadlock
    Words: recv, tag=8, 7
    """
    if comm.rank == 0:
        threading.Timer(1.0, comm.send, ("state", 1, 7)).start()
    else:
        return comm.recv(source=0, tag=8)  # here


def lock_kept_while_the_thread_receives(comm):
    """The thread holds the lock while it receives, and the main program needs it to send the question.

    Finding: deadlock
    Words: recv, 0, 1
    """
    if comm.rank == 1:
        comm.send(comm.recv(source=0, tag=1) + 1, dest=0, tag=2)  # here
        return
    lock = threading.Lock()

    def answers():
        with lock:
            comm.recv(source=1, tag=2)  # here

    receiver = threading.Thread(target=answers, daemon=True)
    receiver.start()
    time.sleep(0.2)
    with lock:  # here
        comm.send(41, dest=1, tag=1)
    receiver.join()


def reminder_runs_while_both_receive(comm):
    """Both ranks receive first; rank 0 has a timer of its own, of which nobody knows whether it will send.

    Finding: soft
    Words: recv, 0, 1
    """
    reminder = threading.Timer(20.0, print, ("still waiting",))
    if comm.rank == 0:
        reminder.start()
    try:
        comm.recv(source=1 - comm.rank)  # here
    finally:
        reminder.cancel()
    comm.send("my turn", dest=1 - comm.rank)


def timer_sends_when_its_rank_has_returned(comm):
    """Rank 0 leaves the function at once, and its timer sends two seconds later.

    Finding: correct
    Ranks: 3
    """
    if comm.rank == 0:
        threading.Timer(2.0, comm.send, ("late", 1)).start()
    if comm.rank == 1:
        assert comm.recv(source=0) == "late"


def pool_is_left_with_work_to_do(comm):
    """Rank 1 hands a slow job to a pool and does not wait for it; the job sends its result itself.

    Finding: correct
    """

    def slow_job(number):
        time.sleep(1.5)
        comm.Send(np.full(4, number), dest=0, tag=3)

    if comm.rank == 1:
        pool = ThreadPoolExecutor(1)
        pool.submit(slow_job, 2.5)
        pool.shutdown(wait=False)
    else:
        got = np.empty(4)
        comm.Recv(got, source=1, tag=3)
        assert got.sum() == 10.0


def pool_collects_an_answer_from_each(comm):
    """A pool of threads collects an answer from each rank; the last rank takes a second for it.

    Finding: correct
    Ranks: 4
    """
    if comm.rank == 0:
        with ThreadPoolExecutor(3) as pool:
            assert list(pool.map(lambda source: comm.recv(source=source), [1, 2, 3])) == [1, 4, 9]
        return
    if comm.rank == 3:
        time.sleep(1.0)
    comm.send(comm.rank**2, dest=0)


def each_sends_while_its_thread_receives(comm):
    """Both ranks receive in a thread, send meanwhile, and join the thread at the end.

    Finding: correct
    """
    other, got = 1 - comm.rank, np.empty(300_000)
    receiver = threading.Thread(target=lambda: comm.Recv(got, source=other))
    receiver.start()
    comm.Send(np.full(300_000, comm.rank + 1.0), dest=other)
    receiver.join()
    assert got[0] == other + 1.0


def daemon_answers_those_who_ask(comm):
    """A thread of the last rank says that it is alive until all have said good-bye, while the rank has returned.

    Finding: correct
    Ranks: 4
    """
    server = comm.size - 1

    def answers():
        guests = comm.size - 1
        while guests:
            sender, question = comm.recv(tag=1)
            if question == "bye":
                guests -= 1
            else:
                comm.send("alive", dest=sender, tag=2)

    if comm.rank == server:
        threading.Thread(target=answers, daemon=True).start()
        return
    for _ in range(3):
        comm.send((comm.rank, "well?"), dest=server, tag=1)
        assert comm.recv(source=server, tag=2) == "alive"
        time.sleep(0.2)
    comm.send((comm.rank, "bye"), dest=server, tag=1)


def thread_fills_the_queue_of_the_main_program(comm):
    """A thread receives and fills a queue, from which the main program takes; the first result is late.

    Finding: correct
    """
    if comm.rank == 1:
        for step in range(3):
            time.sleep(0.5)
            comm.send(step, dest=0)
        comm.send(None, dest=0)
        return
    results: queue.Queue = queue.Queue()

    def receive():
        while (result := comm.recv(source=1)) is not None:
            results.put(result)
        results.put(None)

    threading.Thread(target=receive).start()
    assert list(iter(results.get, None)) == [0, 1, 2]


def reminder_cancelled_when_the_late_rank_arrives(comm):
    """Rank 0 would abort after a long time; the others are only a second and a half late.

    Finding: correct
    Ranks: 3
    """
    reminder = threading.Timer(30.0, comm.Abort, (1,))
    if comm.rank == 0:
        reminder.start()
    if comm.rank == 2:
        time.sleep(1.5)
    comm.barrier()
    reminder.cancel()
