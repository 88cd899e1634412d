"""Lessons 9 and 11 over NCCL: a block cut over ranks, and parameters of which each rank keeps a part."""

from copy import deepcopy

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.lessons.data_parallel.gradients import average_gradients
from course_utils.lessons.model_parallel.differentiable_collectives import join_over_ranks, split_over_ranks
from course_utils.lessons.model_parallel.parallel_block import parallelise_block, sum_sequence_gradients
from course_utils.lessons.model_parallel.transformer import Block, character_model
from gpu.on_ranks import on_ranks
from gpu.registry import Missing, Where, check, equal
from workshop.bench.rows import Row, value_row

HEADS, WIDTH, CHARACTERS = 8, 64, 40


def whole_block(device: torch.device, dropout: float) -> Block:
    """The same on every rank, in float64."""
    torch.manual_seed(0)
    return Block(WIDTH, HEADS, dropout, torch.Generator().manual_seed(0)).to(device).double()


def passed(block: nn.Module, x: torch.Tensor, sequence: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """A block's output and the gradient of its input."""
    x = x.clone().requires_grad_()
    y = join_over_ranks(block(split_over_ranks(x, 1)), 1) if sequence else block(x)
    y.square().sum().backward()
    return y.detach(), x.grad


def cut_blocks(device: torch.device) -> dict[str, float]:
    """On each rank: how far a cut block is from the whole one, for each way to cut it."""
    from course_utils.lessons.model_parallel.dtensor import parallelize_block, tensor_mesh

    torch.manual_seed(1)
    x = torch.randn(2, 16, WIDTH, dtype=torch.float64).to(device)
    wrong = {}
    for dropout in (0.0, 0.1):
        expected = passed(whole_block(device, dropout), x)
        cuts = {
            "by hand": parallelise_block,
            "along the sequence": lambda block: parallelise_block(block, sequence=True),
            "by torch": lambda block: parallelize_block(block, tensor_mesh()),
        }
        for name, cut in cuts.items():
            block, sequence = whole_block(device, dropout), name == "along the sequence"
            cut(block)
            got = passed(block, x, sequence)
            if sequence:
                sum_sequence_gradients(block)
            wrong[f"{name}, dropout {dropout:g}"] = max(
                (mine - theirs).abs().max().item() for mine, theirs in zip(got, expected, strict=True)
            )
    return wrong


@check(9, shows="a transformer block cut over ranks gives what the whole one gives, forward and backward")
def tensor_parallel(where: Where):
    for ranks in where.world_sizes:
        results = on_ranks(where, ranks, cut_blocks)
        for name in results[0]:
            yield equal(f"{name}, P = {ranks}", max(one[name] for one in results))


def text_model(device: torch.device) -> nn.Sequential:
    """The same on every rank, in float64."""
    return character_model(CHARACTERS, width=WIDTH, heads=HEADS, depth=2, context=16).to(device).double()


def sharded_runs(device: torch.device) -> dict[str, float]:
    """On each rank: how far the weights are from those of one process with torch's Adam, after three steps."""
    from course_utils.lessons.hybrid_and_sharded.fsdp import shard_fully, whole_tensor
    from course_utils.lessons.hybrid_and_sharded.zero1 import adam_shard, zero1_step
    from course_utils.lessons.hybrid_and_sharded.zero2 import zero2_state, zero2_step

    rank, ranks, steps, rate = dist.get_rank(), dist.get_world_size(), 3, 0.003
    text = torch.randint(CHARACTERS, (steps, 8, 17), generator=torch.Generator().manual_seed(2)).to(device)

    def loss_of(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
        return cross_entropy(model(batch[:, :-1]).flatten(0, 1), batch[:, 1:].flatten())

    serial = text_model(device)
    adam = torch.optim.Adam(serial.parameters(), rate)
    for batch in text:
        adam.zero_grad()
        loss_of(serial, batch).backward()
        adam.step()

    def plain(model: nn.Module) -> None:
        optimizer = torch.optim.Adam(model.parameters(), rate)
        for batch in text:
            optimizer.zero_grad()
            loss_of(model, batch.chunk(ranks)[rank]).backward()
            if not fully:
                average_gradients(model)
            optimizer.step()

    def stage_1(model: nn.Module) -> None:
        vector = nn.utils.parameters_to_vector(model.parameters()).detach()
        state = adam_shard(vector)
        for batch in text:
            model.zero_grad()
            loss_of(model, batch.chunk(ranks)[rank]).backward()
            gradient = torch.cat([one.grad.flatten() for one in model.parameters()])
            zero1_step(vector, gradient, state, rate)
            nn.utils.vector_to_parameters(vector, model.parameters())

    def stage_2(model: nn.Module) -> None:
        state = zero2_state(model.parameters(), 1 << 16)
        for batch in text:
            zero2_step(loss_of(model, batch.chunk(ranks)[rank]), state, rate)

    wrong = {}
    for name, train in {"stage 0": plain, "stage 1": stage_1, "stage 2": stage_2, "stage 3, FSDP2": plain}.items():
        model, fully = text_model(device), "FSDP2" in name
        if fully:
            shard_fully(model)
        train(model)
        pairs = zip(model.parameters(), serial.parameters(), strict=True)
        wrong[name] = max((whole_tensor(mine) - theirs).abs().max().item() for mine, theirs in pairs)
    return wrong


@check(11, shows="every stage of ZeRO, the last through FSDP2, trains as one process does")
def sharded(where: Where):
    for ranks in where.world_sizes:
        results = on_ranks(where, ranks, sharded_runs)
        for name in results[0]:
            yield equal(f"{name}, P = {ranks}", max(one[name] for one in results), target=1e-7)


def most_memory(device: torch.device, where: Where, stage: int) -> tuple[int, float]:
    """On each rank: the most bytes that its GPU gave out while Adam trained, whole or through FSDP2; the formula's."""
    from course_utils.lessons.hybrid_and_sharded.fsdp import shard_fully
    from course_utils.lessons.model_parallel.memory_parts import Parallelism
    from course_utils.lessons.model_parallel.training_memory import training_memory

    width, depth, length, batch = where.pick((1024, 8, 256, 4), (32, 2, 16, 2))
    torch.manual_seed(0)
    model = character_model(CHARACTERS, width=width, heads=HEADS, depth=depth, context=length)
    formula = training_memory(
        model, batch, length, "adam", parallelism=Parallelism(data=dist.get_world_size(), zero=stage)
    )
    before = torch.cuda.memory_allocated() if where.cuda else 0
    model = model.to(device)
    if stage == 3:
        shard_fully(model)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    text = torch.randint(CHARACTERS, (batch, length + 1), device=device)
    for _ in range(3):
        optimizer.zero_grad()
        cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten()).backward()
        if stage == 0:
            average_gradients(model)
        optimizer.step()
    return (torch.cuda.max_memory_allocated() - before if where.cuda else 0), formula.total


@check(11, shows="the most memory of a rank, whole and through FSDP2, beside what `training_memory` computes before")
def sharded_memory(where: Where):
    ranks = where.world_sizes[-1]
    most = {}
    for stage in (0, 3):
        found = on_ranks(where, ranks, most_memory, where, stage)
        most[stage], formula = found[0]
        if where.cuda:
            yield Row("gpu", f"stage {stage}, P = {ranks}, most", most[stage] / 1e6, "MB", "lower", None, 0.0, 1)
            yield Row("gpu", f"stage {stage}, P = {ranks}, formula", formula / 1e6, "MB", "lower", None, 0.0, 1)
    if not where.cuda:
        yield Missing("bytes given out", "a GPU")
    elif ranks > 1:
        yield Row("gpu", f"stage 3 / stage 0, P = {ranks}", most[3] / most[0], "", "lower", 0.8, 0.0, 1)


def checkpointed_beside_plain(device: torch.device, dropout: float, where: Where) -> dict[str, float]:
    """The largest difference between gradients, and the bytes that each way takes at most on a GPU."""
    from course_utils.lessons.model_parallel.activation_checkpointing import checkpointed

    width, length = where.pick((512, 512), (32, 16))
    model = character_model(CHARACTERS, width=width, heads=HEADS, depth=4, context=length, dropout=dropout).to(device)
    other = checkpointed(deepcopy(model))
    text = torch.randint(CHARACTERS, (8, length), device=device)
    gradients, most = [], []
    for one in (model, other):
        if where.cuda:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            before = torch.cuda.memory_allocated()
        cross_entropy(one(text).flatten(0, 1), text.flatten()).backward()
        gradients.append(torch.cat([parameter.grad.flatten() for parameter in one.parameters()]))
        most.append(torch.cuda.max_memory_allocated() - before if where.cuda else 0)
    return {"difference": (gradients[0] - gradients[1]).abs().max().item(), "plain": most[0], "checkpointed": most[1]}


@check(9, shows="blocks that are computed again have the same gradients, with the same dropout, and need less memory")
def checkpointing(where: Where):
    for dropout in (0.0, 0.1):
        found = checkpointed_beside_plain(torch.device(where.device), dropout, where)
        yield equal(f"gradients, dropout {dropout:g}", found["difference"], target=1e-5)
        if where.cuda:
            share = found["checkpointed"] / found["plain"]
            yield value_row("gpu", f"most memory / without, dropout {dropout:g}", [share], "×", target=1.0)
