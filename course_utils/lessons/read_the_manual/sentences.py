"""What lesson 15's measurements say, in sentences that the numbers choose."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import torch

from course_utils.lessons.hybrid_and_sharded.planner.layout_search import judge
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import Layout
from course_utils.lessons.read_the_manual.framework_steps import (
    AT_THE_START,
    Stepped,
    largest_difference,
    parts,
    words_of,
)
from course_utils.lessons.read_the_manual.large_training.training_tasks import TrainingTask
from course_utils.lessons.read_the_manual.passages import Passage
from course_utils.measuring import larger, tied
from course_utils.words import bytes_text, count, join, number_text, percent, rank_ranges

SAME = 1e-9
"""Weights in float64 nearer than this are the same but for the order of additions."""


def same_text(name: str, steps: Sequence[Stepped], weights: torch.Tensor) -> str:
    """Return a line that says whether all ranks have one process's weights, or at least the same ones."""
    far, among = largest_difference(steps, weights), largest_difference(steps, steps[0].weights)
    if far <= SAME:
        return f"{name}: every rank ends with the weights of a single process (largest difference {far:.0e})"
    if among <= SAME:
        return (
            f"{name}: all ranks have the same weights, but not those of a single process (largest difference {far:.2g})"
        )
    return f"{name}: the ranks have different weights (largest difference {among:.2g})"


def start_letter(steps: Sequence[Stepped], weights: torch.Tensor) -> str:
    """Return how ranks with different seeds end: "a" like one process, "b" different, "c" the same, unlike it."""
    if largest_difference(steps, weights) <= SAME:
        return "a"
    return "c" if largest_difference(steps, steps[0].weights) <= SAME else "b"


def calls_text(name: str, steps: Sequence[Stepped]) -> str:
    """Return a line with the number of calls of each collective of rank 0, at the start and in the step."""
    names, start = [words_of(call) for call, _ in steps[0].calls], steps[0].start
    phases = {"at the start": Counter(names[:start]), "in the step": Counter(names[start:])}
    texts = [
        f"{join([f'{n} × {call}' for call, n in calls.items()])} {when}" for when, calls in phases.items() if calls
    ]
    return f"{name}: {', '.join(texts) or 'no collectives'}"


def ran_text(ran: Iterable[str], programs: Iterable[str]) -> str:
    """Return which programs took the same step, and which did not run here."""
    ran = list(ran)
    absent = [name for name in programs if name not in ran]
    text = f"The same step on every rank: {join(ran)}."
    return f"{text} Not run here: {join(absent)}." if absent else text


def sent_and_kept_text(steps: Mapping[str, Sequence[Stepped]], most: str) -> str:
    """Return how the program `most` compares with the first: what it sends in the step, and what a rank keeps."""
    sent, kept = parts(steps)
    first = next(iter(steps))
    after = {name: sum(amount for kind, amount in sent[name].items() if kind != AT_THE_START) for name in steps}
    if not after[first]:
        return "A single rank sends nothing"
    times = after[most] / after[first]
    share = sum(kept[most].values()) / sum(kept[first].values())
    more = "as much" if tied(times, 1) else f"{number_text(times)} times as much"
    less = f"{percent(share)} as much" if larger(1, share) else "as much"
    return f"{most} sends {more} per step as the program {first}, and keeps {less}"


def naive_steps_text(sent: float, bytes_budget: int, steps: int) -> str:
    """Return a line that says for how many naive steps a budget of bytes lasts."""
    possible = int(bytes_budget // sent)
    text = f"In a step each node sends {bytes_text(sent)}, so {bytes_text(bytes_budget)} last for"
    return f"{text} {possible} of {count(steps, 'step')}" if possible < steps else f"{text} all {count(steps, 'step')}"


def sends_most(steps: Mapping[str, Sequence[Stepped]]) -> str:
    """Return the program that sends the most in its step, not counting the start; of equals the first."""
    sent = parts(steps)[0]
    return max(sent, key=lambda name: sum(amount for kind, amount in sent[name].items() if kind != AT_THE_START))


def words_text(passages: Sequence[Passage]) -> str:
    """Return a line that says how many of the underlined words the course has taught."""
    terms = [term for passage in passages for term in passage.terms]
    taught = [term for term in terms if term.lesson is not None]
    lessons = len({term.lesson for term in taught})
    return f"{len(taught)} of the {len(terms)} words were taught, in {lessons} lessons"


def stopping_text(losses: Sequence[Sequence[float]], limit: float) -> str:
    """Say after how many steps the mean loss is below the limit, and which ranks were there earlier by themselves.

    Args:
        losses: for each number of steps, from 0 on, the loss of each rank; the mean of the last is below the limit.
    """
    early = [rank for rank, own in enumerate(zip(*losses[:-1], strict=True)) if min(own) < limit]
    reached = f"The mean loss is below {limit:g} after {count(len(losses) - 1, 'step')}"
    if not early:
        return f"{reached}, and no rank was below it earlier"
    return f"{reached}, but {rank_ranges(early)} alone would have stopped earlier"


def plan_text(task: TrainingTask, layout: Layout) -> str:
    """Return what a layout needs of a GPU's memory and where the time of its step goes, part by part."""
    choice = judge(task.model, task.cluster, layout, task.length)
    memory = {**choice.memory.parts(), "buffers": choice.buffers}
    lines = [str(choice), "", f"{'':20}bytes of a GPU"]
    lines += [f"{name:20}{bytes_text(size):>14}" for name, size in memory.items()]
    lines += [f"{'together':20}{bytes_text(choice.needed):>14}   of {bytes_text(choice.room)} that may be used"]
    lines += ["", f"{'':20}share of a step"]
    lines += [f"{name:20}{percent(seconds / choice.step):>14}" for name, seconds in choice.seconds.items() if seconds]
    return "\n".join([*lines, "", f"MFU {choice.peak_share:.1%}; the goal is {task.goal:.1%}"])
