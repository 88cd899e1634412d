"""The machine chooses the strategy: how right its predictions are, how fast what it finds, how quickly it is found.

Steps are measured on two ranks behind links of 100 Mbit/s, each on a core of its own. Chosen by words: `course bench
strategy honesty`, `faster`, `program`, `report`, `rates`, `hits`, `search`.
"""

import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.costs.described_costs import DeviceCosts
from course_utils.lessons.strategy_search.costs.measured_costs import measure_costs
from course_utils.lessons.strategy_search.costs.measured_links import measured_topology
from course_utils.lessons.strategy_search.experiments import (
    REPORT,
    PredictedAndMeasured,
    Workload,
    compare,
    measure_steps,
    predicted_seconds,
    report_costs,
)
from course_utils.lessons.strategy_search.graph.configurations import Config, configurations
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph
from course_utils.lessons.strategy_search.graph.plain_strategies import data_parallel, on_one_device
from course_utils.lessons.strategy_search.program.run_program import DDP
from course_utils.lessons.strategy_search.program.write_program import program_text
from course_utils.lessons.strategy_search.search.known_ways import known_ways
from course_utils.lessons.strategy_search.search.many_walks import ITERATIONS, find_strategy
from course_utils.lessons.strategy_search.sentences import agreement
from course_utils.measuring import relative_errors
from workshop.bench.parts import chosen_parts
from workshop.bench.ranks import nodes_of
from workshop.bench.rows import Row, ratio_row, seconds_row, spread, value_row
from workshop.bench.strategy_search import BENCH, hits_rows, rates_rows, search_rows

if TYPE_CHECKING:
    from course_utils.ranks.ranks import Ranks

P, RATE = 2, 100
"""Ranks, and Mbit/s of their links."""
FEWEST = 5  # rounds
SLOWEST = 5.0
"""Strategies that are predicted to take longer than this many times the best are not run."""
ALEXNET = Workload(
    "AlexNet",
    "course_utils.lessons.strategy_search.graph.example_models.alexnet",
    {"width": 0.25, "linear": 0.125, "pixels": 160},
    (128, 3, 160, 160),
)
VGG11 = Workload("VGG-11", "course_utils.vgg.vgg11", {"width": 0.25, "norm": False}, (128, 3, 32, 32))


def run(runs: int, only: Sequence[str] = ()) -> list[Row]:
    """Measure every part, or those of these names; steps in at least five rounds.

    Raises:
        CourseError: there is no part of such a name.
    """
    on_ranks: dict[str, Callable[[Ranks, int], list[Row]]] = {"honesty": honesty_rows, "faster": faster_rows}
    in_this_process: dict[str, Callable[[int], list[Row]]] = {
        "program": program_rows,
        "report": report_rows,
        "rates": rates_rows,
        "hits": lambda runs: hits_rows(),
        "search": search_rows,
    }
    wanted = chosen_parts(BENCH, on_ranks | in_this_process, only)
    rows = []
    if on_ranks.keys() & wanted.keys():
        with nodes_of(P, RATE) as ranks:
            rows += [row for name in on_ranks if name in wanted for row in on_ranks[name](ranks, max(runs, FEWEST))]
    return rows + [row for name in in_this_process if name in wanted for row in in_this_process[name](runs)]


def measured_costs(ranks: "Ranks", graph: OperatorGraph, fresh: bool = False) -> DeviceCosts:
    """What parts and messages cost on these ranks: the links measured now, the parts now or, if not `fresh`, before."""
    return measure_costs(graph, measured_topology(ranks), ranks, fresh=fresh)


def compared_strategies(
    ranks: "Ranks", case: Workload, rounds: int = 5, number: int = 20, seed: int = 0, fresh: bool = False
) -> PredictedAndMeasured:
    """Predict and measure the strategy found and others up to `SLOWEST` times as slow as the best.

    Args:
        fresh: times of parts that were kept from before do not count: the machine may have been busy then.
    """
    graph, devices = case.graph(), ranks.world_size
    costs = measured_costs(ranks, graph, fresh)
    found = find_strategy(graph, costs, devices, seed=seed).strategy
    known = {"found": found, "data": data_parallel(graph, devices), "one": on_one_device(graph)}
    others = varied_strategies(graph, costs, devices, number - 1, known, seed)
    return compare(ranks, case, [found, *others], costs, rounds)


