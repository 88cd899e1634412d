"""Judge a learner's function: run it stage by stage and case by case, and find its mistake where one goes wrong.

Where it runs, `judging_plan` says; what one case gives, `run_cases`; which mistake it is, `mistake_search`.
"""

import contextlib
import functools
import inspect
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from course_utils import settings
from course_utils.checks.block_picture import block_picture
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, Kind
from course_utils.checks.judging_plan import JudgingStage, NeedsRanks, On, on_these, plan, start_first, too_few
from course_utils.checks.mistake_search import MistakeSearch, Searched, is_comparable
from course_utils.checks.run_cases import Runner, by_luck, outcomes
from course_utils.checks.verdict import JudgedOn, Result, Verdict
from course_utils.errors import CourseError
from course_utils.ranks.ending import Ending
from course_utils.ranks.engine.process_settings import use_default_settings
from course_utils.ranks.engine.reply import Raised, to_bytes
from course_utils.ranks.interface import PATIENCE, RanksInterface
from course_utils.ranks.run import events_of, kept_in_the_notebook

if TYPE_CHECKING:
    from course_utils.draw.style import Picture

FIXED_SEED = 20_240
"""Of the cases on which answers and programs are compared: the question must not depend on a check's own numbers."""


def fresh_seed() -> int:
    """A new seed for each check, so that no answer can know the numbers; `COURSE_SEED` repeats one."""
    given = settings.SEED.value()
    return int.from_bytes(os.urandom(4), "little") if given is None else given


@dataclass(frozen=True)
class Options:
    """How an answer is judged.

    Attributes:
        seed: of the cases' numbers; None draws a new one.
        patience: seconds without progress after which the ranks are taken to hang.
        limit: seconds of computing after which a case is ended; None: the exercise's own.
        hide: the course's own answer, so that the function cannot call it; False to judge that one itself.
        search: whether the mistake of a wrong answer is looked for.
    """

    seed: int | None = None
    patience: float = PATIENCE
    limit: float | None = None
    hide: bool = True
    search: bool = True


def verdict_on(
    exercise: Exercise, function: Callable, ranks: RanksInterface | None, options: Options = Options()
) -> Verdict:
    """Judge `function` on as few real ranks as it takes.

    Args:
        ranks: the running ranks; None where none run.

    Raises:
        CourseError: only real ranks can judge it, and none run, or too few.
    """
    seed = fresh_seed() if options.seed is None else options.seed
    return judge(exercise, function, plan(exercise, ranks, seed), replace(options, seed=seed))


def verdict_on_these(
    exercise: Exercise, function: Callable, ranks: RanksInterface, options: Options = Options()
) -> Verdict:
    """Judge `function` on these ranks alone.

    Raises:
        CourseError: not one case fits on so few ranks.
    """
    return judge(exercise, function, [on_these(exercise, ranks)], options)


@use_default_settings()
def judge(
    exercise: Exercise, function: Callable, stages: Sequence[JudgingStage], options: Options = Options()
) -> Verdict:
    """Judge `function` stage by stage, until the first case that fails.

    Args:
        exercise: what is asked for.
        function: the learner's; shipped to every rank.
        stages: where it runs, and the cases.

    Raises:
        CourseError: not one case fits, or only real ranks can judge it and there are none.
    """
    return _Judging(exercise, function, stages, options).verdict()


class TooBusy(CourseError):
    """The machine gave an answer so little processor time that nothing can be said of the answer."""


@dataclass
class _StageRun:
    """How far an answer came on one stage.

    Attributes:
        stage: on whose ranks it ran.
        passed: the cases that it passed.
        last: what it did on the last of these, but for those that come after others.
        failed: what it did on the case that it failed; None where it failed none.
        rest: the cases behind that one.
        lucky: what came out well, and on another day would not have; with the cases before it and those behind it.
        cannot: what virtual ranks cannot do for it.
        is_stub: whether it ended at the line that the exercise came with.
    """

    stage: JudgingStage
    passed: list[Case] = field(default_factory=list)
    last: Outcome | None = None
    failed: Outcome | None = None
    rest: Sequence[Case] = ()
    lucky: "_StageRun | None" = None
    cannot: str = ""
    is_stub: bool = False


