"""Ranks: what a learner gets when all is well, and what they get when something is not. On four real ranks."""

import contextlib
import functools
import io
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import nbclient
import nbformat
import numpy as np
import psutil
import pytest

import course_utils as course
from course_utils import system
from course_utils.checks.sample_answers import Program
from course_utils.errors import CourseError, RankError, RanksGone
from course_utils.machine import _quota, allowed_cores, threads_per_rank
from course_utils.ranks import quiet_notice
from course_utils.ranks.call_limit import CallLimit
from course_utils.ranks.ending import STOPPED_BY_USER, BrokenOff, Ending
from course_utils.ranks.engine import output
from course_utils.ranks.engine.reply import Reply, from_bytes, to_bytes
from course_utils.ranks.failure_report import describe
from course_utils.ranks.offline.stand_ins import WorkerCalls
from course_utils.ranks.offline.worker_client import shared_worker
from course_utils.ranks.processes import exit_status, launch_ranks, ranks_folder
from course_utils.ranks.run import Attempt
from course_utils.syllabus import ROOT
from course_utils.trace.activity import RUNNING, Activity

LATE = Ending.NOT_FINISHED, Ending.TOO_BUSY
"""How a call without end ends, the second on a machine that is much used."""


def who(comm, number=0):
    return comm.rank, comm.size, number


def add_ranks(comm):
    return comm.allreduce(comm.rank)


def test_results_come_in_rank_order_with_each_ranks_own_argument(four_ranks) -> None:
    run = four_ranks.run(who, course.per_rank([10, 11, 12, 13]))
    assert run.results == [(rank, 4, 10 + rank) for rank in range(4)]
    assert run.seconds > 0


def test_a_cached_function_of_a_notebook_travels_with_its_cache_empty(four_ranks) -> None:
    source = """
import functools
import io

@functools.lru_cache(maxsize=7)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)

fibonacci(3)

def cached(comm):
    before = fibonacci.cache_info()
    return fibonacci(20), before.currsize, before.maxsize, fibonacci.__name__
"""
    run = four_ranks.run(Program("cached", "in_a_cell", source).function())
    assert run.results == [(6765, 0, 7, "fibonacci")] * 4
    assert from_bytes(to_bytes(launch_ranks.mpi_library)) is launch_ranks.mpi_library, "imported, it goes by its name"


def test_a_run_may_take_fewer_ranks(four_ranks) -> None:
    assert four_ranks.run(who, ranks=3).results == [(rank, 3, 0) for rank in range(3)]
    assert four_ranks.run(add_ranks, ranks=1).results == [0]


@functools.cache
def factorial(number):
    return number * factorial(number - 1) if number else 1


def test_a_cached_function_of_a_cell_travels_to_the_ranks(four_ranks) -> None:
    assert four_ranks.run(lambda comm: factorial(3 + comm.rank)).results == [6, 24, 120, 720]
    again = from_bytes(to_bytes(factorial))
    assert again(4) == 24 and again.cache_parameters() == factorial.cache_parameters()
    assert from_bytes(to_bytes(shared_worker)) is shared_worker, "what can be imported is not packed"


def test_what_ranks_print_comes_in_rank_order(four_ranks, capsys) -> None:
    four_ranks.run(lambda comm: print(f"here is {comm.rank}"))
    assert capsys.readouterr().out.splitlines() == [f"[rank {r}] here is {r}" for r in range(4)]


def test_output_is_cut_and_the_rest_is_in_a_file(four_ranks, capsys) -> None:
    def talk(comm):
        if comm.rank == 1:
            print("\n".join(f"line {number}" for number in range(3000)))

    four_ranks.run(talk)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1001 and lines[999] == "[rank 1] line 999"
    rest = Path(lines[1000].rpartition(" ")[2]).read_text().splitlines()
    assert rest[0] == "line 1000" and rest[-1] == "line 2999"


def written(monkeypatch, tmp_path, *texts: str) -> tuple[str, str]:
    """What is kept of texts, with limits of 3 lines, 10 characters and 5 in the file; and what the file has."""
    monkeypatch.setattr(output, "MAX_LINES", 3)
    monkeypatch.setattr(output, "MAX_CHARACTERS", 10)
    monkeypatch.setattr(output, "LONGEST_FILE", 5)
    stream = output.Printed(tmp_path / "rest")
    for text in texts:
        assert stream.write(text) == len(text)
    return stream.text(), (tmp_path / "rest").read_text() if (tmp_path / "rest").exists() else ""


