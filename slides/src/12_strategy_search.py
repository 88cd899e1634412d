"""The pictures of deck 12: strategies on paper, walks among them, AlexNet's, and predictions beside measurements."""

from functools import cache
from itertools import product

import numpy as np
import torch
from matplotlib.figure import Figure

import course_utils as course
from course_utils.lessons.strategy_search import pictures
from course_utils.lessons.strategy_search.costs.described_costs import DeviceCosts
from course_utils.lessons.strategy_search.costs.measured_costs import measure_costs
from course_utils.lessons.strategy_search.costs.measured_links import measured_topology
from course_utils.lessons.strategy_search.experiments import (
    REPORT,
    PredictedAndMeasured,
    Workload,
    compare,
    predicted_seconds,
    report_costs,
)
from course_utils.lessons.strategy_search.graph.configurations import Config
from course_utils.lessons.strategy_search.graph.example_models import alexnet
from course_utils.lessons.strategy_search.graph.plain_strategies import choices_of
from course_utils.lessons.strategy_search.graph.read_model import read_model
from course_utils.lessons.strategy_search.search.known_ways import known_ways
from course_utils.lessons.strategy_search.search.many_walks import Found, find_strategy
from course_utils.lessons.strategy_search.search.metropolis import metropolis_accept, propose
from course_utils.lessons.strategy_search.sentences import (
    found_text,
    honesty_text,
    quickest_text,
    ratio_text,
    strategy_text,
    walks_text,
)
from course_utils.lessons.strategy_search.simulator.five_operators import HandCosts, five_operators, two_convolutions
from course_utils.lessons.strategy_search.simulator.simulate import makespan
from course_utils.lessons.strategy_search.simulator.task_graph import task_graph
from course_utils.measuring import Compared

PIXELS, BATCH = 160, 64
ROUNDS, REPEATS = 5, 3  # of steps and of parts; of messages
WALKS, PROPOSALS = 50, 1000
ITERATIONS = 25_000
DRAFT = {
    "PIXELS": 64,
    "BATCH": 8,
    "ROUNDS": 2,
    "REPEATS": 1,
    "WALKS": 6,
    "PROPOSALS": 100,
    "ITERATIONS": 1000,
}
FIVE = five_operators()
DRAWN = 5  # walks of each kind


@cache
def pair():
    """The ranks that AlexNet is measured on."""
    return course.start(2, link="400 Mbit/s")


@cache
def network() -> Workload:
    """AlexNet, a quarter as wide."""
    options = {"width": 0.25, "pixels": PIXELS, "linear": 0.25}
    return Workload(
        "AlexNet",
        "course_utils.lessons.strategy_search.graph.example_models.alexnet",
        options,
        (BATCH, 3, PIXELS, PIXELS),
    )


@cache
def costs() -> DeviceCosts:
    """What its parts take here."""
    return measure_costs(network().graph(), measured_topology(pair(), repeats=REPEATS), pair(), rounds=ROUNDS)


@cache
def found() -> Found:
    """What the search finds for it."""
    return find_strategy(network().graph(), costs(), 2, iterations=ITERATIONS)


@cache
def judged() -> tuple[list[str], PredictedAndMeasured]:
    """The found strategy and published ones that are others, predicted and measured by turns."""
    graph = network().graph()
    least = found().nanoseconds / 1e9
    ways = {"found": found().strategy}
    ways |= {name: way for name, way in known_ways(graph).items() if predicted_seconds(graph, way, costs()) != least}
    return list(ways), compare(pair(), network(), list(ways.values()), costs(), ROUNDS)


@cache
def every_strategy() -> dict[tuple[Config, ...], int]:
    """Nanoseconds of all strategies for the five operators."""
    ways = product(*choices_of(FIVE, 2))
    return {way: makespan(task_graph(FIVE, way, HandCosts())) for way in ways}


def on_paper() -> dict[str, list[Config]]:
    """The two strategies that are timed by hand."""
    ways = known_ways(FIVE)
    return {name: ways[name] for name in ("data parallel", "the report's")}


