"""Whether an answer gets the same verdict and the same question on a busy machine as on one at rest.

The sample answers of some exercises are judged by turns, alone and beside processes that compute without end, on the
same numbers. `course bench grader --busy 30` runs it.
"""

import contextlib
import io
import subprocess
import sys
from collections.abc import Iterator, Sequence

from tqdm.auto import tqdm

import course_utils as course
from course_utils.checks.exercise import Exercise
from course_utils.checks.judge import Options, fresh_seed, verdict_on
from course_utils.checks.registry import chosen, find
from course_utils.checks.sample_answers import Program
from course_utils.errors import CourseError
from course_utils.ranks.interface import RanksInterface
from workshop.bench.rows import Row

USUAL = "sgd_step", "exchange_without_deadlock", "ring_allreduce", "sync_batch_norm", "make_buckets", "combine"
"""Exercises without ranks, with virtual ones and with real ones; the first check of some of them imports torch."""
Judged = tuple[str, str, str]
"""Mark, kind of the finding and question; the first words of the error where there is no verdict."""


def compare(answers: int, busy: int, only: Sequence[str] = ()) -> list[Row]:
    """Judge answers of each exercise alone and beside `busy` processes: two rows for each exercise.

    Args:
        answers: how many of each exercise: right ones first, then one for each question.
        busy: how many processes compute meanwhile.
        only: names of exercises, or numbers of lessons; none means six exercises of all kinds.
    """
    exercises = [*chosen(only)] if only else [find(name) for name in USUAL]
    chosen_answers = {exercise.name: _some_of(exercise, answers) for exercise in exercises}
    with contextlib.redirect_stdout(io.StringIO()):
        ranks = course.start(4)
    try:
        with tqdm(total=sum(map(len, chosen_answers.values())), unit=" answers", file=sys.stderr, leave=False) as bar:
            return [
                row
                for exercise in exercises
                for row in _rows(exercise, chosen_answers[exercise.name], busy, ranks, bar)
            ]
    finally:
        ranks.stop()


def _some_of(exercise: Exercise, number: int) -> list[Program]:
    one_of_each = [question.programs[0] for question in exercise.written.questions if question.programs]
    return [*exercise.written.right[:1], *one_of_each][:number]


def _rows(exercise: Exercise, answers: Sequence[Program], busy: int, ranks: RanksInterface, bar: tqdm) -> list[Row]:
    marks, questions = 0, 0
    for answer in answers:
        seed = fresh_seed()
        alone = _judge(exercise, answer, ranks, seed)
        with _computing(busy):
            crowded = _judge(exercise, answer, ranks, seed)
        marks += alone[:2] != crowded[:2]
        questions += alone[2] != crowded[2]
        if alone != crowded:
            tqdm.write(
                f"{exercise.name}, {answer.name} [COURSE_SEED={seed}]: {alone}; busy: {crowded}", file=sys.stderr
            )
        bar.update()
    beside = f"beside {busy} busy processes"
    return [
        Row(
            "grader", f"{exercise.name}: {what} that differ {beside}", float(value), "", "lower", 0.0, 0.0, len(answers)
        )
        for what, value in (("verdicts", marks), ("questions", questions))
    ]


def _judge(exercise: Exercise, answer: Program, ranks: RanksInterface, seed: int) -> Judged:
    try:
        verdict = verdict_on(exercise, answer.function(), ranks, Options(seed=seed))
    except CourseError as error:
        return type(error).__name__, str(error)[:60], ""
    return str(verdict.result), verdict.finding.name if verdict.finding else "", verdict.question


@contextlib.contextmanager
def _computing(number: int) -> Iterator[None]:
    """Inside, so many processes compute without end."""
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()
