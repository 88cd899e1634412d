"""Programs with the mistakes that people make (`hangs/`): the learner hears of each, and never of a correct one."""

import contextlib
import io
import os
import signal
import sys
import tempfile
import textwrap
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell

from course_utils.errors import CourseError, RankError, RanksGone
from course_utils.ranks import quiet_notice
from course_utils.ranks.hang_detector import Observation
from course_utils.ranks.processes.fault_dump import last_line, learner_line
from course_utils.ranks.px_magic import register
from course_utils.trace.activity import RUNNING, Activity
from course_utils.trace.standing import Standing
from workshop.bench.hangs import modules, observe, programs, reaches_the_learner, torch_is_there, undisturbed

CLASSES = {module.__name__.removeprefix("hangs_"): programs(module) for module in modules()}
EVERY = 6
"""`make test` takes every sixth program of a class, `make test-all` every second, `make test-weekly` the others."""
UNNOTICED = {
    # Which of two messages comes first: only who wrote the program knows whether that matters.
    "first_minus_second",
    "early_bird_saves_the_day",
    "phases_share_a_tag",
    "probes_one_and_takes_another",
    "order_of_arrival_taken_for_rank",
    "last_writer_wins",
    "two_ranks_put_into_the_same_place",
    "counter_read_and_written_in_two_steps",
    # Who reads an array leaves no trace.
    "irecv_read_too_early",
    "sum_read_before_wait",
    "result_of_get_read_before_the_fence",
    "received_tensor_used_before_wait",
    # What a run leaves behind once does no harm; a communicator is noticed when a loop makes it.
    "split_not_freed",
    "only_rank_0_frees_in_the_end",
    "request_freed_and_forgotten",
    "column_type_kept",
    # It goes well with this gloo, and with this MPI, whose PROC_NULL is -1.
    "new_group_called_by_its_members_only",
    "rank_minus_one_is_nobody",
}
"""What the course need not tell, and why: with other timing, some of these races end in a deadlock, which it tells."""


def cases() -> list:
    found = []
    for name, own in CLASSES.items():
        for place, program in enumerate(own):
            marks = [] if place % EVERY == 0 else [pytest.mark.weekly if place % 2 else pytest.mark.long]
            found.append(pytest.param(program, id=f"{name}-{program.name}", marks=marks))
    return found


@pytest.fixture(autouse=True)
def soon(monkeypatch) -> None:
    monkeypatch.setattr(quiet_notice, "QUIET_SECONDS", 4.0)


@pytest.mark.parametrize("program", cases())
def test_a_mistake_is_told_and_a_correct_program_is_not_disturbed(four_ranks, program) -> None:
    if program.backend or program.own_group:
        four_ranks.run(torch_is_there)
        torch_is_there()
    told = observe(four_ranks, program)
    if program.finding == "correct":
        assert undisturbed(told), told
    else:
        assert reaches_the_learner(program, told) or program.name in UNNOTICED, told
    assert program.backend or program.own_group or told.again is not None  # the ranks live on


def test_there_are_enough_of_them() -> None:
    every = [program for own in CLASSES.values() for program in own]
    assert len(every) >= 120 and sum(program.finding == "correct" for program in every) >= 40
    assert {program.name for program in every} >= UNNOTICED
    assert len({program.name for program in every}) == len(every)


def head_to_head(comm):
    other = 1 - comm.rank
    comm.Send(np.zeros(3), dest=other)
    comm.Recv(np.zeros(3), source=other)


def in_a_good_order(comm):
    other = 1 - comm.rank
    request = comm.Irecv(np.zeros(3), source=other)
    comm.Send(np.zeros(3), dest=other)
    request.Wait()


def test_a_run_that_needs_mpis_buffers_says_so_and_the_cured_one_does_not(four_ranks, capsys) -> None:
    [note] = four_ranks.run(head_to_head, ranks=2).notes
    line = head_to_head.__code__.co_firstlineno + 2
    assert " ranks 0 and 1 " in note and f" Send, line {line}," in note
    assert note in " ".join(capsys.readouterr().out.split())
    assert four_ranks.run(in_a_good_order, ranks=2).notes == [] and capsys.readouterr().out == ""


