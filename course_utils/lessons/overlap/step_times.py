"""How long one training step takes with each of several methods of keeping replicas equal, measured by turns.

One of the methods should be `replicas.unsynchronised`, which sends nothing. What a step takes beyond that is an upper
bound of its *exposed* communication: ranks that share cores also compute more slowly while messages are under way, and
a step waits for the slowest rank.
"""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch.distributed as dist
from torch import nn

from course_utils.lessons.data_parallel.replicas import Replica
from course_utils.lessons.data_parallel.timed_steps import last_step
from course_utils.lessons.data_parallel.training import Sgd, train_step
from course_utils.measuring import Compared, by_turns, is_busy
from course_utils.trace.events import Event
from course_utils.vgg import random_images, vgg11

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

Way = Callable[[nn.Module], Replica]
"""Makes a replica of a model, as the functions of `course_utils.lessons.data_parallel.replicas` do."""
ALONE = "no communication"
"""The name of `replicas.unsynchronised` among the methods."""


def small_vgg(seed: int) -> nn.Module:
    """VGG-11 with a quarter of its channels: 580 thousand parameters, 2.3 MB of gradients."""
    return vgg11(width=0.25, seed=seed)


@dataclass(frozen=True)
class StepTimes:
    """Steps that were timed by turns, round by round.

    Attributes:
        seconds: for each method the step of each round, on the rank that took the longest.
    """

    seconds: dict[str, list[float]]

    def median(self, method: str) -> float:
        """Return the median step of a method, in seconds."""
        return statistics.median(self.seconds[method])

    def compared(self, first: str, second: str) -> Compared:
        """Compare two of the methods, round by round."""
        return Compared(self.seconds[first], self.seconds[second], (first, second))

    @property
    def is_busy(self) -> bool:
        """Whether a method that sends something was faster than none, so that other work has spoilt the measurement."""
        return is_busy([taken for method, taken in self.seconds.items() if method != ALONE], part=self.seconds[ALONE])

    def exposed(self, method: str) -> float:
        """Return how many seconds a method's median step takes beyond `ALONE`'s, never below 0: an upper bound."""
        return max(0.0, self.median(method) - self.median(ALONE))

    def exposed_by_round(self, method: str) -> list[float]:
        """Return the same for each round: the method's step beyond `ALONE`'s in that round."""
        return [step - free for step, free in zip(self.seconds[method], self.seconds[ALONE], strict=True)]

    def exposed_shares(self, method: str) -> list[float]:
        """Return `exposed_by_round` as shares of the method's steps, never below 0."""
        return [
            max(0.0, beyond) / step
            for beyond, step in zip(self.exposed_by_round(method), self.seconds[method], strict=True)
        ]

    @property
    def bars(self) -> dict[str, dict[str, float]]:
        """For each method, the seconds of computing alone and what communication adds, for `draw.stacked_bars`.

        Together they are the median step. If that is shorter than `ALONE`'s, communication adds nothing.
        """
        free = self.median(ALONE)
        bars = {ALONE: {"computing": free}}
        for method in self.seconds:
            if method != ALONE:
                step = self.median(method)
                bars[method] = {"computing": min(free, step), "communication": self.exposed(method)}
        return bars


def time_steps(
    ways: Mapping[str, Way],
    batch: int | Mapping[str, int],
    rounds: int,
    build: Callable[[int], nn.Module],
    warm_up: int,
) -> dict[str, list[float]]:
    """Time one step of each method on every rank, by turns.

    Every way has a model of its own, and all ranks the same ones; images are random numbers of shape (3, 32, 32), as
    time does not depend on what they show. All ranks meet before each step.

    Args:
        ways: in the same order on all ranks.
        batch: images on this rank, or how many each method takes.
        rounds: that count; `warm_up` rounds go before them.
    """
    batches = dict.fromkeys(ways, batch) if isinstance(batch, int) else batch
    images = {size: random_images(size, seed=dist.get_rank()) for size in set(batches.values())}
    replicas = {name: wrap(build(0).train()) for name, wrap in ways.items()}
    steppers = {name: Sgd(replica.module.parameters(), rate=0.01) for name, replica in replicas.items()}

    def step(name: str) -> float:
        dist.barrier()
        begin = time.perf_counter()
        train_step(replicas[name].module, steppers[name], *images[batches[name]], replicas[name].finish)
        return time.perf_counter() - begin

    return by_turns({name: partial(step, name) for name in ways}, rounds, warm_up)


def step_times(
    ranks: "Ranks",
    ways: Mapping[str, Way],
    batch: int = 32,
    rounds: int = 7,
    build: Callable[[int], nn.Module] = small_vgg,
    world_size: int | None = None,
    warm_up: int = 2,
) -> StepTimes:
    """Time the methods on the first `world_size` ranks; see `time_steps`. DDP forms its buckets in its second step."""
    run = ranks.run(
        time_steps, dict(ways), batch, rounds, build=build, warm_up=warm_up, backend="gloo", ranks=world_size
    )
    return StepTimes(slowest(run.results))


def batch_step_times(
    ranks: "Ranks", ways: Mapping[str, Way], batches: Sequence[int], rounds: int = 7, warm_up: int = 2
) -> dict[int, StepTimes]:
    """Time every method with every number of images on a rank, all by turns; see `time_steps`."""
    pairs = {f"{name}, {batch} images": (name, batch) for batch in batches for name in ways}
    wrappers = {pair: ways[name] for pair, (name, _) in pairs.items()}
    images = {pair: batch for pair, (_, batch) in pairs.items()}
    run = ranks.run(time_steps, wrappers, images, rounds, build=small_vgg, warm_up=warm_up, backend="gloo")
    seconds = slowest(run.results)
    return {
        batch: StepTimes({name: seconds[pair] for pair, (name, own) in pairs.items() if own == batch})
        for batch in batches
    }


def slowest(results: Sequence[Mapping[str, Sequence[float]]]) -> dict[str, list[float]]:
    """Return for each method and round the seconds of the rank that took the longest."""
    return {
        method: [max(each) for each in zip(*(seconds[method] for seconds in results), strict=True)]
        for method in results[0]
    }


def one_step(ranks: "Ranks", wrap: Way, batch: int = 32, build: Callable[[int], nn.Module] = small_vgg) -> list[Event]:
    """Run four training steps on all ranks and return the events of the last, for a timeline."""
    run = ranks.run(time_steps, {"way": wrap}, batch, 1, build=build, warm_up=3, backend="gloo")
    return last_step(run).events


def step_seconds(events: Sequence[Event], rank: int = 0) -> float:
    """Return the median time from the start of one forward pass of a rank to the start of the next."""
    begins = sorted(event.start for event in events if event.rank == rank and event.name == "forward")
    return statistics.median(late - early for early, late in zip(begins, begins[1:], strict=False))
