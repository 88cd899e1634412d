"""The check of `plan_run`: any layout that fits with a margin and is nearly as fast as the best one."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from course_utils.checks.exercise import Case, Exercise, Outcome, Recogniser
from course_utils.checks.finding import Finding, Kind, own
from course_utils.checks.symptoms import raised
from course_utils.lessons.hybrid_and_sharded.planner.layout_search import Choice, judge
from course_utils.lessons.hybrid_and_sharded.planner.step_estimate import (
    AGAIN,
    BUBBLE,
    COMPUTE,
    DATA,
    OPTIMIZER,
    TENSOR,
)
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import MODERN, Layout
from course_utils.lessons.read_the_manual.large_training.training_tasks import TrainingTask, drawn_tasks, llama_task
from course_utils.words import bytes_text, count, percent

TELLING = (10, 15, 70)
"""Seeds of tasks on which plans without a search fail: no pipeline fits; only computing attention's other products
again fits, without ZeRO; only computing everything again fits, with ZeRO's stage 2. A test holds them to that."""
DRAWN = 2
"""Tasks of each check that no earlier check has seen."""
SETTINGS = ("data", "tensor", "pipeline", "zero", "again", "micro_batch", "micro_batches", "program")
"""Fields of a layout that the exercise's table names."""
NOUNS = {AGAIN: "computing again", BUBBLE: "the bubble", OPTIMIZER: "the optimizer"}
"""What sentences call parts of a step whose names do not fit into them."""
STATES = {"parameters", "gradients", "optimizer state"}


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(task: TrainingTask) -> Case:
        gpus = f"{task.cluster.gpus} GPUs with {bytes_text(task.cluster.memory)} each"
        label = f"{task.model.parameters / 1e9:.1f} billion parameters, {gpus}, "
        label += f"{task.batch} texts of {task.length:,} tokens"
        return Case(label, [(task,)], with_comm=False, judge=_wrong)

    yield case(llama_task())
    for seed in TELLING:
        yield case(next(drawn_tasks(np.random.default_rng(seed))))
    drawn = drawn_tasks(rng)
    for _ in range(DRAWN):
        yield case(next(drawn))


def _wrong(outcome: Outcome) -> Finding | None:
    task, layout = outcome.case.arguments[0][0], outcome.results[0]
    if layout is None:
        return Finding(Kind.NOTHING, expected="a Layout")
    for reason in (_unlike_a_layout, _not_of_the_task):
        if found := reason(layout, task):
            return found
    return _missed(judge(task.model, task.cluster, layout, task.length), task)


def _unlike_a_layout(layout: Any, task: TrainingTask) -> Finding | None:
    if not isinstance(layout, Layout):
        return own("not-a-layout", "{who} returned a {got}, and a Layout is asked for", got=type(layout).__name__)
    for name in ("micro_batch", "micro_batches"):
        number = getattr(layout, name)
        if not isinstance(number, int) or number < 1:
            return own(
                "no-whole-number",
                "`{name}` of the layout is {got}, not a whole number from 1 on",
                name=name,
                got=number,
            )
    if layout.zero not in range(4):
        return own("no-such-stage", "`zero` of the layout is {got}, and ZeRO has the stages 0 to 3", got=layout.zero)
    kept = {name: getattr(layout, name) for name in SETTINGS}
    if layout.program != MODERN or replace(Layout(**kept)) != layout:
        words = "the layout has settings that this exercise's table does not name, or a program other than `MODERN`"
        return own("other-settings", words)
    return None


def _not_of_the_task(layout: Layout, task: TrainingTask) -> Finding | None:
    mesh = f"{layout.data} · {layout.tensor} · {layout.pipeline}"
    if layout.gpus != task.cluster.gpus:
        words = "the layout has {mesh} = {got} GPUs, and the cluster has {expected}"
        return own("gpus", words, mesh=mesh, got=layout.gpus, expected=task.cluster.gpus)
    if layout.batch != task.batch:
        product = f"{layout.data} · {layout.micro_batch} · {layout.micro_batches}"
        words = "the layout takes {product} = {got} texts in a step, and the task has {expected}"
        return own("batch", words, product=product, got=layout.batch, expected=task.batch)
    if task.model.heads % layout.tensor:
        words = "{heads} heads cannot be divided among {tensor} GPUs"
        return own("heads", words, heads=task.model.heads, tensor=layout.tensor)
    if layout.pipeline > task.model.layers:
        words = "{stages} stages are more than the model's {layers} layers"
        return own("stages", words, stages=layout.pipeline, layers=task.model.layers)
    return None


