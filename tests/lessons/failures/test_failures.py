"""A training goes on without a dead replica, pieces fit any number of ranks, and a wrong bit is found; all counted."""

import itertools
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import psutil
import pytest
import torch
import torch.distributed as dist

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.blocks import block_bounds
from course_utils.lessons.failures.experiments import (
    beside_one_process,
    load_with_torch,
    loss_after_flips,
    save_with_torch,
    steps_compared,
)
from course_utils.lessons.failures.find_the_liar import find_the_liar, flip_bit
from course_utils.lessons.failures.heal import heal
from course_utils.lessons.failures.quorum import StepReport, quorum
from course_utils.lessons.failures.replica_processes import check_progress, run_replicas
from course_utils.lessons.failures.replica_state import load_state, new_state, save_state, train_serially
from course_utils.lessons.failures.reshard import reshard
from course_utils.lessons.failures.save_async import save_async
from course_utils.lessons.failures.sharded_checkpoint import load_piece, save_piece, write_array, write_table
from workshop.publish.sources import read_cells

ROOT = Path(__file__).parents[3]
MAGIC = "%%writefile {folder}/replica.py\n"


def test_who_reports_in_time_takes_part_and_who_is_behind_is_healed() -> None:
    reports = [StepReport(3, 0, 9.0), StepReport(0, 7, 9.0), StepReport(1, 7, 3.0), StepReport(2, 6, 8.0)]
    assert quorum(reports, 10.0, 5.0, 1) == ([0, 2, 3], {2: 0, 3: 0})
    assert quorum(reports, 10.0, 7.0, 1) == ([0, 1, 2, 3], {2: 0, 3: 1})
    assert quorum(reports, 10.0, 5.0, 4) == ([], {})
    assert quorum([], 10.0, 5.0, 1) == ([], {})


def test_of_several_reports_the_newest_counts_though_it_has_fewer_steps() -> None:
    reports = [StepReport(1, 0, 9.0), StepReport(1, 8, 8.0), StepReport(0, 5, 9.0)]
    assert quorum(reports, 10.0, 5.0, 1) == ([0, 1], {1: 0})
    with pytest.raises(CourseError):
        quorum(reports, 10.0, 5.0, 0)


def healed(heals: dict[int, int]) -> tuple[torch.Tensor, int]:
    rank = dist.get_rank()
    state = torch.full((3, 5), float(rank), dtype=torch.float64)
    return state, heal(state, 10 * rank, heals)


@pytest.mark.parametrize("heals", [{}, {2: 0}, {0: 3, 1: 3, 2: 3}, {3: 1, 2: 0}])
def test_a_newcomer_gets_the_state_of_its_peer_in_one_message(four_ranks, heals) -> None:
    run = four_ranks.run(healed, heals, backend="gloo")
    for rank, (state, step) in enumerate(run.results):
        source = heals.get(rank, rank)
        assert (state == source).all() and step == 10 * source
    assert run.messages == len(heals)


def test_the_serial_training_learns_and_a_checkpoint_gives_the_state_back(tmp_path) -> None:
    found = train_serially([(0, 1, 2, 3)] * 30)
    assert found[-1][1] < found[0][1] / 2
    assert torch.equal(load_state(tmp_path)[0], new_state()) and load_state(tmp_path)[1] == 0
    save_state(tmp_path, found[-1][0], 30)
    state, step = load_state(tmp_path)
    assert torch.equal(state, found[-1][0]) and step == 30


@pytest.fixture
def program(tmp_path) -> Path:
    """The program of the page, with shorter steps."""
    [cell] = [cell for cell in read_cells(ROOT / "notebooks/src/18_failures.py") if MAGIC in cell.source]
    file = tmp_path / "replica.py"
    file.write_text(cell.source.partition(MAGIC)[2].replace("time.sleep(0.05)", ""))
    return file


def test_three_go_on_without_the_fourth_and_a_new_fourth_is_healed(program) -> None:
    run = run_replicas(program, 12, dies={1: 5, 3: 8}, joins={1: 7})
    assert run.lost_steps == 2
    assert run.deaths == [(1, 5), (3, 8)]
    assert run.members == 5 * [(0, 1, 2, 3)] + 2 * [(0, 2, 3)] + [(0, 1, 2, 3)] + 4 * [(0, 1, 2)]
    assert [attempt.heals for attempt in run.attempts if attempt.heals] == [{1: 0}]
    assert len(steps_compared(run)) == sum(map(len, run.members))
    assert beside_one_process(run) <= 1e-12
    assert run.stall > 0 and len(run.losses) == 12


def test_a_restart_of_all_repeats_the_steps_since_the_checkpoint(program) -> None:
    run = run_replicas(program, 9, 2, dies={0: 7}, min_replicas=2, restart_all=True, save_every=4)
    assert run.lost_steps == 4  # 5, 6 and 7 again, and the step that was under way
    assert beside_one_process(run) <= 1e-12


