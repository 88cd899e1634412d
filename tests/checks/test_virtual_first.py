"""Checks without ranks, and on virtual ranks before real ones; the process in which both run, whatever it is given."""

import os
import signal
import subprocess
import sys
import textwrap
import time
import warnings

import numpy as np
import pytest

import course_utils as course
from course_utils import system
from course_utils.checks.finding import Kind
from course_utils.checks.judge import Options, verdict_on
from course_utils.checks.judging_plan import cases_of, fits_virtual_ranks, needs_nothing
from course_utils.checks.registry import declared, find
from course_utils.checks.verdict import JudgedOn, Result
from course_utils.errors import CourseError
from course_utils.ranks.ending import Ending
from course_utils.ranks.offline.stand_ins import WorkerCalls, WorkerVirtualRanks
from course_utils.ranks.offline.worker_client import shared_worker


def kind_of(exercise) -> str:
    """Which ranks judge an exercise."""
    cases = cases_of(exercise, 1, 4)
    return "none" if needs_nothing(cases) else "virtual" if fits_virtual_ranks(exercise, cases) else "real"


@pytest.fixture
def no_ranks(monkeypatch, tmp_path):
    """A notebook without ranks, with its own home."""
    monkeypatch.setenv("COURSE_HOME", str(tmp_path))
    monkeypatch.setattr("course_utils.ranks.start.current", lambda: None)


def said(capsys, name: str, function) -> str:
    course.check(name, function)
    return capsys.readouterr().out


def test_which_exercises_need_which_ranks() -> None:
    lessons = {"none": set(), "virtual": set(), "real": set()}
    for exercise in declared():
        lessons[kind_of(exercise)].add(exercise.lesson[:2])
    assert {"01", "02", "12"} <= lessons["none"] and {"00", "04", "05", "08"} <= lessons["virtual"]
    assert not {"01", "02", "12"} & (lessons["virtual"] | lessons["real"]) and {"06", "09", "17"} <= lessons["real"]


# --- without ranks --------------------------------------------------------------------------------------------------


def test_what_needs_no_communicator_is_judged_without_ranks(no_ranks, capsys) -> None:
    rejected, unnamed = [], []
    for exercise in (exercise for exercise in declared() if kind_of(exercise) == "none"):
        verdict = said(capsys, exercise.name, exercise.written.right[0].function())
        rejected += [] if verdict.startswith("✓") else [verdict]
        program, question = exercise.written.wrong[0]
        verdict = said(capsys, exercise.name, program.function())
        unnamed += [] if question.text in verdict else [f"{question.text} {verdict}"]
    assert not rejected and not unnamed


def test_an_endless_loop_is_broken_off_and_the_next_check_works() -> None:
    def endless(*_):
        while True:
            pass

    alone = WorkerCalls().attempt(endless, [()], limit=0.5)
    assert alone.ending == Ending.NOT_FINISHED and "was computing at" in alone.trouble
    each = WorkerCalls().attempt_each([(abs, (-3,)), (endless, ())], limit=0.5)
    assert each[0].replies[0].value == 3 and each[1].replies[0].kind == "interrupted"
    virtual = WorkerVirtualRanks(3).attempt(endless, [()] * 3, limit=0.5)
    assert virtual.ending == Ending.NOT_FINISHED
    assert WorkerCalls().attempt(abs, [(-3,)]).replies[0].value == 3


@pytest.mark.parametrize("leave", [exit, sys.exit, quit], ids=["exit", "sys.exit", "quit"])
def test_a_function_that_asks_to_exit_is_told_so(leave) -> None:
    attempt = WorkerCalls().attempt(lambda: leave(), [()])
    assert "SystemExit: the code asked its process to end" in attempt.trouble


