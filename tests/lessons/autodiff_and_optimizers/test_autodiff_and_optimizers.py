"""Lesson 2's autodiff: on random graphs its gradients are torch's, with broadcasting; and it is as short as said."""

from pathlib import Path

import numpy as np
import pytest
import torch

from course_utils import settings
from course_utils.errors import CourseError
from course_utils.lessons.autodiff_and_optimizers import autodiff
from course_utils.lessons.autodiff_and_optimizers.autodiff import (
    Node,
    softmax_cross_entropy,
    topological_order,
    unbroadcast,
)
from course_utils.lessons.autodiff_and_optimizers.pictures import Box, boxes_of, computation_graph, graph, lay_out

SHAPES = [(), (1,), (3,), (4, 3), (1, 3), (4, 1), (2, 4, 3), (2, 1, 3), (2, 1, 1)]  # all broadcast with each other
FIRST_SEED = settings.SEED.value() or 0

BOTH = {  # the same operation on a Node and on a tensor
    "add": (2, lambda a, b: a + b, lambda a, b: a + b),
    "subtract": (2, lambda a, b: a - b, lambda a, b: a - b),
    "multiply": (2, lambda a, b: a * b, lambda a, b: a * b),
    "times a number": (1, lambda a: 1.7 * a + 0.3, lambda a: 1.7 * a + 0.3),
    "relu": (1, lambda a: a.relu(), lambda a: a.relu()),
    "tanh": (1, lambda a: a.tanh(), lambda a: a.tanh()),
    "exp": (1, lambda a: a.tanh().exp(), lambda a: a.tanh().exp()),
    "log": (1, lambda a: (a * a + 1).log(), lambda a: (a * a + 1).log()),
    "sum": (1, lambda a: a.sum(), lambda a: a.sum()),
    "mean": (1, lambda a: a.mean(), lambda a: a.mean()),
    "matmul": (
        2,
        lambda a, b: rows(a) @ rows(b).transpose(*swapped(rows(b).value.ndim)),
        lambda a, b: rows(a) @ rows(b).transpose(-1, -2),
    ),
}


def shape_of(a) -> tuple[int, ...]:
    return tuple(a.value.shape if isinstance(a, Node) else a.shape)


def rows(a):
    """The array with its last axis 3 long: a matrix, or a stack of them."""
    shape = shape_of(a)
    if shape[-1:] != (3,):
        a = a + (Node(np.zeros(3)) if isinstance(a, Node) else torch.zeros(3, dtype=torch.float64))
    shape = shape_of(a)
    return a if len(shape) > 1 else a.reshape(1, *shape)


def swapped(ndim: int) -> tuple[int, ...]:
    return (*range(ndim - 2), ndim - 1, ndim - 2)


def random_graphs(seed: int, steps: int = 12):
    """The same random graph twice: its inputs and all that was computed, as Nodes and as tensors."""
    rng = np.random.default_rng(seed)
    values = [rng.normal(size=SHAPES[i]) for i in rng.integers(len(SHAPES), size=4)]
    ours = [Node(value) for value in values]
    theirs = [torch.tensor(value, requires_grad=True) for value in values]
    for _ in range(steps):
        name = rng.choice(list(BOTH))
        count, on_nodes, on_tensors = BOTH[name]
        chosen = [int(i) for i in rng.integers(len(ours), size=count)]
        if name == "matmul":  # its result need not broadcast with the rest: sum it
            ours.append(on_nodes(*(ours[i] for i in chosen)).sum().tanh())
            theirs.append(on_tensors(*(theirs[i] for i in chosen)).sum().tanh())
        else:
            ours.append(on_nodes(*(ours[i] for i in chosen)).tanh())  # tanh keeps numbers near 1
            theirs.append(on_tensors(*(theirs[i] for i in chosen)).tanh())
    return ours, theirs


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + 150))
def test_gradients_of_random_graphs_are_those_of_torch(seed):
    ours, theirs = random_graphs(seed)
    for tensor in theirs:
        tensor.retain_grad()
    last = sum((node.mean() for node in ours[-3:]), Node(0.0))
    sum(tensor.mean() for tensor in theirs[-3:]).backward()
    last.backward()
    reached = set(topological_order(last))
    for node, tensor in zip(ours, theirs):
        assert np.allclose(node.value, tensor.detach().numpy(), rtol=1e-12, atol=1e-12)
        if tensor.grad is None:
            assert node not in reached or not np.any(node.gradient)
        else:
            wanted = tensor.grad.numpy()
            assert node.gradient.shape == wanted.shape and node.gradient.dtype == np.float64
            assert np.abs(node.gradient - wanted).max(initial=0) <= 1e-10 * max(1, np.abs(wanted).max(initial=0))