def scatters_what_does_not_divide(comm):
    comm.Scatter(np.ones(9) if comm.rank == 0 else None, np.empty(4), root=0)


def begins_to_scatter_what_does_not_divide(comm):
    comm.Iscatter(np.ones(9) if comm.rank == 0 else None, np.empty(4), root=0).Wait()


def sends_every_second_number():
    import torch
    import torch.distributed as dist

    if dist.get_rank() == 0:
        dist.send(torch.ones(8)[::2], dst=1)
    else:
        dist.recv(torch.empty(4), src=0)


def splits_into_more_than_it_has():
    """gloo looks at the split sizes when it is under way, and the other rank has come."""
    import torch
    import torch.distributed as dist

    rows = [2, 2] if dist.get_rank() else [3, 3]
    dist.all_to_all_single(torch.empty(4), torch.ones(4), [2, 2], rows)


@pytest.mark.parametrize(
    ("function", "backend", "waits"),
    [
        (splits_into_more_than_it_has, "gloo", "[Rr]ank 1 is waiting in all_to_all_single"),
        (scatters_what_does_not_divide, None, "[Rr]ank 1 is waiting in Scatter"),
        (begins_to_scatter_what_does_not_divide, None, "[Rr]ank 1 is waiting in Iscatter"),
        (sends_every_second_number, "gloo", "[Rr]ank 1 is waiting in recv"),
    ],
)
def test_a_call_that_was_rejected_is_none_that_others_may_wait_for(four_ranks, function, backend, waits) -> None:
    with pytest.raises(RankError, match=f"rank 0 raised .*{waits}"):
        four_ranks.run(function, ranks=2, backend=backend)


def three_in_a_circle(comm):
    comm.recv(source=(comm.rank + 1) % comm.size)


def test_a_circle_is_drawn(four_ranks) -> None:
    with pytest.raises(RankError, match="0 is waiting for 1, 1 for 2, 2 for 0"):
        four_ranks.run(three_in_a_circle, ranks=3)
    picture = four_ranks.waits()
    assert "The ranks are waiting in a circle: 0 for 1, 1 for 2 and 2 for 0" in picture.alt_text
    assert "rank 1: recv(source=2), line" in picture.alt_text
    assert four_ranks.timeline().alt_text.startswith("Timeline of 3 ranks: Stuck")
    four_ranks.run(in_a_good_order, ranks=2)
    with pytest.raises(CourseError, match="not a deadlock"):
        four_ranks.waits()


PASSES_ON = """from mpi4py import MPI
comm = MPI.COMM_WORLD
comm.send(7, 1) if comm.rank == 2 else comm.recv(source=2)"""


def test_a_cell_on_some_ranks_is_drawn_with_their_rows(four_ranks) -> None:
    four_ranks.execute(PASSES_ON, ranks=[1, 2])
    assert four_ranks.timeline().alt_text.startswith("Timeline of ranks 1 and 2 over")


def gives_up(comm):
    """Asks for a second and a half, and then does without."""
    if comm.rank == 0:
        until = time.monotonic() + 1.5
        while time.monotonic() < until and not comm.Iprobe(source=1):
            time.sleep(0.01)
    return comm.rank


def test_who_asks_in_vain_is_told_of_and_left_alone(four_ranks, capsys) -> None:
    assert four_ranks.run(gives_up, ranks=2).results == [0, 1]
    assert "rank 0 keeps testing: Iprobe(source=1), line" in " ".join(capsys.readouterr().out.split())


