"""What a training needs to go on where it stopped: weights, optimizer, place in the data, and random states."""

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn

from course_utils.errors import CourseError


@dataclass
class Place:
    """How far a training has come.

    Attributes:
        epoch: counted from 0; equal to the number of epochs at the end.
        batch: how many global batches of this epoch are done.
        steps: done in all.
        losses: on all training images, at the end of each epoch.
    """

    epoch: int = 0
    batch: int = 0
    steps: int = 0
    losses: list[float] = field(default_factory=list)


def save_checkpoint(file: Path, content: dict[str, Any]) -> None:
    """Write a checkpoint so that a reader finds the old one or the new one, and never a half.

    It is written beside its place, forced onto the disk, and then renamed: POSIX lets no one see a rename half done.
    A crash while writing leaves the old checkpoint. Only one process may write it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    scratch = file.with_suffix(".new")
    with scratch.open("wb") as stream:
        torch.save(content, stream)
        stream.flush()
        os.fsync(stream.fileno())
    scratch.replace(file)


def load_checkpoint(file: Path) -> dict[str, Any] | None:
    """What `save_checkpoint` wrote, its tensors on the CPU; None before there is anything.

    Only tensors and plain values are read: a checkpoint of a stranger can run no code.
    """
    return torch.load(file, map_location="cpu", weights_only=True) if file.exists() else None


def random_state() -> dict[str, torch.Tensor]:
    """Where this rank's generators stand: the CPU's, and the GPU's where it has one."""
    state = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        state["cuda"] = torch.cuda.get_rng_state()
    return state


def set_random_state(state: dict[str, torch.Tensor]) -> None:
    """Put the generators where `random_state` found them."""
    torch.set_rng_state(state["cpu"])
    if "cuda" in state and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])


class Keeper:
    """Keeps a training on disk, in one file that rank 0 writes and reads; all ranks of the default group take part.

    Attributes:
        file: the checkpoint, in the folder of the training.
    """

    def __init__(
        self, folder: str | Path, model: nn.Module, optimizer: torch.optim.Optimizer, fixed: dict[str, Any]
    ) -> None:
        """Write nothing yet.

        Args:
            model: without DDP and without the compiler around it, so that its names are its own.
            optimizer: of the same parameters.
            fixed: settings that must be the same when the training goes on.
        """
        self.file = Path(folder) / "checkpoint.pt"
        self.model, self.optimizer, self.fixed = model, optimizer, fixed

    def save(self, place: Place) -> None:
        """Write a checkpoint; returns on all ranks when it is on the disk.

        Weights and optimizer are the same on all ranks: rank 0's are taken. Random states differ: every rank sends its
        own to rank 0.
        """
        states: list | None = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
        dist.gather_object(random_state(), states, dst=0)
        if dist.get_rank() == 0:
            content = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
            save_checkpoint(self.file, {**content, "place": asdict(place), "random": states, "fixed": self.fixed})
        dist.barrier()  # whoever left now might end rank 0 in the middle of its writing

    def resume(self) -> Place:
        """Put everything back, in place; returns where to go on. Without a checkpoint that is the beginning.

        Rank 0 reads, and broadcasts what it read: ranks that read by themselves might find unlike files. With another
        number of ranks than before, random states are not put back: there is no telling whose is whose.

        Raises:
            CourseError: the checkpoint cannot be read, or is of a training with other settings; on all ranks.
        """
        box = [self._read() if dist.get_rank() == 0 else None]
        dist.broadcast_object_list(box, src=0)
        content = box[0]
        if content is None:
            return Place()
        if isinstance(content, CourseError):
            raise content
        for name, value in self.fixed.items():
            if content["fixed"].get(name) != value:
                raise CourseError(
                    f"{self.file} is of a training with {name}={content['fixed'].get(name)}, not {value}. "
                    "Take the same settings, or another folder."
                )
        self.model.load_state_dict(content["model"])
        self.optimizer.load_state_dict(content["optimizer"])
        if len(content["random"]) == dist.get_world_size():
            set_random_state(content["random"][dist.get_rank()])
        place = Place(**content["place"])
        if dist.get_rank() == 0:
            print(f"goes on after step {place.steps}, from {self.file}", flush=True)
        return place

    def _read(self) -> "dict[str, Any] | CourseError | None":
        """The checkpoint, or why it cannot be read."""
        try:
            return load_checkpoint(self.file)
        except Exception as error:
            return CourseError(f"{self.file} cannot be read ({error}). Remove it, and the training begins anew.")
