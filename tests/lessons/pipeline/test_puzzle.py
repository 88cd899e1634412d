"""The puzzle of pipelines: what is judged, what is rejected, and the best that is known."""

from dataclasses import replace

import pytest

from course_utils.errors import CourseError
from course_utils.lessons.pipeline.actions import Action, parse_schedule
from course_utils.lessons.pipeline.puzzle.beat_1f1b import beat_1f1b
from course_utils.lessons.pipeline.puzzle.makespan_bound import ProofStep, longest_stretches, lower_bound, prove
from course_utils.lessons.pipeline.puzzle.proof_check import check_proof
from course_utils.lessons.pipeline.puzzle.puzzle import PUZZLES, Puzzle, best_known, judge, random_puzzle
from course_utils.lessons.pipeline.schedules import gpipe_schedule, one_f_one_b_schedule
from course_utils.lessons.pipeline.send_and_receive import with_messages
from course_utils.lessons.pipeline.validate import ProblemKind
from course_utils.lessons.pipeline.zero_bubble import zb_h1_schedule
from workshop.best_schedules import anneal, cost

EVEN = PUZZLES["even"]


@pytest.mark.parametrize("name", PUZZLES)
def test_the_best_known_is_what_it_claims_to_be(name) -> None:
    puzzle = PUZZLES[name]
    known = best_known(puzzle)
    judged = judge(puzzle, known.schedule)
    assert judged.valid and judged.beats_1f1b
    assert lower_bound(puzzle) <= judged.seconds + 1e-9
    assert judged.seconds <= judge(puzzle, beat_1f1b(puzzle)).seconds + 1e-9
    assert "best known" in str(judged)


def test_on_equal_stages_the_best_known_is_as_fast_as_zb_h1_and_nothing_is_faster() -> None:
    assert best_known(EVEN).seconds == judge(EVEN, zb_h1_schedule(4, 8)).seconds == lower_bound(EVEN)


def test_a_search_is_repeated_by_its_seed_and_never_ends_behind_its_start() -> None:
    puzzle = PUZZLES["uneven"]
    found = anneal(puzzle, seed=3, steps=800)
    assert found == anneal(puzzle, seed=3, steps=800)
    assert judge(puzzle, found).seconds <= judge(puzzle, beat_1f1b(puzzle)).seconds


@pytest.mark.parametrize("seed", range(40))
def test_a_random_puzzle_can_be_beaten_by_whoever_begins_first(seed) -> None:
    puzzle = random_puzzle(seed)
    judged = judge(puzzle, beat_1f1b(puzzle))
    assert judged.beats_1f1b, judged
    assert puzzle == random_puzzle(seed)
    assert lower_bound(puzzle) <= judged.seconds + 1e-9
    orders = [[action.kind for action in actions] for actions in beat_1f1b(puzzle)]
    assert cost(puzzle, orders) == pytest.approx(judged.seconds, rel=2e-3), "the search's clock is the simulator's"
    assert best_known(puzzle) is None


def test_1f1b_does_not_beat_itself_and_messages_may_be_written_out() -> None:
    plain = one_f_one_b_schedule(4, 8)
    for schedule in (plain, with_messages(plain)):
        judged = judge(EVEN, schedule)
        assert judged.valid and not judged.beats_1f1b
        assert judged.seconds == judged.plain.seconds


REJECTED = {
    "a text": ("0F0", ProblemKind.NO_LISTS),
    "a row of texts": (["0F0"] * 4, ProblemKind.NO_LISTS),
    "too few": (one_f_one_b_schedule(3, 8), ProblemKind.NUMBER_OF_LISTS),
    "a text in a list": ([["0F0"], [], [], []], ProblemKind.NOT_AN_ACTION),
    "another kind": ([[Action("X", 0, 0)], [], [], []], ProblemKind.NOT_AN_ACTION),
    "moved": (parse_schedule(["1F0", "0F0", "2F0", "3F0"]), ProblemKind.STAGE_ELSEWHERE),
    "one more": (one_f_one_b_schedule(4, 9), ProblemKind.NO_SUCH_MICRO_BATCH),
    "one less": (one_f_one_b_schedule(4, 7), ProblemKind.NO_FORWARD),
    "memory": (gpipe_schedule(4, 8), ProblemKind.TOO_MUCH_MEMORY),
}


