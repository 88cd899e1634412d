"""On which ranks an answer is judged: on none where it needs none; on virtual ones first where they can run it.

Virtual ranks are many and count exactly, whatever else the machine does. Real ones show what only they can: time, and
messages that pass one another.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from course_utils.checks.exercise import Case, Exercise
from course_utils.checks.judge import cases_of, fresh_seed, judge
from course_utils.checks.run_cases import BY_LUCK, RanksLike
from course_utils.checks.verdict import NOT_BEGUN, Verdict
from course_utils.errors import CourseError
from course_utils.ranks.without_ranks import NoRanks, VirtualRanksApart
from course_utils.words import count

MOST = 64
"""Virtual ranks in the largest case."""
_FEW = 8
"""Up to so many ranks there is a case for each number of them."""
_USUAL = 4
"""For how many ranks cases are drawn where none run."""
_SECONDS = 10.0
"""The most that a case takes on many virtual ranks, which share one core; those after it are left out."""


class NeedsRanks(CourseError):
    """An exercise that only real ranks can judge, and none run."""


def verdict_on(
    exercise: Exercise, function: Callable, ranks: RanksLike | None, *, seed: int | None = None, hide: bool = True
) -> Verdict:
    """The verdict on `function`, from as few real ranks as it takes.

    Args:
        exercise: what is asked for.
        function: the learner's.
        ranks: the running ranks; None where none run.
        seed, hide: as for `judge`.

    Raises:
        CourseError: only real ranks can judge it, and none run, or too few.
    """
    seed = fresh_seed() if seed is None else seed
    cases = cases_of(exercise, seed, ranks.world_size if ranks else _USUAL)
    if needs_nothing(cases):
        return judge(exercise, function, ranks or NoRanks(_USUAL), seed=seed, cases=cases, hide=hide)
    if not fits_virtual_ranks(exercise, cases):
        return judge(exercise, function, _there(exercise, ranks), seed=seed, cases=cases, hide=hide)
    try:
        virtual, sizes = _on_virtual_ranks(exercise, function, cases, seed, hide)
    except CourseError as error:
        there = _there(exercise, ranks, f"{error} ")
        verdict = judge(exercise, function, there, seed=seed, cases=cases, hide=hide)
        return _with_note(verdict, f"Your {count(there.world_size, 'rank')} judged alone, for {_inside(str(error))}.")
    if virtual.text.startswith(BY_LUCK) and ranks:  # what comes of it, real ranks show
        verdict = judge(exercise, function, ranks, seed=seed, cases=cases, hide=hide)
        return virtual if verdict.passed else verdict
    if not virtual.passed:
        return virtual if virtual.mark == NOT_BEGUN else _with_note(virtual, "Found on virtual ranks.")
    return _and_on_real_ranks(exercise, function, ranks, virtual, sizes, cases, hide)


def needs_nothing(cases: Sequence[Case]) -> bool:
    """Whether each case can do without any other rank."""
    return not any(case.with_comm or case.backend for case in cases)


def fits_virtual_ranks(exercise: Exercise, cases: Sequence[Case]) -> bool:
    """Whether the cases need a communicator and NumPy, and nothing else."""
    needs_more = exercise.needs_torch or exercise.shares_files or exercise.link
    return not needs_more and not any(case.backend for case in cases) and not all(case.timed for case in cases)


def larger_cases(exercise: Exercise, seed: int, world_size: int) -> list[Case]:
    """A case for each number of ranks above `world_size` up to eight, and one for 64."""
    found: dict[int, Case] = {}
    for case in cases_of(exercise, seed, MOST):
        found.setdefault(len(case.arguments), case)
    return [found[size] for size in sorted(found) if size > world_size and (size <= _FEW or size == MOST)]


def _there(exercise: Exercise, ranks: RanksLike | None, why: str = "") -> RanksLike:
    if ranks is None:
        first = "" if why else "No ranks are running yet. "
        raise NeedsRanks(f"{why}{first}Run `{exercise.start(_USUAL)}` first, then this cell again.")
    return ranks


class _Deciding(VirtualRanksApart):
    """Virtual ranks on which an answer runs; `seconds`: after which a case is too much for them, None for never."""

    def __init__(self, seconds: float | None = None) -> None:
        super().__init__(MOST)
        self._seconds = seconds

    def attempt(self, function: Callable, arguments: list[tuple], **options: Any) -> Any:
        """As `VirtualRanksApart.attempt`.

        Raises:
            CourseError: the function does what virtual ranks cannot.
            TimeoutError: it takes them too long.
        """
        attempt = super().attempt(function, arguments, **options)
        for reply in attempt.replies:
            if reply.error and reply.error.type == "VirtualRanksCannot":
                raise CourseError(f"{reply.error.message.rstrip('.')}{_place(reply.error.line)}.")
        if self._seconds is not None and (attempt.trouble or "").startswith("not finished"):
            raise TimeoutError
        return attempt


def _place(line: str) -> str:
    return f" ({line})" if line else ""


def _on_virtual_ranks(
    exercise: Exercise, function: Callable, cases: Sequence[Case], seed: int, hide: bool
) -> tuple[Verdict, list[int]]:
    """The verdict of the virtual ranks, and the numbers of them on which the answer was right."""
    untimed = [case for case in cases if not case.timed]
    given = {"seed": seed, "hide": hide, "others": lambda: VirtualRanksApart(MOST)}
    verdict = judge(exercise, function, _Deciding(), cases=untimed, **given)
    sizes = [len(case.arguments) for case in untimed]
    if not verdict.passed:
        return verdict, []
    for case in larger_cases(exercise, seed, max(sizes)):
        try:
            larger = judge(exercise, function, _Deciding(_SECONDS), cases=[case], limit=_SECONDS, **given)
        except TimeoutError:
            break
        verdict = larger
        if not verdict.passed:
            break
        sizes.append(len(case.arguments))
    return verdict, sizes


def _and_on_real_ranks(
    exercise: Exercise,
    function: Callable,
    ranks: RanksLike | None,
    virtual: Verdict,
    sizes: Sequence[int],
    cases: Sequence[Case],
    hide: bool,
) -> Verdict:
    """The verdict of the real ranks on what is right on virtual ones; that one, where no case fits on the real."""
    on_virtual = f"{min(sizes)} to {count(max(sizes), 'virtual rank')}"
    fitting = [case for case in cases if ranks and len(case.arguments) <= ranks.world_size]
    if not fitting:
        start = exercise.start(min(max(sizes), _USUAL))
        return _with_note(virtual, f"On {on_virtual}; real ranks are still to come: `{start}`, then this cell again.")
    verdict = judge(exercise, function, ranks, seed=virtual.seed, cases=fitting, hide=hide)
    if verdict.passed:
        return _with_note(verdict, f"On {on_virtual}, then on your {count(ranks.world_size, 'rank')}.")
    return replace(verdict, text=f"right on {on_virtual}; on your {count(ranks.world_size, 'rank')}, {verdict.text}")


def _with_note(verdict: Verdict, note: str) -> Verdict:
    """The verdict with a remark: in brackets behind what is right, before the question on what is not."""
    if verdict.passed:
        return replace(verdict, text=f"{verdict.text} ({_inside(note)})")
    question = verdict.details.get("question", "")
    finding = verdict.text.removesuffix(question).rstrip()
    return replace(verdict, text=f"{finding} {note} {question}".rstrip())


def _inside(sentence: str) -> str:
    """A sentence as a part of another."""
    return f"{sentence[0].lower()}{sentence[1:].rstrip('.')}"
