"""The check of `run_schedule`: losses and gradients of the serial model, with any schedule, in no more messages."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import Recogniser, hangs, raised, same, says, uses_collectives
from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action, parse_schedule
from course_utils.lessons.pipeline.checks import LESSON, gpipe_schedule, one_f_one_b_schedule
from course_utils.lessons.pipeline.checks.common import schedule_of
from course_utils.lessons.pipeline.checks.whole_batch import ANOTHER_ORDER, LOSS, RAN, case_of
from course_utils.lessons.pipeline.interleaved import interleaved_schedule
from course_utils.lessons.pipeline.sentences import disturbed
from course_utils.lessons.pipeline.timing import simulate_schedule, timing_of
from course_utils.lessons.pipeline.zero_bubble import zb_h1_schedule, zb_h2_schedule
from course_utils.words import count, percent, ranks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from course_utils.lessons.pipeline.actions import Schedule

LEAST = 4
SECONDS = 0.006  # of a paced pass, for the picture


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    size = max(world_size, LEAST)
    some = int(rng.integers(4, 8))

    def in_blocks(many: int, micro_batches: int) -> "Schedule":
        """All forward, then all backward; two neighbouring stages on each rank."""
        forward = [[Action(FORWARD, 2 * r + s, k) for k in range(micro_batches) for s in (0, 1)] for r in range(many)]
        backward = [[Action(BACKWARD, 2 * r + s, k) for k in range(micro_batches) for s in (1, 0)] for r in range(many)]
        return [one + other for one, other in zip(forward, backward, strict=True)]

    def newest_first(micro_batches: int) -> "Schedule":
        """GPipe, but for the order on the last of three ranks: messages are needed in another order than sent."""
        schedule = gpipe(3, micro_batches)
        schedule[2] = [*schedule[2][:micro_batches][::-1], *schedule[2][micro_batches:][::-1]]
        return schedule

    yield case_of(rng, "GPipe", gpipe(size, 3), [2] * (size - 1) + [1])
    yield case_of(rng, "1F1B", one_in_turn(size, some), [2, 1, 1] + [2] * (size - 3))
    yield case_of(rng, "the last rank begins with the newest micro-batch", newest_first(3), [2, 2, 2])
    yield case_of(rng, "1F1B", one_in_turn(3, 4), [1, 2, 1], long=True)
    yield case_of(rng, "two neighbouring stages on each rank", in_blocks(2, 3), [2, 2, 1, 2])
    yield case_of(rng, "one rank", in_blocks(1, 3), [2, 3])
    yield case_of(rng, "1F1B", one_in_turn(2, 3), [2, 2], calls=2)
    yield case_of(rng, "interleaved 1F1B", interleaved_schedule(2, 4, 2), [2, 2, 1, 2])
    yield case_of(rng, "interleaved 1F1B", interleaved_schedule(size, size, 2), [1] * 2 * size, put_aside=True)
    yield case_of(rng, "ZB-H2", zb_h2_schedule(3, some), [2] * 3, "float32", put_aside=True, calls=2)
    yield case_of(rng, "ZB-H1", zb_h1_schedule(size, 6), [2] * size, put_aside=True, pace=SECONDS)


def gpipe(size: int, micro_batches: int) -> "Schedule":
    """GPipe's order, which graded mode hides."""
    return schedule_of(gpipe_schedule.by_hand(size, micro_batches))


def one_in_turn(size: int, micro_batches: int) -> "Schedule":
    """1F1B's order, which graded mode hides."""
    return schedule_of(one_f_one_b_schedule.by_hand(size, micro_batches))


def _waits_in_a_send(case: Case, outcome: Outcome) -> bool:
    waiting = [reply.waiting or "" for reply in outcome.attempt.replies if reply.kind == "interrupted"]
    return hangs(case, outcome) and any("send(" in text.lower() for text in waiting)


def _to_itself(case: Case, outcome: Outcome) -> bool:
    """Whether a rank sends to itself, or waits for a message of its own."""
    events = [event for reply in outcome.attempt.replies for event in reply.events or ()]
    return any(event.kind in ("send", "recv") and event.peer == event.rank for event in events)


def _no_gradient(case: Case, outcome: Outcome) -> bool:
    words = ("nonetype", "does not require grad", "only for scalar outputs", "none_")
    return any(raised(outcome, word) for word in words)


def _tags_alike(case: Case, outcome: Outcome) -> bool:
    """Whether two messages of one rank to another had the same tag within a call."""
    if case.arguments[0][0]["calls"] > 1:
        return False
    events = [event for reply in outcome.attempt.replies for event in reply.events or ()]
    messages = [(one.kind, one.rank, one.peer, one.tag) for one in events if one.kind in ("send", "recv")]
    return len(set(messages)) < len(messages)


def _open_requests(case: Case, outcome: Outcome) -> bool:
    return "never waited" in outcome.wrong


def _pairs(outcome: Outcome) -> Iterator[tuple[str, Any, Any]]:
    for result, wanted in zip(outcome.results, outcome.case.expected, strict=True):
        for name, right in wanted.items():
            if name != RAN and result is not NO_RESULT:
                yield name, result[name], right


def _gradients_right(outcome: Outcome, factor: float = 1.0) -> bool:
    pairs = [(got, right * factor) for name, got, right in _pairs(outcome) if "gradient" in name]
    return bool(pairs) and all(same(got, right, 1e-5) for got, right in pairs)


