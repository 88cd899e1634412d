"""A checkpoint written on one mesh and read on another: `torch.distributed.checkpoint`.

Every rank writes the parts that it has, and what part of which tensor each is. So any other mesh can read them: each
rank looks up which pieces of which files make up its own parts.
Here the mesh is torch's: `tensor` cuts the blocks (lesson 9), `data` shards what is left fully (FSDP2).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as checkpoint
from torch import nn
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.functional import cross_entropy

from course_utils.errors import CourseError
from course_utils.lessons.hybrid_and_sharded.device_mesh import place_of
from course_utils.lessons.hybrid_and_sharded.fsdp import shard_fully, whole_tensor
from course_utils.lessons.hybrid_and_sharded.hybrid_step import equal_shards
from course_utils.lessons.hybrid_and_sharded.mesh_training import Batches
from course_utils.lessons.model_parallel.dtensor import mesh_device, parallelize_block
from course_utils.lessons.model_parallel.transformer import Block

AXES = ("data", "tensor")


class TorchMeshTraining:
    """One rank's part of a training run with Adam on torch's own mesh of data × tensor.

    Args:
        model: of `character_model`, equal on all ranks; changed.
        sizes: ranks along each axis, {"data": 4} or {"data": 2, "tensor": 2}; an axis that is left out has one.
        rate: of Adam.

    Raises:
        CourseError: an axis that is none of these, or a model that cannot be cut so.
    """

    def __init__(self, model: nn.Sequential, sizes: Mapping[str, int], rate: float = 0.003) -> None:
        if strange := [axis for axis in sizes if axis not in AXES]:
            raise CourseError(f"The axes of this mesh are {' and '.join(AXES)}, not {strange[0]!r}.")
        self.model, self.sizes = model, {axis: sizes.get(axis, 1) for axis in AXES}
        mesh = init_device_mesh(mesh_device(), tuple(self.sizes.values()), mesh_dim_names=AXES)
        self.coordinates = place_of(mesh.get_rank(), self.sizes)
        if self.sizes["tensor"] > 1:
            for block in (layer for layer in model if isinstance(layer, Block)):
                parallelize_block(block, mesh["tensor"])
        if self.sizes["data"] > 1:
            shard_fully(model, mesh["data"])
        self.optimizer = torch.optim.Adam(model.parameters(), rate)

    def step(self, x: torch.Tensor, y: torch.Tensor) -> float:
        """One step with a whole batch, which every rank is given; the loss of this rank's share of it."""
        replicas, mine = self.sizes["data"], self.coordinates["data"]
        equal_shards(len(x), replicas)
        self.optimizer.zero_grad()
        loss = cross_entropy(self.model(x.chunk(replicas)[mine]).flatten(0, 1), y.chunk(replicas)[mine].flatten())
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def save(self, folder: Path | str) -> None:
        """Write parameters and Adam's state into a folder: each rank a file of its parts, one rank the table of all."""
        checkpoint.save(self._state(), checkpoint_id=str(folder))

    def load(self, folder: Path | str) -> None:
        """Read this rank's parts of what any mesh has written.

        Raises:
            CourseError: the folder is not a checkpoint, or one of another model.
        """
        if not (Path(folder) / ".metadata").is_file():
            raise CourseError(
                f"{folder} is not a checkpoint: it has no file .metadata, which is written last. "
                "Name the folder that was given to save, and look whether it ended without an error."
            )
        state = self._state()
        try:
            checkpoint.load(state, checkpoint_id=str(folder))
        except CheckpointException as error:
            reason = str(next(iter(error.failures.values()))[0]).partition("\n")[0]
            raise CourseError(
                f"{folder} is a checkpoint of another model: {reason}. Build the model as it was when it was saved."
            ) from None
        set_state_dict(
            self.model,
            self.optimizer,
            model_state_dict=state["model"],
            optim_state_dict=state["optimizer"],
        )

    def whole(self) -> dict[str, torch.Tensor]:
        """Parameters and Adam's state by their names, whole. All ranks call it together."""
        state = self._state()
        found = {f"parameter {name}": whole_tensor(tensor) for name, tensor in state["model"].items()}
        for name, entries in state["optimizer"]["state"].items():
            found |= {f"{key} {name}": whole_tensor(tensor) for key, tensor in entries.items()}
        return found

    def _state(self) -> dict[str, Any]:
        model, optimizer = get_state_dict(self.model, self.optimizer)
        return {"model": model, "optimizer": optimizer}


@dataclass
class SavedRun:
    """What a rank brings back.

    Attributes:
        losses: of each step, of this rank's share of the batch; the mean over the ranks is the batch's.
        state: parameters ("parameter 1.mlp.up.weight") and Adam's state ("exp_avg …", "exp_avg_sq …", "step …"), whole.
    """

    losses: list[float]
    state: dict[str, torch.Tensor]


def save_on_mesh(
    folder: Path | str,
    sizes: Mapping[str, int],
    build: Callable[[], nn.Sequential],
    batches: Batches,
    rate: float = 0.003,
) -> SavedRun:
    """Train on a mesh, then write a checkpoint; for `ranks.run(save_on_mesh, folder, …, backend="gloo")`.

    Args:
        folder: made if there is none; what it has of an older checkpoint is overwritten.
        build: makes the model, the same on every rank.
        batches: whole batches, the same on every rank.
    """
    training = TorchMeshTraining(build(), sizes, rate)
    losses = [training.step(x, y) for x, y in batches]
    training.save(folder)
    return SavedRun(losses, training.whole())


def load_on_mesh(
    folder: Path | str,
    sizes: Mapping[str, int],
    build: Callable[[], nn.Sequential],
    batches: Batches = (),
    rate: float = 0.003,
) -> SavedRun:
    """Read a checkpoint on a mesh, any one, and go on training; the state is that before the first further step.

    Args:
        build: makes a model of the same form; its weights are overwritten.
        batches: to go on with.

    Raises:
        CourseError: the folder is not a checkpoint, or one of another model.
    """
    training = TorchMeshTraining(build(), sizes, rate)
    training.load(folder)
    state = training.whole()
    return SavedRun([training.step(x, y) for x, y in batches], state)
