"""What there is to plan: a model, the GPUs on which to train it, and the share of their peak that it should reach."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from course_utils.lessons.hybrid_and_sharded.planner.gpu_clusters import H100, Cluster
from course_utils.lessons.hybrid_and_sharded.planner.language_models import LanguageModel, model_named
from course_utils.lessons.hybrid_and_sharded.planner.layout_search import Choice, judge, layouts
from course_utils.lessons.hybrid_and_sharded.planner.training_layout import MODERN

OF_THE_BEST = 0.95
"""The goal is this share of the best MFU that a search finds."""
HEAD = 128
"""The width of a head in the models that are drawn."""
SMALLEST, LARGEST = 7e9, 30e9
"""Parameters of the models that are drawn."""
GPUS, MEMORIES = (8, 16, 32), (40e9, 64e9, 80e9, 141e9)
INSIDE = (450e9, 64e9)
"""Bytes that a GPU sends inside its node in a second: through NVLink, as in an H100's data sheet, or through PCIe 5."""
BETWEEN = (12.5e9, 25e9, 50e9)
"""Bytes that a GPU sends to other nodes in a second: 100, 200 and 400 Gbit/s."""
BATCHES, LENGTHS = (64, 128, 256, 512), (2048, 4096, 8192)


@dataclass(frozen=True)
class TrainingTask:
    """A model to train, and the GPUs on which to train it.

    Attributes:
        model: its layers, width, heads and vocabulary, as in lesson 11's planner.
        cluster: the GPUs, their memory, and the links inside a node and between nodes.
        batch: texts in one step, of all replicas together.
        length: tokens of a text.
        goal: the MFU to reach, from 0 to 1.
    """

    model: LanguageModel
    cluster: Cluster
    batch: int
    length: int
    goal: float = 0.0


def with_goal(task: TrainingTask) -> TrainingTask:
    """Return the task with its goal: nearly the best MFU that is possible, rounded down to a tenth of a percent.

    The goal is 0 if the model does not fit in any layout.
    """
    most = max((choice.peak_share for choice in choices(task) if choice.fits), default=0.0)
    return replace(task, goal=int(1000 * OF_THE_BEST * most) / 1000)


def choices(task: TrainingTask) -> list[Choice]:
    """Return every layout of the task that uses no more than the plain axes, with its memory and time."""
    found = layouts(task.model, task.cluster, task.batch, task.length, MODERN)
    plain = [layout for layout in found if layout.chunks == 1 and layout.copies == 1]
    return [judge(task.model, task.cluster, layout, task.length) for layout in plain]


@cache
def llama_task(gpus: int = 16) -> TrainingTask:
    """Return the task of the exercise's text: Llama 2 13B on nodes of eight H100, with 128 texts in a step."""
    return with_goal(TrainingTask(model_named("Llama 2 13B"), H100(gpus), batch=128, length=4096))


def drawn_tasks(rng: np.random.Generator) -> Iterator[TrainingTask]:
    """Yield task after task in which the model fits in a few layouts at least, without an end."""
    while True:
        task = _drawn(rng)
        if SMALLEST <= task.model.parameters <= LARGEST:
            task = with_goal(task)
            if task.goal:
                yield task


def _drawn(rng: np.random.Generator) -> TrainingTask:
    heads = 8 * int(rng.integers(4, 7))
    width = HEAD * heads
    hidden = 256 * round(8 * width / 3 / 256)
    vocabulary = int(rng.choice([32000, 50304, 128256]))
    model = LanguageModel(
        4 * int(rng.integers(6, 16)), width, heads, vocabulary, 8192, 0.0, "drawn", hidden=hidden, gated=True
    )
    links = {"inside": float(rng.choice(INSIDE)), "between": float(rng.choice(BETWEEN))}
    cluster = replace(H100(int(rng.choice(GPUS))), memory=float(rng.choice(MEMORIES)), **links)
    return TrainingTask(model, cluster, int(rng.choice(BATCHES)), int(rng.choice(LENGTHS)))
