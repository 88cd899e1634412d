"""A training that is started several times, and what it should do each time: what `train_ddp` is tried on.

A rank that "dies" leaves with an exception that no answer catches, all ranks after the same step: the disk then
holds what a killed node leaves. A signal is put into `StopSignals` of one rank, as the handler would.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from course_utils.checks.torch_cases import averaging_hook
from course_utils.lessons.gpu_nodes.checkpoint import CHECKPOINT
from course_utils.lessons.gpu_nodes.stop_signals import Interrupted
from course_utils.lessons.gpu_nodes.training_settings import Settings
from course_utils.settings import RANKS

IMAGES = 1437
"""Handwritten digits to train on."""
NAMES = ("first", "second", "third", "fourth", "fifth")
STARTS = tuple(f"the {name} start" for name in NAMES)
ENDED, LEFT_AFTER, THERE = "the end", "the step of the interruption", "the checkpoint at the end"
BATCHES, WRITTEN, WRITTEN_AFTER = (
    "the list of batches",
    "the list of checkpoints",
    "the list of steps before a checkpoint",
)
RESUMED, STEPS, LOSSES = "resumed_at", "steps", "the list of losses"
DIED, INTERRUPTED, FINISHED, REJECTED = "killed", "interrupted", "finished", "an error"
ON_DISK = "on the disk"
BATCH = "epoch {}, batch {}"


@dataclass(frozen=True)
class Start:
    """One start of the training.

    Attributes:
        epochs: that it is to have in all.
        dies_after: of its own steps, after which all ranks die; 0 for never.
        hears_in: of its own steps, in which the last rank hears SIGTERM; 0 for never.
        breaks_off: of its writings, the one during which rank 0 dies; 0 for none.
        damaged: whether half of the checkpoint is lost before it.
        folder: of the checkpoint.
    """

    epochs: int = 2
    dies_after: int = 0
    hears_in: int = 0
    breaks_off: int = 0
    damaged: bool = False
    folder: str = "a"


def after_starts(function: Callable, options: Mapping[str, Any], starts: Sequence[Start]) -> dict[str, Any]:
    """Start the learner's training once and again, on this rank; return what was seen of each start."""
    import functools
    import tempfile

    import torch.distributed as dist

    from course_utils.data import digits
    from course_utils.lessons.gpu_nodes import resumable_training

    box, found = [tempfile.mkdtemp(dir=RANKS.value()) if dist.get_rank() == 0 else ""], {}
    dist.broadcast_object_list(box, src=0)
    kept = resumable_training.digits, resumable_training.replica
    resumable_training.digits, resumable_training.replica = (
        functools.cache(digits),
        functools.partial(with_hook, resumable_training.replica),
    )
    try:
        for name, start in zip(STARTS, starts):
            settings = Settings(f"{box[0]}/{start.folder}", start.epochs, **options)
            found[name] = one_start(function, settings, start)
    finally:
        resumable_training.digits, resumable_training.replica = kept
    return found


def with_hook(replica: Callable, *given: Any) -> Any:
    """A replica whose messages are seen, so that a rank that waits in one is known to wait."""
    module = replica(*given)
    module.register_comm_hook(None, averaging_hook)
    return module


def steps_text(written: Sequence[int]) -> str:
    """After which steps something was written."""
    return f"after {', '.join(map(str, sorted(set(written))))} steps" if written else "none"


def one_start(function: Callable, settings: Settings, start: Start) -> dict[str, Any]:
    """Start it once; return how it ended, which batches it did, and what it wrote."""
    if start.damaged:
        damage(Path(settings.folder) / CHECKPOINT)
    done: list[str] = []
    written: list[int] = []
    result, more = None, {}
    with watched(settings, start, done, written) as (died, file):
        try:
            result = function(settings)
            ended = FINISHED
        except died:
            ended = DIED
        except Interrupted as stopped:
            ended, more = INTERRUPTED, {LEFT_AFTER: stopped.steps}
        except Exception:
            if not start.damaged:
                raise
            ended = REJECTED
        there = bool(file) and file[0].exists()
    seen = {ENDED: ended, **more, BATCHES: done, WRITTEN: steps_text(written), WRITTEN_AFTER: written}
    if ended == INTERRUPTED:
        seen[THERE] = ON_DISK if there else "not on the disk"
    if ended == FINISHED:
        seen |= {STEPS: result if result is None else result.steps, RESUMED: getattr(result, "resumed_at", None)}
        losses = getattr(result, "losses", None)
        seen[LOSSES] = [round(loss, 6) for loss in losses] if isinstance(losses, list) else losses
    return seen


