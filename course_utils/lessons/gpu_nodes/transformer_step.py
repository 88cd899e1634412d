"""A transformer's training step beside one of VGG-11: which share of a large product's rate each of them reaches.

The transformer's step is written as for speed: blocks and loss compiled, products in bfloat16 by autocast, attention
fused, and an AdamW of one kernel. Its operations are counted as in the planner of lesson 11: 6 for each weight that
multiplies and each token, and attention's whole square of length × length. A causal kernel computes half of that
square, so `causal_flops` counts half of it. (Source: Chowdhery et al. 2022, "PaLM", appendix B, counts the whole.)
"""

import json
import time
from contextlib import nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import torch

from course_utils.gpu_seats import own_seat
from course_utils.lessons.gpu_nodes.ladder import BATCHES, IMAGES, LADDER, ROOM, Rung, Trainer, image_flops
from course_utils.lessons.gpu_nodes.llama import Llama
from course_utils.lessons.gpu_nodes.product_rate import (
    PRODUCT,
    machine_text,
    mean_seconds,
    product_rate,
    shares_of_peak,
)
from course_utils.lessons.hybrid_and_sharded.planner.language_models import BENCHMARKED, LanguageModel
from course_utils.measuring import Measured, by_turns
from course_utils.progress_bar import ProgressBar


@dataclass(frozen=True)
class TransformerWork:
    """A training step of a transformer.

    Attributes:
        name: what sentences call it.
        shape: of the network, gated as Llama.
        texts, length: of a step: so many texts of so many tokens.
        compiled: by torch.compile; on a processor only Python's part, because its compiler of kernels takes a minute.
        again: the forward pass of each block is done again in the backward pass.
    """

    name: str
    shape: LanguageModel
    texts: int
    length: int
    compiled: bool = True
    again: bool = False

    @property
    def flops(self) -> float:
        """Floating-point operations of a step, with attention's whole square; what is done again does not count."""
        return self.shape.flops(self.texts * self.length, self.length)

    @property
    def causal_flops(self) -> float:
        """The same with the half of attention's square that a causal kernel computes."""
        return self.flops - self.texts * self.length * self.shape.attention_flops(self.length) / 2


def slice_of(name: str, layers: int, **sizes: int) -> LanguageModel:
    """Return a published language model with so many of its layers; `sizes` replace others of its attributes."""
    return replace(BENCHMARKED[name], layers=layers, **sizes)


class TransformerTrainer:
    """A transformer and random tokens to train it on, the weights in float32 and AdamW's state, too.

    Attributes:
        losses: of the steps so far, on the device.
    """

    def __init__(self, work: TransformerWork, device: str = "cuda") -> None:
        self.work, self.device = work, device
        torch.manual_seed(0)
        with torch.device(device):
            self.model = Llama(work.shape, work.again)
            self.tokens = torch.randint(work.shape.vocabulary, (BATCHES, work.texts, work.length + 1))
        if work.compiled:
            self.model.compile_parts("inductor" if device == "cuda" else "eager")
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-4, fused=True)
        self.losses: list[torch.Tensor] = []

    def step(self) -> None:
        """Forward pass, backward pass and the weights' change, on the next tokens; on a processor in float32."""
        tokens = self.tokens[len(self.losses) % BATCHES]
        self.optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cuda", torch.bfloat16) if self.device == "cuda" else nullcontext():
            loss = self.model(tokens[:, :-1], tokens[:, 1:])
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.detach())


SLICE = TransformerWork("4 layers of Llama 3 8B", slice_of("Llama 3 8B", 4, vocabulary=32000), 4, 4096)
"""What was recorded on an H200, with a smaller vocabulary, so that the layers and not the ends fill it: about 30 GB."""
NARROWER = TransformerWork("4 layers of Llama 2 7B", slice_of("Llama 2 7B", 4), 2, 2048)
NARROWEST = TransformerWork("4 narrow layers", slice_of("Llama 2 7B", 4, width=2048, hidden=5632, heads=16), 2, 1024)
BY_MEMORY = {40e9: SLICE, 24e9: NARROWER, 0.0: NARROWEST}
"""Bytes that a GPU's memory should have at least → a step that fits into it beside VGG-11's."""
ON_PROCESSORS = TransformerWork(
    "a small transformer",
    slice_of("Llama 2 7B", 2, width=512, hidden=1536, heads=8, vocabulary=1000),
    texts=1,
    length=256,
    compiled=False,
)
IMAGES_ON_PROCESSORS = 8
SIDE_ON_PROCESSORS = 1024
"""Of the matrices whose product, in float32, shows what processors can do."""


