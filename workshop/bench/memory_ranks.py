"""What the bench of memory does on the ranks: a step of a small model, computed beforehand and counted, every way."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.lessons.hybrid_and_sharded.mesh_training import MeshTraining
from course_utils.lessons.hybrid_and_sharded.zero_stages import train_sharded
from course_utils.lessons.model_parallel.activation_checkpointing import checkpointed
from course_utils.lessons.model_parallel.memory_counter import counting_saved, measured_memory
from course_utils.lessons.model_parallel.memory_parts import Memory, Parallelism
from course_utils.lessons.model_parallel.parallel_block import parallelise_model
from course_utils.lessons.model_parallel.training_memory import training_memory
from course_utils.lessons.model_parallel.transformer import character_model
from course_utils.lessons.pipeline.run_schedule import run_schedule, split_model
from course_utils.lessons.pipeline.schedules import gpipe_schedule, one_f_one_b_schedule

if TYPE_CHECKING:
    from mpi4py import MPI

Pair = tuple[Memory, Memory]
"""Computed, and counted on this rank."""
CHARACTERS, BATCH, LENGTH = 40, 3, 16
OPTIMIZERS = {
    "sgd": lambda parameters: torch.optim.SGD(parameters, 0.1),
    "momentum": lambda parameters: torch.optim.SGD(parameters, 0.1, momentum=0.9),
    "adam": lambda parameters: torch.optim.Adam(parameters, 0.01),
}
DTYPES = {"float32": torch.float32, "float64": torch.float64, "mixed": torch.bfloat16}
STAGES = {2: [3, 3], 3: [2, 2, 2]}
"""How four blocks, an embedding and a head are cut for this many ranks."""


def small_model(dropout: float = 0.0, precision: str = "float32", depth: int = 2) -> nn.Sequential:
    """A character model of 20,000 to 60,000 parameters."""
    return character_model(CHARACTERS, 32, 4, depth, LENGTH, dropout).to(DTYPES[precision])


def texts(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Characters, and those that follow them; drawn at random."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(CHARACTERS, (2, BATCH, LENGTH), generator=generator).unbind()


def loss_of(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """The mean over all characters."""
    return cross_entropy(output.flatten(0, 1), target.flatten())


def step_with(layers: nn.Module, optimizer: torch.optim.Optimizer) -> Callable[[], None]:
    """A step of training, to be called."""
    x, target = texts()

    def step() -> None:
        optimizer.zero_grad()
        loss_of(layers(x), target).backward()
        optimizer.step()

    return step


class MixedPrecision(torch.optim.Optimizer):
    """Any optimizer, on float32 copies of parameters in 16 bits.

    A step is often smaller than half of a bfloat16's last digit, 0.4% of a number: added to the parameter itself, it
    would be lost.

    Args:
        parameters: of the model.
        make: makes the optimizer of the copies, such as `torch.optim.Adam`.

    Source: Micikevicius et al. 2018, "Mixed Precision Training", §3.1.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], make: Callable[[list[nn.Parameter]], torch.optim.Optimizer]
    ) -> None:
        self.low = list(parameters)
        self.copies = [nn.Parameter(parameter.detach().float()) for parameter in self.low]
        self.inner = make(self.copies)
        super().__init__(self.copies, {})
        self.state = self.inner.state

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        """A step of the copies, which are then rounded into the model."""
        for copy, low in zip(self.copies, self.low, strict=True):
            copy.grad = None if low.grad is None else low.grad.float()
        self.inner.step()
        for copy, low in zip(self.copies, self.low, strict=True):
            low.copy_(copy)
            copy.grad = None

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the model's gradients."""
        for low in self.low:
            low.grad = None


def on_one_rank(optimizer: str, precision: str, checkpointing: bool, dropout: float) -> Pair:
    """A step of the whole model."""
    model = small_model(dropout, precision)
    computed = training_memory(model, BATCH, LENGTH, optimizer, precision, checkpointing=checkpointing)
    layers, make = checkpointed(model) if checkpointing else model, OPTIMIZERS[optimizer]
    low = precision == "mixed"
    chosen = MixedPrecision(model.parameters(), make) if low else make(list(model.parameters()))
    return computed, measured_memory(layers, chosen, step_with(layers, chosen))


def tensor_parallel(dropout: float, sequence: bool, checkpointing: bool) -> Pair:
    """A step with every block cut over all ranks."""
    model = small_model(dropout)
    ways = Parallelism(tensor=dist.get_world_size(), sequence=sequence)
    computed = training_memory(model, BATCH, LENGTH, parallelism=ways, checkpointing=checkpointing)
    layers = parallelise_model(model, sequence=sequence)
    layers = checkpointed(layers) if checkpointing else layers
    optimizer = torch.optim.Adam(layers.parameters())
    return computed, measured_memory(layers, optimizer, step_with(layers, optimizer))


def pipelined(
    comm: "MPI.Intracomm", schedule_name: str, micro_batches: int, checkpointing: bool, dropout: float
) -> Pair:
    """A step of a pipeline, "gpipe" or "1f1b"."""
    model, cuts, stage_index = small_model(dropout, depth=4), STAGES[comm.size], comm.rank
    own = model[sum(cuts[:stage_index]) :][: cuts[stage_index]]
    in_flight = micro_batches if schedule_name == "gpipe" else min(comm.size - stage_index, micro_batches)
    computed = training_memory(own, BATCH, LENGTH, checkpointing=checkpointing, in_flight=in_flight)
    schedule = {"gpipe": gpipe_schedule, "1f1b": one_f_one_b_schedule}[schedule_name](comm.size, micro_batches)
    stage = split_model(checkpointed(model) if checkpointing else model, cuts)[stage_index]
    optimizer = torch.optim.Adam(stage.parameters())
    batches = [texts(index) for index in range(micro_batches)]

    def share_of_loss(output: torch.Tensor, index: int) -> torch.Tensor:
        return loss_of(output, batches[index][1])

    def step() -> None:
        run_schedule(comm, schedule, {stage_index: stage}, [x for x, _ in batches], share_of_loss)
        optimizer.step()

    return computed, measured_memory(stage, optimizer, step)


def divided(stage: int) -> Pair:
    """Two steps with a stage of ZeRO."""
    model, ranks = small_model(), dist.get_world_size()
    computed = training_memory(model, BATCH, LENGTH, parallelism=Parallelism(data=ranks, zero=stage))
    x = torch.randint(CHARACTERS, (BATCH * ranks, LENGTH))
    with counting_saved(model) as saved:
        kept = train_sharded(stage, lambda: model, [(x, x.clone())] * 2).kept
    return computed, Memory(kept["parameters"], kept["gradients"], kept["state"], saved.most)


def on_mesh(sizes: dict[str, int], micro_batches: int = 3) -> Pair:
    """A step with several kinds of parallelism at once."""
    training = MeshTraining(small_model(0.1, depth=4), sizes, micro_batches)
    stage, axes = training.coordinates["pipeline"], training.sizes
    layers = small_model(0.1, depth=4)[training.first_layer :][: len(training.stage)]
    ways = Parallelism(data=axes["data"], tensor=axes["tensor"])
    in_flight = min(axes["pipeline"] - stage, micro_batches)
    computed = training_memory(layers, BATCH, LENGTH, parallelism=ways, in_flight=in_flight)
    x = torch.randint(CHARACTERS, (BATCH * micro_batches * axes["data"], LENGTH))
    state = [moment for kept in training.adam.states.values() for moment in (kept.mean, kept.square)]
    return computed, measured_memory(training.stage, state, lambda: training.step(x, x))
