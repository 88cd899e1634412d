"""The check of `topological_order`: graphs small and random, in which any right order passes."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from course_utils.checks.exercise import NO_RESULT, Case, Exercise, Mistake, Outcome
from course_utils.checks.recognisers import nothing_returned, raised
from course_utils.lessons.autodiff_and_optimizers.autodiff import Node
from course_utils.lessons.autodiff_and_optimizers.checks import LESSON

Graph = Sequence[tuple[int, ...]]
"""For each node the numbers of its parents, which are smaller than its own; the last node came from all others."""
STRANGER = -1  # stands for what is no node of the graph


MOST_LOOKS = 1_000_000


class TooManyVisits(Exception):
    """The nodes of a small graph have been visited more often than any reasonable answer does."""


class WatchedNode(Node):
    """A node that counts how often its parents are looked at, together with all others of its graph."""

    def __init__(self, looks: Iterator[int], *rest: Any):
        self._looks = looks
        super().__init__(*rest)

    @property
    def parents(self) -> tuple[Node, ...]:
        """The nodes that it came from."""
        if next(self._looks) > MOST_LOOKS:
            raise TooManyVisits(f"after {MOST_LOOKS:,} looks at nodes' parents there is still no end")
        return self._parents

    @parents.setter
    def parents(self, nodes: Sequence[Node]) -> None:
        self._parents = tuple(nodes)


def numbers_of_nodes(function: Callable, graph: Graph) -> Any:
    """Which nodes the learner's function lists, as numbers; what is no list comes back as it is."""
    nodes: list[Node] = []
    looks = itertools.count(1)
    for parents in graph:
        nodes.append(WatchedNode(looks, 1.0, "+" if parents else "x", [nodes[parent] for parent in parents]))
    listed = function(nodes[-1])
    if type(listed) not in (list, tuple):
        return listed if listed is None else type(listed).__name__
    places = {id(node): number for number, node in enumerate(nodes)}
    return [places.get(id(one), STRANGER) for one in listed]


def trimmed(graph: list[tuple[int, ...]]) -> Graph:
    """The graph without the nodes that its last did not come from, numbered anew."""
    needed = {len(graph) - 1}
    for number in reversed(range(len(graph))):
        if number in needed:
            needed |= set(graph[number])
    new = {old: number for number, old in enumerate(sorted(needed))}
    return [tuple(new[parent] for parent in graph[old]) for old in sorted(needed)]


def random_graph(rng: np.random.Generator, size: int) -> Graph:
    """A graph of at most `size` nodes with one to three parents each, some of them inputs."""
    graph: list[tuple[int, ...]] = [(), ()]
    while len(graph) < size:
        count = int(rng.integers(1, 4)) if rng.random() < 0.85 else 0
        newest = rng.integers(max(0, len(graph) - 4), len(graph), size=count)
        graph.append(tuple(int(parent) for parent in newest))
    graph.append((len(graph) - 1, int(rng.integers(len(graph) - 1))))
    return trimmed(graph)


def _cases(rng: np.random.Generator, available: int) -> Iterator[Case]:
    def case(label: str, graph: Graph) -> Case:
        return Case(label, [(list(graph),)], with_comm=False, judge=_judge, harness=numbers_of_nodes)

    yield case(graph_text([(), (0,), (1,), (2,)]), [(), (0,), (1,), (2,)])
    yield case("a single node without parents", [()])
    for graph in (
        [(), (), (0, 1)],
        [(), (0,), (0,), (1, 2)],
        [(), (0, 0)],
        [(), (0,), (1,), (0, 2)],
        [(), (0,), (1,), (2, 0)],
        [(), (0,), (1,), (1, 2), (0, 3)],
    ):
        yield case(graph_text(graph), graph)
    layers = [(), (), (0, 1), (), (2, 3), (4,), (), (5, 6), (), (7, 8), (9,)]
    yield case("two layers of a network, and a loss", layers)
    for size in (8, 20, 60):
        graph = random_graph(rng, size)
        yield case(f"a random graph of {len(graph)} nodes", graph)
    yield case("a chain of 200 nodes", [(), *((number,) for number in range(199))])
    yield case("a node doubled 60 times over: 61 nodes", [(), *((number, number) for number in range(60))])


def graph_text(graph: Graph) -> str:
    """A small graph in words: "b from a; c from a and b"."""
    names = "abcdefghij"
    parts = [
        f"{names[number]} from {' and '.join(names[parent] for parent in parents)}"
        for number, parents in enumerate(graph)
        if parents
    ]
    return "; ".join(parts)


