"""The check of `run_schedule`: losses and gradients of the serial model, with any schedule, in no more messages."""

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from course_utils.checks.cases import AFTER_ANOTHER_CALL
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Kind
from course_utils.checks.symptoms import same
from course_utils.lessons.pipeline.actions import BACKWARD, FORWARD, Action, parse_schedule
from course_utils.lessons.pipeline.checks import gpipe_schedule, one_f_one_b_schedule
from course_utils.lessons.pipeline.checks.common import schedule_of
from course_utils.lessons.pipeline.checks.whole_batch import case_of
from course_utils.lessons.pipeline.interleaved import interleaved_schedule
from course_utils.lessons.pipeline.sentences import disturbed
from course_utils.lessons.pipeline.timing import simulate_schedule, timing_of
from course_utils.lessons.pipeline.zero_bubble import zb_h1_schedule, zb_h2_schedule
from course_utils.ranks.run import events_of
from course_utils.trace.wait_graph import Send, single_needs
from course_utils.words import count, percent, ranks

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from course_utils.lessons.pipeline.actions import Schedule

LEAST = 4
LAST_ON_0 = "the last stage on rank 0"
IN_A_V = "0F0 0F1 3F0 3B0 3F1 3B1 0B0 0B1", "1F0 2F0 1F1 2F1 2B0 1B0 2B1 1B1"
SECONDS = 0.006  # of a paced pass, for the picture


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    size = max(world_size, LEAST)
    some = int(rng.integers(4, 8))

    def in_blocks(many: int, micro_batches: int) -> "Schedule":
        """All forward, then all backward; two neighbouring stages on each rank."""
        forward = [[Action(FORWARD, 2 * r + s, k) for k in range(micro_batches) for s in (0, 1)] for r in range(many)]
        backward = [[Action(BACKWARD, 2 * r + s, k) for k in range(micro_batches) for s in (1, 0)] for r in range(many)]
        return [ahead + back for ahead, back in zip(forward, backward, strict=True)]

    def newest_first(micro_batches: int) -> "Schedule":
        """GPipe, but for the order on the last of three ranks: messages are needed in another order than sent."""
        schedule = gpipe(3, micro_batches)
        schedule[2] = [*schedule[2][:micro_batches][::-1], *schedule[2][micro_batches:][::-1]]
        return schedule

    def turned(schedule: "Schedule", micro_batches: int) -> "Schedule":
        """The same with the last micro-batch in the place of the first, and so on."""
        return [
            [replace(action, micro_batch=micro_batches - 1 - action.micro_batch) for action in own] for own in schedule
        ]

    yield case_of(rng, "GPipe", gpipe(size, 3), [2] * (size - 1) + [1])
    yield case_of(rng, "1F1B", one_in_turn(size, some), [2, 1, 1] + [2] * (size - 3))
    yield case_of(
        rng, "the last rank begins with the newest micro-batch", newest_first(3), [2, 2, 2], key="newest-first"
    )
    yield case_of(
        rng, "1F1B from the last micro-batch to the first", turned(one_in_turn(2, 4), 4), [2, 1], key="turned"
    )
    yield case_of(rng, "1F1B", one_in_turn(3, 4), [1, 2, 1], long=True)
    yield case_of(rng, "two neighbouring stages on each rank", in_blocks(2, 3), [2, 2, 1, 2], key="neighbouring-stages")
    yield case_of(rng, "one rank", in_blocks(1, 3), [2, 3])
    yield case_of(rng, "1F1B", one_in_turn(2, 3), [2, 2], calls=2, key="two-calls")
    yield case_of(rng, "1F1B", one_in_turn(2, 3), [2, 1], before=True, key=AFTER_ANOTHER_CALL)
    yield case_of(rng, "GPipe", gpipe(2, 2), [1, 2], "float32", key="float32")
    yield case_of(rng, "interleaved 1F1B", interleaved_schedule(2, 4, 2), [2, 2, 1, 2])
    yield case_of(
        rng,
        f"GPipe from the last rank to the first: {LAST_ON_0}",
        gpipe(3, 3)[::-1],
        [2, 1, 2],
        key="last-stage-on-rank-0",
    )
    yield case_of(rng, f"in a V: {LAST_ON_0}", parse_schedule(IN_A_V), [1, 2, 2, 2], key="last-stage-on-rank-0")
    yield case_of(
        rng, "interleaved 1F1B", interleaved_schedule(size, size, 2), [1] * 2 * size, put_aside=True, key="put-aside"
    )
    yield case_of(rng, "ZB-H1: backward passes in halves", zb_h1_schedule(2, 3), [2, 2], put_aside=True, key="halves")
    yield case_of(rng, "ZB-H2", zb_h2_schedule(3, some), [2] * 3, put_aside=True, calls=2, key="put-aside")
    yield case_of(rng, "ZB-H1", zb_h1_schedule(size, 6), [2] * size, put_aside=True, pace=SECONDS, key="put-aside")