def waits_for_a_file(comm, path):
    import fcntl

    with open(path, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        time.sleep(5.0 if comm.rank == 0 else 0.0)
    return comm.rank


def test_what_computes_nothing_for_long_is_told_and_left_alone(four_ranks, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(quiet_notice, "QUIET_SECONDS", 2.0)
    assert four_ranks.run(waits_for_a_file, str(tmp_path / "lock")).results == [0, 1, 2, 3]
    told = " ".join(capsys.readouterr().out.split())
    assert "Nothing has moved for 2 s" in told and "not certain that this is a deadlock" in told


def test_who_gets_no_processor_is_not_called_still(monkeypatch, capsys) -> None:
    """Two seconds, one look each: a rank has computed nothing and sent nothing, and would like to."""
    for busy in (True, False):
        now = [100.0]
        monkeypatch.setattr(quiet_notice.time, "monotonic", lambda now=now: now[0])
        monkeypatch.setattr(quiet_notice, "QUIET_SECONDS", 2.0)
        control = SimpleNamespace(
            activity=lambda rank: Activity(RUNNING, 1, 0.0, ""),
            computed=lambda rank: 5.0,
            wants_to_run=lambda rank, busy=busy: busy,
            standing=lambda rank: Standing(),
        )
        notice = quiet_notice.QuietNotice(control, [0])
        for _ in range(6):
            now[0] += 1.0
            notice.observe(Observation(unmoved=100.0), {})
        assert ("Nothing has moved" in capsys.readouterr().out) != busy


def ends_mpi(comm):
    from mpi4py import MPI

    MPI.Finalize()


def test_finalize_is_rejected(four_ranks) -> None:
    with pytest.raises(RankError, match=r"MPI\.Finalize: these ranks live on"):
        four_ranks.run(ends_mpi)
    assert four_ranks.healthy


def aborts(comm):
    if comm.rank == 1:
        comm.Abort(3)
    comm.Barrier()


def test_abort_ends_the_run_and_no_rank(four_ranks) -> None:
    line = aborts.__code__.co_firstlineno + 2
    with pytest.raises(
        RankError, match=rf"rank 1 raised RuntimeError: Abort\(3\).*, line {line} .* are waiting in Barrier"
    ):
        four_ranks.run(aborts)
    assert four_ranks.healthy


def interrupts_itself(comm):
    if comm.rank == 1:
        raise KeyboardInterrupt


def test_an_interrupt_that_nobody_asked_for_is_an_error_as_others(four_ranks) -> None:
    line = interrupts_itself.__code__.co_firstlineno + 2
    with pytest.raises(RankError, match=f"^rank 1 raised KeyboardInterrupt, line {line} "):
        four_ranks.run(interrupts_itself)


def catches_everything(comm):
    while True:
        with contextlib.suppress(BaseException):
            comm.recv(source=1 - comm.rank)


@pytest.mark.long
def test_the_lines_of_ranks_that_had_to_be_ended_are_told(four_ranks) -> None:
    line = catches_everything.__code__.co_firstlineno + 3
    with pytest.raises(RanksGone, match=rf"had to be ended\. Rank 0 is waiting in recv\(source=1\), line {line} of "):
        four_ranks.run(catches_everything, ranks=2)


def starts_ranks_on_a_rank(comm):
    import course_utils

    course_utils.start(4)


def test_ranks_start_no_ranks(four_ranks) -> None:
    with pytest.raises(RankError, match="raised CourseError: This code runs on a rank already"):
        four_ranks.run(starts_ranks_on_a_rank)
    four_ranks.run(lambda comm: __import__("course_utils").start(4, where="nowhere"))


def raises_with_much_text(comm):
    raise ValueError("x" * 5000)


def test_an_errors_text_is_cut(four_ranks) -> None:
    with pytest.raises(RankError) as error:
        four_ranks.run(raises_with_much_text)
    assert "(5000 characters in all), line " in str(error.value) and len(str(error.value)) < 2200


@pytest.mark.parametrize("cell", ["quit", "exit()", "import sys; sys.exit(3)"])
def test_a_cell_that_leaves_does_not_end_its_rank(four_ranks, cell) -> None:
    with pytest.raises(RankError, match="the code asked its process to end; a rank goes on living"):
        four_ranks.execute(cell)
    time.sleep(0.3)
    assert four_ranks.healthy and four_ranks.run(lambda comm: comm.rank).results == [0, 1, 2, 3]


def runs_a_loop_of_its_own(comm):
    import asyncio

    async def answer():
        await asyncio.sleep(0.01)
        return comm.allreduce(1)

    return asyncio.run(answer())


def test_code_on_ranks_may_run_event_loops_as_scripts_do(four_ranks) -> None:
    for _ in range(2):
        assert four_ranks.run(runs_a_loop_of_its_own).results == [4] * 4


def prints_half_a_character(comm):
    print("\ud800")
    raise ValueError("\ud800")


def test_what_no_notebook_can_show_is_spelled_out(four_ranks, capsys) -> None:
    with pytest.raises(RankError, match=r"ValueError: \\ud800"):
        four_ranks.run(prints_half_a_character)
    assert capsys.readouterr().out == "".join(f"[rank {rank}] \\ud800\n" for rank in range(4))


class Parcel:
    def __init__(self, what: str) -> None:
        self.what = what


def test_instances_of_a_cells_class_travel(four_ranks) -> None:
    def pass_on(comm):
        class Own:
            def __init__(self, number):
                self.number = number

        got = comm.sendrecv(Own(comm.rank), dest=(comm.rank + 1) % comm.size, source=(comm.rank - 1) % comm.size)
        return got.number, comm.bcast(Own(7) if comm.rank == 0 else None).number

    assert four_ranks.run(pass_on).results == [((rank - 1) % 4, 7) for rank in range(4)]


def unpacked_while_stop_is_pressed() -> int:
    """The first time, that is: afterwards it is unpacked once more."""
    if os.environ["UNPACKED_BY_A_TEST"] == "not yet":
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)
    os.environ["UNPACKED_BY_A_TEST"] = "whole"
    return 7


class Slow:
    def __reduce__(self):
        return unpacked_while_stop_is_pressed, ()


def test_what_is_being_unpacked_is_unpacked_before_stop_is_heeded(four_ranks, monkeypatch) -> None:
    monkeypatch.setenv("UNPACKED_BY_A_TEST", "not yet")
    with pytest.raises(RankError, match="stopped by you"):
        four_ranks.run(lambda comm: Slow() if comm.rank == 1 else comm.rank)
    assert os.environ["UNPACKED_BY_A_TEST"] == "whole"
    assert four_ranks.healthy and four_ranks.run(lambda comm: comm.rank).results == [0, 1, 2, 3]


def test_stop_in_the_middle_of_submitting_leaves_no_rank_behind(four_ranks, monkeypatch) -> None:
    connection, submit = four_ranks.connection, four_ranks.connection.submit

    def stopped_half_way(function, arguments):
        pending = submit(function, {0: arguments[0]})
        if function == "call":
            os.kill(os.getpid(), signal.SIGINT)
        return pending | submit(function, {rank: own for rank, own in arguments.items() if rank})

    monkeypatch.setattr(connection, "submit", stopped_half_way)
    with pytest.raises(RankError, match="stopped by you"):
        four_ranks.run(lambda comm: time.sleep(5.0))
    monkeypatch.setattr(connection, "submit", submit)
    assert four_ranks.run(lambda comm: comm.allreduce(1)).results == [4] * 4


def sums_for_long():
    import torch
    import torch.distributed as dist

    for _ in range(10_000):
        dist.all_reduce(torch.ones(10))


def test_stop_at_the_beginning_of_a_run_with_torch_costs_no_rank(four_ranks) -> None:
    four_ranks.run(torch_is_there)
    pids = four_ranks.pids
    for seconds in (0.01, 0.02, 0.04, 0.08, 0.16):
        press = threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGINT])
        with pytest.raises((RankError, KeyboardInterrupt)):  # the latter where nothing was sent to the ranks yet
            press.start()
            four_ranks.run(sums_for_long, backend="gloo")
        assert four_ranks.run(lambda comm: comm.allreduce(1)).results == [4] * 4
    assert four_ranks.pids == pids