def test_a_long_line_is_cut_too_and_the_file_does_not_fill_the_disk(monkeypatch, tmp_path) -> None:
    file = tmp_path / "rest"
    assert written(monkeypatch, tmp_path, "a\nb\n", "c\n") == ("a\nb\nc\n", "")
    assert written(monkeypatch, tmp_path, "a\nb\nc\n", "d") == (
        f"a\nb\nc\n… cut after 3 lines; the rest is in {file}\n",
        "d",
    )
    told = f"12345abcde\n… cut after 10 characters; the rest is in {file}"
    assert written(monkeypatch, tmp_path, "12345", "abcdefg") == (f"{told}\n", "fg")
    cut = f"{told}, up to 5 characters of it\n"
    assert written(monkeypatch, tmp_path, "12345", "abcdefg", "hij", "klm") == (cut, "fghij")
    assert written(monkeypatch, tmp_path, "12345", "abcde\ud800") == (f"{told}\n", "\\ud800")


def never_comes(comm):
    if comm.rank == 0:
        comm.recv(source=3)


def each_waits_for_the_other(comm):
    import numpy as np

    if comm.rank < 2:
        comm.Recv(np.empty(3), source=1 - comm.rank)


def one_skips(comm):
    if comm.rank != 2:
        comm.Barrier()


def other_tags(comm):
    if comm.rank == 0:
        comm.send("hello", dest=1, tag=1)
    if comm.rank == 1:
        comm.recv(source=0, tag=2)


def the_first_takes_it(comm):
    import numpy as np

    if comm.rank == 1:
        comm.Send(np.ones(1), dest=0)
    elif comm.rank == 0:
        comm.Irecv(np.ones(1), source=1)
        comm.Recv(np.ones(1), source=1)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (the_first_takes_it, ("Rank 0 is waiting in Recv(source=1)",)),
        (never_comes, ("Rank 0 is waiting in recv(source=3), line ", "ranks 1, 2 and 3 have returned")),
        (each_waits_for_the_other, ("Rank 0 is waiting in Recv(source=1)", "rank 1 is waiting in Recv(source=0)")),
        (one_skips, ("Ranks 0, 1 and 3 are waiting in Barrier", "rank 2 has returned")),
        (other_tags, ("Rank 1 is waiting in recv(source=0, tag=2)", "A message from rank 0 with tag 1 is there")),
    ],
)
def test_ranks_that_wait_for_ever_are_named_and_work_again(four_ranks, function, words) -> None:
    pids = four_ranks.pids
    with pytest.raises(RankError) as error:
        four_ranks.run(function)
    for piece in ("deadlock: ", *words):
        assert piece in str(error.value)
    assert four_ranks.run(add_ranks).results == [6] * 4
    assert four_ranks.pids == pids


def a_cycle(comm):
    if comm.rank < 3:
        comm.recv(source=(comm.rank + 1) % 3)
    else:
        time.sleep(30)


def test_a_cycle_is_told_while_another_rank_works(four_ranks) -> None:
    with pytest.raises(
        RankError, match="^deadlock: rank 0 is waiting for 1, 1 for 2, 2 for 0\\. .*rank 3 was waiting in time.sleep"
    ):
        four_ranks.run(a_cycle)
    assert four_ranks.run(add_ranks).results == [6] * 4


def other_collectives(comm):
    import numpy as np

    comm.Barrier()
    if comm.rank == 1:
        comm.Allreduce(np.ones(2), np.ones(2))
    else:
        comm.Barrier()


def test_collectives_that_do_not_match_are_told_apart(four_ranks) -> None:
    words = r"^deadlock: collective number 2 is not the same on all ranks \(.*rank 1 Allreduce"
    with pytest.raises(CourseError, match=words):
        four_ranks.run(other_collectives)
    if not four_ranks.healthy:
        four_ranks.restart()
    assert four_ranks.run(add_ranks).results == [6] * 4


def too_little_room(comm):
    import numpy as np

    comm.Bcast(np.zeros(12 if comm.rank == 0 else 8))


def freed_too_early(comm):
    everybody = comm.Split(0)
    everybody.Free()
    everybody.allreduce(1)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (too_little_room, r"rank 0 Bcast\(root=0\) of 12 float64, .* 8 float64\), line \d+\.$"),
        (freed_too_early, r"Null communicator \(it was freed, or this rank is not in it\), line "),
    ],
)
def test_what_mpis_own_words_do_not_say_is_added(four_ranks, function, words: str) -> None:
    with pytest.raises(CourseError, match=words):
        four_ranks.run(function)
    assert four_ranks.run(add_ranks).results == [6] * 4


def helped_by_a_thread(comm):
    if comm.rank == 0:
        thread = threading.Thread(target=lambda: (time.sleep(1.0), comm.send("late", dest=1)))
        thread.start()
        return comm.recv(source=1)
    if comm.rank == 1:
        got = comm.recv(source=0)
        comm.send(got, dest=0)
        return got
    return None