class _Judging:
    """One answer on its way to its verdict."""

    def __init__(
        self, exercise: Exercise, function: Callable, stages: Sequence[JudgingStage], options: Options
    ) -> None:
        self._exercise, self._function, self._stages, self._options = exercise, function, stages, options
        self._seed = fresh_seed() if options.seed is None else options.seed
        self._hidden = (exercise.library, *exercise.also_hidden) if options.hide else ()

    def verdict(self) -> Verdict:
        stage_runs: list[_StageRun] = []
        stages = [stage for stage in self._stages if stage.cases(self._seed)]
        if not stages:
            raise too_few(self._exercise, max((stage.left_out(self._seed) for stage in self._stages), default=0))
        if unfit := self._unfit(stages):
            return Verdict(Result.WRONG, self._exercise.name, unfit, seed=self._seed)
        cannot = ""
        for stage in stages:
            if cannot and stage.on == On.VIRTUAL:
                continue
            stage_run = self._run_stage(stage, stage.cases(self._seed))
            if stage_run.cannot:
                cannot, stage_runs = stage_run.cannot, []
                continue
            stage_runs.append(stage_run)
            if stage_run.failed:
                return self._wrong(stage_runs, cannot)
        if not stage_runs:
            raise NeedsRanks(f"{cannot}. {start_first(self._exercise)}")
        for number, stage_run in enumerate(stage_runs):
            if stage_run.lucky:  # a later case might have shown what else comes of it, and that says more
                return self._wrong([*stage_runs[:number], stage_run.lucky], cannot)
        outcome = [stage_run.last for stage_run in stage_runs if stage_run.last][-1]
        judged_on, praise = self._judged_on(stage_runs, cannot), self._exercise.praise(outcome)
        return self._verdict(Result.RIGHT, outcome, judged_on, Searched(), praise)

    # --- the answer on the ranks of a stage ---------------------------------------------------------------------------

    def _run_stage(self, stage: JudgingStage, cases: Sequence[Case]) -> _StageRun:
        """Run the answer case by case until the first that fails."""
        stage_run = _StageRun(stage)
        try:
            for outcome in self._outcomes(stage, cases):
                if self._ends(stage_run, outcome):
                    break
                rest = cases[len(stage_run.passed) + 1 :]
                if outcome.finding:
                    stage_run.failed, stage_run.rest = outcome, rest
                    break
                if stage_run.lucky is None and (lucky := by_luck(outcome)):
                    stage_run.lucky = _StageRun(stage, [*stage_run.passed], failed=lucky, rest=rest)
                stage_run.passed.append(outcome.case)
                if not outcome.case.before:
                    stage_run.last = outcome
        except TooBusy:
            raise
        except CourseError as error:
            if stage.on != On.VIRTUAL:
                raise
            stage_run.cannot = str(error).rstrip(".")
        return stage_run

    def _outcomes(self, stage: JudgingStage, cases: Sequence[Case]) -> Iterator[Outcome]:
        if self._exercise.needs_torch:
            import_torch(stage.ranks)
        runs = [(case, self._function) for case in cases]
        limit = stage.limit or self._options.limit or self._exercise.limit
        run = self._runner(stage, limit, self._hidden)
        return itertools.chain(run(runs[:1]), run(runs[1:]))  # many answers are wrong in the first case already

    def _runner(self, stage: JudgingStage, limit: float, hidden: Sequence[str]) -> Runner:
        patience = self._options.patience
        return functools.partial(outcomes, ranks=stage.ranks, patience=patience, limit=limit, hidden=hidden)

    def _ends(self, stage_run: _StageRun, outcome: Outcome) -> bool:
        """Whether the stage ends here, though nothing is known to be wrong; notes why."""
        for reply in outcome.attempt.replies:
            if reply.error and reply.error.type == "VirtualRanksCannot":
                stage_run.cannot = _what_they_cannot(reply.error)
                return True
            if _is_stub(reply.error):
                stage_run.is_stub = True
                stage_run.failed = replace(outcome, finding=Finding(Kind.UNFINISHED, reply.rank))
                return True
        ending, may_end_early = outcome.attempt.ending, stage_run.stage.may_end_early
        if ending == Ending.TOO_BUSY and not may_end_early:
            raise TooBusy(f"{outcome.attempt.trouble} Run this cell again when fewer other programs are running.")
        return may_end_early and ending in (Ending.NOT_FINISHED, Ending.TOO_BUSY)

    # --- verdicts -----------------------------------------------------------------------------------------------------

    def _wrong(self, stage_runs: Sequence[_StageRun], cannot: str) -> Verdict:
        stage_run = stage_runs[-1]
        if stage_run.is_stub and not any(each.passed for each in stage_runs):
            return Verdict(Result.NOT_BEGUN, self._exercise.name, seed=self._seed)
        assert stage_run.failed
        searched = Searched() if stage_run.is_stub else self._searched(stage_run)
        return self._verdict(Result.WRONG, stage_run.failed, self._judged_on(stage_runs, cannot), searched)

    def _judged_on(self, stage_runs: Sequence[_StageRun], cannot: str) -> JudgedOn:
        last = stage_runs[-1]
        sizes = [len(case.arguments) for each in stage_runs if each.stage.on == On.VIRTUAL for case in each.passed]
        on_virtual = last.stage.on == On.VIRTUAL
        if on_virtual and last.failed:
            return JudgedOn(found_on_virtual=not last.is_stub)
        return JudgedOn(
            virtual=(min(sizes), max(sizes)) if sizes else None,
            real=0 if on_virtual else last.stage.ranks.world_size,
            virtual_cannot=cannot,
            start=self._exercise.start(min(max(sizes), 4)) if on_virtual else "",
            left_out=0 if sizes else last.stage.left_out(self._seed),
        )

    def _verdict(
        self, result: Result, outcome: Outcome, judged_on: JudgedOn, searched: Searched, praise: str = ""
    ) -> Verdict:
        exercise, replies, case = self._exercise, outcome.attempt.replies, outcome.case
        return Verdict(
            result,
            exercise.name,
            outcome.finding,
            case.label,
            case.key,
            praise,
            searched,
            judged_on,
            events=tuple(events_of(replies)) if exercise.picture else (),
            output=tuple((reply.rank, reply.output) for reply in replies if reply.output) if outcome.finding else (),
            seed=self._seed,
            expected_rounds=case.cost.rounds if case.cost else None,
            drawing=self._drawing(outcome),
        )

    def _drawing(self, outcome: Outcome) -> "Callable[[], Picture | None] | None":
        """What gives the exercise's own picture; None if messages are drawn."""
        if self._exercise.drawing:
            return functools.partial(self._exercise.drawing, outcome)
        if self._exercise.wrong_blocks and outcome.finding:
            return functools.partial(block_picture, self._exercise, self._function, outcome)
        return None

    # --- which mistake it is ------------------------------------------------------------------------------------------

    def _searched(self, stage_run: _StageRun) -> Searched:
        exercise = self._exercise
        if not exercise.written.questions or not self._options.search:
            return Searched()
        run, stage = self._on_fixed_numbers(stage_run), stage_run.stage
        assert run.failed
        on_others = replace(stage, ranks=stage.search_ranks()) if stage.search_ranks else stage
        if exercise.needs_torch and exercise.search_runs:
            import_torch(on_others.ranks)
        programs = self._runner(on_others, exercise.limit, ())
        return MistakeSearch(
            exercise, run.failed, run.passed, lambda: self._outcomes(stage, run.rest), programs
        ).search()

    def _on_fixed_numbers(self, stage_run: _StageRun) -> _StageRun:
        """The same answer on the cases of the fixed seed, where programs can be compared with it and it fails there."""
        if not (self._exercise.search_runs and stage_run.failed and is_comparable(stage_run.failed)):
            return stage_run
        with contextlib.suppress(TooBusy):
            again = self._run_stage(stage_run.stage, stage_run.stage.cases(FIXED_SEED))
            again = again if again.failed else again.lucky or again
            if again.failed and not again.is_stub:
                return again
        return stage_run

    # --- before anything runs -----------------------------------------------------------------------------------------

    def _unfit(self, stages: Sequence[JudgingStage]) -> Finding | None:
        """Find out whether the function can be called with the cases' arguments, and sent to the ranks."""
        cases = (case for stage in stages for case in stage.cases(self._seed))
        return next(filter(None, (_wrong_signature(self._function, case) for case in cases)), _luggage(self._function))


