"""What lesson 11 measures: the same small transformer on several meshes, and with every stage of ZeRO."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from torch import nn
from torch.nn.functional import cross_entropy

from course_utils.lessons.hybrid_and_sharded.mesh_training import Batches, bytes_by_axis, train_on_mesh
from course_utils.lessons.hybrid_and_sharded.zero_stages import on_paper, sent_by_rank, train_sharded
from course_utils.lessons.model_parallel.memory_counter import counting_saved
from course_utils.lessons.model_parallel.text import CHARACTERS, character_text, text_batches
from course_utils.lessons.model_parallel.transformer import character_model

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

MESHES = {
    "4 data": {"data": 4},
    "2 data × 2 tensor": {"data": 2, "tensor": 2},
    "4 tensor": {"tensor": 4},
    "2 data × 2 stages": {"data": 2, "pipeline": 2},
    "4 stages": {"pipeline": 4},
}
"""Mixtures of four ranks."""
CONTEXT = 16
"""Characters that the small model reads at a time."""
RATE = 0.02
"""At which it learns, with Adam."""


def small_model() -> nn.Sequential:
    """A transformer of two blocks for characters, in double precision; the same on every rank."""
    return character_model(len(CHARACTERS), width=48, depth=2, context=CONTEXT).double()


def small_batches(steps: int) -> Batches:
    """For each step 64 pieces of Python's help text, and what comes next."""
    return text_batches(character_text().training, 64, CONTEXT, steps)


@dataclass
class WaysCounted:
    """What was counted in several ways of training the same, by the way's name.

    Attributes:
        losses: of the whole batch, before each step.
        kept: bytes of each part of what a rank keeps.
        sent: bytes that a rank sends in a step, were all collectives rings, by axis or together ("sent").
        kept_on_paper, sent_on_paper: the sums, by the formulas.
    """

    losses: dict[str, list[float]] = field(default_factory=dict)
    kept: dict[str, dict[str, float]] = field(default_factory=dict)
    sent: dict[str, dict[str, float]] = field(default_factory=dict)
    kept_on_paper: dict[str, float] = field(default_factory=dict)
    sent_on_paper: dict[str, float] = field(default_factory=dict)


def count_meshes(ranks: "Ranks", batches: Batches, meshes: Mapping[str, Mapping[str, int]] = MESHES) -> WaysCounted:
    """Train the small model on each mesh; count what rank 1 sends, which has two neighbours in a pipeline."""
    counted = WaysCounted()
    for name, sizes in meshes.items():
        run = ranks.run(train_on_mesh, sizes, small_model, batches, 4, RATE, backend="gloo")
        handed_over = {axis: n / len(batches) for axis, n in bytes_by_axis(run.events, rank=1).items()}
        counted.sent[name] = ring_sent(handed_over, sizes)
        counted.losses[name] = run.results[-1].losses
    return counted


def count_stages(
    ranks: "Ranks", batches: Batches, micro_batches: int = 1, world_size: int | None = None
) -> WaysCounted:
    """Train the small model with each stage of ZeRO; count what rank 0 keeps and sends, beside the formulas.

    Args:
        micro_batches: into which each rank cuts its share of a batch. The formulas know of one only.
        world_size: how many ranks take part; None for all.
    """
    counted = WaysCounted()
    for stage in range(4):
        options = {"micro_batches": micro_batches, "backend": "gloo", "ranks": world_size}
        run = ranks.run(train_sharded, stage, small_model, batches, RATE, **options)
        name, mine = f"stage {stage}", run.results[0]
        counted.kept[name] = {part: float(nbytes) for part, nbytes in mine.kept.items()}
        counted.sent[name] = {"sent": sent_by_rank(run.events, run.world_size, len(batches))[0]}
        counted.losses[name] = np.mean([result.losses for result in run.results], axis=0).tolist()
        kept, sent = on_paper(list(mine.parameters.values()), run.world_size, stage)
        counted.kept_on_paper[name], counted.sent_on_paper[name] = sum(kept.values()), sent
    return counted


def most_saved(layers: nn.Sequential, batches: Batches, pieces: int) -> dict[str, float]:
    """Bytes saved for the backward pass at most, of the first batch in this many micro-batches; gradients add up."""
    x, y = batches[0]
    with counting_saved(layers) as saved:
        for xs, ys in zip(x.chunk(pieces), y.chunk(pieces), strict=True):
            loss = cross_entropy(layers(xs).flatten(0, 1), ys.flatten()) / pieces
            loss.backward()
    return {"activations": float(saved.most)}


def ring_sent(handed_over: Mapping[str, float], sizes: Mapping[str, int]) -> dict[str, float]:
    """Bytes that a rank sends along each axis, from those that it hands over to all-reduces, were these rings.

    A ring of P ranks sends 2 (P − 1)/P of the vector. Messages along "pipeline" are sent as they are.
    """
    rings = {axis: 1.0 if axis == "pipeline" else 2 * (1 - 1 / sizes.get(axis, 1)) for axis in handed_over}
    return {axis: rings[axis] * nbytes for axis, nbytes in handed_over.items()}
