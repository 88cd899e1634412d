"""Whatever people write for exercises that need a communicator alone: virtual ranks and real ones say the same of it.

A right answer has the same bits and the same counts; a wrong one gets the same question.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Kind
from course_utils.checks.judge import Options, fresh_seed, judge
from course_utils.checks.judging_plan import (
    MOST,
    JudgingStage,
    NeedsRanks,
    On,
    cases_of,
    fits_virtual_ranks,
    needs_nothing,
    plan,
)
from course_utils.checks.registry import declared, find
from course_utils.checks.run_cases import outcomes
from course_utils.checks.sample_answers import Program
from course_utils.ranks.interface import RanksInterface
from course_utils.ranks.offline.stand_ins import WorkerVirtualRanks

SEED = 1
UNLIKE = {
    "scatter_blocks-float32_for_all": "MPICH writes float64 numbers into an array of float32 without a word; virtual "
    "ranks say that there is no room, as the standard does",
}
"""Answers that virtual ranks see otherwise, and why."""
IN_ANY_ORDER = ("parameter_server_step-who_comes_first", "parameter_server_step-send_and_receive_in_one")
"""Answers that add messages in the order in which they come: on real ranks it differs from run to run, and with it in
how many rounds a second call ends."""


def on_virtual_ranks(exercise: Exercise) -> bool:
    cases = cases_of(exercise, SEED, 4)
    return fits_virtual_ranks(exercise, cases) and not needs_nothing(cases)


EXERCISES = [exercise for exercise in declared() if on_virtual_ranks(exercise)]


def given(programs: Iterable[Program]) -> list:
    """An exercise's programs; all but the first are weekly."""
    return [pytest.param(each, marks=pytest.mark.weekly if number else ()) for number, each in enumerate(programs)]


RIGHT = [each for exercise in EXERCISES for each in given(exercise.written.right)]
WRONG = [each for exercise in EXERCISES for each in given(program for program, _ in exercise.written.wrong)]


def name_of(program: Program) -> str:
    return f"{program.exercise}-{program.name}"


def outcomes_of(program: Program, ranks: RanksInterface) -> Iterator[Outcome]:
    exercise = find(program.exercise)
    untimed = [case for case in cases_of(exercise, SEED, 4) if not case.timed]
    return outcomes([(case, program.function()) for case in untimed], ranks, limit=60.0)


def bits(thing: Any) -> Any:
    """Equal where two things are equal to the last bit."""
    if isinstance(thing, np.ndarray | np.generic):
        return str(thing.dtype), thing.shape, thing.tobytes()
    if isinstance(thing, list | tuple):
        return [bits(part) for part in thing]
    if isinstance(thing, dict):
        return {key: bits(part) for key, part in thing.items()}
    return thing.hex() if isinstance(thing, float) else repr(thing)


def counts(outcome: Outcome, in_any_order: bool = False) -> tuple:
    run = outcome.run
    return None if in_any_order else run.rounds, run.messages, run.bytes_per_rank, run.collectives


@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", RIGHT, ids=name_of)
def test_a_right_answer_passes_on_many_virtual_ranks(program):
    exercise, seed = find(program.exercise), fresh_seed()
    _, larger = plan(exercise, None, seed)
    verdict = judge(exercise, program.function(), [replace(larger, limit=60.0)], Options(seed=seed))
    assert verdict.passed, f"{verdict}  [COURSE_SEED={verdict.seed}]"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", RIGHT, ids=name_of)
def test_a_right_answer_gives_the_same_bits_and_counts(program, four_ranks):
    for virtual, real in zip(
        outcomes_of(program, WorkerVirtualRanks(4)), outcomes_of(program, four_ranks), strict=True
    ):
        label = real.case.label
        in_any_order = name_of(program) in IN_ANY_ORDER
        if not in_any_order:
            assert bits(virtual.results) == bits(real.results), label
            assert bits(virtual.arguments) == bits(real.arguments), label
        assert (virtual.finding, real.finding) == (None, None), label
        assert counts(virtual, in_any_order) == counts(real, in_any_order), label


@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", WRONG, ids=name_of)
def test_a_wrong_answer_gets_the_same_question(program, four_ranks):
    if why := UNLIKE.get(name_of(program)):
        pytest.skip(why)
    exercise = find(program.exercise)

    def untimed(seed: int) -> list[Case]:
        return [case for case in cases_of(exercise, seed, 4) if not case.timed]

    options = Options(seed=SEED, patience=1.5)
    try:
        virtual = judge(
            exercise, program.function(), [JudgingStage(WorkerVirtualRanks(MOST), untimed, On.VIRTUAL)], options
        )
    except NeedsRanks as cannot:
        pytest.skip(f"real ranks judge it alone: {cannot}")
    if virtual.finding and virtual.finding.kind == Kind.BY_LUCK:
        pytest.skip("real ranks show what comes of it")
    real = judge(exercise, program.function(), [JudgingStage(four_ranks, untimed, On.REAL)], options)
    assert virtual.result == real.result, f"{virtual}\n{real}"
    assert virtual.question == real.question, f"{virtual}\n{real}"
