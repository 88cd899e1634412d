"""The search for a good strategy: many Metropolis walks side by side, from several starts, heated again and again.

Source: Jia, Zaharia & Aiken 2018, section 6.2: a proposal changes one operator's configuration, and is accepted by the
rule of Metropolis. There one walk draws its operators at random; here all walks go over the operators in turn, so that
all configurations of one are simulated at once (`incremental.py`), of which each walk is offered some.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from course_utils.errors import CourseError
from course_utils.lessons.strategy_search.graph.configurations import Config
from course_utils.lessons.strategy_search.graph.operator_graph import OperatorGraph
from course_utils.lessons.strategy_search.graph.plain_strategies import data_parallel, model_parallel, on_one_device
from course_utils.lessons.strategy_search.simulator.incremental import Chains
from course_utils.lessons.strategy_search.simulator.program_steps import Costs
from course_utils.lessons.strategy_search.simulator.step_tables import Tables, Whole, make_tables
from course_utils.progress_bar import ProgressBar

STARTS = ("one", "data", "model", "random")
_START: dict[str, Callable[[OperatorGraph, Tables], Whole | None]] = {
    "one": lambda graph, tables: tables.column(on_one_device(graph)),
    "data": lambda graph, tables: tables.column(data_parallel(graph, tables.devices)),
    "model": lambda graph, tables: tables.column(model_parallel(graph, tables.devices)),
    "random": lambda graph, tables: None,
}
ITERATIONS = 25_000
"""Proposals of all chains together; as many as in the report on parallel strategies."""
CHAINS = 12
OFFERS = 2
"""Proposals to each chain at an operator before all go on to the next."""
HEATINGS = 3
HOT, COLD = 0.2, 0.001
"""Temperature after each heating and before the next, as a share of the shortest makespan that a chain has then."""


@dataclass
class Found:
    """What a search came to.

    Attributes:
        strategy, nanoseconds: the best that fits, and its makespan.
        seconds: that the search took.
        history: for each start the makespans of its chains in nanoseconds, (chains, points): at each heating, the
            first included, after each sweep over the operators, and at the end.
        iterations: proposals made until each point of the history; the last is their number in all.
        evaluations: strategies simulated.
        interrupted: whether it was stopped before its end.
    """

    strategy: list[Config]
    nanoseconds: int
    seconds: float
    history: dict[str, Whole]
    iterations: list[int]
    evaluations: int
    interrupted: bool = False


def find_strategy(
    graph: OperatorGraph,
    costs: Costs,
    devices: int,
    iterations: int = ITERATIONS,
    starts: Sequence[str] = STARTS,
    seed: int = 0,
    chains: int = CHAINS,
) -> Found:
    """The best strategy that this many proposals come to; interrupted (■, Ctrl-C), the best so far.

    Args:
        graph: of the model, for the whole batch.
        costs: where they have `limits`, no device gets more bytes than its own.
        devices: over how many it may be spread; it need not use all.
        iterations: proposals of all chains together; the last visit of an operator may bring a few more.
        starts: "one" device, "data" parallel, "model" parallel, "random": where the walks begin, in turn.
        seed: of all that is drawn.
        chains: walks side by side; at least one for each start.

    Returns:
        The best strategy met that fits, its makespan, and how the walks went.

    Raises:
        CourseError: a start that is none of these; no strategy that fits was met.
    """
    began = time.perf_counter()
    unknown = set(starts) - set(_START)
    if unknown or not starts:
        raise CourseError(f"A search starts from {', '.join(_START)}, not from {', '.join(unknown) or 'nothing'}.")
    tables, interrupted = make_tables(graph, costs, devices), False
    walks = _Walks(tables, [_START[start](graph, tables) for start in starts], max(chains, len(starts)), seed)
    with ProgressBar("searching for a strategy") as bar:
        try:
            while walks.proposals < iterations and walks.movable:
                walks.at_one_operator(walks.proposals / iterations)
                bar.refresh()
        except KeyboardInterrupt:
            interrupted = True
    if walks.best is None:
        raise CourseError("No strategy was met that fits into the devices' memory. Take more devices or iterations.")
    walks.note()
    history = {name: np.array(walks.points).T[first :: len(starts)] for first, name in enumerate(starts)}
    seconds = time.perf_counter() - began
    strategy = tables.strategy(walks.best)
    return Found(strategy, walks.least, seconds, history, walks.counts, walks.evaluations, interrupted)


class _Walks:
    """Chains on their way through the strategies.

    Attributes:
        best, least: the best column that fits, and its nanoseconds.
        penalty: nanoseconds that a byte over a device's limit counts.
        points, counts: makespans of all chains, noted as `Found.history` says, and the proposals made until then.
    """

    def __init__(self, tables: Tables, starts: Sequence[Whole | None], chains: int, seed: int) -> None:
        self.tables, self.starts, self.number = tables, starts, chains
        self.random = np.random.default_rng(seed)
        self.movable = {n for n, own in enumerate(tables.factors) if own and len(tables.choices[n]) > 1}
        self.best: Whole | None = None
        self.least = 0
        self.proposals = self.evaluations = self.heatings = 0
        self.points: list[Whole] = []
        self.counts: list[int] = []
        self._begin()

    def _begin(self) -> None:
        """All chains from their starts; later from the best so far, but those that began at random at random again."""
        again = self.best if self.heatings else None
        columns = [self._column(self.starts[chain % len(self.starts)], again) for chain in range(self.number)]
        self.chains = Chains(self.tables, np.stack(columns, axis=1))
        excess = self.tables.excess(self.chains.columns)
        self.now = self.tables.makespans(self.chains.columns)
        self.evaluations += self.number
        self.heatings += 1
        for chain in np.flatnonzero(excess == 0):
            self._keep(int(self.now[chain]), self.chains.columns[:, chain])
        self.penalty = float(self.now.max())  # a byte too many counts as much as the slowest chain's step
        self.energy = self.now + self.penalty * excess
        self.note()

    def _column(self, start: Whole | None, again: Whole | None) -> Whole:
        if start is None:
            return np.array([self.random.integers(len(own)) for own in self.tables.choices])
        return start if again is None else again

    def at_one_operator(self, progress: float) -> None:
        """Offer each chain some configurations of the operator at which it is, and go on to the next."""
        chains, at = self.chains, self.chains.at
        chosen = chains.columns[at]
        if at in self.movable:
            chosen = self._offers(at, chosen, progress)
        chains.go_on(chosen)
        if chains.at == 0:
            self.note()
            if progress * HEATINGS >= self.heatings:
                self._begin()

    def _offers(self, at: int, chosen: Whole, progress: float) -> Whole:
        """Metropolis among the configurations of one operator; how warm depends on the share of proposals made."""
        times = self.chains.makespans()
        excess = self._excess(at) if self.tables.limits else np.zeros_like(times)
        energies = times + self.penalty * excess
        self.evaluations += energies.size
        chain, choice = np.unravel_index(energies.argmin(), energies.shape)
        if excess[chain, choice] == 0:
            column = self.chains.columns[:, chain].copy()
            column[at] = choice
            self._keep(int(times[chain, choice]), column)
        temperature = self.now.min() * HOT * (COLD / HOT) ** (progress * HEATINGS % 1)
        each = np.arange(self.number)
        for _ in range(OFFERS):
            offered = self.random.integers(energies.shape[1], size=self.number)
            new = energies[each, offered]
            # u < exp(−(new − old) / T) is new − old < T · e, and e = −log u is drawn from the exponential distribution
            accepted = new - self.energy <= temperature * self.random.exponential(size=self.number)
            chosen, self.energy = np.where(accepted, offered, chosen), np.where(accepted, new, self.energy)
        self.now = times[each, chosen]
        self.proposals += OFFERS * self.number
        return chosen

    def _excess(self, at: int) -> Whole:
        """Bytes over the limits of each chain with each choice for an operator: (chains, choices)."""
        columns = np.repeat(self.chains.columns[..., None], len(self.tables.choices[at]), axis=2)
        columns[at] = np.arange(columns.shape[2])
        return self.tables.excess(columns.reshape(len(columns), -1)).reshape(columns.shape[1:])

    def _keep(self, nanoseconds: int, column: Whole) -> None:
        if self.best is None or nanoseconds < self.least:
            self.best, self.least = column.copy(), nanoseconds

    def note(self) -> None:
        """A point of the history."""
        self.points.append(self.now.copy())
        self.counts.append(self.proposals)
