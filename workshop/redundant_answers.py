"""Find the wrong sample answers that decide nothing: `python -m workshop.redundant_answers [exercise …]`.

A wrong answer is redundant if the file without it serves as well. That is so if its own question keeps an example, if
another wrong answer fails in the same case, so that the check has no case for this answer alone, and if the answer,
judged against the file without it, is asked the same question. Under a question with a line "Recognised …" programs are
examples for a test and never run in a search, so that nothing has to be judged there.
"""

import argparse
import contextlib
import io
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

from tqdm.auto import tqdm

import course_utils as course
from course_utils.checks.exercise import Exercise
from course_utils.checks.judge import Options, verdict_on_these
from course_utils.checks.registry import chosen
from course_utils.checks.sample_answers import Program, Question, Written
from course_utils.checks.verdict import Verdict
from course_utils.errors import CourseError
from course_utils.ranks.interface import RanksInterface

SEED = 1
PATIENCE = 1.5


@dataclass(frozen=True, kw_only=True)
class _WithFewer(Exercise):
    """An exercise with fewer sample answers than its file holds."""

    kept: Written

    @property
    def written(self) -> Written:
        return self.kept


def redundant(exercise: Exercise, ranks: RanksInterface) -> list[tuple[Program, Question]]:
    """Each wrong answer that may go, with its question; all of them may go together."""
    kept, left_out = exercise.written, list[tuple[Program, Question]]()
    bases = {program.base for program in kept.answers}
    cases = {program.name: _verdict(exercise, program, ranks, search=False).case for program, _ in kept.wrong}
    for number, question in enumerate(kept.questions):
        for program in reversed(question.programs):
            rest = without(kept, program.name)
            has_case = cases[program.name] in {cases[other.name] for other, _ in rest.wrong}
            is_needed = program.name in bases or not rest.questions[number].programs or not has_case
            if not is_needed and _is_found(exercise, rest, program, question, ranks):
                kept = rest
                left_out.append((program, question))
    return [
        (program, question) for program, question in left_out if _is_found(exercise, kept, program, question, ranks)
    ]


def without(written: Written, name: str) -> Written:
    """The sample answers but for the wrong one of this name."""
    questions = (
        replace(question, programs=tuple(program for program in question.programs if program.name != name))
        for question in written.questions
    )
    return replace(written, questions=tuple(questions))


def _is_found(exercise: Exercise, kept: Written, program: Program, question: Question, ranks: RanksInterface) -> bool:
    """Whether the program is asked its question although it is not in the file."""
    if question.recognised:
        return True
    fewer = _WithFewer(**{field.name: getattr(exercise, field.name) for field in fields(exercise)}, kept=kept)
    return _verdict(fewer, program, ranks).question == question.text


def _verdict(exercise: Exercise, program: Program, ranks: RanksInterface, search: bool = True) -> Verdict:
    return verdict_on_these(exercise, program.function(), ranks, Options(SEED, PATIENCE, search=search))


def found_in(exercises: Sequence[Exercise]) -> Iterator[str]:
    """A line for each redundant answer, judged on four ranks of their own."""
    with contextlib.redirect_stdout(io.StringIO()):
        ranks = course.start(4)
    try:
        for exercise in tqdm(exercises, unit=" exercises", file=sys.stderr, leave=False):
            for program, question in redundant(exercise, ranks):
                yield f"{exercise.name}: `{program.name}` under {question.text}"
    finally:
        ranks.stop()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the redundant answers of the exercises named, or of all; 1 where there are some."""
    parser = argparse.ArgumentParser(prog="python -m workshop.redundant_answers", description=__doc__.splitlines()[0])
    parser.add_argument("exercises", nargs="*", help="names of exercises or lessons' numbers; without any, all of them")
    lines = list(found_in(chosen(parser.parse_args(arguments).exercises)))
    print("\n".join(lines) or "Every wrong answer decides something.")
    return 1 if lines else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CourseError as error:
        sys.exit(str(error))