def test_stop_pressed_again_changes_nothing(four_ranks, monkeypatch) -> None:
    control, interrupt = four_ranks.connection.control, four_ranks.connection.control.interrupt

    def pressed_again(rank: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        interrupt(rank)

    monkeypatch.setattr(control, "interrupt", pressed_again)
    press = threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT])
    press.start()
    with pytest.raises(RankError, match="stopped by you"):
        four_ranks.run(lambda comm: time.sleep(20.0))
    assert four_ranks.run(lambda comm: comm.allreduce(1)).results == [4] * 4


def waits_for_the_second_first(comm):
    if comm.rank == 0:
        comm.send(bytes(2**20), dest=1)
        comm.send("small", dest=1)
        return None
    first, second = comm.irecv(source=0), comm.irecv(source=0)
    return second.wait(), len(first.wait())


def test_an_object_on_its_way_does_not_hold_up_the_next(four_ranks) -> None:
    assert four_ranks.run(waits_for_the_second_first, ranks=2).results[1] == ("small", 2**20)


def starts_processes_and_talks_to_them(comm):
    program = """
        from mpi4py import MPI
        parent = MPI.Comm.Get_parent()
        parent.send(parent.rank, dest=0)
        assert parent.allreduce(1) == 2
        everybody = parent.Merge(high=True)
        assert everybody.allreduce(everybody.rank) == 6
        assert everybody.recv(source=0) == "go"
        everybody.Disconnect()
        parent.Disconnect()
    """
    file = Path(tempfile.mkdtemp()) / "child.py"
    file.write_text(textwrap.dedent(program))
    children = comm.Spawn(sys.executable, [str(file)], maxprocs=2)
    if comm.rank == 0:
        assert [children.recv(source=rank) for rank in range(2)] == [0, 1]
    assert children.allreduce(1) == 2
    everybody = children.Merge()
    assert everybody.allreduce(everybody.rank) == 6
    if comm.rank == 0:
        everybody.send("go", dest=2)
        everybody.send("go", dest=3)
    everybody.Disconnect()
    children.Disconnect()