def test_a_program_that_fails_is_an_error_and_leaves_no_process(program) -> None:
    program.write_text("raise SystemExit('no such file')")
    with pytest.raises(CourseError, match="no such file"):
        run_replicas(program, 3, 2)
    with pytest.raises(CourseError, match="Nothing has happened"):
        check_progress(0.0, 1e-3)
    with pytest.raises(CourseError, match="join earlier"):
        run_replicas(program, 3, 2, joins={1: 3})


PARENT = """
import sys
from pathlib import Path
from course_utils.lessons.failures.replica_processes import run_replicas
run_replicas(Path(sys.argv[1]), 3, 2)
"""
WAITS_FOR_EVER = """
import os, threading
from pathlib import Path
from course_utils.lessons.failures.manager import Manager
manager = Manager.from_command_line()
file = Path(f"pid_{manager.replica}.new")
file.write_text(str(os.getpid()))
file.rename(f"pid_{manager.replica}")
threading.Event().wait()
"""


def until(condition, seconds: float = 120.0) -> None:
    """Wait for something that happens as soon as it can."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_replicas_end_when_the_notebook_is_killed(program) -> None:
    program.write_text(WAITS_FOR_EVER)
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(program)], env={**os.environ, "PYTHONPATH": str(ROOT)})
    files = [program.parent / f"pid_{replica}" for replica in range(2)]
    try:
        until(lambda: all(file.exists() for file in files))
    finally:
        parent.kill()
        parent.wait()
    until(lambda: not any(is_alive(int(file.read_text())) for file in files))


@pytest.mark.parametrize(("before", "after"), [*itertools.product((1, 2, 3, 4, 7), repeat=2)])
def test_any_number_of_ranks_reads_what_any_number_has_saved(tmp_path, before, after) -> None:
    vector, bounds = np.arange(10.0), block_bounds(10, before)
    saved = list(itertools.pairwise(bounds))
    for rank, (begin, end) in enumerate(saved):
        save_piece(tmp_path, rank, vector[begin:end])
    write_table(tmp_path, saved)
    for begin, end in itertools.pairwise(block_bounds(10, after)):
        piece, reads = load_piece(tmp_path, begin, end)
        assert np.array_equal(piece, vector[begin:end])
        assert sum(last - first for _, first, last in reads) == end - begin
        assert all(first < last for _, first, last in reads)


def test_files_in_any_order_and_numbers_that_are_missing(tmp_path) -> None:
    assert reshard([(6, 9), (0, 4), (4, 4), (4, 6)], 3, 8) == [(1, 3, 4), (3, 0, 2), (0, 0, 2)]
    with pytest.raises(CourseError):
        reshard([(0, 4), (5, 9)], 3, 6)
    with pytest.raises(CourseError, match=r"table\.json"):
        load_piece(tmp_path, 0, 1)


def test_torch_loads_on_three_ranks_what_four_have_saved(four_ranks, tmp_path) -> None:
    def save(folder: str) -> None:
        save_with_torch(folder, np.array_split(np.arange(24.0), 4)[dist.get_rank()])

    four_ranks.run(save, str(tmp_path), backend="gloo")
    parts = four_ranks.run(load_with_torch, str(tmp_path), 24, ranks=3, backend="gloo").results
    assert np.concatenate(parts).tolist() == list(range(24))


def test_the_old_checkpoint_stays_until_the_new_one_is_complete(tmp_path) -> None:
    file, state, go = tmp_path / "checkpoint", np.zeros(3), threading.Event()
    save_async(file, state, write_array).result()

    def write_late(path, array) -> None:
        go.wait()
        write_array(path, array)

    state += 1
    saving = save_async(file, state, write_late)
    state += 1
    assert np.load(file).tolist() == [0, 0, 0]
    go.set()
    saving.result()
    assert np.load(file).tolist() == [1, 1, 1]


def test_a_save_that_fails_says_so_and_leaves_the_old_checkpoint(tmp_path) -> None:
    file = tmp_path / "checkpoint"
    write_array(file, np.ones(2))

    def fail(path, array) -> None:
        path.write_bytes(b"half")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        save_async(file, np.zeros(2), fail).result()
    assert np.load(file).tolist() == [1, 1]


def test_the_majority_finds_whose_bit_has_flipped(four_ranks) -> None:
    def found(comm, flips):
        weights = np.linspace(-1, 1, 50)
        if comm.rank in flips:
            flip_bit(weights, 7, flips[comm.rank])
        return find_the_liar(comm, weights)

    assert four_ranks.run(found, {}).results == [[]] * 4
    assert four_ranks.run(found, {2: 0}).results == [[2]] * 4
    assert four_ranks.run(found, {1: 63}, ranks=3).results == [[1]] * 3
    with pytest.raises(CourseError, match="more than half"):
        four_ranks.run(found, {1: 3, 2: 4})


def test_a_flip_is_undone_by_a_second_one_and_most_are_hardly_seen() -> None:
    weights = np.array([1.5, -2.0])
    flip_bit(weights, 1, 63)
    assert weights.tolist() == [1.5, 2.0]
    flip_bit(weights, 0, 51)
    assert weights.tolist() == [1.0, 2.0]
    loss, flipped = loss_after_flips(5, 444)
    assert len(flipped) == 64 and all(abs(each / loss - 1) < 0.01 for each in flipped[:45])
