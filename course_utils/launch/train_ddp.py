"""The training program: handwritten digits on any number of processes, whoever starts them.

    torchrun --nproc-per-node=2 course_utils/launch/train_ddp.py --folder runs/a
    srun --ntasks=2 python course_utils/launch/train_ddp.py --folder runs/a       (in a batch script: `slurm_script`)
    ranks.run(train_ddp, Settings("runs/a"), backend="gloo")                      (ranks of `course.start`)

Started again with the same folder, it goes on where its last checkpoint was written.
"""

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DistributedSampler

from course_utils.data import digits
from course_utils.errors import CourseError
from course_utils.launch.checkpoint import Keeper, Place
from course_utils.launch.settings import FIXED, Settings, settings_from
from course_utils.launch.stopping import TRY_AGAIN, Interrupted, StopSignals
from course_utils.launch.where import Group, find_launch, process_group
from course_utils.training import accuracy


@dataclass(frozen=True)
class Trained:
    """How a training went; the same on all ranks.

    Attributes:
        losses: on all training images, at the end of each epoch, those before a restart too.
        test_accuracy: the share of test images recognised at the end.
        steps: done in all.
        resumed_at: the step after which this run went on; 0 for one that began at the beginning.
        epoch_seconds: of each epoch that this run did from its beginning to its end, without evaluation.
        nodes: where each rank was.
        backend: what carried the gradients.
    """

    losses: list[float]
    test_accuracy: float
    steps: int
    resumed_at: int
    epoch_seconds: list[float]
    nodes: tuple[str, ...]
    backend: str

    @property
    def loss(self) -> float:
        """On all training images, at the end."""
        return self.losses[-1]


def train_ddp(settings: Settings) -> Trained:
    """Train on all processes that the launcher started, from the last checkpoint in `settings.folder` if there is one.

    In every step each rank computes the gradient of its share of the global batch, and DDP averages them: one
    all-reduce of each bucket over NCCL or gloo. Then the ranks agree whether to go on (one number over gloo). At a
    checkpoint every rank sends rank 0 its random state; rank 0 writes.

    Raises:
        Interrupted: a rank was asked to stop; a checkpoint is written.
        CourseError: the batch does not divide among the ranks, the checkpoint is of another training, or see
            `process_group`.

    Source: docs.pytorch.org, "DistributedDataParallel" and "torch.utils.data.distributed".
    """
    with process_group() as group, StopSignals() as stop:
        train_x, train_y, test_x, test_y = (tensor.to(group.device) for tensor in digits())
        sampler = sampler_for(len(train_x), settings, group)
        model = network(settings).to(group.device)
        module = replica(model, settings, group)
        optimizer = torch.optim.SGD(model.parameters(), settings.rate, settings.momentum)
        keeper = Keeper(settings.folder, model, optimizer, {name: getattr(settings, name) for name in FIXED})
        torch.manual_seed(settings.seed + group.rank)
        place = keeper.resume()
        resumed_at, clock = place.steps, EpochClock(group.device)
        while place.epoch < settings.epochs:
            clock.begin(whole=place.batch == 0)
            for batch in rest_of_epoch(sampler, settings, group, place):
                train_step(module, optimizer, train_x[batch], train_y[batch], settings)
                place.batch, place.steps = place.batch + 1, place.steps + 1
                asked = stop.agreed()
                if asked or place.steps % settings.save_every == 0:
                    keeper.save(place)
                if asked:
                    raise Interrupted(stop.heard, place.steps, keeper.file)
                fail_once(settings, group, place)
            clock.end()
            place.losses.append(loss_on(model, train_x, train_y))
            place.epoch, place.batch = place.epoch + 1, 0
            say(group, f"epoch {place.epoch} of {settings.epochs}: loss {place.losses[-1]:.6f}")
        keeper.save(place)
        found = accuracy(model, test_x, test_y)
        return Trained(place.losses, found, place.steps, resumed_at, clock.seconds, group.nodes, group.backend)


def sampler_for(examples: int, settings: Settings, group: Group) -> DistributedSampler:
    """Deals the images out: the k-th batches of all ranks together are the k-th batch of one process.

    Raises:
        CourseError: the global batch does not divide among the ranks; the mean of their means would not be its mean.
    """
    if settings.batch_size % group.world_size:
        raise CourseError(
            f"A batch of {settings.batch_size} does not divide among {group.world_size} ranks. "
            f"Take --batch-size {group.world_size * max(1, settings.batch_size // group.world_size)}."
        )
    return DistributedSampler(range(examples), group.world_size, group.rank, seed=settings.seed)