def test_a_crash_ends_the_process_and_nothing_else(no_ranks, capsys) -> None:
    def crash(*_):
        os.kill(os.getpid(), signal.SIGSEGV)

    line = said(capsys, "momentum_step", lambda *_: os._exit(3))
    assert line.startswith("✗") and "ended itself, with exit code 3" in line and "New ranks" not in line
    assert "was ended by signal 11, SIGSEGV, at line" in said(capsys, "momentum_step", crash)
    assert "process of the virtual ranks ended itself" in said(capsys, "rank_squared", lambda comm: os._exit(3))
    assert said(capsys, "momentum_step", find("momentum_step").written.right[0].function()).startswith("✓")


def test_what_a_function_changes_in_the_process_does_not_reach_the_notebook() -> None:
    numbers = [1, 2, 3]
    attempt = WorkerCalls().attempt(list.clear, [(numbers,)])
    assert attempt.replies[0].arguments == ([],) and numbers == [1, 2, 3]


@pytest.mark.parametrize("kind", ["none", "virtual", "real"])
def test_what_an_answer_sets_for_its_process_is_set_back_before_the_next(kind, four_ranks) -> None:
    def sets(*_):
        import torch

        np.seterr(all="raise")
        np.set_printoptions(precision=1)
        warnings.simplefilter("error")
        sys.setrecursionlimit(5000)
        torch.set_default_dtype(torch.float64)
        torch.set_grad_enabled(False)

    def found(*_):
        import torch

        warnings.warn("no error", stacklevel=1)
        numpys = np.float32(1e-30) * np.float32(1e-30), str(np.array([1 / 3]))
        return *numpys, sys.getrecursionlimit() == 5000, str(torch.get_default_dtype()), torch.is_grad_enabled()

    ranks = {"none": WorkerCalls(), "virtual": WorkerVirtualRanks(1), "real": four_ranks}[kind]
    assert not ranks.attempt(sets, [()], with_comm=kind != "none").trouble
    attempt = ranks.attempt(found, [()], with_comm=kind != "none")
    assert attempt.replies[0].value == (0.0, "[0.33333333]", False, "torch.float32", True), attempt.trouble


def test_what_the_notebook_sets_does_not_decide_whether_an_answer_is_right(no_ranks, capsys) -> None:
    import torch

    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    try:
        with np.errstate(all="raise"):
            for name in ("matmul_backward", "softmax_cross_entropy_backward", "sgd_step", "exchange_without_deadlock"):
                assert said(capsys, name, find(name).written.right[0].function()).startswith("✓")
            assert np.geterr()["under"] == "raise"
        assert torch.get_default_dtype() == torch.float64 and not torch.is_grad_enabled()
    finally:
        torch.set_default_dtype(torch.float32)
        torch.set_grad_enabled(True)


def test_what_cannot_be_sent_back_and_what_cannot_be_unpacked_are_told() -> None:
    class Stubborn:
        def __reduce__(self):
            return int, ("no number",)

    assert "cannot be sent to the notebook" in WorkerCalls().attempt(lambda: (x for x in "abc"), [()]).trouble
    assert "while unpacking your function" in WorkerCalls().attempt(abs, [(Stubborn(),)]).trouble


@pytest.mark.parametrize("last", ["WorkerCalls().attempt(endless, [()], limit=600)", "time.sleep(600)"])
def test_the_process_ends_with_its_notebook_also_from_an_endless_loop(last, tmp_path) -> None:
    program = f"""
        import time
        from course_utils.ranks.offline.worker_client import shared_worker
        from course_utils.ranks.offline.stand_ins import WorkerCalls
        def endless():
            while True: pass
        WorkerCalls().attempt(abs, [(1,)])
        print(shared_worker()._process.pid, flush=True)
        {last}
        """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        env={**os.environ, "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        text=True,
    ) as notebook:
        pid = int(notebook.stdout.readline())
        began = system.started_at(pid)
        notebook.kill()
    while system.started_at(pid) == began:  # the test's own limit ends a wait in vain
        time.sleep(0.05)
    assert began and not list(tmp_path.glob("course-process-*"))