def test_processes_that_ranks_start_are_heard_and_their_waits_can_be_left(four_ranks, monkeypatch, capsys) -> None:
    monkeypatch.setattr(quiet_notice, "QUIET_SECONDS", 60.0)  # on a busy machine they take a while to begin
    assert four_ranks.run(starts_processes_and_talks_to_them, ranks=2).notes == []


def hands_tasks_to_started_processes(comm):
    from mpi4py.futures import MPIPoolExecutor

    with MPIPoolExecutor(1) as executor:
        return list(executor.map(abs, range(-3, 0)))


def test_an_executor_may_start_processes(four_ranks, monkeypatch) -> None:
    monkeypatch.setattr(quiet_notice, "QUIET_SECONDS", 60.0)
    assert four_ranks.run(hands_tasks_to_started_processes, ranks=1).results == [[3, 2, 1]]


def asks_for_the_result_of_a_task_that_fails(comm):
    from mpi4py.futures import MPICommExecutor

    with MPICommExecutor(comm, root=1) as executor:
        if executor is not None:
            executor.submit(divmod, 1, 0).result()


def test_a_tasks_error_is_told_with_the_line_that_asks_for_its_result(four_ranks) -> None:
    line = asks_for_the_result_of_a_task_that_fails.__code__.co_firstlineno + 5
    with pytest.raises(RankError, match=f"^rank 1 raised ZeroDivisionError: .*, line {line} "):
        four_ranks.run(asks_for_the_result_of_a_task_that_fails)
    assert four_ranks.run(lambda comm: comm.allreduce(1)).results == [4] * 4


def starts_a_process_that_stays(comm):
    from mpi4py import MPI

    file = Path(tempfile.mkdtemp()) / "stays.py"
    file.write_text("from mpi4py import MPI\nimport time\nMPI.Comm.Get_parent().send(time.sleep(1000), dest=0)\n")
    MPI.COMM_SELF.Spawn(sys.executable, [str(file)]).recv()


