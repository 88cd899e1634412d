"""The check of `run_schedule`: losses and gradients of the serial model, with any schedule, in no more messages."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Cost, Exercise, Mistake, Outcome
from course_utils.checks.lessons.messages.common import hangs, uses_collectives
from course_utils.checks.lessons.overlap.common import marked
from course_utils.checks.lessons.pipeline.common import LESSON, says
from course_utils.checks.seen import Recogniser, raised, same
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from torch import Tensor, nn

    from course_utils.pipeline.actions import Schedule

LEAST = 4
LOSS, RAN = "the loss", "what ran"
LONG = 300  # rows and columns of an activation of 720 KB: more than MPI takes for a receiver that is not there yet
SECONDS = 0.006  # of a paced pass, for the picture
ANOTHER_ORDER = "while the schedule says"


def _drawn(given: dict[str, Any]) -> tuple[list, list, list]:
    """The layers of a model, the inputs of the micro-batches and their targets; the same on every rank."""
    import torch
    from torch import nn

    sizes, splits, kind = given["sizes"], given["splits"], getattr(torch, given["dtype"])
    draw = torch.Generator().manual_seed(given["seed"])
    layers: list[nn.Module] = []
    for narrow, wide in itertools.pairwise(sizes):
        layer = nn.Linear(narrow, wide, dtype=kind)
        for parameter in layer.parameters():
            parameter.data = torch.randn(parameter.shape, generator=draw, dtype=kind) / narrow**0.5
        layers += [layer, nn.Tanh()]
    xs = [torch.randn(rows, sizes[0], generator=draw, dtype=kind) for rows in splits]
    ys = [torch.randn(rows, sizes[-1], generator=draw, dtype=kind) for rows in splits]
    return layers[: sum(given["cuts"])], xs, ys


def _parts(layers: list, given: dict[str, Any]) -> "list[nn.Sequential]":
    """The stages, as plain modules."""
    from torch import nn

    left = iter(layers)
    return [nn.Sequential(*itertools.islice(left, size)) for size in given["cuts"]]


def _share(output: "Tensor", target: "Tensor", examples: int) -> "Tensor":
    return ((output - target) ** 2).sum() / examples


def in_a_pipeline(function: Callable, comm: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Runs on a rank: call the learner's function on this rank's stages; return loss, gradients, and what ran."""
    import torch

    from course_utils.pipeline.actions import parse_schedule, rank_of_stages
    from course_utils.pipeline.pace import stage_pace
    from course_utils.pipeline.run import split_model

    schedule = parse_schedule(given["lines"])
    layers, xs, ys = _drawn(given)
    parts = split_model(layers, given["cuts"]) if given["put_aside"] else _parts(layers, given)
    mine = {stage: parts[stage] for stage, rank in rank_of_stages(schedule).items() if rank == comm.rank}
    ran: list[str] = []

    def note(stage: int) -> Callable:
        def hook(module: "nn.Module", inputs: tuple, output: "Tensor") -> "Tensor":
            ran.append(f"{stage}F")
            return marked(output, lambda: ran.append(f"{stage}B"))

        return hook

    for stage, part in mine.items():
        part.register_forward_hook(note(stage))
    if 0 not in mine:
        xs = [torch.full_like(x, torch.nan) for x in xs]
    pace = (stage_pace(given["pace"], given["pace"], given["pace"]),) if given["pace"] else ()

    def loss(output: "Tensor", index: int) -> "Tensor":
        return _share(output, ys[index], sum(given["splits"]))

    found: dict[str, Any] = {}
    for call in range(given["calls"]):
        found[f"{LOSS} (call {call})"] = function(comm, schedule, mine, xs, loss, *pace)
    for stage, part in mine.items():
        for name, parameter in part.named_parameters():
            gradient = None if parameter.grad is None else parameter.grad.detach().clone()
            found[f"the gradient of stage {stage}'s {name}"] = gradient
    return found | {RAN: ran}


def expected(given: dict[str, Any], schedule: "Schedule") -> list[dict[str, Any]]:
    """What each rank must have, from the whole model and the whole batch at once."""
    import torch
    from torch import nn

    from course_utils.pipeline.actions import rank_of_stages

    layers, xs, ys = _drawn(given)
    loss = _share(nn.Sequential(*layers)(torch.cat(xs)), torch.cat(ys), sum(given["splits"]))
    loss.backward()
    number = loss.item() if given["dtype"] == "float64" else np.float32(loss.item())
    rank_of, parts = rank_of_stages(schedule), _parts(layers, given)
    found: list[dict[str, Any]] = []
    for rank in range(len(schedule)):
        last = rank_of[max(rank_of)] == rank
        own: dict[str, Any] = {f"{LOSS} (call {call})": number if last else 0.0 for call in range(given["calls"])}
        for stage in (stage for stage, home in rank_of.items() if home == rank):
            for name, one in parts[stage].named_parameters():
                own[f"the gradient of stage {stage}'s {name}"] = one.grad * given["calls"]
        found.append(own | {RAN: ...})
    return found