def varied_strategies(
    graph: OperatorGraph,
    costs: DeviceCosts,
    devices: int,
    number: int,
    among: Mapping[str, Sequence[Config]],
    seed: int = 0,
    tries: int = 600,
) -> list[list[Config]]:
    """Strategies whose predicted times lie evenly, as ratios, between the shortest and `SLOWEST` times it.

    They are some random changes away from those given: entirely random ones nearly all send too much.

    Args:
        among: strategies to begin from; they are not in the result, and no two have equal predictions.
        tries: how many are drawn to choose from.

    Raises:
        CourseError: fewer than `number` of those drawn have predictions of their own.
    """
    chosen, pool = random.Random(seed), []
    choices = [configurations(operator, devices) for operator in graph.operators]
    for _ in range(tries):
        strategy = list(chosen.choice(list(among.values())))
        for number_of in chosen.sample(range(1, len(graph)), chosen.randint(1, len(graph) // 2)):
            strategy[number_of] = chosen.choice(choices[number_of])
        pool.append((predicted_seconds(graph, strategy, costs), strategy))
    taken = {predicted_seconds(graph, strategy, costs) for strategy in among.values()}
    shortest, found = min(taken), list[list[Config]]()
    for goal in np.geomspace(shortest, SLOWEST * shortest, number):
        pool = [pair for pair in pool if pair[0] not in taken]  # such as its mirror image on the other devices
        if not pool:
            raise CourseError(
                f"{graph.name}: of {tries} strategies tried only {len(found)} differ in their predicted times, and "
                f"{number} are asked for. Ask for fewer, or take a larger model or more devices."
            )
        seconds, strategy = min(pool, key=lambda pair: abs(np.log(pair[0] / goal)))
        taken.add(seconds)
        found.append(strategy)
    return found


def honesty_rows(ranks: "Ranks", rounds: int) -> list[Row]:
    """Predicted against measured, for strategies of AlexNet and VGG-11 from the best to five times as slow."""
    found = {case.name: compared_strategies(ranks, case, rounds, fresh=True) for case in (ALEXNET, VGG11)}
    return [row for name, comparison in found.items() for row in comparison_rows(name, comparison)]


def comparison_rows(name: str, found: "PredictedAndMeasured") -> list[Row]:
    """Median error and Kendall's τ; the value is that of the medians, the spread that of the rounds by themselves."""
    by_round = list(zip(*found.measured, strict=True))
    off = relative_errors(found.predicted, found.medians)
    number = len(found.predicted)
    each = [statistics.median(relative_errors(found.predicted, measured)) for measured in by_round]
    orders = [agreement(found.predicted, measured) for measured in by_round]
    order, what = agreement(found.predicted, found.medians), f"{name}, {number} strategies: "
    noise = [spread(measured) / statistics.median(measured) for measured in found.measured]
    rounds = len(by_round)
    return [
        Row(BENCH, f"{what}median error", 100 * statistics.median(off), "%", "lower", 8, 100 * spread(each), rounds),
        Row(BENCH, f"{what}largest error", 100 * max(off), "%", "lower", None, 0.0, rounds),
        Row(BENCH, f"{what}Kendall's τ", order, "", "higher", 0.95, spread(orders), rounds),
        value_row(BENCH, f"{what}rounds of one strategy scatter by", [100 * share for share in noise], "%"),
    ]


def faster_rows(ranks: "Ranks", rounds: int) -> list[Row]:
    """The strategy found against pure data parallelism, ours and torch's, by turns."""
    graph = ALEXNET.graph()
    costs = measured_costs(ranks, graph, fresh=True)
    found, data = find_strategy(graph, costs, P, ITERATIONS).strategy, data_parallel(graph, P)
    ours, theirs, ddp = measure_steps(ranks, ALEXNET, [found, data, DDP], rounds)
    predicted = predicted_seconds(graph, data, costs) / predicted_seconds(graph, found, costs)
    what = f"AlexNet at {RATE} Mbit/s"
    return [
        ratio_row(BENCH, f"{what}: data parallelism / found", theirs, ours, target=1.5, better="higher"),
        value_row(BENCH, f"{what}: the same, predicted", [predicted], "×", better="higher"),
        ratio_row(BENCH, f"{what}: torch's DDP / found", ddp, ours, better="higher"),
        seconds_row(BENCH, f"{what}: step, found", ours),
        seconds_row(BENCH, f"{what}: step, data parallelism", theirs),
        seconds_row(BENCH, f"{what}: step, torch's DDP", ddp),
    ]


def program_rows(runs: int) -> list[Row]:
    """From a model to its program: read, described, searched, written; measured costs would be read from the disk."""
    seconds, lines = [], []
    for turn in range(max(runs, 3)):
        model = REPORT.model()
        began = time.perf_counter()
        graph = REPORT.graph_of(model)
        found = find_strategy(graph, report_costs(graph), P, ITERATIONS, seed=turn)
        text = program_text(model, graph, found.strategy, REPORT.build, P)
        seconds.append(time.perf_counter() - began)
        lines.append(len(text.splitlines()))
    return [
        seconds_row(BENCH, f"AlexNet: from model to program, {ITERATIONS} iterations", seconds, target=5.0),
        value_row(BENCH, "AlexNet: lines of the program", lines, "lines"),
    ]


def report_rows(runs: int) -> list[Row]:
    """The report's experiment again: AlexNet on two GTX 1080 Ti, described; simulated milliseconds of a step."""
    graph = REPORT.graph()
    costs, known = report_costs(graph), known_ways(graph, P)
    found = [find_strategy(graph, costs, P, ITERATIONS, seed=seed) for seed in range(max(runs, 3))]
    rows = [
        value_row(BENCH, f"report, simulated: {name}", [1e3 * predicted_seconds(graph, strategy, costs)], "ms")
        for name, strategy in known.items()
    ]
    return [*rows, value_row(BENCH, "report, simulated: found", [result.nanoseconds / 1e6 for result in found], "ms")]
