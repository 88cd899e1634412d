"""One batch through the learner's pipeline, and through the whole model: what the check of `run_schedule` compares."""

import copy
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from course_utils.checks.compare import is_changed
from course_utils.checks.exercise import Case, Cost, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.checks.run_cases import changed_argument
from course_utils.checks.torch_cases import marked
from course_utils.lessons.pipeline.actions import micro_batches_of, parse_schedule, rank_of_stages, write_schedule
from course_utils.lessons.pipeline.send_and_receive import with_messages
from course_utils.lessons.pipeline.stage_pace import stage_pace
from course_utils.words import count, ranks

if TYPE_CHECKING:
    from torch import Tensor, nn

    from course_utils.lessons.pipeline.actions import Action, Schedule

LOSS, GRADIENT, RAN = "the loss", "the gradient", "what ran"
RIGHT = "the numbers are right, but"
ENVELOPE = 4096  # bytes that a message may have in addition to its numbers
LONG = 300  # rows and columns of an activation of 720 KB: more than MPI takes for a receiver that is not there yet


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

    from course_utils.lessons.pipeline.run_schedule import split_model

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
    pace, paced = stage_pace(*[given["pace"]] * 3), []

    def noted_pace(action: "Action") -> float:
        paced.append(str(action))
        return pace(action)

    def loss(output: "Tensor", index: int) -> "Tensor":
        return _share(output, ys[index], sum(given["splits"]))

    losses: list[Any] = []
    gradients = {}
    handed = {"schedule": schedule, "stages": mine, "micro_batches": xs}
    before, settings = copy.deepcopy({**handed, "stages": list(mine)}), _settings(mine, xs)
    if given["before"]:  # another batch first, of which nothing may stay
        function(comm, schedule, mine, [1 - x for x in xs], loss)
        for part in mine.values():
            part.zero_grad()
        ran.clear()
    for _ in range(given["calls"]):
        more = (noted_pace,) if given["pace"] else ()
        losses.append(function(comm, schedule, mine, xs, loss, *more))
    for stage, part in mine.items():
        for name, parameter in part.named_parameters():
            gradient = None if parameter.grad is None else parameter.grad.detach().clone()
            gradients[_parameter(stage, name)] = {GRADIENT: gradient}
    changed = [name for name, was in before.items() if is_changed(was, type(was)(handed[name]))]
    changed += [name for name, now in _settings(mine, xs).items() if settings[name] != now]
    return _losses(losses) | gradients | {RAN: {"passes": ran, "paced": paced, "changed": changed}}


def _losses(losses: Sequence[Any]) -> dict[str, Any]:
    """The losses of the calls, by name: "the loss", or "the loss of call 2"."""
    if len(losses) == 1:
        return {LOSS: losses[0]}
    return {f"call {number}": {LOSS: loss} for number, loss in enumerate(losses, 1)}


def _parameter(stage: int, name: str) -> str:
    return f"stage {stage}'s {name}"


def _settings(stages: "dict[int, nn.Module]", xs: "Sequence[Tensor | None]") -> dict[str, list]:
    """What no number of an argument shows: whether a micro-batch asks for a gradient, whether a layer is training."""
    return {
        "micro_batches": [getattr(x, "requires_grad", None) for x in xs],
        "stages": [layer.training for stage in stages.values() for layer in stage.modules()],
    }


def expected(given: dict[str, Any], schedule: "Schedule") -> list[dict[str, Any]]:
    """What each rank must have, from the whole model and the whole batch at once."""
    import torch
    from torch import nn

    layers, xs, ys = _drawn(given)
    loss = _share(nn.Sequential(*layers)(torch.cat(xs)), torch.cat(ys), sum(given["splits"]))
    loss.backward()
    number = loss.item() if given["dtype"] == "float64" else np.float32(loss.item())
    rank_of, parts = rank_of_stages(schedule), _parts(layers, given)
    found: list[dict[str, Any]] = []
    for rank in range(len(schedule)):
        last = rank_of[max(rank_of)] == rank
        losses = _losses([number if last else 0.0 for _ in range(given["calls"])])
        gradients = {
            _parameter(stage, name): {GRADIENT: parameter.grad * given["calls"]}
            for stage, home in rank_of.items()
            if home == rank
            for name, parameter in parts[stage].named_parameters()
        }
        found.append(losses | gradients | {RAN: ...})
    return found


