"""A training tried on one's own, measured and weighed as the check does; and naive data parallelism, to begin with."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.checks.finding_text import text_of
from course_utils.errors import CourseError
from course_utils.lessons.data_parallel.gradients import broadcast_parameters
from course_utils.lessons.data_parallel.replicas import all_reduce_flat
from course_utils.lessons.read_the_manual.capstone.faults import past_the_links, unfit
from course_utils.lessons.read_the_manual.capstone.on_ranks import trained
from course_utils.lessons.read_the_manual.capstone.result import CapstoneResult, megabytes_text, result_of, time_text
from course_utils.lessons.read_the_manual.capstone.task import LINKS, NAIVE_BATCH, NAIVE_EPOCHS, NODES, deal
from course_utils.ranks.run import per_rank

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks


def naive_data_parallel(model: nn.Sequential, images: torch.Tensor, labels: torch.Tensor) -> nn.Module:
    """Lesson 6's training: in every step the gradients are averaged over the ranks, in float32, as one vector.

    At the end each rank has batch norm's running means of its own images: they are averaged, too.

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
    """Deal images to the nodes, let the function train there, and weigh what comes back.

    Args:
        ranks: four of them.
        function: as the exercise asks for; its accuracy and budgets are looked at, and not judged.
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
        sent, seconds = (max(result[name] for result in measured) for name in ("sent", "seconds"))
        used = f"So far a node sends {megabytes_text(sent)} and takes {time_text(seconds)}."
        raise CourseError(f"This training cannot be weighed yet: {text_of(problem)} {used}")
    return result_of(measured, dealt.held_out)
