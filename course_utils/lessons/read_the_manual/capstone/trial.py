"""A training run to try out, measured and weighed as the check does; and naive data parallelism, to begin with."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.checks.finding_text import text_of
from course_utils.checks.panel import show
from course_utils.errors import CourseError
from course_utils.lessons.data_parallel.gradients import broadcast_parameters
from course_utils.lessons.data_parallel.replicas import all_reduce_flat
from course_utils.lessons.read_the_manual.capstone.combinations import what_others_reached
from course_utils.lessons.read_the_manual.capstone.faults import past_the_links, unfit
from course_utils.lessons.read_the_manual.capstone.kept_results import has_failed, note_trial
from course_utils.lessons.read_the_manual.capstone.on_ranks import trained
from course_utils.lessons.read_the_manual.capstone.result import CapstoneResult, megabytes_text, passes_text, result_of
from course_utils.lessons.read_the_manual.capstone.task import IMAGES, LINKS, NAIVE_BATCH, NAIVE_EPOCHS, NODES, deal
from course_utils.ranks.run import per_rank

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks


def naive_data_parallel(model: nn.Sequential, images: torch.Tensor, labels: torch.Tensor) -> nn.Module:
    """Train as in lesson 6: in every step the gradients are averaged over the ranks, in float32, as one vector.

    At the end each rank has batch norm's running means of its own images, so they are averaged as well.

    Arguments and result are those of `course_utils.lessons.read_the_manual.capstone.averaged_weights.capstone`.
    """
    broadcast_parameters(model)
    replica, optimizer = all_reduce_flat(model), torch.optim.SGD(model.parameters(), 0.05)
    for _ in range(NAIVE_EPOCHS):
        for batch in torch.randperm(len(images)).split(NAIVE_BATCH):
            optimizer.zero_grad()
            cross_entropy(replica.module(images[batch]), labels[batch]).backward()
            replica.finish()
            optimizer.step()
    for values in model.buffers():
        if values.is_floating_point():
            dist.all_reduce(values)
            values /= dist.get_world_size()
    return model


def tried(ranks: "Ranks", function: Callable, seed: int | None = None) -> CapstoneResult:
    """Deal images to the nodes, let the function train there, and weigh what it returns.

    An attempt of the learner's own that trained on all images of a node and misses what is asked for is noted, so that
    `what_others_reached` may answer; the first time, its table is shown.

    Args:
        ranks: four of them.
        function: as the exercise asks for; its accuracy and budgets are measured, and not judged.
        seed: of images, weights and the order of batches; None draws a new one.

    Raises:
        RankError: it raised, or ranks wait for what will never come.
        CourseError: there are other than four ranks, or what came back cannot be weighed; the text says why.
    """
    if ranks.world_size != NODES:
        start = f'ranks = course.start({NODES}, link="{LINKS}")'
        raise CourseError(f"The capstone is for {NODES} nodes, and here are {ranks.world_size}. Run `{start}`.")
    rng = np.random.default_rng(seed)
    dealt = deal(rng)
    pixels, labels = (per_rank([shard[index] for shard in dealt.shards]) for index in (0, 1))
    seeds = per_rank([int(rng.integers(2**31)) for _ in dealt.shards])
    measured = ranks.run(trained, function, seeds, pixels, labels, backend="gloo").results
    if problem := past_the_links(measured) or unfit(measured):
        sent, passes = (max(result[name] for result in measured) for name in ("sent", "passes"))
        used = f"So far a node sends {megabytes_text(sent)} and makes {passes_text(passes)}."
        raise CourseError(f"This training run cannot be weighed yet: {text_of(problem)} {used}")
    result = result_of(measured, dealt.held_out)
    if _is_attempt(function, measured):
        first = not has_failed()
        note_trial(missed=bool(result.misses()))
        if first and result.misses():
            show(what_others_reached())
    return result


def _is_attempt(function: Callable, measured: Sequence[dict[str, Any]]) -> bool:
    """Whether a function is a learner's, and has seen each node's images at least once: not only a measurement."""
    return not function.__module__.startswith(__package__) and all(found["images"] >= IMAGES for found in measured)
