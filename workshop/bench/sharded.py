"""Sharded training and meshes: equal to one process, kept and sent bytes against paper, checkpoints, fifty clean runs.

Bytes kept are counted from the tensors. Bytes sent are counted twice: from the calls, as rings would carry them out,
and by the kernel on the links of four nodes, as gloo does. Chosen by words: `course bench sharded equal`, `bytes`,
`links`, `checkpoint`, `time`, `clean`.
"""

import math
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workshop.bench.clean_runs import clean_rows
from workshop.bench.parts import chosen_parts
from workshop.bench.ranks import nodes_of, ranks_of
from workshop.bench.rows import Row, ratio_row, seconds_row, value_row

if TYPE_CHECKING:
    import torch

    from course_utils.lessons.hybrid_and_sharded.mesh_training import MeshRun
    from course_utils.ranks.ranks import Ranks

P = 4
STAGES = (0, 1, 2, 3)
NAMES = {0: "stage 0 (all-reduce)", 1: "ZeRO-1", 2: "ZeRO-2", 3: "ZeRO-3 (FSDP2)"}
MESHES: tuple[dict[str, int], ...] = (
    {"data": 2, "tensor": 2},
    {"data": 2, "pipeline": 2},
    {"pipeline": 2, "tensor": 2},
    {"data": 2, "pipeline": 2, "tensor": 2},
)
WRITTEN: tuple[dict[str, int], ...] = ({"data": 4}, {"data": 2, "tensor": 2})
READ: tuple[dict[str, int], ...] = ({"data": 2}, {"tensor": 2}, {})
STEPS = 4
EQUAL = 1e-10
ON_PAPER = 1.01
"""Counted ÷ formula: the first dimension of a parameter is filled up, and torch's Adam counts its steps."""
RATE = 100  # Mbit/s
NUMBERS = 1 << 18
RING = {"all-reduce": 2, "reduce-scatter": 1, "all-gather": 1}
"""Times (P − 1)/P of the vector that each rank sends where a ring does it."""
FEWEST = 7  # rounds
REPEATS = 50
"""Runs in a row of each that have to be clean."""


def run(runs: int, only: Sequence[str] = ()) -> list[Row]:
    """Measure every part, or those of these names."""
    parts: dict[str, Callable[[], list[Row]]] = {
        "equal": equal,
        "bytes": counted_bytes,
        "links": link_bytes,
        "checkpoint": checkpoints,
        "time": partial(step_times, max(runs, FEWEST)),
        "clean": clean,
    }
    return [row for part in chosen_parts("sharded", parts, only).values() for row in part()]


def mesh_text(sizes: dict[str, int]) -> str:
    """2 data × 2 tensor; "one rank" where no axis is left."""
    return " × ".join(f"{number} {axis}" for axis, number in sizes.items()) or "one rank"


def serial(steps: int) -> "MeshRun":
    """The same training in this process, with torch's Adam."""
    from course_utils.lessons.hybrid_and_sharded.mesh_training import train_serially
    from workshop.bench.sharded_ranks import small_model, text_of

    return train_serially(small_model, text_of(steps))


def staged(ranks: "Ranks", stage: int, steps: int, world_size: int = P) -> Any:
    """The small model through a stage."""
    from course_utils.lessons.hybrid_and_sharded.zero_stages import train_sharded
    from workshop.bench.sharded_ranks import small_model, text_of

    arguments = (train_sharded, stage, small_model, text_of(steps))
    return ranks.run(*arguments, bucket_bytes=1 << 13, ranks=world_size, backend="gloo")


def stage_gap(ranks: "Ranks", stage: int, wanted: "MeshRun", world_size: int = P) -> float:
    """How far any rank's parameters are from one process, after as many steps as that took."""
    from workshop.bench.sharded_ranks import largest_gap

    results = staged(ranks, stage, len(wanted.losses), world_size).results
    return max(largest_gap(result.parameters, wanted.parameters) for result in results)


def mesh_gap(ranks: "Ranks", sizes: dict[str, int], steps: int) -> float:
    """How far losses and parameters are from one process, at most, after any of the steps."""
    from workshop.bench.sharded_ranks import differences_on_mesh, small_model, text_of

    arguments = (differences_on_mesh, sizes, small_model, text_of(steps))
    run = ranks.run(*arguments, ranks=math.prod(sizes.values()), backend="gloo")
    return max(max(step.loss, step.parameter) for result in run.results for step in result)


def equal() -> list[Row]:
    """Every stage and every mesh against one process."""
    rows, wanted = [], serial(STEPS)
    with ranks_of(max(math.prod(sizes.values()) for sizes in MESHES)) as ranks:
        for stage in STAGES:
            for world_size in (2, P):
                metric = f"{NAMES[stage]}, P = {world_size}: far from one process after {STEPS} steps"
                gap = stage_gap(ranks, stage, wanted, world_size)
                rows.append(value_row("sharded", metric, [gap], "", target=EQUAL))
        for sizes in MESHES:
            metric = f"mesh {mesh_text(sizes)}: far from one process after any of {STEPS} steps"
            rows.append(value_row("sharded", metric, [mesh_gap(ranks, sizes, STEPS)], "", target=EQUAL))
    return rows