@dataclass(frozen=True)
class NetworkRates:
    """What the steps of different networks reach beside a large product, all measured by turns.

    Attributes:
        machine, date: as in `Climb`.
        flops: network → floating-point operations that a step asks for.
        seconds: network → seconds of a step, in each round.
        peaks: FLOP/s of the product, in each round.
    """

    machine: str
    date: str
    flops: dict[str, float]
    seconds: dict[str, list[float]]
    peaks: list[float]

    def write(self, file: Path) -> None:
        """Keep it as JSON."""
        file.write_text(json.dumps(asdict(self), indent=1) + "\n")

    @classmethod
    def read(cls, file: Path) -> "NetworkRates":
        """One that was kept."""
        return cls(**json.loads(file.read_text()))

    def product_shares(self) -> dict[str, Measured]:
        """Network → its FLOP/s as a share of what the product reached in the same round."""
        return {name: shares_of_peak(self.flops[name], taken, self.peaks) for name, taken in self.seconds.items()}


def network_rates(
    rung: Rung, work: TransformerWork, device: str = "cuda", batch: int = IMAGES, rounds: int = 7, steps: int = 5
) -> NetworkRates:
    """Measure a step of VGG-11, one of a transformer and a product by turns.

    Args:
        rung: how VGG-11's step is done.
        batch: its images, before the rung makes them more.
        rounds, steps: as in `climb`.

    Raises:
        FloatingPointError: a loss is not a number.
    """
    vgg, transformer = Trainer(rung, device, batch=batch), TransformerTrainer(work, device)
    trainers: dict[str, Trainer | TransformerTrainer] = {"VGG-11": vgg, work.name: transformer}
    on_gpu = device == "cuda"
    product = (device, 0, torch.bfloat16) if on_gpu else (device, SIDE_ON_PROCESSORS, torch.float32)
    with ProgressBar("2 networks and a product") as bar:

        def measured(trainer: Trainer | TransformerTrainer) -> float:
            bar.refresh()
            return mean_seconds(trainer.step, steps, device)

        for trainer in trainers.values():  # libraries choose their kernels, the compiler makes some
            mean_seconds(trainer.step, 3, device)
            bar.refresh()
        measures = {name: lambda trainer=trainer: measured(trainer) for name, trainer in trainers.items()}
        taken = by_turns({**measures, PRODUCT: lambda: product_rate(*product)}, rounds)
    for name, trainer in trainers.items():
        if not torch.stack(trainer.losses).isfinite().all():
            raise FloatingPointError(f"{name}: a loss is not a number after {len(trainer.losses)} steps")
    peaks = taken.pop(PRODUCT)
    flops = {"VGG-11": image_flops() * vgg.batch, work.name: work.flops}
    return NetworkRates(machine_text(device), time.strftime("%Y-%m-%d"), flops, taken, peaks)


def network_rates_here() -> NetworkRates:
    """Measure both networks on this process's GPU, at sizes that fit into it; without a GPU, small ones on one core.

    On a GPU it takes about a minute, most of which the compiler needs, and on a core a few seconds. (On a busy machine,
    threads that wait for each other would make a step many times as long.)
    """
    if not own_seat().gpus:
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        try:
            return network_rates(Rung(kept=True), ON_PROCESSORS, "cpu", IMAGES_ON_PROCESSORS, steps=1)
        finally:
            torch.set_num_threads(threads)
    memory = torch.cuda.get_device_properties(0).total_memory
    rung = LADDER["+ larger batch" if memory >= ROOM else "+ CUDA graph"]
    return network_rates(rung, next(work for least, work in BY_MEMORY.items() if memory >= least))


def recorded_networks() -> NetworkRates:
    """Return what three networks reached on an H200: medians alone, and a product measured eight times beside them."""
    return NetworkRates.read(Path(__file__).parent / "recorded" / "networks.json")
