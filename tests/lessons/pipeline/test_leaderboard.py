"""The class's leaderboard: only what is better is kept, many write at once, and nothing in the file is trusted."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from course_utils.errors import CourseError
from course_utils.lessons.pipeline.puzzle import leaderboard
from course_utils.lessons.pipeline.puzzle.beat_1f1b import beat_1f1b
from course_utils.lessons.pipeline.puzzle.leaderboard import Leaderboard
from course_utils.lessons.pipeline.puzzle.puzzle import PUZZLES, best_known, random_puzzle
from course_utils.lessons.pipeline.schedules import gpipe_schedule, one_f_one_b_schedule

EVEN = PUZZLES["even"]


@pytest.fixture
def board(tmp_path) -> Leaderboard:
    return Leaderboard(tmp_path / "class" / "board.csv")


def test_only_what_is_better_is_kept(board) -> None:
    assert "place 1" in board.submit("Ada", EVEN, beat_1f1b(EVEN))
    assert "as good a one before" in board.submit("Ada", "even", beat_1f1b(EVEN))
    assert "does not beat 1F1B" in board.submit("Ada", EVEN, one_f_one_b_schedule(4, 8))
    assert "place 1" in board.submit("Grace", EVEN, best_known(EVEN).schedule)
    assert "place 1" in board.submit("Ada", EVEN, best_known(EVEN).schedule)
    assert [(one.name, one.judgement.seconds) for one in board.entries()] == [("Grace", 27.0), ("Ada", 27.0)]
    assert len(board.path.read_text().splitlines()) == 3
    assert not list(board.path.parent.glob(".*")), "no lock and no half-written file is left"
    assert "(best known)" in str(board) and "Grace" in board._repr_html_()
    assert "Grace takes 27.0 s" in board.picture("even").alt_text


def test_thirty_write_at_once_and_nobody_is_lost(board) -> None:
    found = beat_1f1b(EVEN)
    with ThreadPoolExecutor(30) as pool:
        list(pool.map(lambda number: board.submit(f"learner {number}", EVEN, found), range(30)))
    assert {one.name for one in board.entries("even")} == {f"learner {number}" for number in range(30)}


def test_processes_write_at_once(board) -> None:
    code = """
import sys
from course_utils.lessons.pipeline.puzzle.beat_1f1b import beat_1f1b
from course_utils.lessons.pipeline.puzzle.leaderboard import Leaderboard
from course_utils.lessons.pipeline.puzzle.puzzle import PUZZLES
for name, puzzle in PUZZLES.items():
    Leaderboard().submit(sys.argv[1], puzzle, beat_1f1b(puzzle))
"""
    names = ["Ada", "Grace", "Edsger"]
    environment = {**os.environ, "COURSE_LEADERBOARD": str(board.path)}
    running = [subprocess.Popen([sys.executable, "-c", code, name], env=environment) for name in names]
    assert [one.wait() for one in running] == [0, 0, 0]
    assert len(board.entries()) == len(names) * len(PUZZLES)


def test_numbers_in_the_file_are_not_trusted(board) -> None:
    board.submit("Ada", EVEN, beat_1f1b(EVEN))
    row = board.path.read_text().splitlines()[1]
    whole = row.replace("Ada", "Mallory").replace(row.split(",")[3], "1.000000")
    plain = " | ".join(" ".join(map(str, actions)) for actions in one_f_one_b_schedule(4, 8))
    lines = [
        whole,
        f"Eve,even,0.0,1.0,2026-01-01,{plain}",
        "Eve,even,0.0,1.0,2026-01-01,0F0",
        "Eve,nowhere,0.0,1.0,2026-01-01,0F0",
        '=cmd(),even,0,1,2026-01-01,"',
        f"Eve,even,0.0,1.0,2026-01-01,0F{'9' * 5000}",
        f"Eve,even,0.0,1.0,yesterday,{row.split(',')[5]}",
        "\x00\ufffd",
    ]
    with board.path.open("a") as file:
        file.write("\n".join(lines) + "\n")
    assert [(one.name, one.judgement.seconds) for one in board.entries()] == [("Ada", 29.0), ("Mallory", 29.0)]
    board.submit("Grace", EVEN, best_known(EVEN).schedule)
    assert len(board.path.read_text().splitlines()) == 4, "what does not hold goes with the next who writes"


def test_what_cannot_be_handed_in_is_said(board) -> None:
    for name in ("", "=1+1", "x" * 41, None):
        with pytest.raises(CourseError, match="A name has"):
            board.submit(name, EVEN, beat_1f1b(EVEN))
    with pytest.raises(CourseError, match="shares these puzzles"):
        board.submit("Ada", random_puzzle(1), [])
    with pytest.raises(CourseError, match="cannot be run: rank 0 keeps 5"):
        board.submit("Ada", EVEN, gpipe_schedule(4, 8))
    with pytest.raises(CourseError, match="No schedule has been handed in"):
        board.picture("even")
    assert board.entries() == []


def test_a_lock_left_behind_is_removed_and_one_in_use_is_waited_for(board, monkeypatch) -> None:
    board.path.parent.mkdir()
    lock = board.path.with_name(".board.csv.lock")
    lock.mkdir()
    monkeypatch.setattr(leaderboard, "_PATIENCE", 0.1)
    with pytest.raises(CourseError, match="Somebody is writing"):
        board.submit("Ada", EVEN, beat_1f1b(EVEN))
    os.utime(lock, (0, 0))
    assert "place 1" in board.submit("Ada", EVEN, beat_1f1b(EVEN))


def test_a_place_that_cannot_be_written_is_said(tmp_path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(CourseError, match="COURSE_LEADERBOARD"):
        Leaderboard(tmp_path / "file" / "board.csv").submit("Ada", EVEN, beat_1f1b(EVEN))
