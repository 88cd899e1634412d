"""Lessons 6 and 7 over NCCL: replicas equal to the serial run, buckets that travel behind the backward pass."""

import statistics

import torch
import torch.distributed as dist

from course_utils.lessons.data_parallel.batch_norm import SyncBatchNorm
from course_utils.lessons.data_parallel.gradients import broadcast_parameters
from course_utils.lessons.data_parallel.replicas import train_replicas, unsynchronised
from course_utils.lessons.data_parallel.training import (
    digits_mlp,
    own_weights,
    sync_norm_mlp,
    train_parallel,
    train_serial,
)
from course_utils.lessons.overlap.buckets import ALL_WAYS, overlapped
from course_utils.vgg import random_images, vgg11
from gpu.on_ranks import on_ranks
from gpu.registry import Missing, Where, check, equal
from gpu.timing import seconds
from workshop.bench.rows import ratio_row, value_row

EXAMPLES, BATCH = 256, 32


def made_up_digits(device: torch.device) -> tuple[torch.Tensor, ...]:
    """Random images of 64 pixels in float64, on the device; whatever they show, both runs see the same."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(EXAMPLES, 64, generator=generator, dtype=torch.float64).to(device)
    y = torch.randint(10, (EXAMPLES,), generator=generator).to(device)
    return x, y, x[:32], y[:32]


def beside_serial(device: torch.device) -> dict[str, float]:
    """On each rank: how far its weights are from those of one process, for each way."""
    data, found = made_up_digits(device), {}
    serial = train_serial(data, digits_mlp, batch_size=BATCH)
    trained = {"average_gradients": train_parallel(data, own_weights, batch_size=BATCH)}
    for way, replicate in ALL_WAYS.items():
        trained[way] = train_replicas(data, replicate, own_weights, batch_size=BATCH)
    for way, parallel in trained.items():
        found[way] = (parallel.parameters - serial.parameters).abs().max().item()
    return found


@check(6, 7, shows="data-parallel training by hand, in buckets and with DDP equals the run of one process")
def data_parallel(where: Where):
    for ranks in where.world_sizes:
        results = on_ranks(where, ranks, beside_serial)
        for name in results[0]:
            yield equal(f"{name}, P = {ranks}", max(one[name] for one in results))


def norm_beside_torch(device: torch.device) -> float:
    """On each rank: how far the course's batch norm over all ranks is from torch's over the whole batch."""
    x = made_up_digits(device)[0]
    rank, ranks = dist.get_rank(), dist.get_world_size()
    ours = SyncBatchNorm(64).to(x)(x.chunk(ranks)[rank])
    whole = torch.nn.BatchNorm1d(64).to(x)(x)
    return (ours - whole.chunk(ranks)[rank]).abs().max().item()


def trained_with_norm(device: torch.device) -> float:
    """On each rank: the loss after some steps of a network with batch norm over all ranks."""
    return statistics.mean(train_parallel(made_up_digits(device), sync_norm_mlp, batch_size=BATCH).losses[-2:])


@check(6, shows="batch norm over all ranks equals batch norm over the whole batch")
def sync_batch_norm(where: Where):
    for ranks in where.world_sizes:
        yield equal(f"P = {ranks}", max(on_ranks(where, ranks, norm_beside_torch)))
        yield value_row("gpu", f"loss after an epoch, P = {ranks}", on_ranks(where, ranks, trained_with_norm), "")


def timed_steps(device: torch.device, where: Where, batch: int, rounds: int) -> dict[str, list[float]]:
    """On each rank: seconds of a step of each way, by turns."""
    x, y = (one.to(device) for one in random_images(batch, seed=dist.get_rank()))
    ways = {"alone": unsynchronised, **ALL_WAYS}
    del ways["gather-scatter"]
    steps = {}
    for name, way in ways.items():
        model = vgg11(width=where.pick(1.0, 0.125), seed=0).to(device).train()
        broadcast_parameters(model)
        replica = way(model)

        def step(replica=replica) -> None:
            replica.module.zero_grad()
            torch.nn.functional.cross_entropy(replica.module(x), y).backward()
            replica.finish()

        steps[name] = step
    taken: dict[str, list[float]] = {name: [] for name in steps}
    for _ in range(rounds):
        for name, step in steps.items():
            dist.barrier()
            taken[name].append(seconds(where, step))
    return {name: values[2:] for name, values in taken.items()}  # DDP needs two steps to find its buckets


@check(7, shows="what a step takes beyond one without messages: each gradient by itself, one vector, buckets, DDP")
def overlap(where: Where):
    ranks = where.world_sizes[-1]
    results = on_ranks(where, ranks, timed_steps, where, where.pick(256, 4), where.pick(17, 4))
    taken = {name: [max(each) for each in zip(*(one[name] for one in results), strict=True)] for name in results[0]}
    yield value_row("gpu", f"alone, P = {ranks}", [1e3 * one for one in taken["alone"]], "ms")
    for name in taken:
        if name != "alone":
            yield ratio_row("gpu", f"{name} / alone, P = {ranks}", taken[name], taken["alone"])


def streams_of_a_step(device: torch.device, where: Where) -> tuple[int, int, int]:
    """On each rank: kernels of NCCL in a bucketed step, how many of them are on the streams of others, all kernels."""
    from torch.profiler import ProfilerActivity, profile

    model = vgg11(width=where.pick(1.0, 0.125), seed=0).to(device).train()
    replica = overlapped(model)
    x, y = (one.to(device) for one in random_images(where.pick(64, 2)))
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if where.cuda else [])]
    for _ in range(2):
        with profile(activities=activities) as seen:
            torch.nn.functional.cross_entropy(replica.module(x), y).backward()
            replica.finish()
            if where.cuda:
                torch.cuda.synchronize()
    kernels = [one for one in seen.profiler.kineto_results.events() if str(one.device_type()).endswith("CUDA")]
    computing = {one.device_resource_id() for one in kernels if "nccl" not in one.name().lower()}
    sending = [one for one in kernels if "nccl" in one.name().lower()]
    shared = sum(one.device_resource_id() in computing for one in sending)
    return len(sending), shared, len(kernels)


@check(7, 14, shows="the all-reduces of buckets are on a stream of their own, by torch's profiler")
def bucket_streams(where: Where):
    ranks = where.world_sizes[-1]
    results = on_ranks(where, ranks, streams_of_a_step, where)
    if not where.cuda:
        yield Missing("kernels and their streams", "a GPU")
        return
    sending, shared, kernels = results[0]
    yield value_row("gpu", f"kernels in a step, P = {ranks}", [kernels], "", target=1, better="higher")
    yield value_row(
        "gpu", f"of these NCCL's, P = {ranks}", [sending], "", target=1 if ranks > 1 else None, better="higher"
    )
    yield equal(f"NCCL's on a stream that computes, P = {ranks}", shared, target=0)