@pytest.mark.parametrize("axis", [None, 0, 1, -1, (0, 2), (0, 1, 2)])
@pytest.mark.parametrize("name", ["sum", "mean"])
def test_sums_along_any_axes(name, axis):
    x = np.random.default_rng(1).normal(size=(2, 3, 4))
    ours, theirs = Node(x), torch.tensor(x, requires_grad=True)
    found, wanted = getattr(ours, name)(axis), getattr(theirs, name)(axis)
    assert np.allclose(found.value, wanted.detach())
    (found * found).sum().backward()
    (wanted * wanted).sum().backward()
    assert np.allclose(ours.gradient, theirs.grad, rtol=1e-12, atol=0)


@pytest.mark.parametrize("axes", [(), (0, 2, 1), (1, 2, 0), (2, 0, 1)])
def test_other_shapes_and_orders_of_axes(axes):
    x = np.random.default_rng(2).normal(size=(2, 3, 4))
    ours, theirs = Node(x), torch.tensor(x, requires_grad=True)
    weights = np.random.default_rng(3).normal(size=(6, 4))
    (ours.transpose(*axes).reshape(6, 4) * weights).sum().backward()
    (theirs.permute(axes or (2, 1, 0)).reshape(6, 4) * torch.tensor(weights)).sum().backward()
    assert np.allclose(ours.gradient, theirs.grad, rtol=1e-12, atol=0)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ((2, 3), (3, 4)),
        ((5, 2, 3), (3, 4)),
        ((2, 3), (5, 3, 4)),
        ((5, 2, 3), (1, 3, 4)),
        ((6, 1, 2, 3), (5, 3, 4)),
        ((1, 1), (1, 1)),
        ((1, 3), (3, 1)),
        ((0, 3), (3, 4)),
        ((2, 0), (0, 4)),
    ],
)
def test_matrices_and_stacks_of_them(a, b):
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=a), rng.normal(size=b)
    s, t = torch.tensor(x, requires_grad=True), torch.tensor(y, requires_grad=True)
    gradient = rng.normal(size=(x @ y).shape)
    (s @ t).backward(torch.tensor(gradient))
    for got, wanted in zip(autodiff.matmul_backward(gradient, x, y), (s.grad, t.grad)):
        assert got.shape == tuple(wanted.shape) and np.allclose(got, wanted, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("scale", [0, 1, 30, 5000])
@pytest.mark.parametrize("batch", [1, 7])
def test_cross_entropy_is_torchs_and_knows_no_overflow(scale, batch):
    rng = np.random.default_rng(5)
    logits, labels = rng.normal(size=(batch, 10)) * scale, rng.integers(10, size=batch)
    ours, theirs = Node(logits), torch.tensor(logits, requires_grad=True)
    loss = softmax_cross_entropy(ours, labels) * 3
    wanted = torch.nn.functional.cross_entropy(theirs, torch.tensor(labels)) * 3
    with np.errstate(all="raise", under="ignore"):
        loss.backward()
    wanted.backward()
    assert np.allclose(loss.value, wanted.item(), rtol=1e-12)
    assert np.allclose(ours.gradient, theirs.grad, rtol=1e-12, atol=1e-14)


def test_a_deep_graph_and_one_with_many_paths():
    x = Node(1.0)
    deep = x
    for _ in range(20_000):
        deep = deep * 1.0
    deep.backward()
    assert x.gradient == 1
    doubled = x
    for _ in range(50):  # 2^50 paths, 51 nodes
        doubled = doubled + doubled
    assert len(topological_order(doubled)) == 51
    doubled.backward()
    assert x.gradient == 2.0**50


def test_gradients_are_found_anew_each_time():
    x = Node([1.0, 2.0])
    y = (x * x).sum()
    y.backward()
    y.backward()
    assert x.gradient.tolist() == [2.0, 4.0]


def test_float32_stays_and_integers_become_floats():
    x = Node(np.ones((2, 3), np.float32))
    y = (2 * x + 1).mean()
    y.backward()
    assert y.value.dtype == x.gradient.dtype == np.float32
    assert Node([1, 2]).value.dtype == np.float64


def test_what_cannot_be_done_is_said_in_a_line():
    with pytest.raises(CourseError, match="single number"):
        Node([1.0, 2.0]).backward()
    with pytest.raises(CourseError, match="two matrices"):
        Node([1.0, 2.0]) @ Node([1.0, 2.0])


def test_unbroadcast_sums_where_numbers_were_repeated():
    assert unbroadcast(np.ones((4, 2, 3)), (2, 1)).tolist() == [[12.0], [12.0]]
    assert unbroadcast(np.float64(2.0), ()).shape == ()


def test_it_is_as_short_as_the_lesson_says():
    assert abs(len(Path(autodiff.__file__).read_text(encoding="utf-8").splitlines()) - 170) <= 10


def test_a_graph_is_drawn_with_inputs_left_of_what_needs_them():
    x, w = Node(np.ones((5, 2)), "x"), Node(np.ones((2, 3)), "W")
    loss = softmax_cross_entropy((x @ w).tanh(), np.zeros(5, int))
    loss.backward()
    order = topological_order(loss)
    boxes, edges = boxes_of(order, given=("x",), gradients=True)
    kinds = {box.label: box.kind for box in boxes}
    assert kinds == {
        "x": "input",
        "W": "parameter",
        "@": "operation",
        "tanh": "operation",
        "cross\nentropy": "operation",
    }
    places = lay_out(boxes, edges)
    assert len(set(places)) == len(boxes)
    assert all(places[a][0] < places[b][0] for a, b in edges)
    picture = computation_graph(boxes, edges, "A graph", order=range(len(boxes))[::-1], backward=True)
    assert "@ (5 × 3, gradient 5 × 3) from" in picture.alt_text and picture.alt_text.startswith("A graph.")


def test_a_node_used_twice_has_two_arrows():
    x = Node(3.0, "x")
    boxes, edges = boxes_of(topological_order(x * x + x))
    assert edges.count((0, 1)) == 2 and (0, 2) in edges
    assert Box("x", "3", "parameter") == boxes[0]
    assert "* (9) from x and x" in computation_graph(boxes, edges, "Twice").alt_text


def squared_square() -> list[Node]:
    """x = 2, a = x · x, b = a · a and y = a + b."""
    x = Node(2.0, "x")
    a = x * x
    b = a * a
    y = a + b
    a.name, b.name, y.name = "a", "b", "y"
    return [x, a, b, y]


@pytest.mark.parametrize(
    ("order", "from_a"), [("ybax", "a to x 18, a to x 18"), ("yabx", "a to x 2, a to x 2")], ids=["right", "by level"]
)
def test_a_walked_graph_shows_the_parts_that_this_order_passes(order: str, from_a: str):
    nodes = squared_square()
    nodes[-1].backward()
    named = {node.name: node for node in nodes}
    picture = graph(nodes[-1], "Walked", given=["x"], visited=[named[name] for name in order])
    assert f"Visited in this order: {', '.join(order)}." in picture.alt_text
    assert picture.alt_text.endswith(f"Parts passed back: {from_a}, b to a 4, b to a 4, y to a 1, y to b 1.")
    assert [text.get_text() for text in picture.axes[0].texts].count("4") == 4  # two parts, the value of a, a visit


def test_a_graph_that_is_not_walked_or_has_arrays_shows_no_parts():
    [*_, y] = squared_square()
    assert "Visited" not in graph(y, "Forward").alt_text and "gradient" not in graph(y, "Forward").alt_text
    x = Node(np.ones((2, 3)), "x")
    total = (x * x).sum()
    total.backward()
    walked = graph(total, "Arrays", visited=topological_order(total)[::-1]).alt_text
    assert "Parts" not in walked and "* (2 × 3, gradient 2 × 3)" in walked