def damage(file: Path) -> None:
    """Leave half of a checkpoint; rank 0 does it."""
    import torch.distributed as dist

    if dist.get_rank() == 0 and file.exists():
        content = file.read_bytes()
        file.write_bytes(content[: len(content) // 2])


def watched(settings: Settings, start: Start, done: list[str], written: list[int]) -> Any:
    """Inside, each step and each writing is noted and may be the last; gives the exception of death, and the file."""
    import contextlib
    import io
    import time

    import torch
    import torch.distributed as dist

    from course_utils.lessons.gpu_nodes.resumable_training import Training

    class Died(BaseException):
        """What no answer catches."""

    take, write, size, rank = Training.step, torch.save, dist.get_world_size(), dist.get_rank()
    named = {tuple(batch): name for name, batch in batches_of(settings, size, rank).items()}
    place_before, files, taken, calls = [0], [], [], []

    def step(training: Training, batch: torch.Tensor, progress: Any) -> None:
        if not taken:
            files.append(training.file)
            place_before[0] = progress.steps
        taken.append(batch)
        if len(taken) == start.hears_in and rank == size - 1:
            training.stop.heard = "SIGTERM"
        take(training, batch, progress)
        done.append(named.get(tuple(batch.tolist()), "images that are no batch"))
        if len(taken) == start.dies_after:
            raise Died

    def save(content: Any, where: Any, *more: Any, **options: Any) -> None:
        if isinstance(where, io.BytesIO):  # torch packs what it sends to other ranks in this way
            return write(content, where, *more, **options)
        calls.append(where)
        if start.hears_in and rank == 0 and not files[0].exists():
            time.sleep(0.2)  # whoever does not wait for the writing has left before it
        if len(calls) == start.breaks_off:
            whole = io.BytesIO()
            write(content, whole)
            half = whole.getvalue()[: len(whole.getvalue()) // 2]
            where.write(half) if hasattr(where, "write") else Path(where).write_bytes(half)
            raise Died
        write(content, where, *more, **options)
        written.append(place_before[0] + len(taken))
        return None

    @contextlib.contextmanager
    def inside() -> Iterator[tuple[type, list[Path]]]:
        Training.step, torch.save = step, save
        try:
            yield Died, files
        finally:
            Training.step, torch.save = take, write

    return inside()


def batches_of(settings: Settings, size: int, rank: int) -> dict[str, list[int]]:
    """Name of a batch → this rank's images in it: a share of every global batch of a new order in each epoch."""
    import torch

    share, found = settings.batch_size // size, {}
    for epoch in range(settings.epochs):
        order = torch.randperm(IMAGES, generator=torch.Generator().manual_seed(settings.seed + epoch)).tolist()
        own = (order + order[: -IMAGES % size])[rank::size]
        for batch in range(IMAGES // settings.batch_size):
            found[BATCH.format(epoch, batch)] = own[batch * share : (batch + 1) * share]
    return found


def what_is_due(options: Mapping[str, Any], starts: Sequence[Start], rank: int, losses: Sequence[float]) -> dict:
    """What a rank must see of each start.

    Args:
        losses: at the end of each epoch, without interruption; none where they cannot be known.
    """
    in_epoch, every = IMAGES // options["batch_size"], options["save_every"]
    saved, due = {}, {}
    for name, start in zip(STARTS, starts):
        first, last = saved.get(start.folder, 0), start.epochs * in_epoch
        writes, done, ended, more = [], [], FINISHED, {}
        if start.damaged:
            first, last, ended = 0, 0, REJECTED
        for step in range(first + 1, last + 1):
            done.append(BATCH.format(*divmod(step - 1, in_epoch)))
            if step - first == start.dies_after:
                ended = DIED
                break
            asked = step - first == start.hears_in
            if asked or step % every == 0:
                if len(writes) + 1 == start.breaks_off:
                    ended = DIED
                    break
                writes.append(step)
            if asked:
                ended, more = INTERRUPTED, {LEFT_AFTER: step}
                break
        writes += [last] if ended == FINISHED else []
        if writes:
            saved[start.folder] = writes[-1]
        written = (steps_text(writes) if done else ...) if rank == 0 else steps_text([])
        seen = {ENDED: ended, **more, BATCHES: done, WRITTEN: written, WRITTEN_AFTER: ...}
        if ended == INTERRUPTED:
            seen[THERE] = ON_DISK
        if ended == FINISHED:
            known = list(losses[: start.epochs]) if losses else ...
            seen |= {STEPS: last, RESUMED: first, LOSSES: known}
        due[name] = seen
    return due


def losses_of(options: Mapping[str, Any], epochs: int, without: str = "", at: Sequence[int] = ()) -> list[float]:
    """The loss at the end of each epoch of a training by one process, without dropout.

    Args:
        without: "optimizer" or "weights", which are forgotten after the steps in `at`.
    """
    import torch
    from torch.nn.functional import cross_entropy

    from course_utils.data import digits
    from course_utils.lessons.gpu_nodes.resumable_training import network

    settings = Settings("", epochs, **options)
    with torch.random.fork_rng():
        model, fresh = network(settings), network(settings)
    optimizer = torch.optim.SGD(model.parameters(), settings.rate, settings.momentum)
    (x, y, *_), found, order = digits(), [], batches_of(settings, 1, 0)
    for number, batch in enumerate(order.values(), start=1):
        optimizer.zero_grad()
        cross_entropy(model(x[batch]), y[batch]).backward()
        optimizer.step()
        if number in at and without == "optimizer":
            optimizer.state.clear()
        if number in at and without == "weights":
            model.load_state_dict(fresh.state_dict())
        if number % (IMAGES // settings.batch_size) == 0:
            with torch.no_grad():
                found.append(round(cross_entropy(model(x), y).item(), 6))
    return found