def rest_of_epoch(
    sampler: DistributedSampler, settings: Settings, group: Group, place: Place
) -> Sequence[torch.Tensor]:
    """This rank's share of every global batch of the epoch that is not done yet; the last one, not full, is left out.

    Without `set_epoch` every epoch would have the same order, and a resumed one, too.
    """
    sampler.set_epoch(place.epoch)
    share = settings.batch_size // group.world_size
    own = torch.tensor(list(sampler), device=group.device).split(share)
    return own[place.batch : len(sampler.dataset) // settings.batch_size]


def network(settings: Settings) -> nn.Module:
    """A network for 64 pixels and ten digits, with two hidden layers; the seed fixes its first weights."""
    torch.manual_seed(settings.seed)
    layers: list[nn.Module] = []
    for inputs in (64, settings.hidden):
        layers += [nn.Linear(inputs, settings.hidden), nn.ReLU(), nn.Dropout(settings.dropout)]
    return nn.Sequential(*layers, nn.Linear(settings.hidden, 10))


def replica(model: nn.Module, settings: Settings, group: Group) -> nn.Module:
    """The model with DDP around it, which averages gradients over the group that carries them.

    The compiler is asked for the model and not for DDP: around DDP it finds a torch.nn.Sequential called by torch's own
    code, which it leaves as it is, and would compile nothing (torch 2.13).
    """
    on_gpu = group.device.type == "cuda"
    inner = torch.compile(model) if settings.compile else model
    return DistributedDataParallel(
        inner, device_ids=[group.device.index] if on_gpu else None, process_group=group.gradients
    )


def train_step(
    module: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor, settings: Settings
) -> None:
    """One step on this rank's share (x, y) of a batch. Nothing in it makes the CPU wait for the GPU."""
    module.train()
    optimizer.zero_grad()
    with torch.autocast(x.device.type, torch.bfloat16, enabled=settings.bf16):
        loss = cross_entropy(module(x), y)
    loss.backward()
    optimizer.step()
    time.sleep(settings.pause)


def loss_on(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    """The mean loss on all of `x`, in float32, without dropout. Every rank computes the same."""
    model.eval()
    with torch.no_grad():
        return cross_entropy(model(x), y).item()


class EpochClock:
    """Times the epochs that this run does from beginning to end.

    Attributes:
        seconds: of each of them.
    """

    def __init__(self, device: torch.device) -> None:
        self.device, self.seconds = device, list[float]()

    def begin(self, whole: bool) -> None:
        """An epoch begins; one that was begun before a restart is not timed."""
        self.whole, self.began = whole, time.perf_counter()

    def end(self) -> None:
        """It is over when the GPU has done all that was asked of it."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        if self.whole:
            self.seconds.append(time.perf_counter() - self.began)


def fail_once(settings: Settings, group: Group, place: Place) -> None:
    """End the last rank as a failing node would, where `die_at` says so, and only in the first try."""
    if place.steps == settings.die_at and group.rank == group.world_size - 1 and not group.restarts:
        print(f"rank {group.rank} kills itself after step {place.steps}, as --die-at says", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


def say(group: Group, line: str) -> None:
    """Print a line, once."""
    if group.rank == 0:
        print(line, flush=True)


def main() -> int:
    """Train as the command line says; returns the exit code: 0, 75 where it was stopped and can go on, 1 otherwise."""
    try:
        trained = train_ddp(settings_from(sys.argv[1:]))
    except Interrupted as stopped:
        if is_first():
            print(stopped, flush=True)
        return TRY_AGAIN
    except CourseError as error:
        print(f"rank {os.environ.get('RANK') or os.environ.get('SLURM_PROCID', 0)}: {error}", file=sys.stderr)
        return 1
    if is_first():
        print(f"done: {json.dumps(asdict(trained))}", flush=True)
    return 0


def is_first() -> bool:
    """Whether this process prints for all."""
    return find_launch().rank == 0


if __name__ == "__main__":
    code = 1
    try:
        code = main()
    except SystemExit as ended:  # --help, or a switch that there is not
        code = ended.code
    except Exception:
        traceback.print_exc()
    finally:  # at once, whatever the group's threads still wait for: so that the launcher sees it
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