def slow_operation(comm):
    import numpy as np
    from mpi4py import MPI

    slow = MPI.Op.Create(lambda one, other, datatype: time.sleep(1.0))
    comm.Allreduce(np.ones(1), np.ones(1), op=slow)


def different_words_for_one_barrier(comm):
    time.sleep(0.1 * comm.rank)
    if comm.rank == 0:
        comm.Barrier()
    elif comm.rank == 1:
        comm.Ibarrier().Wait()
    else:
        comm.barrier()


def keeps_a_communicator(comm):
    pair = comm.Split(comm.rank // 2)
    if pair.rank == 0:
        pair.send("first", dest=1)
    pair.barrier()
    return pair.recv(source=0) if pair.rank == 1 else None


def test_healthy_programs_are_left_alone(four_ranks) -> None:
    assert four_ranks.run(helped_by_a_thread).results[:2] == ["late", "late"]
    assert four_ranks.run(slow_operation).results == [None] * 4
    assert four_ranks.run(different_words_for_one_barrier).results == [None] * 4
    assert four_ranks.run(keeps_a_communicator).results == [None, "first", None, "first"]


def test_the_error_of_the_rank_that_raised_comes_first(four_ranks) -> None:
    def one_raises(comm):
        if comm.rank == 2:
            raise ValueError("not like this")
        comm.Barrier()

    with pytest.raises(RankError) as error:
        four_ranks.run(one_raises)
    assert error.value.ending == Ending.RAISED
    raised, meanwhile = str(error.value).split(". Meanwhile, ")
    assert raised.startswith("rank 2 raised ValueError: not like this, line ")
    assert meanwhile.startswith("ranks 0, 1 and 3 are waiting in ")
    assert four_ranks.run(add_ranks).results == [6] * 4


def test_a_message_left_over_never_reaches_the_next_run(four_ranks) -> None:
    def leaves_one_behind(comm):
        if comm.rank == 0:
            comm.send("old", dest=1)

    def receives(comm):
        if comm.rank == 0:
            comm.send("new", dest=1)
        return comm.recv(source=0) if comm.rank == 1 else None

    four_ranks.run(leaves_one_behind)
    assert four_ranks.run(receives).results[1] == "new"


def test_a_collective_that_the_root_made_alone_does_not_disturb_the_next_run(four_ranks) -> None:
    def alone(comm):
        if comm.rank == 0:
            comm.bcast("old", root=0)

    four_ranks.run(alone)  # it returns: the root has sent what nobody receives
    assert four_ranks.run(lambda comm: comm.bcast(comm.rank + 7, root=0)).results == [7] * 4


@pytest.mark.parametrize("name", ["exit", "recursion", "result"])
def test_odd_ends_cost_nothing(four_ranks, name) -> None:
    def exits(comm):
        if comm.rank == 1:
            sys.exit()

    def without_end(comm):
        return without_end(comm)

    def unpicklable(comm):
        return threading.Lock()

    function, words = {
        "exit": (exits, "rank 1 raised SystemExit"),
        "recursion": (without_end, "RecursionError"),
        "result": (unpicklable, "cannot be sent"),
    }[name]
    with pytest.raises(RankError, match=words):
        four_ranks.run(function)
    assert four_ranks.run(add_ranks).results == [6] * 4


def test_an_endless_loop_is_stopped_and_its_line_named(four_ranks) -> None:
    def loop(comm):
        while True:
            pass

    attempt = four_ranks.attempt(loop, [()] * 4, limit=1.0)
    assert attempt.ending in LATE
    assert all(reply.kind == "interrupted" and reply.error.line in attempt.trouble for reply in attempt.replies)
    assert four_ranks.run(add_ranks).results == [6] * 4


def test_a_loop_that_swallows_interrupts_costs_the_ranks_and_no_more(four_ranks) -> None:
    def stubborn(comm):
        while comm.rank == 0:
            with contextlib.suppress(BaseException):
                time.sleep(0.1)

    attempt = four_ranks.attempt(stubborn, [()] * 4, limit=0.1)
    assert attempt.ending == Ending.RANK_ENDED and "did not react when told to stop" in attempt.trouble
    assert four_ranks.run(add_ranks).results == [6] * 4


def test_a_timer_of_the_notebooks_own_ends_a_call_and_costs_no_rank(four_ranks, monkeypatch) -> None:
    def ring_the_bell(number, frame):
        raise TimeoutError("the learner's own")

    def tell_that_it_runs(self, observation, replies) -> None:
        os.kill(os.getpid(), signal.SIGUSR1)

    before = signal.signal(signal.SIGUSR1, ring_the_bell)
    monkeypatch.setattr(quiet_notice.QuietNotice, "observe", tell_that_it_runs)
    try:
        with pytest.raises(TimeoutError):
            four_ranks.run(lambda comm: comm.rank == 1 and comm.recv(source=0))
    finally:
        monkeypatch.undo()
        signal.signal(signal.SIGUSR1, before)
    assert four_ranks.healthy and four_ranks.run(add_ranks).results == [6] * 4


def test_ranks_that_another_notebook_has_ended_are_replaced_before_an_attempt(four_ranks, capsys) -> None:
    """What course.check of one notebook does when the answer of another has ended a rank."""
    os.kill(four_ranks.pids[2], signal.SIGKILL)
    while not four_ranks.connection.control.dead():
        time.sleep(0.01)
    attempt = four_ranks.attempt(add_ranks, [()] * 4)
    assert attempt.ending == Ending.RETURNED and attempt.run.results == [6] * 4
    told = " ".join(capsys.readouterr().out.split())
    assert "The ranks had ended since the last cell. New ranks were started." in told
    assert "still using" not in told


def test_ranks_that_this_notebook_has_stopped_are_not_replaced() -> None:
    with contextlib.redirect_stdout(io.StringIO()):
        ranks = course.start(1)
    ranks.stop()
    with pytest.raises(RanksGone, match="were stopped"):
        ranks.attempt(add_ranks, [()])


def endless() -> None:
    while True:
        pass


def test_calls_that_need_one_rank_travel_together(four_ranks) -> None:
    numbers = [1]
    tasks = [(divmod, (7, 2)), (divmod, (1, 0)), (numbers.append, (2,)), (print, ("here",)), (str.upper, ("end",))]
    done = four_ranks.attempt_each(tasks)
    assert [attempt.replies[0].value for attempt in done] == [(3, 1), None, None, None, "END"]
    assert done[1].trouble.startswith("your function raised ZeroDivisionError") and not done[4].trouble
    assert [attempt.ending == Ending.RAISED for attempt in done] == [False, True, False, False, False]
    assert done[3].replies[0].output == "here\n" and done[4].replies[0].arguments == ("end",)


def test_calls_that_travel_together_end_with_one_that_takes_too_long(four_ranks) -> None:
    done = four_ranks.attempt_each([(abs, (-1,)), (endless, ()), (abs, (-2,))], limit=1.0)
    assert [attempt.trouble is None for attempt in done] == [True, False]
    assert done[1].ending in LATE and done[1].replies[0].error.line in done[1].trouble
    slow = four_ranks.attempt_each([(time.sleep, (0.01,))] * 3, seconds=0.0)
    assert len(slow) == 1, "the time was up"


def test_a_call_that_costs_its_rank_is_looked_for_among_those_that_travelled_with_it(four_ranks) -> None:
    assert four_ranks.attempt_each([(abs, (-1,)), (os._exit, (3,))]) == []
    assert four_ranks.healthy and four_ranks.run(add_ranks).results == [6] * 4


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "rank 2 was ended by signal 9, SIGKILL."),
        (lambda: os._exit(7), "rank 2 ended itself, with exit code 7."),
    ],
    ids=["kill -9", "os._exit"],
)
def test_a_rank_that_dies_is_named_with_the_cause_and_new_ones_come(four_ranks, end, words) -> None:
    def die(comm):
        if comm.rank == 2:
            end()
        comm.Barrier()

    with pytest.raises(RanksGone) as error:
        four_ranks.run(die)
    assert str(error.value) == f"{words} `ranks.restart()` starts new ranks, without the variables of the old ones."
    assert four_ranks.restart().run(add_ranks).results == [6] * 4