def counted_bytes() -> list[Row]:
    """Kept and sent bytes of every stage ÷ the formulas."""
    from course_utils.lessons.hybrid_and_sharded.zero_stages import on_paper, sent_by_rank
    from workshop.bench.sharded_ranks import small_model

    rows, parameters = [], list(small_model().parameters())
    with ranks_of(P) as ranks:
        for stage in STAGES:
            run = staged(ranks, stage, STEPS)
            kept, sent = on_paper(parameters, P, stage)
            for part, expected in kept.items():
                values = [result.kept[part] for result in run.results]
                metric = f"{NAMES[stage]}: {part} kept, counted / formula"
                rows.append(ratio_row("sharded", metric, values, [expected] * P, target=ON_PAPER))
            metric = f"{NAMES[stage]}: sent in a step, calls as rings / formula"
            counted = sent_by_rank(run.events, P, STEPS)
            rows.append(ratio_row("sharded", metric, counted, [sent] * P, target=ON_PAPER))
            if stage == 2:
                metric = "ZeRO-2: gradients at most during the backward pass / the whole gradient"
                most = [result.most_gradients for result in run.results]
                whole = [on_paper(parameters, P, 0)[0]["gradients"]] * P
                rows.append(ratio_row("sharded", metric, most, whole))
    return rows


def link_bytes() -> list[Row]:
    """What really leaves each node through gloo, counted by the kernel, ÷ what rings would send; no target.

    Each collective by itself, and a step of each stage. The difference of two runs, so that what it takes to connect
    does not count.
    """
    from course_utils.lessons.hybrid_and_sharded.zero_stages import on_paper, train_sharded
    from workshop.bench.sharded_ranks import repeat_collective, text_of, timed_model

    rows, parameters = [], list(timed_model().parameters())
    with nodes_of(P, RATE) as ranks:

        def sent(arguments: Callable[[int], tuple], expected: float) -> list[float]:
            out = {}
            for times in (1, 1 + STEPS):
                ranks.run(*arguments(times), backend="gloo")
                out[times] = ranks.traffic().sent
            return [(more - less) / STEPS / expected for less, more in zip(out[1], out[1 + STEPS], strict=True)]

        for name, moved in RING.items():
            values = sent(
                lambda times, name=name: (repeat_collective, name, NUMBERS, times), moved * (P - 1) / P * NUMBERS * 4
            )
            rows.append(value_row("sharded", f"{name} by itself: out of each node through gloo / ring", values, "×"))
        for stage in STAGES:
            expected = on_paper(parameters, P, stage)[1]
            values = sent(lambda times, stage=stage: (train_sharded, stage, timed_model, text_of(times)), expected)
            metric = f"{NAMES[stage]}: out of each node in a step through gloo / formula"
            rows.append(value_row("sharded", metric, values, "×"))
    return rows


def checkpoints() -> list[Row]:
    """Written on one mesh, read on others: is the state the same bit for bit, and does training go on as it should?"""
    from course_utils.lessons.hybrid_and_sharded.mesh_checkpoints import load_on_mesh, save_on_mesh
    from workshop.bench.sharded_ranks import small_model, text_of

    rows, batches, wanted = [], text_of(STEPS + 2), serial(STEPS + 2).losses[STEPS:]
    with ranks_of(P) as ranks, tempfile.TemporaryDirectory(prefix="course-bench-") as folder:
        for number, written in enumerate(WRITTEN):
            path = Path(folder) / str(number)
            arguments = (save_on_mesh, path, written, small_model, batches[:STEPS])
            saved = ranks.run(*arguments, backend="gloo").results[0].state
            for sizes in READ:
                world_size = math.prod(sizes.values())
                arguments = (load_on_mesh, path, sizes, small_model, batches[STEPS:])
                results = ranks.run(*arguments, ranks=world_size, backend="gloo").results
                label = f"checkpoint of {mesh_text(written)} on {mesh_text(sizes)}"
                unlike = sum(not same(result.state, saved) for result in results)
                losses = [sum(each) / world_size for each in zip(*(result.losses for result in results), strict=True)]
                gap = max(abs(ours - theirs) for ours, theirs in zip(losses, wanted, strict=True))
                rows.append(value_row("sharded", f"{label}: ranks with another state", [unlike], "", target=0))
                rows.append(value_row("sharded", f"{label}: next losses far from one process", [gap], "", target=EQUAL))
    return rows


def same(state: "dict[str, torch.Tensor]", other: "dict[str, torch.Tensor]") -> bool:
    """The same names, and every entry equal."""
    return state.keys() == other.keys() and all((state[name] == tensor).all().item() for name, tensor in other.items())


def step_times(rounds: int) -> list[Row]:
    """A step of each stage on two ranks of this machine, by turns, ÷ stage 0's."""
    from workshop.bench.sharded_ranks import stage_seconds

    with ranks_of(2) as ranks:
        results = ranks.run(stage_seconds, rounds, backend="gloo").results
    slowest = {
        stage: [max(each) for each in zip(*(result[stage] for result in results), strict=True)] for stage in STAGES
    }
    rows = [seconds_row("sharded", f"{NAMES[stage]}: step, P = 2", seconds) for stage, seconds in slowest.items()]
    for stage in STAGES[1:]:
        metric = f"step, {NAMES[stage]} / {NAMES[0]}, P = 2"
        rows.append(ratio_row("sharded", metric, slowest[stage], slowest[0]))
    return rows


def clean(repeats: int = REPEATS) -> list[Row]:
    """How many of fifty runs in a row end without an error or a hang, and as one process does."""
    wanted = serial(1)
    largest = MESHES[-1]
    with ranks_of(math.prod(largest.values())) as ranks:
        ways = {NAMES[stage]: partial(stage_gap, ranks, stage, wanted) for stage in STAGES[1:]}
        ways |= {f"mesh {mesh_text(sizes)}": partial(mesh_gap, ranks, sizes, 1) for sizes in (MESHES[0], largest)}
        return clean_rows("sharded", ways, EQUAL, repeats)