def _what_they_cannot(error: Raised) -> str:
    return f"{error.message.rstrip('.')}{f' ({error.line})' if error.line else ''}"


def _is_stub(error: Raised | None) -> bool:
    """Whether the line that the exercise came with was reached; libraries raise NotImplementedError with a text."""
    return error is not None and error.type == "NotImplementedError" and error.message.strip()[:9] in ("", "your turn")


def _wrong_signature(function: Callable, case: Case) -> Finding | None:
    if case.harness:
        return None
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return None
    given = len(case.arguments[0]) + (case.with_comm and case.backend is None)
    try:
        signature.bind(*[None] * given)
    except TypeError:
        return Finding(Kind.SIGNATURE, got=tuple(signature.parameters), expected=given)
    return None


def _luggage(function: Callable) -> Finding | None:
    """Find out whether the function uses something that cannot travel to the ranks, as `ranks` itself."""
    try:
        to_bytes(function)
    except Exception as error:  # whatever an object's own pickling may raise
        return Finding(Kind.CANNOT_TRAVEL, words=kept_in_the_notebook(function, error))
    return None


def import_torch(ranks: RanksInterface) -> None:
    """Let every rank import torch before the clock of the first case runs: it takes seconds."""
    ranks.attempt(_torch_version, [()] * ranks.world_size, with_comm=False, patience=120.0, limit=120.0)


def _torch_version() -> str:
    import torch
    import torch.distributed

    return str(torch.__version__)