def _judge(outcome: Outcome) -> str | None:
    graph, listed = outcome.case.arguments[0][0], outcome.results[0]
    if listed is None:
        return "rank 0 returned nothing, expected a list of nodes"
    if type(listed) is str:
        return f"rank 0 returned a {listed}, expected a list of nodes"
    if STRANGER in listed:
        return "rank 0 returned a list with something else than the graph's nodes in it"
    if len(set(listed)) < len(listed):
        twice = next(number for number in listed if listed.count(number) > 1)
        return f"rank 0 listed node {_name(twice)} {listed.count(twice)} times"
    if len(listed) < len(graph):
        missing = next(number for number in range(len(graph)) if number not in listed)
        return f"rank 0 listed {len(listed)} of {len(graph)} nodes; {_name(missing)} is missing"
    for place, number in enumerate(listed):
        late = [parent for parent in graph[number] if parent in listed[place:]]
        if late:
            return f"rank 0 listed node {_name(number)} before {_name(late[0])}, which it came from"
    return None


def _name(number: int) -> str:
    return "abcdefghij"[number] if number < 10 else f"number {number + 1}"


def _listed(outcome: Outcome) -> list[int]:
    found = outcome.results[0]
    return found if type(found) is list else []


def _not_nodes(case: Case, outcome: Outcome) -> bool:
    return type(outcome.results[0]) is str or STRANGER in _listed(outcome)


def _twice(case: Case, outcome: Outcome) -> bool:
    return len(set(_listed(outcome))) < len(_listed(outcome))


def _missing(outcome: Outcome) -> set[int]:
    return set(range(len(outcome.case.arguments[0][0]))) - set(_listed(outcome))


def _without_last(case: Case, outcome: Outcome) -> bool:
    return _missing(outcome) == {len(case.arguments[0][0]) - 1}


def _without_inputs(case: Case, outcome: Outcome) -> bool:
    return bool(_missing(outcome)) and all(not case.arguments[0][0][number] for number in _missing(outcome))


def _one_of_a_name(case: Case, outcome: Outcome) -> bool:
    """Of the nodes with parents, which all bear one name, and of those without, one each at most."""
    graph = case.arguments[0][0]
    with_parents = [number for number in _listed(outcome) if graph[number]]
    return with_parents == [len(graph) - 1] and len(_listed(outcome)) <= 2 < len(graph)


def _turned_round(case: Case, outcome: Outcome) -> bool:
    turned = Outcome(case, outcome.attempt, [_listed(outcome)[::-1]], outcome.arguments, outcome.run)
    return len(_listed(outcome)) > 1 and _judge(turned) is None


TOPOLOGICAL_ORDER = Exercise(
    name="topological_order",
    library="course_utils.lessons.autodiff_and_optimizers.autodiff:topological_order",
    lesson=LESSON,
    place=1,
    minutes=15,
    difficulty=2,
    turn="list each node once, after all its parents",
    title="parents before children",
    cases=_cases,
    picture=False,
    hints=(
        "When may a node be put on the list? Only when all its parents stand there. So what has to be done before a "
        "node is put there, and how do you know that you have been at a node before?",
        "Write a function `visit(node)` inside: return at once if the node is in a set of those seen; else put it into "
        "the set, visit each of its parents, and then append it to the list. Begin with `visit(last)`.",
    ),
    mistakes=(
        Mistake("Is there a `return`?", nothing_returned),
        Mistake("Do you return a list of the nodes themselves?", _not_nodes),
        Mistake("May two nodes bear the same name?", _one_of_a_name),
        Mistake(
            "How many ways lead back to the first node, and must each be walked?",
            lambda case, outcome: raised(outcome, "TooManyVisits"),
        ),
        Mistake("What if a node is reached a second time, by another way?", _twice),
        Mistake("Does `last` itself belong to the list?", _without_last),
        Mistake("Do nodes without parents belong to the list?", _without_inputs),
        Mistake("Do the parents have parents too?", lambda case, outcome: bool(_missing(outcome) and outcome.run)),
        Mistake("Which end of the list is the loss at?", _turned_round),
        Mistake("Does it work for a node without parents?", lambda case, outcome: raised(outcome, "index")),
        Mistake(
            "Is a node listed when it is first met, or when all its parents are listed?",
            lambda case, outcome: outcome.results[0] is not NO_RESULT,
        ),
    ),
    praise=lambda outcome: (
        "every node stands once and after its parents, with one visit each, however many ways there are"
    ),
)