def test_a_process_that_never_answers_costs_no_rank(four_ranks) -> None:
    pids = four_ranks.pids
    threading.Timer(4.0, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(RankError, match="stopped by you"):
        four_ranks.run(starts_a_process_that_stays, ranks=1)
    assert four_ranks.run(lambda comm: comm.allreduce(1)).results == [4] * 4 and four_ranks.pids == pids


# --- %%px in a notebook -----------------------------------------------------------------------------------------------


@pytest.fixture
def shell(four_ranks):
    shell = InteractiveShell.instance()
    register(four_ranks)
    yield shell
    InteractiveShell.clear_instance()


def cell(shell: InteractiveShell, line: str, text: str) -> str:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        shell.run_cell_magic("px", line, text)
    return printed.getvalue()


def test_a_cell_runs_on_all_ranks_or_on_some(shell) -> None:
    assert cell(shell, "", "from mpi4py import MPI; comm = MPI.COMM_WORLD; print(comm.rank)").splitlines() == [
        f"[rank {rank}] {rank}" for rank in range(4)
    ]
    assert cell(shell, "--targets 2", "print(comm.rank)").splitlines() == ["[rank 2] 2"]
    assert cell(shell, "--targets 1::2", "print(comm.rank)").splitlines() == ["[rank 1] 1", "[rank 3] 3"]


def test_a_hang_on_some_ranks_is_told_with_its_line_and_all_live_on(shell, four_ranks) -> None:
    with pytest.raises(RankError, match=r"Rank 0 is waiting in recv\(source=1\), line 3 of your cell"):
        cell(shell, "--targets 0", "from mpi4py import MPI\nMPI.COMM_WORLD.recv(source=1)")
    assert cell(shell, "", "print(comm.allreduce(1))").splitlines() == [f"[rank {rank}] 4" for rank in range(4)]


def test_a_cell_may_await(shell) -> None:
    waits = "import asyncio\nawait asyncio.sleep(0.01)\n"
    for _ in range(2):
        assert cell(shell, "--targets 0", f"{waits}print('awaited')").splitlines() == ["[rank 0] awaited"]
    with pytest.raises(RankError, match="all 4 ranks raised ZeroDivisionError: division by zero, line 4 of your cell"):
        cell(shell, "", f"{waits}1 / 0")


def test_a_cell_that_awaits_can_be_stopped(shell, four_ranks) -> None:
    threading.Timer(0.5, os.kill, [os.getpid(), signal.SIGINT]).start()
    with pytest.raises(RankError, match=r"stopped by you\. All 4 ranks were waiting"):
        cell(shell, "", "import asyncio\nawait asyncio.sleep(30)")
    assert four_ranks.healthy and cell(shell, "--targets 1", "print('next')").splitlines() == ["[rank 1] next"]


def test_a_cell_need_not_be_waited_for(shell) -> None:
    cell(shell, "--noblock", "import time; time.sleep(0.2); print('later')")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        shell.run_line_magic("pxresult", "")
    assert printed.getvalue().count("later") == 4


def test_every_cell_can_go_to_the_ranks(shell) -> None:
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        shell.run_line_magic("autopx", "")
        shell.run_cell("print('on a rank')")
        shell.run_line_magic("autopx", "")
    assert printed.getvalue().count("on a rank") == 4


DUMP = """Thread 0x1 (most recent call first):
  File "/usr/lib/python3.11/threading.py", line 324 in wait

Current thread 0x2 (most recent call first):
  File "/tmp/ipykernel_7/42.py", line 5 in work
  File "/home/me/tools.py", line 9 in helper
  File "ENGINE", line 60 in run_learner_code
  File "ENGINE", line 99 in main
"""


def test_the_line_of_a_rank_that_cannot_answer_is_read_from_its_dump() -> None:
    assert learner_line(DUMP) == "line 5 of your cell"
    assert learner_line(DUMP.replace("run_learner_code", "other")) == ""
    assert learner_line("") == ""


def test_the_line_in_which_a_signal_ended_a_rank_is_read_from_its_dump(tmp_path) -> None:
    file = tmp_path / "dump"
    assert last_line(file) == ""
    file.write_text(DUMP)
    assert last_line(file) == ""
    file.write_text(DUMP.replace("line 5", "line 4") + "Fatal Python error: Aborted\n\n" + DUMP)
    assert last_line(file) == "line 5 of your cell"