def test_an_exercise_for_real_ranks_says_so(no_ranks) -> None:
    with pytest.raises(CourseError, match=r"No ranks are running yet. Run `ranks = course.start\(4\)` first"):
        course.check("average_gradients", lambda *_: 0)


# --- virtual ranks first --------------------------------------------------------------------------------------------


def squares(comm):
    return comm.rank**2


def test_a_verdict_says_on_which_ranks_it_stands(four_ranks) -> None:
    exercise, start = find("rank_squared"), "ranks = course.start(4)"
    right = verdict_on(exercise, squares, four_ranks)
    assert right.judged_on == JudgedOn(virtual=(1, 64), real=4)
    alone = verdict_on(exercise, squares, None)
    assert alone.passed and alone.judged_on == JudgedOn(virtual=(1, 64), start=start)
    assert f"(on 1 to 64 virtual ranks; to have it judged on real ranks too, run `{start}`" in str(alone)
    wrong = verdict_on(exercise, lambda comm: comm.rank, four_ranks)
    assert wrong.result == Result.WRONG and wrong.judged_on == JudgedOn(found_on_virtual=True)
    assert "This was found on virtual ranks." in str(wrong)
    at_five = verdict_on(exercise, lambda comm: 1 / (5 - comm.size) and comm.rank**2, four_ranks)
    assert (at_five.finding.kind, at_five.finding.got.type) == (Kind.RAISED, "ZeroDivisionError")


def test_what_only_real_ranks_show_is_told_apart(four_ranks) -> None:
    def only_in_one_process(comm):
        return comm.rank**2 if len(set(comm.allgather(os.getpid()))) == 1 else 0

    verdict = verdict_on(find("rank_squared"), only_in_one_process, four_ranks)
    assert verdict.result == Result.WRONG and verdict.judged_on == JudgedOn(virtual=(1, 64), real=4)
    assert "right on 1 to 64 virtual ranks, but not on your 4 real ranks: rank 1 returned 0, expected 1" in str(verdict)


def thread(comm):
    import threading

    threading.Thread(target=print).start()
    return comm.rank**2


def process(comm):
    import subprocess

    subprocess.run(["true"])
    return comm.rank**2


def sleeps(comm):
    import time

    time.sleep(0.001)
    return comm.rank**2


def clock(comm):
    import time

    return comm.rank**2 + 0 * int(time.time())


def world(comm):
    from mpi4py import MPI

    return MPI.COMM_WORLD.rank**2


def persistent(comm):
    comm.Barrier_init().Free()
    return comm.rank**2


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (thread, "virtual ranks cannot start a thread"),
        (process, "virtual ranks cannot start a process"),
        (sleeps, "virtual ranks cannot sleep"),
        (clock, "virtual ranks cannot read a clock"),
        (world, "virtual ranks have no MPI.COMM_WORLD"),
        (persistent, "virtual ranks have no comm.Barrier_init"),
    ],
    ids=lambda given: getattr(given, "__name__", ""),
)
def test_what_virtual_ranks_cannot_do_is_said_and_real_ranks_judge_alone(function, words, four_ranks) -> None:
    exercise = find("rank_squared")
    verdict = verdict_on(exercise, function, four_ranks)
    assert verdict.passed and words.lower() in verdict.judged_on.virtual_cannot.lower(), verdict
    assert "(judged by your 4 ranks alone, because virtual ranks" in str(verdict) and "line" in str(verdict)
    with pytest.raises(CourseError, match=f"(?i){words}.* Run `ranks = course.start"):
        verdict_on(exercise, function, None)


def test_the_same_seed_gives_the_same_verdict() -> None:
    exercise = find("tree_broadcast")
    function = exercise.written.right[0].function()
    first, second = (verdict_on(exercise, function, None, Options(seed=7)) for _ in range(2))
    assert str(first) == str(second) and first.events == second.events
    shared_worker().stop()
    assert verdict_on(exercise, function, None, Options(seed=7)).events == first.events