def _missed(choice: Choice, task: TrainingTask) -> Finding | None:
    """What the layout misses, memory first."""
    if not choice.fits:
        part, size = _largest(choice.memory.parts())
        words = "{layout}: a GPU needs {needs}, and may use {room} of its {memory}. The {part} alone "
        return own(
            "memory",
            words + ("needs {size}" if part == "optimizer state" else "need {size}"),
            layout=str(choice),
            needs=bytes_text(choice.needed),
            room=bytes_text(choice.room),
            memory=bytes_text(task.cluster.memory),
            part=part,
            size=bytes_text(size),
        )
    if choice.peak_share >= task.goal:
        return None
    part, seconds = _largest(lost_parts(choice))
    words = "{layout}: it fits, but reaches an MFU of {got:.1%}, and {expected:.1%} is asked for. Most of what a step "
    words += "loses goes to {part}, {share} of the step"
    return own(
        "too-slow",
        words,
        layout=str(choice),
        got=choice.peak_share,
        expected=task.goal,
        part=NOUNS.get(part, part),
        share=percent(seconds / choice.step),
    )


def lost_parts(choice: Choice) -> dict[str, float]:
    """Seconds of a step by what they are spent on, without the computing that any layout has to do."""
    return {name: seconds for name, seconds in choice.seconds.items() if name != COMPUTE}


def _largest(parts: Mapping[str, float]) -> tuple[str, float]:
    return max(parts.items(), key=lambda part: part[1])


def _choice(case: Case, outcome: Outcome) -> Choice:
    task = case.arguments[0][0]
    return judge(task.model, task.cluster, outcome.results[0], task.length)


def _nearly_fits(case: Case, outcome: Outcome) -> bool:
    """Whether it would fit if there were no margin, or no buffers."""
    if outcome.finding.name != "memory":
        return False
    choice = _choice(case, outcome)
    return choice.memory.total <= case.arguments[0][0].cluster.memory


def _too_much(names: set[str]) -> Recogniser:
    def recognises(case: Case, outcome: Outcome) -> bool:
        return outcome.finding.name == "memory" and _largest(_choice(case, outcome).memory.parts())[0] in names

    return recognises


def _lost_to(name: str) -> Recogniser:
    def recognises(case: Case, outcome: Outcome) -> bool:
        return outcome.finding.name == "too-slow" and _largest(lost_parts(_choice(case, outcome)))[0] == name

    return recognises


def _no_layout_found(case: Case, outcome: Outcome) -> bool:
    return raised(outcome)


def _praise(outcome: Outcome) -> str:
    task, choice = outcome.case.arguments[0][0], _choice(outcome.case, outcome)
    part, seconds = _largest(lost_parts(choice))
    return (
        f"every plan fits and reaches its goal. The last one is {choice}, with "
        f"{count(choice.layout.micro_batches, 'micro-batch')}. It needs {bytes_text(choice.needed)} of "
        f"{bytes_text(choice.room)} and reaches {choice.peak_share:.1%}, where {task.goal:.1%} was asked for; "
        f"most of what a step loses goes to {NOUNS.get(part, part)}, {percent(seconds / choice.step)} of it"
    )


EXERCISE = Exercise(
    library="large_training.chosen_layout",
    number=3,
    minutes=40,
    difficulty=3,
    turn="return a layout that fits with a margin and reaches the goal",
    title="plan the training of a large model",
    cases=_cases,
    budgets=True,
    hints=(
        "Which layouts are there at all? Tensor, pipeline and data parallelism multiply up to the number of GPUs, and "
        "data, micro-batch and micro-batches to the number of texts. How many combinations is that, and how long would "
        "it take to let `judge` look at each of them?",
        "Go through the divisors of the number of GPUs with `itertools.product`: tensor, pipeline, the stage of ZeRO, "
        "what is computed again, and 1, 2, 4 or 8 texts in a micro-batch. `data` is what remains of the GPUs, and "
        "`micro_batches` is `task.batch // data // micro_batch`. Leave out what does not divide evenly. Of the layouts "
        "whose `judge(…).fits` is true, return the one with the largest `peak_share`.",
    ),
    symptoms={
        "it would just fit without the margin": _nearly_fits,
        "the states take the most memory": _too_much(STATES),
        "the activations take the most memory": _too_much({"activations"}),
        "most is lost to what is computed again": _lost_to(AGAIN),
        "most is lost to the bubble": _lost_to(BUBBLE),
        "most is lost to tensor messages": _lost_to(TENSOR),
        "most is lost to data messages": _lost_to(DATA),
        "no layout was found": _no_layout_found,
    },
    praise=_praise,
    search_runs=0,
)