def gpipe(size: int, micro_batches: int) -> "Schedule":
    """GPipe's order, which graded mode hides."""
    return schedule_of(gpipe_schedule.by_hand(size, micro_batches))


def one_in_turn(size: int, micro_batches: int) -> "Schedule":
    """1F1B's order, which graded mode hides."""
    return schedule_of(one_f_one_b_schedule.by_hand(size, micro_batches))


def _waits_in_a_send(case: Case, outcome: Outcome) -> bool:
    """Whether a rank hangs in a send, and none raised; one may have been computing when the ranks were interrupted."""
    replies = outcome.attempt.replies
    waiting = [part for reply in replies if reply.kind == "interrupted" for part in single_needs(reply.need)]
    errors = {reply.error.type for reply in replies if reply.error} - {"KeyboardInterrupt"}
    return not errors and any(isinstance(part, Send) for part in waiting)


def _rounded(case: Case, outcome: Outcome) -> bool:
    """Whether all numbers of a float64 case are right to six digits: some of them went through float32."""
    is_float64 = case.arguments[0][0]["dtype"] == "float64"
    pairs = zip(outcome.results, case.expected or (), strict=True)
    is_value = outcome.finding is not None and outcome.finding.kind == Kind.VALUE
    return is_float64 and is_value and all(same(result, wanted, 1e-5) for result, wanted in pairs)


def _no_message(case: Case, outcome: Outcome) -> bool:
    events = [event for reply in outcome.attempt.replies for event in reply.events or ()]
    return outcome.world_size > 1 and not any(event.kind in ("send", "recv") for event in events)


def _drawing(outcome: Outcome) -> "Figure | None":
    """Draw the schedule on paper and as it was run, if the run was right and every pass left its phase in the trace."""
    from course_utils.lessons.pipeline import pictures

    given = outcome.case.arguments[0][0]
    if outcome.finding or not given["pace"]:
        return None
    run = timing_of(events_of(outcome.attempt.replies), outcome.world_size)
    plan = simulate_schedule(parse_schedule(given["lines"]), *[SECONDS] * 3)
    title = (
        f"In your run, ranks are idle {percent(run.idle_share)} of the time, and {percent(plan.idle_share)} on paper"
    )
    under = f"{outcome.case.label}; every pass waits {SECONDS * 1e3:g} ms instead of computing"
    under += "; messages, or other work on this machine, took the rest" if disturbed(plan, run) else ""
    return pictures.pipelines({"on paper": plan, "your run": run}, title, under, in_seconds=True)


EXERCISE = Exercise(
    library="run_schedule",
    number=4,
    minutes=40,
    difficulty=3,
    turn="go through this rank's list, and receive, compute or send",
    title="a schedule on real ranks",
    cases=_cases,
    needs_torch=True,
    hints=(
        "Keep three dictionaries, for inputs, outputs and gradients of outputs, with (stage, micro-batch) as the key. "
        "For each kind of action, decide what it takes out of which dictionary and what it puts in. What becomes the "
        "input of stage s + 1 if it is on this rank? And what becomes the gradient for stage s − 1?",
        "RECV_F puts `torch.tensor(array).requires_grad_()` into the inputs. FORWARD computes `stages[stage](input)`. "
        "On the last stage of all, `loss(output, index)` takes the place of the output. If stage + 1 is in `stages`, "
        "`output.detach().requires_grad_()` is its input. BACKWARD and INPUT call `output.backward(gradient)` (on the "
        "last stage without a gradient), and `input.grad` is the gradient for stage − 1. SEND_F and SEND_B call "
        "`isend` with `….detach().numpy()`. WEIGHT does nothing inside `with work.on(action):`.",
    ),
    symptoms={
        "no message is sent": _no_message,
        "a rank waits in a send": _waits_in_a_send,
        "the numbers have the precision of float32": _rounded,
    },
    praise=lambda outcome: (
        f"{ranks(outcome.world_size)} have the gradients and the loss of the serial model, after "
        f"{count(outcome.run.messages, 'message')} and in the order of the schedule"
    ),
    drawing=_drawing,
)