def _gradients_times(factor: Callable[[dict], float]) -> Recogniser:
    """A recogniser of gradients that are all wrong by one factor, from what was given."""

    def recognises(case: Case, outcome: Outcome) -> bool:
        number = factor(case.arguments[0][0])
        return number != 1 and _gradients_right(outcome, number)

    return recognises


def _loss_is_share(case: Case, outcome: Outcome) -> bool:
    micro_batches = len(case.arguments[0][0]["splits"])
    losses = [(got, right) for name, got, right in _pairs(outcome) if LOSS in name and right != 0]
    return _gradients_right(outcome) and all(same(got * micro_batches, right, 1e-5) for got, right in losses)


def _loss_wrong(case: Case, outcome: Outcome) -> bool:
    return _gradients_right(outcome) and LOSS in outcome.wrong


def _weights_missing(case: Case, outcome: Outcome) -> bool:
    gradients = [(name, got) for name, got, _ in _pairs(outcome) if "gradient" in name]
    return case.arguments[0][0]["put_aside"] and any(got is None for _, got in gradients)


def _some_missing(case: Case, outcome: Outcome) -> bool:
    return any(got is None for name, got, _ in _pairs(outcome) if "gradient" in name)


def _some_wrong(case: Case, outcome: Outcome) -> bool:
    return any(not same(got, right, 1e-5) for name, got, right in _pairs(outcome) if "gradient" in name)


def _drawing(outcome: Outcome) -> "Figure | None":
    """The plan above the run, where the run was right and every pass left its phase in the trace."""
    from course_utils.lessons.pipeline import pictures
    from course_utils.ranks.run import events_of

    given = outcome.case.arguments[0][0]
    if outcome.wrong or not given["pace"]:
        return None
    run = timing_of(events_of(outcome.attempt.replies), outcome.world_size)
    plan = simulate_schedule(parse_schedule(given["lines"]), *[SECONDS] * 3)
    title = f"Idle: {percent(plan.idle_share)} of the time in the plan, {percent(run.idle_share)} in your run"
    under = f"{outcome.case.label}; every pass waits {SECONDS * 1e3:g} ms in place of computing"
    under += "; messages, or other work on this machine, took the rest" if disturbed(plan, run) else ""
    return pictures.pipelines({"planned": plan, "your run": run}, title, under, in_seconds=["planned", "your run"])


RUN_SCHEDULE = Exercise(
    name="run_schedule",
    library="course_utils.lessons.pipeline.run_schedule:run_schedule",
    lesson=LESSON,
    place=4,
    minutes=25,
    difficulty=3,
    turn="action by action: receive, compute, send",
    title="a schedule on real ranks",
    cases=_cases,
    needs_torch=True,
    hints=(
        "Take the actions one by one. What does a forward pass need, who has it, and what must be kept until the "
        "backward pass of the same stage and micro-batch? Where must the graph of autograd end, and which tensor's "
        "`.grad` goes to the rank before?",
        "Keep dicts by (stage, micro-batch): inputs, outputs, gradients. RECV_F: an input with `requires_grad_()`. F: "
        "`stages[stage](input)`; on the last stage `loss(output, index)`; for a next stage on this rank "
        "`output.detach().requires_grad_()` is its input. B or I: `output.backward(gradient)`, and `input.grad` is "
        "for the stage before. Sends are `isend` of `….detach().numpy()`, waited for at the end.",
    ),
    mistakes=(
        Mistake("Can you do it with messages from one rank to another alone?", uses_collectives),
        Mistake("Is the next stage on another rank?", _to_itself),
        Mistake("Which rank holds the next stage?", lambda case, outcome: raised(outcome, "no rank")),
        Mistake("A message that waits for its receiver: what is the receiver doing?", _waits_in_a_send),
        Mistake(
            "Does the backward pass of one stage run on into the stage before it?",
            lambda case, outcome: raised(outcome, "second time"),
        ),
        Mistake("For which tensors does autograd make a gradient?", _no_gradient),
        Mistake(
            "What travels of a tensor: its numbers, or its graph as well?",
            lambda case, outcome: raised(outcome, "numpy()"),
        ),
        Mistake("Which micro-batch is in the message that came?", _tags_alike),
        Mistake("Who sends the message that is waited for, and what has that rank to do before?", hangs),
        Mistake("When is a message of isend finished?", _open_requests),
        Mistake("In which order are the actions to be done?", says(ANOTHER_ORDER)),
        Mistake("Who fetches the gradients of weights that a stage puts aside?", _weights_missing),
        Mistake("Which parameters have no gradient yet?", _some_missing),
        Mistake("Were there gradients before the call?", _gradients_times(lambda given: 1 / given["calls"])),
        Mistake("Is what `loss` returns a share already?", _gradients_times(lambda given: 1 / len(given["splits"]))),
        Mistake("Is what `loss` returns a share already?", _loss_is_share),
        Mistake("Is this the loss of all micro-batches together, as a number?", _loss_wrong),
        Mistake("Does every micro-batch's gradient count, once?", _some_wrong),
    ),
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} have the gradients and the loss of the serial model, after "
        f"{count(outcome.run.messages, 'message')} and in the schedule's order"
    ),
    drawing=_drawing,
)