def test_want_of_memory_is_told_from_a_kill(tmp_path: Path, monkeypatch) -> None:
    set_of_ranks = ranks_folder.RanksFolder(tmp_path)
    set_of_ranks.write_facts(memory_kills=3)
    (tmp_path / "ended-77").write_text("137\n")
    for kills, words in ((3, "was ended by signal 9, SIGKILL"), (4, "there was no memory left")):
        monkeypatch.setattr(exit_status, "memory_kills", lambda kills=kills: kills)
        assert words in exit_status.describe_end(set_of_ranks, {2: 77})


@pytest.mark.parametrize("used", [False, True])
def test_nccl_is_named_only_where_a_rank_that_a_library_ends_has_used_it(tmp_path: Path, used: bool) -> None:
    folder = ranks_folder.RanksFolder(tmp_path)
    (tmp_path / "ended-77").write_text("134\n")
    if used:
        folder.nccl_file(2).touch()
    said = exit_status.describe_end(folder, {2: 77})
    assert said.startswith("rank 2 was ended by signal 6, SIGABRT: a library gave up.") and ("NCCL" in said) == used


def test_where_a_rank_is_can_be_asked_from_outside(four_ranks) -> None:
    faults = four_ranks.connection.folder.path / "fault-1"
    os.kill(four_ranks.pids[1], signal.SIGUSR1)
    deadline = time.monotonic() + 10
    while "most recent call first" not in faults.read_text() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert "most recent call first" in faults.read_text()
    assert four_ranks.run(add_ranks).results == [6] * 4


