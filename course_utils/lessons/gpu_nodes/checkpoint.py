"""What a training needs to go on where it stopped: weights, optimizer, place in the data, and random states."""

import json
import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from course_utils.errors import CourseError
from course_utils.own_files import whole_file

CHECKPOINT = "checkpoint.pt"
"""The file's name, in the folder of the training."""


class UnreadableCheckpoint(CourseError):
    """A checkpoint cannot be read: it is damaged, or half of one."""


class UnsafeCheckpoint(CourseError):
    """A checkpoint is not read, because something in it might run code."""


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

    Only one process may write it.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(file) as stream:
        torch.save(content, stream)


def load_checkpoint(file: Path) -> dict[str, Any] | None:
    """What `save_checkpoint` wrote, its tensors on the CPU; None before there is anything.

    Only tensors, plain values and a `Place` are read: a checkpoint of a stranger can run no code.
    """
    with torch.serialization.safe_globals([Place]):
        return torch.load(file, map_location="cpu", weights_only=True) if file.exists() else None


def read_checkpoint(file: Path) -> dict[str, Any] | None:
    """What the last checkpoint holds, the same on all ranks of the default group; None before there is one.

    Rank 0 reads, and broadcasts what it read: ranks that read by themselves might find different files.

    Raises:
        CourseError: it cannot be read; on all ranks.
    """
    return from_rank_0(lambda: _read(file))


def _read(file: Path) -> dict[str, Any] | None:
    try:
        return load_checkpoint(file)
    except pickle.UnpicklingError:
        raise UnsafeCheckpoint(
            f"{file} is not read: something in it is neither numbers nor text, a list, a dict, a tensor or a Place."
        ) from None
    except Exception as error:
        words = f"{file} cannot be read ({error}). Remove it, and the training begins anew."
        raise UnreadableCheckpoint(words) from None


def from_rank_0(function: Callable[[], Any]) -> Any:
    """Call a function on rank 0 alone; all ranks of the default group get what it returns, or its CourseError."""
    box = [None]
    if dist.get_rank() == 0:
        try:
            box = [function()]
        except CourseError as error:
            box = [error]
    dist.broadcast_object_list(box, src=0)
    if isinstance(box[0], CourseError):
        raise box[0]
    return box[0]


def keep_to_settings(folder: Path, fixed: dict[str, Any]) -> None:
    """Note beside the checkpoint what must stay the same while a training goes on; all ranks take part.

    Raises:
        CourseError: there is a checkpoint in the folder, of a training with other settings.
    """

    def compare() -> None:
        file = folder / "settings.json"
        if file.exists() and (folder / CHECKPOINT).exists():
            before = json.loads(file.read_text())
            for name, value in fixed.items():
                if before.get(name) != value:
                    raise CourseError(
                        f"{folder / CHECKPOINT} belongs to a training with {name}={before.get(name)}, not {value}. "
                        "Take the same settings, or another folder."
                    )
        folder.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(fixed))

    from_rank_0(compare)


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


def gather_random_states() -> list[dict[str, torch.Tensor]] | None:
    """Every rank's random state, in rank order, on rank 0; None elsewhere. All ranks of the default group call it."""
    states: list | None = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
    dist.gather_object(random_state(), states, dst=0)
    return states


def set_random_states(states: Sequence[dict[str, torch.Tensor]]) -> None:
    """Put this rank's generators where they stood; with another number of ranks there is no telling whose is whose."""
    if len(states) == dist.get_world_size():
        set_random_state(states[dist.get_rank()])