@pytest.mark.parametrize("name", REJECTED)
def test_what_cannot_be_run_is_rejected(name) -> None:
    schedule, kind = REJECTED[name]
    judged = judge(EVEN, schedule)
    assert not judged.valid and not judged.beats_1f1b
    assert judged.problems[0].kind == kind and str(judged.problems[0]) in str(judged)
    assert judged.seconds == float("inf") and judged.idle_share == 1


def test_no_puzzle() -> None:
    one = ((1.0,), (1.0,), (1.0,))
    assert Puzzle(*one, 0, 0, (1,), 2).one_f_one_b().seconds == 6
    for times, memory, micro_batches, words in (
        (one, (1, 1), 2, "four lists"),
        (one, (0,), 2, "needs 1"),
        (one, (1,), 0, "whole number"),
        (((0.0,), *one[1:]), (1,), 2, "positive"),
    ):
        with pytest.raises(CourseError, match=words):
            Puzzle(*times, 0, 0, memory, micro_batches)


@pytest.mark.parametrize("name", PUZZLES)
def test_nothing_is_faster_than_the_best_known(name) -> None:
    puzzle = PUZZLES[name]
    known = best_known(puzzle).seconds
    proof = prove(puzzle, known)
    assert 0 < check_proof(proof) <= len(proof)  # a circle is seen a few steps earlier
    assert 0.98 * known <= lower_bound(puzzle) <= known + 1e-9, "within 2% without a search already"
    assert prove(puzzle, known + 0.1) is None, "a schedule contradicts it"


@pytest.mark.parametrize("name", PUZZLES)
def test_what_a_rank_waits_for_does_and_leaves_to_others_makes_the_bound(name) -> None:
    puzzle = PUZZLES[name]
    stretches = longest_stretches(puzzle)
    own = [sum(times) for times in zip(puzzle.forward, puzzle.input_gradient, puzzle.weight_gradient, strict=True)]
    for stretch, each in zip(stretches, own, strict=True):
        assert min(stretch) >= 0 and 0 < stretch.work <= puzzle.micro_batches * each + 1e-9


@pytest.mark.parametrize("name", PUZZLES)
def test_a_proof_with_a_mistake_is_rejected(name) -> None:
    proof = prove(PUZZLES[name], best_known(PUZZLES[name]).seconds)
    first = proof.steps[0]
    everything = tuple(Action("F", rank, n) for rank in range(PUZZLES[name].ranks) for n in range(8))
    wrong = {
        "another claim": replace(proof, seconds=proof.seconds + 0.1),
        "no end": replace(proof, steps=()),
        "too few actions": replace(proof, steps=(replace(first, actions=first.actions[:1]), *proof.steps[1:])),
        "actions counted twice": replace(proof, steps=(replace(first, actions=first.actions * 2), *proof.steps[1:])),
        "several ranks": replace(proof, steps=(ProofStep("too long", everything),)),
    }
    for what, changed in wrong.items():
        if what != "too few actions" or first.kind == "too long":
            with pytest.raises(CourseError):
                check_proof(changed)


def test_the_proof_of_uneven_stages_looks_at_two_cases_and_both_are_needed() -> None:
    proof = prove(PUZZLES["uneven"], best_known(PUZZLES["uneven"]).seconds)
    (fork,) = [step for step in proof.steps if step.kind == "either"]
    for cases in (fork.cases[:1], fork.cases[1:], (fork.cases[0], fork.cases[0])):
        with pytest.raises(CourseError):
            check_proof(replace(proof, steps=(*proof.steps[:-1], replace(fork, cases=cases))))


@pytest.mark.parametrize("seed", range(12))
def test_no_schedule_is_below_a_proved_bound(seed) -> None:
    puzzle = random_puzzle(seed)
    seconds = judge(puzzle, anneal(puzzle, seed, 300)).seconds
    bound = round(lower_bound(puzzle), 6)
    assert bound <= seconds + 1e-9
    proof = prove(puzzle, bound)
    assert check_proof(proof) <= len(proof)
