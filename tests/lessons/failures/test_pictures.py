"""What lesson 18 says and draws of a run: who died, what is lost, which file goes where, and which bits can be seen."""

import numpy as np

from course_utils.lessons.failures import pictures, sentences
from course_utils.lessons.failures.lighthouse import CompletedStep, StepAttempt
from course_utils.lessons.failures.replica_processes import ReplicaRun
from course_utils.lessons.failures.reshard import reshard

ALL, THREE = (0, 1, 2, 3), (0, 1, 3)


def run_of(
    *quorums: tuple[int, tuple[int, ...], dict[int, int]], steps: int, deaths: list[tuple[int, int]]
) -> ReplicaRun:
    """A run in which an attempt takes a second, and each step is reported half a second later."""
    attempts = [StepAttempt(step, members, heals, 1, at) for at, (step, members, heals) in enumerate(quorums)]
    completed = [
        CompletedStep(replica, attempt.step + 1, 1.0 / (attempt.step + 1), np.zeros((3, 2)), attempt.at + 0.5)
        for attempt in attempts
        for replica in attempt.members
        if not any(replica_step[1] == attempt.step and replica_step[0] in attempt.members for replica_step in deaths)
    ]
    return ReplicaRun(steps, attempts, completed, deaths)


GOING_ON = run_of((0, ALL, {}), (1, ALL, {}), (1, THREE, {}), (2, ALL, {2: 0}), steps=3, deaths=[(2, 1)])
CALM = run_of((0, ALL, {}), (1, ALL, {}), steps=2, deaths=[])


def test_a_run_counts_what_is_lost_and_knows_who_took_part() -> None:
    assert GOING_ON.lost_steps == 1 and CALM.lost_steps == 0
    assert GOING_ON.members == [ALL, THREE, ALL]
    assert GOING_ON.losses == [1.0, 0.5, 1.0 / 3]
    assert GOING_ON.stall == 1.5  # from the quorum at 1 s to the report at 2.5 s
    assert CALM.step_seconds == []
    restarted = run_of((0, ALL, {}), (1, ALL, {}), (0, ALL, {}), (1, ALL, {}), steps=2, deaths=[(2, 1)])
    assert restarted.stall == 1.5 and restarted.lost_steps == 2  # until the repeated step 1 is completed


def test_a_title_says_who_died_and_how_many_steps_are_lost() -> None:
    assert sentences.lost_text(GOING_ON) == "Replica 2 dies, and 1 step is lost"
    assert sentences.lost_text(CALM) == "No replica dies, and 0 steps are lost"
    assert sentences.lost_text(GOING_ON, "three go on") == "Replica 2 dies, three go on, and 1 step is lost"
    assert sentences.stall_text(GOING_ON, GOING_ON, busy=False) == (
        "Going on with three stopped the training for 1.5 s, and restarting all four for 1.5 s, "
        "which is 1 times as long."
    )
    two = run_of((0, ALL, {}), (0, (0, 3), {}), steps=1, deaths=[(1, 0), (2, 0)])
    assert sentences.lost_text(two) == "Replicas 1 and 2 die, and 1 step is lost"


def test_the_attempts_are_drawn_with_who_was_healed_from_whom() -> None:
    picture = pictures.attempts(GOING_ON, "three go on")
    assert picture.alt_text == (
        "Replicas as rows, 4 attempts at steps to the right. Replica 2 dies, three go on, and 1 step is lost. "
        "Healed: replica 2 from replica 0."
    )
    assert sum(text.get_text() == "×" for text in picture.axes[0].texts) == 1


def test_the_pieces_are_drawn_with_the_file_that_each_is_from() -> None:
    saved = [(0, 3), (3, 6), (6, 9), (9, 12)]
    reads = [reshard(saved, begin, begin + 4) for begin in (0, 4, 8)]
    picture = pictures.pieces(saved, {"loaded by 3": reads}, "Three read four files")
    assert "rank 1 reads 2 pieces" in picture.alt_text
    names = [text.get_text() for text in picture.axes[0].texts]
    assert names.count("file 1") == 3 and names.count("rank 2") == 2


def test_a_flip_that_changes_nothing_and_one_that_ruins_all_are_drawn() -> None:
    losses = [1.0] * 62 + [float("inf"), 1.5]
    assert sentences.silent_text(1.0, losses) == "62 of 64 flips change the loss by less than 1%"
    picture = pictures.flipped_bits(1.0, losses)
    assert "62 of 64" in picture.alt_text
    assert [text.get_text() for text in picture.axes[0].texts] == ["bit 62: no finite loss", "1%"]


def test_numbers_are_put_into_words() -> None:
    assert sentences.reads_text([1200, 1200], 2400) == "The ranks read 1,200 and 1,200 of 2,400 numbers"
    shares = {"restart all": [0.96, 0.77], "go on": [1.0, 0.99]}
    assert sentences.goodput_text([4096, 65536], shares) == (
        "From 4,096 to 65,536 GPUs, the goodput goes from 96% to 77% (restart all) and from 100% to 99% (go on)"
    )
