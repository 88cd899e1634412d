"""What the checks of lesson 14 share: the verdict on a race, what took the time, and symptoms of what went wrong."""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from course_utils import draw
from course_utils.checks.compare import difference, kind_of
from course_utils.checks.exercise import Case, Exercise, Outcome, Recogniser
from course_utils.checks.finding import Finding, own
from course_utils.checks.run_cases import changed_argument
from course_utils.checks.symptoms import same
from course_utils.lessons.profiling import intervals
from course_utils.lessons.profiling.checks.races import CLOSE, SLOW, YOURS
from course_utils.lessons.profiling.lanes import Lanes
from course_utils.lessons.profiling.slow import TARGETS
from course_utils.measuring import Compared
from course_utils.words import number_text, percent, seconds_text

if TYPE_CHECKING:
    from matplotlib.figure import Figure


WHOLE = 1e-3
"""Work may differ by this share: seconds that are summed in another order."""
RIGHT = "the results are right, but"
TOO_SLOW = "too-slow"
"""Key of the finding that the factor is not reached."""


def races_well(
    target: float,
    lost: Callable[[Outcome], str],
    rule: Callable[[Outcome], Finding | None] = lambda outcome: None,
    counted: Callable[[Outcome], float] = lambda outcome: 0.0,
) -> Callable[[Outcome], Finding | None]:
    """A judge: equal results, then what `rule` says, then the factor.

    Args:
        target: the factor that is asked for.
        lost: which part still takes the time, in words.
        rule: what is wrong although the results are right, or None.
        counted: the factor by what is counted and not measured, which no other program on the machine changes; 0.0 if
            the clock alone decides.
    """

    def judge(outcome: Outcome) -> Finding | None:
        for rank, result in enumerate(outcome.results):
            if found := difference(rank, result["found"], result["wanted"], CLOSE):
                call = result["round"]
                return replace(found, context=f", in call {call + 1} of your function") if call else found
            if result["changed"]:
                return changed_argument(rank, result["changed"])
        if found := rule(outcome):
            return found
        taken = compared(outcome)
        if taken is None or taken.times >= target or counted(outcome) >= target:
            return None
        words = f"{RIGHT} it is only {{times:.2f}} times as fast as {{slow}} instead of {{target}} times. {{lost}}"
        measured = {"times": taken.times, "lost": lost(outcome)}
        return own(TOO_SLOW, words, measured, slow=slow_name(outcome), target=target)

    return judge


def factor_alone(outcome: Outcome, alone: Callable[[Outcome, str], float]) -> float:
    """How many times as fast the learner's program is on the played hardware; 0.0 if it spends its time elsewhere.

    What a program takes beyond that is Python's and the messages'. It is counted in processor seconds, which other
    programs on the machine hardly lengthen, and may be up to twice as much as in the slow program.

    Args:
        alone: the seconds that a program takes if nothing but the played hardware takes any.
    """
    times = {name: alone(outcome, name) for name in (SLOW, YOURS)}
    rest = {name: max(_processor_seconds(result, name) for result in outcome.results) for name in times}
    return times[SLOW] / times[YOURS] if times[YOURS] and rest[YOURS] <= 2 * rest[SLOW] else 0.0


def _processor_seconds(result: Mapping[str, Any], name: str) -> float:
    return statistics.median(result["processor"][name])


def slow_program(number: int, library: str, **declared: Any) -> Exercise:
    """The exercise to make slow program `number`, in this module of `slow`, faster; `declared`: what is its own."""
    return Exercise(
        library=f"slow.{library}",
        begins_with=f"course_utils.lessons.profiling.slow.{library}:slow_{number}",
        number=number + 2,
        turn="delete this line, and make the program below it faster",
        title=f"slow program {number}",
        needs_torch=True,
        praise=praised(TARGETS[number]),
        search_runs=0,
        **declared,
    )


def slow_name(outcome: Outcome) -> str:
    """What the slow program is called."""
    return f"slow_{outcome.case.harness.__name__[-1]}"


def compared(outcome: Outcome) -> Compared | None:
    """How fast both were; None where no time counted."""
    seconds = outcome.results[0]["seconds"]
    return Compared(seconds[YOURS], seconds[SLOW]) if seconds[YOURS] else None


def praised(target: float) -> Callable[[Outcome], str]:
    """How many times as fast it is."""

    def praise(outcome: Outcome) -> str:
        taken = compared(outcome)
        if taken is None:
            return "the same results"
        if taken.times < target:
            return "it does what was asked for; this machine was too busy to measure how many times as fast it is"
        own, slow = (seconds_text(statistics.median(runs)) for runs in (taken.first, taken.second))
        return (
            f"{number_text(taken.times)} times as fast as {slow_name(outcome)} (the goal was {target}), {own} instead "
            f"of {slow}, with the same {'numbers' if len(outcome.results[0]['wanted']) > 1 else 'number'}"
        )

    return praise