def by_hand() -> Figure:
    """Two strategies, as one can time them on paper."""
    tasks = {name: task_graph(FIVE, way, HandCosts()) for name, way in on_paper().items()}
    return pictures.task_timelines(tasks, quickest_text({name: makespan(one) / 1e6 for name, one in tasks.items()}))


def best() -> Figure:
    """They beside the best of all."""
    quickest = min(every_strategy(), key=every_strategy().__getitem__)
    tasks = {name: task_graph(FIVE, way, HandCosts()) for name, way in (on_paper() | {"the best": quickest}).items()}
    return pictures.task_timelines(tasks, f"The best of {len(every_strategy())}: {strategy_text(FIVE, quickest)}")


def cuts() -> Figure:
    """What a cut makes a device fetch."""
    ways = {f"by {name}": Config(**{name: 2}, devices=(0, 1)) for name in ("sample", "attribute", "parameter")}
    return pictures.operator_cuts(*two_convolutions(), ways)


def walk(start: tuple[Config, ...], temperature: float, random: np.random.Generator) -> list[int]:
    """Nanoseconds of the strategy at each moment of a walk."""
    known, choices, strategy = every_strategy(), choices_of(FIVE, 2), start
    times = [known[start]]
    for _ in range(PROPOSALS):
        other = tuple(propose(strategy, choices, random))
        if metropolis_accept(known[strategy], known[other], temperature, random):
            strategy = other
        times.append(known[strategy])
    return times


def walks() -> Figure:
    """Only downhill, and sometimes uphill."""
    taken = {}
    for name, temperature in {"only better ones": 0, "worse ones, too": 3e6}.items():
        random = np.random.default_rng(1)
        starts = random.choice(len(every_strategy()), WALKS)
        taken[name] = [walk(list(every_strategy())[start], temperature, random) for start in starts]
    drawn = {name: [times[:300] for times in own[:DRAWN]] for name, own in taken.items()}
    least = min(every_strategy().values())
    said = "Some walks each, their first proposals"
    return pictures.cost_over_iterations(drawn, walks_text(taken, least), least, said)


def strategies() -> Figure:
    """AlexNet's strategy beside data parallelism."""
    graph = network().graph()
    both = {"data parallel": known_ways(graph)["data parallel"], "found": found().strategy}
    return pictures.strategies(graph, both, f"Found: {strategy_text(graph, found().strategy)}")


def step_times() -> Figure:
    """Its step beside data parallelism's."""
    names, runs = judged()
    taken = dict(zip(names, runs.measured, strict=True))
    names = "found", "data parallel"
    pair = Compared(*(taken.get(name, taken["found"]) for name in names), names)
    graph = network().graph()
    expected = predicted_seconds(graph, known_ways(graph)["data parallel"], costs()) / found().nanoseconds * 1e9
    return course.draw.measured_bars({"a step": pair.bars}, ratio_text(pair, expected))


def honesty() -> Figure:
    """Predictions beside measurements."""
    names, runs = judged()
    points = zip(names, zip(runs.predicted, runs.measured, strict=True), strict=True)
    title = honesty_text(runs.predicted, runs.medians)
    return pictures.predicted_measured({name: [point] for name, point in points}, title)


def report() -> Figure:
    """The report's figure 10b beside ours."""
    with torch.device("meta"):
        graph = read_model(alexnet(), REPORT.shape)
    gpus, theirs = report_costs(graph), known_ways(graph)["the report's"]
    ours = find_strategy(graph, gpus, 2, iterations=ITERATIONS)
    title = found_text(ours.nanoseconds / 1e9, {"the report's": predicted_seconds(graph, theirs, gpus)})
    both = {"the report's": theirs, "ours": ours.strategy}
    return pictures.strategies(graph, both, title, devices=gpus.topology.names)


def changed() -> Figure:
    """What a proposal changes."""
    return pictures.changed_steps(network().graph(), number=6)


FIGURES = {
    "12_by_hand": by_hand,
    "12_best": best,
    "12_cuts": cuts,
    "12_walks": walks,
    "12_strategies": strategies,
    "12_steps": step_times,
    "12_honesty": honesty,
    "12_report": report,
    "12_changed": changed,
}