def _case(
    rng: np.random.Generator,
    name: str,
    schedule: "Schedule",
    cuts: Sequence[int],
    dtype: str = "float64",
    long: bool = False,
    **more: Any,
) -> Case:
    """One batch (or several calls) through a schedule; every layer of its own width, every micro-batch of its own size.

    Args:
        cuts: for each stage how many layers it gets, linear ones and tanh in turn.
    """
    from course_utils.pipeline.actions import micro_batches_of, write_schedule
    from course_utils.pipeline.messages import with_messages

    linear, micro_batches = (sum(cuts) + 1) // 2, micro_batches_of(schedule)
    given = {
        "lines": write_schedule(schedule).splitlines(),
        "sizes": [LONG] * (linear + 1) if long else [int(n) for n in rng.integers(2, 9, linear + 1)],
        "splits": [LONG] * micro_batches if long else [int(n) for n in rng.integers(1, 6, micro_batches)],
        "cuts": list(cuts),
        "seed": int(rng.integers(2**31)),
        "dtype": dtype,
        **{"calls": 1, "put_aside": False, "pace": 0.0, **more},
    }
    messages = sum("SEND" in action.kind for actions in with_messages(schedule) for action in actions) * given["calls"]
    label = f"{name}, {ranks(len(schedule))}, {count(micro_batches, 'micro-batch')}"
    label += f", {dtype}" if dtype != "float64" else ""
    label += f", {count(given['calls'], 'call')}" if given["calls"] > 1 else ""
    label += ", long messages" if long else ""
    wanted = expected(given, schedule)
    more_of_case = {"cost": Cost(messages=messages, collectives=0), "judge": _wrong, "harness": in_a_pipeline}
    return Case(label, [(given,) for _ in schedule], wanted, **more_of_case)


def _cases(rng: np.random.Generator, world_size: int) -> Iterator[Case]:
    from course_utils.pipeline.actions import BACKWARD, FORWARD, Action
    from course_utils.pipeline.interleaved import interleaved_schedule
    from course_utils.pipeline.zero_bubble import zb_h1_schedule, zb_h2_schedule

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

    yield _case(rng, "GPipe", gpipe(size, 3), [2] * (size - 1) + [1])
    yield _case(rng, "1F1B", one_in_turn(size, some), [2, 1, 1] + [2] * (size - 3))
    yield _case(rng, "the last rank begins with the newest micro-batch", newest_first(3), [2, 2, 2])
    yield _case(rng, "1F1B", one_in_turn(3, 4), [1, 2, 1], long=True)
    yield _case(rng, "two neighbouring stages on each rank", in_blocks(2, 3), [2, 2, 1, 2])
    yield _case(rng, "one rank", in_blocks(1, 3), [2, 3])
    yield _case(rng, "1F1B", one_in_turn(2, 3), [2, 2], calls=2)
    yield _case(rng, "interleaved 1F1B", interleaved_schedule(2, 4, 2), [2, 2, 1, 2])
    yield _case(rng, "interleaved 1F1B", interleaved_schedule(size, size, 2), [1] * 2 * size, put_aside=True)
    yield _case(rng, "ZB-H2", zb_h2_schedule(3, some), [2] * 3, "float32", put_aside=True, calls=2)
    yield _case(rng, "ZB-H1", zb_h1_schedule(size, 6), [2] * size, put_aside=True, pace=SECONDS)


def gpipe(size: int, micro_batches: int) -> "Schedule":
    """GPipe's order, which graded mode hides."""
    from course_utils.checks.lessons.pipeline.common import schedule_of
    from course_utils.checks.lessons.pipeline.gpipe_schedule import by_hand

    return schedule_of(by_hand(size, micro_batches))


def one_in_turn(size: int, micro_batches: int) -> "Schedule":
    """1F1B's order, which graded mode hides."""
    from course_utils.checks.lessons.pipeline.common import schedule_of
    from course_utils.checks.lessons.pipeline.one_f_one_b_schedule import by_hand

    return schedule_of(by_hand(size, micro_batches))


def _wrong(outcome: Outcome) -> str | None:
    """What no number shows: another order than the schedule's, and messages that were not waited for."""
    given = outcome.case.arguments[0][0]
    for rank, line in enumerate(given["lines"]):
        wanted = [f"{word.rstrip('0123456789')[:-1]}{'F' if 'F' in word else 'B'}" for word in line.split()]
        wanted = [one for one, word in zip(wanted, line.split(), strict=True) if "W" not in word] * given["calls"]
        for place, (got, right) in enumerate(itertools.zip_longest(outcome.results[rank][RAN], wanted)):
            if got != right:
                return (
                    f"the numbers are right, but rank {rank} did {got or 'nothing'} as its pass number {place}, "
                    f"{ANOTHER_ORDER} {right or 'that it is done'}"
                )
        if not outcome.attempt.replies[rank].clean:
            return f"the numbers are right, but rank {rank} never waited for one of its messages"
    return None


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
    from course_utils import draw
    from course_utils.cluster.run import events_of
    from course_utils.draw.style import percent
    from course_utils.pipeline.actions import parse_schedule
    from course_utils.pipeline.timing import simulate_schedule, timing_of

    given = outcome.case.arguments[0][0]
    if outcome.wrong or not given["pace"]:
        return None
    run = timing_of(events_of(outcome.attempt.replies), outcome.world_size)
    plan = simulate_schedule(parse_schedule(given["lines"]), *[SECONDS] * 3)
    title = f"Idle: {percent(plan.idle_share)} of the time in the plan, {percent(run.idle_share)} in your run"
    under = f"{outcome.case.label}; every pass waits {SECONDS * 1e3:g} ms in place of computing"
    return draw.pipelines({"planned": plan, "your run": run}, title, under, in_seconds=["planned", "your run"])


RUN_SCHEDULE = Exercise(
    name="run_schedule",
    library="course_utils.pipeline.run:run_schedule",
    lesson=LESSON,
    place=4,
    minutes=30,
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