def test_a_rank_that_dies_between_two_runs_is_named_too(four_ranks) -> None:
    os.kill(four_ranks.pids[1], signal.SIGKILL)
    time.sleep(0.5)
    with pytest.raises(RanksGone, match=r"rank 1 was ended by signal 9, SIGKILL. `ranks.restart\(\)` starts new ranks"):
        four_ranks.run(add_ranks)
    assert four_ranks.restart().run(add_ranks).results == [6] * 4


def breaks_mpi(comm):
    if comm.rank == 0:
        comm.inner.Free()  # what an error inside MPI leaves behind: from now on its calls fail


@pytest.mark.parametrize("call", [lambda ranks: ranks.run(who), lambda ranks: ranks.execute("1")], ids=["run", "px"])
def test_a_rank_whose_mpi_is_broken_is_named_and_the_next_start_brings_new_ones(four_ranks, call) -> None:
    four_ranks.run(breaks_mpi)
    with pytest.raises(RanksGone, match=r"rank 0 can no longer use MPI: an earlier call has broken it. `ranks.re"):
        call(four_ranks)
    assert not four_ranks.healthy
    assert course.start(4).run(add_ranks).results == [6] * 4


def test_a_check_is_not_blamed_for_an_mpi_that_an_earlier_answer_broke(four_ranks) -> None:
    four_ranks.run(breaks_mpi)
    old = four_ranks.pids
    attempt = four_ranks.attempt(add_ranks, [()] * 4)
    assert attempt.run.results == [6] * 4 and four_ranks.pids != old


def floods_and_waits(comm, messages: int) -> None:
    for _ in range(messages):
        comm.Send(np.zeros(1), dest=(comm.rank + 1) % comm.size, tag=1)
    comm.Recv(np.zeros(1), source=(comm.rank + 2) % comm.size, tag=2)


def test_messages_without_number_that_nobody_received_cost_the_ranks_and_a_few_do_not(four_ranks) -> None:
    old = four_ranks.pids
    assert not four_ranks.attempt(floods_and_waits, [(100,)] * 4).afterwards and four_ranks.pids == old
    attempt = four_ranks.attempt(floods_and_waits, [(20_000,)] * 4)
    assert attempt.ending == Ending.DEADLOCK and attempt.afterwards
    assert set(old).isdisjoint(four_ranks.pids) and four_ranks.run(add_ranks).results == [6] * 4


def fills_memory(comm) -> None:
    kept = [np.ones(100) for _ in range(200_000)]
    comm.Recv(kept[0], source=(comm.rank + 1) % comm.size)


@pytest.mark.skipif(not system.LINUX, reason="elsewhere the C library gives memory back by itself")
def test_what_an_answer_has_filled_of_the_memory_goes_back_when_it_is_broken_off(four_ranks) -> None:
    def resident() -> int:
        return max(psutil.Process(pid).memory_info().rss for pid in four_ranks.pids)

    before = resident()
    assert "deadlock" in four_ranks.attempt(fills_memory, [()] * 4).trouble
    assert resident() - before < 60e6, "200,000 arrays of 800 bytes each take 160 MB and more"


def test_restart_brings_new_ranks(four_ranks, capsys) -> None:
    before = four_ranks.pids
    four_ranks.restart()
    assert set(before).isdisjoint(four_ranks.pids)
    assert "The variables of the old ranks are lost." in capsys.readouterr().out
    assert four_ranks.run(add_ranks).results == [6] * 4


def test_status_says_what_each_rank_does(four_ranks, capsys) -> None:
    four_ranks.run(add_ranks)
    four_ranks.status()
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == [f"rank {rank}" for rank in range(4)]
    assert all(line.endswith("free") for line in lines)


def test_ranks_times_threads_fit_the_cores(four_ranks) -> None:
    threads = four_ranks.run(lambda comm: int(os.environ["OMP_NUM_THREADS"])).results
    assert threads == [threads_per_rank(4)] * 4
    assert threads_per_rank(1) <= allowed_cores()