def parts_of(outcome: Outcome, rest: str) -> dict[str, dict[str, float]] | None:
    """Program → part → seconds; what belongs to no part is called `rest`."""
    parts = outcome.results[0].get("parts")
    return parts and {name: {part or rest: own for part, own in each.items()} for name, each in parts.items()}


def longest_part(outcome: Outcome, rest: str) -> str:
    """The part that takes most of the learner's time, with its share."""
    own = (parts_of(outcome, rest) or {}).get(YOURS)
    if not own:
        return ""
    part = max(own, key=own.__getitem__)
    return f"The largest part of its time, {percent(own[part] / sum(own.values()))}, goes into {part}"


def bars_of(rest: str) -> Callable[[Outcome], "Figure | None"]:
    """A picture: the parts of both programs, one bar each."""

    def drawing(outcome: Outcome) -> "Figure | None":
        parts = parts_of(outcome, rest)
        return parts and draw.stacked_bars(
            parts, f"{factor_text(outcome)}; shown is one run of each, slowed down by the profiler"
        )

    return drawing


def lanes_of(outcome: Outcome, name: str, rank: int, messages: str = "messages") -> Lanes:
    """When a rank computed and had messages under way in its last run of the program; it begins at 0.

    Args:
        name: of the program, `SLOW` or `YOURS`.
        messages: "messages" for the collectives, "link" for what is on the played link.
    """
    seen = outcome.results[rank]["lanes"][name]
    begin, end = seen["begin"], seen["end"]

    def from_begin(times: list) -> list:
        return [(first - begin, other - begin) for first, other in intervals.union(times)]

    under_way = from_begin(seen[messages])
    computing = (
        from_begin(seen["computing"]) if seen["computing"] else intervals.difference([(0.0, end - begin)], under_way)
    )
    return Lanes(rank, 0.0, end - begin, computing, under_way, {})


def lanes_drawn(messages: str) -> Callable[[Outcome], "Figure | None"]:
    """A picture: both programs on rank 0."""

    def drawing(outcome: Outcome) -> "Figure | None":
        from course_utils.lessons.profiling import pictures

        if compared(outcome) is None:
            return None
        lanes = [lanes_of(outcome, name, 0, messages) for name in (SLOW, YOURS)]
        return pictures.profile(
            lanes,
            factor_text(outcome),
            "Rank 0 in the last round; the verdict is about the median of all rounds",
            names=[SLOW, YOURS],
        )

    return drawing


def factor_text(outcome: Outcome) -> str:
    """The finding."""
    taken = compared(outcome)
    return f"{taken.times:.1f} times as fast" if taken else ""


def work_missing(outcome: Outcome, of: Callable[[Mapping[str, Any]], float]) -> float:
    """Work of all ranks in the learner's last run as a share of that of the slow program; `of` counts a run's."""
    slow, own = (sum(of(result["lanes"][name]) for result in outcome.results) for name in (SLOW, YOURS))
    return own / slow


def no_numbers(case: Case, outcome: Outcome) -> bool:
    """Whether something other than a list of plain numbers came back."""
    found = outcome.results[0]["found"]
    kinds = {kind_of(number) for number in found} if kind_of(found) in ("list", "tuple") else {"none"}
    return not kinds <= {"float", "int"}


def too_few(case: Case, outcome: Outcome) -> bool:
    """Whether there are fewer or more numbers than the slow program gives."""
    return any(len(result["found"]) != len(result["wanted"]) for result in outcome.results)


def one_step_early(last: int | None = None) -> Recogniser:
    """A recogniser of losses each of which is that of the next step: computed after the weights have changed.

    Args:
        last: losses from this index on are not looked at.
    """

    def recognises(case: Case, outcome: Outcome) -> bool:
        pairs = [(list(result["found"])[:last], result["wanted"][:last]) for result in outcome.results]
        return all(len(wanted) > 1 and same(found[:-1], wanted[1:], CLOSE) for found, wanted in pairs)

    return recognises


SYMPTOMS = {"things other than numbers come back": no_numbers, "there are too few numbers, or too many": too_few}
"""Of every race."""


def right(result: Mapping[str, Any]) -> bool:
    """Whether a rank's numbers are those of the slow program."""
    return difference(0, result["found"], result["wanted"], CLOSE) is None
