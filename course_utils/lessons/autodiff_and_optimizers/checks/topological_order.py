"""The check of `topological_order`: graphs small and random, in which any right order passes."""

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from course_utils.checks.cases import AFTER_ANOTHER_CALL
from course_utils.checks.exercise import Case, Exercise, Outcome
from course_utils.checks.finding import Finding, own
from course_utils.lessons.autodiff_and_optimizers.autodiff import Node

Graph = Sequence[tuple[int, ...]]
"""For each node the numbers of its parents, which are smaller than its own; the last node came from all others."""
STRANGER, LEFT_OVER = -1, -2
"""They stand for what is not a node of the graph, and for a node of one for which the function was called before."""
ALIKE = "alike"
"""The key of the cases with nodes of one name and one number."""
MOST_LOOKS = 200_000


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
            raise TooManyVisits(f"the parents of nodes were read {MOST_LOOKS:,} times, and there was still no end")
        return self._parents

    @parents.setter
    def parents(self, nodes: Sequence[Node]) -> None:
        self._parents = tuple(nodes)


def nodes_of(graph: Graph, alike: bool = False) -> list[Node]:
    """The graph's nodes, made in another order than they are numbered, so that nobody finds one by its age.

    Args:
        alike: all of them have the number 1, and many have the same name.
    """
    looks = itertools.count(1)
    order = random.Random(len(graph)).sample(range(len(graph)), len(graph))
    made = {
        number: WatchedNode(looks, 1.0, "+" if graph[number] else "x")
        if alike
        else WatchedNode(looks, 0.5 + age, _name(number))
        for age, number in enumerate(order)
    }
    for number, parents in enumerate(graph):
        made[number].parents = tuple(made[parent] for parent in parents)
        made[number].gradient, made[number].rule = np.array(0.25), np.negative
    return [made[number] for number in range(len(graph))]


def numbers_of_nodes(function: Callable, graph: Graph, before: Graph = (), alike: bool = False) -> Any:
    """Which nodes the learner's function lists, as numbers; what is not a list comes back as it is.

    Args:
        before: a graph for which it is called first; then it is called for a part of the other graph as well.
        alike: the nodes have the same names and numbers.
    """
    nodes, others = nodes_of(graph, alike), nodes_of(before, alike)
    held = [_held_by(node) for node in nodes]
    if others:
        function(others[-1])
        function(nodes[len(nodes) // 2])
    listed = function(nodes[-1])
    pairs = [(old.items(), _held_by(node).items()) for old, node in zip(held, nodes, strict=True)]
    if changed := {name for old, new in pairs for name, _ in old ^ new}:
        return min(changed), "changed"
    if type(listed) not in (list, tuple):
        return listed if listed is None else type(listed).__name__
    places = {id(node): number for number, node in enumerate(nodes)} | dict.fromkeys(map(id, others), LEFT_OVER)
    return [places.get(id(node), STRANGER) for node in listed]


def _held_by(node: Node) -> dict[str, object]:
    """What a node holds under which name: numbers as they are, parents and other objects by their identity."""
    return {
        name.removeprefix("_"): value.tobytes()
        if type(value) is np.ndarray
        else tuple(map(id, value))
        if type(value) is tuple
        else id(value)
        for name, value in vars(node).items()
        if name != "_looks"
    }


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
    def case(label: str, graph: Graph, before: Graph = (), alike: bool = False, key: str = "") -> Case:
        given = [(list(graph), list(before), alike)]
        return Case(label, given, with_comm=False, judge=_judge, harness=numbers_of_nodes, key=key)

    yield case(graph_text([(), (0,), (1,), (2,)]), [(), (0,), (1,), (2,)])
    yield case("a single node without parents", [()])
    for graph in (
        [(), (), (0, 1)],
        [(), (0,), (0,), (1, 2)],
        [(), (0, 0)],
        [(), (0,), (1,), (0, 2)],
        [(), (0,), (1,), (2, 0)],
        [(), (0,), (1,), (1, 2), (0, 3)],
        [(), (0,), (0, 0), (1, 2)],
        [(), (0,), (0, 0), (2, 1)],
        [(), (), (), (0, 1, 2)],
    ):
        yield case(graph_text(graph), graph)
    layers = [(), (), (0, 1), (), (2, 3), (4,), (), (5, 6), (), (7, 8), (9,)]
    yield case("two layers of a network, and a loss", layers)
    yield case("nodes with the same names and numbers", [(), (), (0, 1), (2,), (2, 3)], alike=True, key=ALIKE)
    for size in (8, 20, 60):
        graph = random_graph(rng, size)
        yield case(f"a random graph of {len(graph)} nodes", graph)
    label = "called for another graph first, then for a part of this one"
    graph = [(), (), (0, 1), (0, 2), (3, 1), (4, 2)]
    yield case(label, graph, [(), (0,), (0, 1)], key=AFTER_ANOTHER_CALL)
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


def _judge(outcome: Outcome) -> Finding | None:
    graph, listed = outcome.case.arguments[0][0], outcome.results[0]
    if listed is None:
        return _no_list("nothing")
    if type(listed) is tuple:
        return own("graph-changed", "your function changed `{what}` of some nodes", what=listed[0])
    if type(listed) is str:
        return _no_list(f"a {listed}")
    if STRANGER in listed:
        return _no_list("a list with something else in it")
    if LEFT_OVER in listed:
        return own("left-over-nodes", "your list has nodes of a graph for which your function was called before")
    twice = [number for number in listed if listed.count(number) > 1]
    if twice:
        return own("listed-twice", "your list has node {node} more than once", node=_name(twice[0]))
    missing = [number for number in range(len(graph)) if number not in listed]
    if missing:
        names = ", ".join(map(_name, missing[:10])) + (", …" if len(missing) > 10 else "")
        words = "your list has {listed} of {nodes} nodes; missing: {names}"
        return own("missing-nodes", words, listed=len(listed), nodes=len(graph), names=names)
    for index, number in enumerate(listed):
        late = [parent for parent in graph[number] if parent in listed[index:]]
        if late:
            words = "your list has node {node} before its parent {parent}"
            return own("before-a-parent", words, node=_name(number), parent=_name(late[0]))
    return None


def _no_list(result: str) -> Finding:
    return own("not-a-list-of-nodes", "your function returned {result}, expected a list of nodes", result=result)


def _name(number: int) -> str:
    return "abcdefghij"[number] if number < 10 else f"number {number + 1}"


def _last_first(case: Case, outcome: Outcome) -> bool:
    """Whether the list is right from its end to its beginning, in the first case or another with so many nodes."""
    graph, listed = case.arguments[0][0], outcome.results[0]
    if type(listed) is not list or len(listed) < 4 or {*listed} != {*range(len(graph))}:
        return False
    places = {number: index for index, number in enumerate(listed)}
    return all(places[parent] > places[number] for number in range(len(graph)) for parent in graph[number])


EXERCISE = Exercise(
    library="autodiff",
    number=1,
    minutes=15,
    difficulty=2,
    turn="list each node once, after all of its parents",
    title="parents before children",
    cases=_cases,
    hints=(
        "A node can go on the list only when all of its parents are there. What do you have to do before you append "
        "it? And how do you notice that you have visited a node before?",
        "Inside your function, write a function `visit(node)`. If the node is in the set of nodes seen so far, it "
        "returns at once. If not, it adds the node to the set, visits each of its parents, and then appends the node "
        "to the list. Begin with `visit(last)`.",
    ),
    symptoms={"the list is right from its end": _last_first},
    praise=lambda outcome: (
        "every node is listed once and after its parents, and each was visited only once, however many paths lead to it"
    ),
)
