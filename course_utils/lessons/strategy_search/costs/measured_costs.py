"""Measured costs: every part that a device can have of an operator, timed on this machine, each shape once.

Source: Jia, Zaharia & Aiken 2018, §5.1 (measured once, for each operator, shape and device).
"""

import statistics
from collections import Counter
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from torch import nn

from course_utils.lessons.strategy_search.costs.cost_files import forget_times, keep_times, kept_times
from course_utils.lessons.strategy_search.costs.described_costs import DeviceCosts, Times, check_memory
from course_utils.lessons.strategy_search.costs.device_topology import DeviceTopology
from course_utils.lessons.strategy_search.costs.local_modules import local_modules
from course_utils.lessons.strategy_search.costs.part_shapes import Key, PartShape, part_shapes
from course_utils.lessons.strategy_search.costs.timed_parts import PartToTime, time_passes
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph
from course_utils.measuring import Measured

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

ROUNDS = 9


class Pass(NamedTuple):
    """Parts of different operators, in the order of the model, by their signatures.

    Attributes:
        workers: how many ranks compute them at the same time.
    """

    workers: int
    parts: dict[str, PartShape]


def measure_costs(
    graph: OperatorGraph,
    topology: DeviceTopology,
    ranks: "Ranks | None" = None,
    rounds: int = ROUNDS,
    fresh: bool = False,
) -> DeviceCosts:
    """Costs as they are here: each part with its followers, forward and backward, on one thread.

    What was measured before is read from the disk, so that a second search begins at once.

    Args:
        topology: how many devices there are, and their links (`measured_topology`).
        ranks: an operator in k parts is timed on k of them at the same time, as it will run; None: in this process,
            alone.
        rounds: how often each is timed; the median counts.
        fresh: measure everything again.

    Raises:
        CourseError: less memory than the model needs.
    """
    parts = part_shapes(graph, len(topology))
    check_memory(graph, parts, topology)
    together = ranks.world_size if ranks else 1
    if fresh:
        forget_times(together)
    signatures = {key: _signature(key, part) for key, part in parts.items()}
    known = kept_times(together)
    passes = _passes(parts, signatures, known)
    if passes:
        measured = _measured(passes, ranks, rounds)
        keep_times(measured, together)
        known |= measured
    found = {key: known[signature] for key, signature in signatures.items()}
    times = {key: Times(*(max(1, round(1e9 * seconds)) for seconds in three[:2])) for key, three in found.items()}
    return DeviceCosts(topology, times, parts, _usual_spread(list(found.values())))


def _signature(key: Key, part: PartShape) -> str:
    """Parts with the same signature take the same time."""
    modules = "; ".join(str(layer).replace("\n", "") for layer in local_modules(part).layers)
    first = "first " if part.first else ""
    return f"{first}{part.operator.kind}({modules}) {part.reads}, {prod(key[1][:3])} at once"


def _passes(parts: dict[Key, PartShape], signatures: dict[Key, str], known: dict[str, list[float]]) -> list[Pass]:
    """The parts that are not known yet, in passes through the model with at most one part of each operator."""
    passes: dict[tuple[int, int], Pass] = {}
    turns: Counter[tuple[str, int]] = Counter()
    seen = set(known)
    for key, part in parts.items():
        name, cuts, _ = key
        if signatures[key] not in seen:
            seen.add(signatures[key])
            workers = prod(cuts[:3])
            number = turns[name, workers]
            turns[name, workers] += 1
            passes.setdefault((workers, number), Pass(workers, {})).parts[signatures[key]] = part
    return [passes[which] for which in sorted(passes)]


def _job(part: PartShape) -> PartToTime:
    tables = [
        layer.num_embeddings for module in part.modules for layer in module.modules() if isinstance(layer, nn.Embedding)
    ]
    rows = min(tables) if part.operator.kind == "embedding" else 0
    return PartToTime(local_modules(part), part.reads, rows, part.first)


def _measured(passes: list[Pass], ranks: "Ranks | None", rounds: int) -> dict[str, list[float]]:
    """(median seconds forward, backward, spread of both together) by signature; over the rounds of all ranks."""
    jobs = [(timing_pass.workers, [_job(part) for part in timing_pass.parts.values()]) for timing_pass in passes]
    each = ranks.run(time_passes, jobs, rounds, backend="gloo").results if ranks else [time_passes(jobs, rounds)]
    found = {}
    for number, timing_pass in enumerate(passes):
        for index, signature in enumerate(timing_pass.parts):
            timed = [rank[number][index] for rank in each if rank[number]]
            there, back = (sum((seconds[direction] for seconds in timed), []) for direction in (0, 1))
            whole = Measured(tuple(f + b for f, b in zip(there, back, strict=True)))
            found[signature] = [statistics.median(there), statistics.median(back), whole.spread]
    return found


def _usual_spread(times: list[list[float]]) -> float:
    """The median spread, where each part counts by its time."""
    times = sorted(times, key=lambda part_times: part_times[2])
    half = sum(there + back for there, back, _ in times) / 2
    for there, back, spread in times:
        half -= there + back
        if half <= 0:
            return spread
    return 0.0