def test_a_quota_counts_as_cores(tmp_path: Path) -> None:
    group = tmp_path / "cgroup"
    group.write_text("0::/user/me\n")
    (tmp_path / "fs/user/me").mkdir(parents=True)
    (tmp_path / "fs/user/cpu.max").write_text("150000 100000\n")
    (tmp_path / "fs/user/me/cpu.max").write_text("max 100000\n")
    assert _quota(group, tmp_path / "fs") == 1.5


@pytest.mark.parametrize("number", [0, -1, 64, "4", 2.0, True])
def test_a_number_that_makes_no_sense_is_rejected_in_a_line(number) -> None:
    with pytest.raises(CourseError, match="start\\("):
        launch_ranks.check_number(number, cores=2)


def test_the_launcher_beside_python_goes_before_a_foreign_one(tmp_path: Path, monkeypatch) -> None:
    foreign = tmp_path / "mpiexec"
    foreign.write_text("#!/bin/sh\nexit 1\n")
    foreign.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert Path(launch_ranks.find_mpiexec()).parent == Path(sys.executable).parent


def test_without_a_launcher_there_is_a_line_that_says_what_to_do(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CourseError, match="pip install mpich"):
        launch_ranks.find_mpiexec()


@pytest.mark.parametrize("wrong", ["who", None, 3])
def test_run_needs_a_function(four_ranks, wrong) -> None:
    with pytest.raises(CourseError, match="run needs a function"):
        four_ranks.run(wrong)


def test_arguments_that_do_not_fit_are_rejected_before_anything_runs(four_ranks) -> None:
    with pytest.raises(CourseError, match="2 values for 4 ranks"):
        four_ranks.run(who, course.per_rank([1, 2]))
    with pytest.raises(CourseError, match="9 ranks were asked for; there are 4"):
        four_ranks.run(who, ranks=9)
    with pytest.raises(CourseError, match='"gloo" and "nccl" are known here'):
        four_ranks.run(who, backend="mpi")


def test_the_same_number_gives_the_same_ranks_another_number_new_ones(four_ranks, capsys) -> None:
    assert course.start(4) is four_ranks
    two = course.start(2)
    assert "Stopped the 4 ranks that had been started before" in capsys.readouterr().out
    assert two.run(add_ranks).results == [1, 1]
    with pytest.raises(RanksGone, match="were stopped"):
        four_ranks.run(add_ranks)


TAKES_OVER = """
import course_utils as course
ranks = course.start(4)
print("processes", *ranks.pids)
print(ranks.run(lambda comm: comm.allreduce(1)).results)
ranks.stop()
"""


def test_another_process_takes_running_ranks_over(four_ranks) -> None:
    answer = subprocess.run([sys.executable, "-c", TAKES_OVER], capture_output=True, text=True, timeout=120, check=True)
    assert f"processes {' '.join(map(str, four_ranks.pids))}" in answer.stdout
    assert "Another open notebook uses the same ranks" in answer.stdout
    assert "[4, 4, 4, 4]" in answer.stdout
    assert "Another notebook is still using these ranks, so they keep running." in answer.stdout
    assert four_ranks.run(add_ranks).results == [6] * 4, "the ranks outlive the one that had only borrowed them"


@pytest.mark.parametrize("call", [lambda ranks: ranks.run(who), lambda ranks: ranks.execute("1")], ids=["run", "px"])
def test_ranks_that_were_ended_from_outside_are_said_to_be_gone(four_ranks, call) -> None:
    four_ranks.connection.folder.end()
    with pytest.raises(RanksGone, match=r"ended from outside. `ranks.restart\(\)` brings new ones"):
        call(four_ranks)
    assert not four_ranks.healthy
    assert four_ranks.restart().run(add_ranks).results == [6] * 4