def case_of(
    rng: np.random.Generator,
    name: str,
    schedule: "Schedule",
    cuts: Sequence[int],
    dtype: str = "float64",
    long: bool = False,
    key: str = "",
    **more: Any,
) -> Case:
    """One batch (or several calls) through a schedule; every layer of its own width, every micro-batch of its own size.

    Args:
        cuts: for each stage how many layers it gets, linear ones and tanh in turn.
    """
    linear, micro_batches = (sum(cuts) + 1) // 2, micro_batches_of(schedule)
    given = {
        "lines": write_schedule(schedule).splitlines(),
        "sizes": [LONG] * (linear + 1) if long else [2 + int(n) for n in rng.permutation(linear + 1)],
        "splits": [LONG] * micro_batches if long else [2 + int(n) for n in rng.permutation(micro_batches)],
        "cuts": list(cuts),
        "seed": int(rng.integers(2**31)),
        "dtype": dtype,
        **{"calls": 1, "before": False, "put_aside": False, "pace": 0.0, **more},
    }
    sends = [sum("SEND" in action.kind for action in actions) for actions in with_messages(schedule)]
    messages = sum(sends) * (given["calls"] + given["before"])
    enough = max(sends) * (8 * LONG**2 + ENVELOPE) if long else None  # where its numbers are most of a message
    label = f"{name}, {ranks(len(schedule))}, {count(micro_batches, 'micro-batch')}"
    label += f", {dtype}" if dtype != "float64" else ""
    label += f", {count(given['calls'], 'call')}" if given["calls"] > 1 else ""
    label += ", after another batch" if given["before"] else ""
    label += ", gradients of weights put aside" if given["put_aside"] else ""
    label += ", long messages" if long else ""
    wanted = expected(given, schedule)
    more_of_case = {
        "cost": Cost(messages=messages, bytes_per_rank=enough, collectives=0),
        "judge": wrong_order,
        "harness": in_a_pipeline,
    }
    return Case(label, [(given,) for _ in schedule], wanted, key=key, **more_of_case)


def wrong_order(outcome: Outcome) -> Finding | None:
    """Find what no number shows: another order than the schedule's, `pace` not asked."""
    given = outcome.case.arguments[0][0]
    for rank, line in enumerate(given["lines"]):
        ran, words = outcome.results[rank][RAN], line.split()
        if ran["changed"]:
            return changed_argument(rank, ran["changed"][0])
        passes = [f"{word.rstrip('0123456789')[:-1]}{'F' if 'F' in word else 'B'}" for word in words if "W" not in word]
        wrong = _another(rank, ran["passes"], passes * given["calls"])
        if not wrong and given["pace"]:
            never = [word for word in words if word not in ran["paced"]]
            if never:
                asked = f"{RIGHT} on rank {{rank}} `pace` was never called for {{action}}"
                return own("pace-not-asked", asked, rank=rank, action=never[0])
            wrong = _another(rank, ran["paced"], words * given["calls"])
        if wrong:
            return wrong
    return None


def _another(rank: int, done: list[str], wanted: list[str]) -> Finding | None:
    words = f"{RIGHT} rank {{rank}} did {{got}} as pass number {{index}}, and the schedule has {{expected}} there"
    for index, (got, right) in enumerate(itertools.zip_longest(done, wanted)):
        if got != right:
            got, right = got or "nothing", right or "nothing"
            return own("another-pass", words, rank=rank, got=got, expected=right, index=index)
    return None
