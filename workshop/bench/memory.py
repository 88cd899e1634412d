"""Memory of training on every rank, computed beforehand, against what is counted; published runs against the planner.

Each row is the largest difference over all ranks, all parts (parameters, gradients, optimizer state, activations), and
runs with and without dropout. Chosen by words: `course bench memory one`, `tensor`, `zero`, `pipeline`, `mesh`,
`published`.
"""

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from workshop.bench.parts import chosen_parts
from workshop.bench.ranks import ranks_of
from workshop.bench.rows import Row, value_row
from workshop.bench.sharded import mesh_text

if TYPE_CHECKING:
    from workshop.bench.memory_ranks import Pair

NEAR = 5.0
"""Percent."""
DROPOUTS = (0.0, 0.1)
PIPELINES = (("gpipe", 2, 4), ("1f1b", 2, 4), ("1f1b", 3, 5), ("1f1b", 3, 2))
"""Schedule, ranks and micro-batches."""
MESHES = ({"pipeline": 2, "tensor": 2}, {"data": 2, "pipeline": 2}, {"data": 2, "tensor": 2})


def run(runs: int, only: Sequence[str] = ()) -> list[Row]:
    """Measure every part, or those of these names. Bytes are the same in every run: each is made once."""
    parts: dict[str, Callable[[], list[Row]]] = {
        "one": one_rank,
        "tensor": tensor,
        "zero": zero,
        "pipeline": pipeline,
        "mesh": mesh,
        "published": published,
    }
    return [row for part in chosen_parts("memory", parts, only).values() for row in part()]


def farthest(name: str, pairs: Iterable["Pair"]) -> Row:
    """The largest difference of any part on any rank, in percent of what was counted."""
    from course_utils.lessons.model_parallel.pictures import differences

    gaps = [100 * abs(gap) for pair in pairs for gap in differences(*pair).values()]
    return Row("memory", f"{name}: computed far from counted, at most", max(gaps), "%", "lower", NEAR, 0.0, len(gaps))


def with_words(training: str, **chosen: bool) -> str:
    """Adds what was chosen: "tensor-parallel, sequence"."""
    return ", ".join([training, *(name for name, yes in chosen.items() if yes)])


def one_rank() -> list[Row]:
    """Every precision, with all optimizers."""
    from workshop.bench.memory_ranks import DTYPES, OPTIMIZERS, on_one_rank

    return [
        farthest(
            with_words(f"one rank, {precision}", checkpointing=again),
            [on_one_rank(name, precision, again, dropout) for name in OPTIMIZERS for dropout in DROPOUTS],
        )
        for precision, again in itertools.product(DTYPES, (False, True))
    ]


def tensor() -> list[Row]:
    """Blocks cut over two and four ranks."""
    from workshop.bench.memory_ranks import tensor_parallel

    rows = []
    with ranks_of(4) as ranks:
        for sequence, again in itertools.product((False, True), repeat=2):
            pairs = [
                pair
                for number, dropout in itertools.product((2, 4), DROPOUTS)
                for pair in ranks.run(tensor_parallel, dropout, sequence, again, ranks=number, backend="gloo").results
            ]
            rows.append(farthest(with_words("tensor-parallel", sequence=sequence, checkpointing=again), pairs))
    return rows


def zero() -> list[Row]:
    """The stages of ZeRO on two and four ranks."""
    from workshop.bench.memory_ranks import divided

    with ranks_of(4) as ranks:
        return [
            farthest(
                f"ZeRO {stage}",
                [pair for number in (2, 4) for pair in ranks.run(divided, stage, ranks=number, backend="gloo").results],
            )
            for stage in range(4)
        ]


def pipeline() -> list[Row]:
    """Stages with several micro-batches in flight."""
    from workshop.bench.memory_ranks import pipelined

    rows = []
    with ranks_of(3) as ranks:
        for (schedule_name, number, micro_batches), again in itertools.product(PIPELINES, (False, True)):
            pairs = [
                pair
                for dropout in DROPOUTS
                for pair in ranks.run(pipelined, schedule_name, micro_batches, again, dropout, ranks=number).results
            ]
            name = f"{schedule_name} with {number} stages and {micro_batches} micro-batches"
            rows.append(farthest(with_words(name, checkpointing=again), pairs))
    return rows


def mesh() -> list[Row]:
    """Two kinds of parallelism at once."""
    from workshop.bench.memory_ranks import on_mesh

    with ranks_of(4) as ranks:
        return [
            farthest(
                mesh_text(sizes),
                ranks.run(on_mesh, sizes, ranks=math.prod(sizes.values()), backend="gloo").results,
            )
            for sizes in MESHES
        ]


def published() -> list[Row]:
    """What the planner predicts for published runs ÷ what their authors measured; no target."""
    from workshop.bench.published_runs import PUBLISHED, ZERO_3

    return [
        value_row(
            "memory",
            f"{run.model} on {run.layout.gpus} GPUs, {run.predicted()}: step predicted / published",
            [run.predicted().step / run.seconds],
            "×",
        )
        for run in (*PUBLISHED, *ZERO_3)
    ]