def test_a_relative_place_for_ranks_stays_where_it_is(monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COURSE_RUNTIME", "here")
    assert ranks_folder.runtime_root() == tmp_path / "here"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COURSE_RUNTIME", "~/there")
    assert ranks_folder.runtime_root() == tmp_path / "there"


OWN_SET = """
import course_utils as course
ranks = course.start(2)
print(ranks.run(lambda comm: comm.allreduce(1)).results)
ranks.stop()
"""


def test_two_sets_at_once_keep_out_of_each_others_way(four_ranks) -> None:
    answer = subprocess.run([sys.executable, "-c", OWN_SET], capture_output=True, text=True, timeout=120, check=True)
    assert "[2, 2]" in answer.stdout and "shared" not in answer.stdout
    assert four_ranks.run(add_ranks).results == [6] * 4


def test_a_folder_is_private_and_its_files_too(four_ranks) -> None:
    here = four_ranks.connection.folder.path
    assert here.stat().st_mode & 0o077 == 0
    for name in ("controller.log", "ranks.log", "activity-0"):
        assert (here / name).stat().st_mode & 0o077 == 0


def test_a_runtime_folder_of_somebody_else_is_rejected(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("COURSE_RUNTIME", str(tmp_path))
    monkeypatch.setattr(ranks_folder.os, "getuid", lambda: os.geteuid() + 1)
    with pytest.raises(CourseError, match="belongs to a different user. Set COURSE_RUNTIME"):
        ranks_folder.runtime_root()


def test_a_runtime_folder_that_cannot_be_is_said_in_a_line(monkeypatch) -> None:
    monkeypatch.setenv("COURSE_RUNTIME", "/dev/null/ranks")
    with pytest.raises(CourseError, match="Not a directory.*Set COURSE_RUNTIME"):
        ranks_folder.RanksFolder.new()


def test_a_full_disk_is_said_in_a_line(tmp_path: Path, monkeypatch) -> None:
    def full(*args: object, **kwargs: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setenv("COURSE_RUNTIME", str(tmp_path))
    monkeypatch.setattr(ranks_folder.tempfile, "mkdtemp", full)
    with pytest.raises(CourseError, match="No space left on device.*Make room"):
        ranks_folder.RanksFolder.new()


def test_what_cannot_be_sent_is_said_so(four_ranks) -> None:
    lock = threading.Lock()
    with pytest.raises(CourseError, match="uses `lock` from the notebook, which cannot be sent to the ranks"):
        four_ranks.run(lambda comm: lock)
    with pytest.raises(CourseError, match="something from the notebook that cannot be sent to the ranks"):
        four_ranks.run(lambda comm, held=lock: held)
    assert four_ranks.run(add_ranks).results == [6] * 4


def leaves_a_message_behind(comm):
    if comm.rank == 0:
        comm.send("old", dest=1)


def takes_a_message(comm):
    if comm.rank == 0:
        comm.send("new", dest=1)
    return comm.recv(source=0) if comm.rank == 1 else None


def test_a_message_that_nobody_received_does_not_reach_another_notebook(four_ranks) -> None:
    from course_utils.ranks.call_lock import call_lock

    with call_lock(four_ranks.connection.folder) as mine:
        mine.clean()
    four_ranks.run(leaves_a_message_behind)
    with call_lock(four_ranks.connection.folder) as other:  # as a second notebook would see it
        assert other.communicator > mine.communicator
    assert four_ranks.run(takes_a_message).results[1] == "new"


def test_a_communicator_is_given_up_unless_its_call_ended_well(four_ranks) -> None:
    from course_utils.ranks.call_lock import call_lock

    numbers = []
    for clean in (True, True, False, True):
        with call_lock(four_ranks.connection.folder) as mine:
            numbers.append(mine.communicator)
            if clean:
                mine.clean()
    first = numbers[0]
    assert numbers == [first, first, first, first + 1]


@pytest.mark.parametrize(("disabled", "shown"), [("", True), ("1", False)])
def test_a_progress_bar_shows_what_takes_long_unless_it_is_disabled(disabled, shown) -> None:
    program = (
        "from course_utils.progress_bar import ProgressBar\n"
        "with ProgressBar('3 ranks at work', delay=0.0) as bar:\n"
        "    bar.refresh()\n"
    )
    environment = {**os.environ, "TQDM_DISABLE": disabled}
    said = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ("3 ranks at work" in said.stderr) == shown


def test_a_notebook_that_showed_a_bar_can_be_saved_and_opened_again() -> None:
    cell = (
        "from course_utils.progress_bar import ProgressBar\n"
        "with ProgressBar('3 ranks at work', delay=0.0) as bar:\n"
        "    bar.refresh()\n"
    )
    pages = [cell + "    raise KeyError", cell]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(page) for page in pages])
    environment = {**os.environ, "TQDM_DISABLE": "", "PYTHONPATH": str(ROOT)}
    nbclient.NotebookClient(notebook, timeout=60, allow_errors=True).execute(env=environment)
    for shown in (notebook.cells[0].outputs[0], notebook.cells[1].outputs[0]):
        assert shown["data"] == {"text/plain": "", "text/html": ""}, "no widget, which would be gone, and no old text"


def test_a_run_that_was_broken_off_is_not_one_that_went_well() -> None:
    replies = [Reply(rank, "returned") for rank in range(2)]
    assert describe(replies) is None
    attempt = Attempt.of(replies, STOPPED_BY_USER)
    assert (attempt.ending, attempt.run) == (Ending.STOPPED, None) and attempt.trouble.startswith(STOPPED_BY_USER.text)


def test_ranks_that_do_not_start_on_a_full_disk_say_so(tmp_path: Path, monkeypatch) -> None:
    folder = ranks_folder.RanksFolder(tmp_path / "ranks-1")
    folder.path.mkdir()
    assert launch_ranks.log_of(folder) == ""
    monkeypatch.setattr(launch_ranks.shutil, "disk_usage", lambda path: SimpleNamespace(free=0))
    assert launch_ranks.log_of(folder) == (
        f"Nothing can be written to {tmp_path} (No space left on device). Make room, or set COURSE_RUNTIME elsewhere."
    )
    monkeypatch.setenv("COURSE_SHARED", str(tmp_path))
    assert f"COURSE_SHARED={tmp_path}" in launch_ranks.log_of(folder)


def test_a_call_waits_for_what_is_imported_in_the_background(four_ranks, tmp_path) -> None:
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(1)\ndone = True\n")

    def find_it(comm, folder):
        import sys

        sys.path.append(folder)

    def imported(comm):
        import sys

        return hasattr(sys.modules["slow_to_import"], "done")

    four_ranks.run(find_it, str(tmp_path))
    four_ranks.connection.submit("import_in_background", dict.fromkeys(range(4), ("slow_to_import",)))
    assert four_ranks.run(imported).results == [True] * 4


def test_a_call_that_first_waits_long_for_an_import_has_its_whole_time(four_ranks, tmp_path) -> None:
    (tmp_path / "very_slow_to_import.py").write_text("import time\nlate = time.monotonic() + 3\n")
    with (tmp_path / "very_slow_to_import.py").open("a") as module:
        module.write("while time.monotonic() < late:\n    pass\n")
    four_ranks.run(lambda comm, folder: sys.path.append(folder), str(tmp_path))
    four_ranks.connection.submit("import_in_background", dict.fromkeys(range(4), ("very_slow_to_import",)))
    attempt = four_ranks.attempt(lambda comm: comm.allreduce(1), [()] * 4, limit=0.2)
    assert attempt.ending == Ending.RETURNED, attempt.trouble


def computes(comm, seconds: float) -> float:
    began = time.process_time()
    while time.process_time() < began + seconds:
        pass
    return seconds


def test_a_busy_machine_does_not_end_a_call_and_an_endless_one_ends_all_the_same(four_ranks) -> None:
    busy = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(busy) for _ in range(2 * len(system.cores()))]
    try:
        slow = four_ranks.attempt(computes, [(0.5,)] * 4, limit=1.5)
        without_end = four_ranks.attempt(computes, [(1e9,)] * 4, limit=1.0)
        alone = WorkerCalls().attempt(endless, [()], limit=0.5)
    finally:
        for process in others:
            process.kill()
            process.wait()
    assert slow.ending == Ending.RETURNED, slow.trouble
    assert without_end.ending in LATE and "were computing" in without_end.trouble
    assert alone.ending in LATE


def test_who_sleeps_is_ended_in_the_end() -> None:
    attempt = WorkerCalls().attempt(time.sleep, [(60.0,)], limit=0.1)
    assert attempt.ending == Ending.NOT_FINISHED and "busy" not in attempt.trouble


def test_ranks_that_have_not_begun_are_not_to_blame() -> None:
    limit = CallLimit(0.0, lambda rank: 0.0, lambda rank: False)
    limit._submitted -= 1000
    cause = limit.reason_to_end({0: Activity(RUNNING, 1, 0.0, "")})
    assert cause is not None and cause.ending == Ending.TOO_BUSY


def test_a_call_that_only_a_busy_machine_has_kept_from_its_end_is_told_so() -> None:
    limit = CallLimit(0.01, lambda rank: 0.0, lambda rank: True)
    at_work = {0: Activity(RUNNING, 1, 0.0, "", begun=True)}
    while not (cause := limit.reason_to_end(at_work)):
        time.sleep(0.01)
    assert cause == BrokenOff(
        Ending.TOO_BUSY, "not finished after 0 s, but the machine was busy and gave it 0 s of computing time."
    )


def test_what_was_left_on_a_duplicate_meets_no_later_run(four_ranks) -> None:
    def leaves_a_message(comm):
        duplicate = comm.Dup()
        if comm.rank == 0:
            duplicate.send(1, dest=1)

    def receives(comm):
        return comm.recv(source=0) if comm.rank == 1 else None

    for _ in range(3):
        four_ranks.run(leaves_a_message)
        with pytest.raises(RankError, match="deadlock"):
            four_ranks.run(receives)
