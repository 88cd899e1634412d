"""The pictures of deck 2: graphs walked backwards, VGG-11's backward pass, and what optimizers keep."""

from functools import cache

import numpy as np
import torch
from matplotlib.figure import Figure
from torch.nn.functional import cross_entropy

import course_utils as course
from course_utils.draw import style
from course_utils.lessons.autodiff_and_optimizers.autodiff import Node, softmax_cross_entropy, topological_order
from course_utils.lessons.autodiff_and_optimizers.optimizers import adam_step, state_bytes_per_parameter
from course_utils.lessons.autodiff_and_optimizers.pictures import (
    boxes_of,
    bytes_per_parameter,
    computation_graph,
    ready_order,
)
from course_utils.lessons.autodiff_and_optimizers.ready_order import layers, measure_ready_order
from course_utils.lessons.sgd.digits_network import new_network
from course_utils.lessons.sgd.gradient_descent import minibatches, sgd_step
from course_utils.vgg import parameter_count, vgg11
from course_utils.words import bytes_text

RANDOM_NETWORKS, DEEPEST = 120, 12


def walk(order: list[Node]) -> None:
    """The backward pass over these nodes, in this order."""
    for node in order:
        node.gradient = np.full_like(node.value, 1 if node is order[0] else 0)
    for node in order:
        for parent, part in zip(node.parents, node.rule(node.gradient) if node.rule else ()):
            parent.gradient = parent.gradient + part


def level_by_level(last: Node) -> list[Node]:
    """The last node, its parents, their parents: an order that is wrong for the walk."""
    found = [last]
    for node in found:
        found += [parent for parent in dict.fromkeys(node.parents) if parent not in found]
    return found


def forward_graph() -> Figure:
    """y = x · x + x."""
    x = Node(3.0, "x")
    return computation_graph(*boxes_of(topological_order(x * x + x)), "y = x · x + x at x = 3")


def backward_graph() -> Figure:
    """The same graph with its gradients."""
    x = Node(3.0, "x")
    y = x * x + x
    y.backward()
    boxes, edges = boxes_of(topological_order(y), gradients=True)
    title = f"Three arrows lead back to x: 3 + 3 + 1 = {x.gradient:.0f}"
    return computation_graph(boxes, edges, title, order=[2, 1, 0], backward=True)


def two_paths() -> tuple[Node, Node]:
    """x = 1 and y = a + exp(a) with a = x · x."""
    x = Node(1.0, "x")
    a = x * x
    return x, a + a.exp()


def wrong_order() -> Figure:
    """A walk level by level, which is too early at one node."""
    x, y = two_paths()
    y.backward()
    right = float(x.gradient)
    order = level_by_level(y)
    walk(order)
    boxes, edges = boxes_of(topological_order(y), gradients=True)
    title = f"Level by level: {x.gradient:.4g}, where {right:.4g} is right"
    return computation_graph(boxes, edges, title, order=numbers(y, order), backward=True)


def right_order() -> Figure:
    """The same graph in topological order."""
    x, y = two_paths()
    y.backward()
    boxes, edges = boxes_of(topological_order(y), gradients=True)
    title = f"In topological order, from the end: {x.gradient:.4g}"
    return computation_graph(boxes, edges, title, order=[3, 2, 1, 0], backward=True)


def numbers(last: Node, order: list[Node]) -> list[int]:
    """Where the nodes of an order stand in the topological one."""
    places = topological_order(last)
    return [places.index(node) for node in order]


def network(x, parameters):
    """Two layers; for Nodes and for tensors."""
    first, first_bias, second, second_bias = parameters
    return (x @ first + first_bias).relu() @ second + second_bias


def network_graph() -> Figure:
    """The graph of two layers and a loss, on 64 digits."""
    images, labels, _, _ = course.data.digits_arrays()
    start = new_network(np.random.default_rng(0))
    nodes = [Node(array, name) for array, name in zip(start, ["W1", "b1", "W2", "b2"], strict=True)]
    loss = softmax_cross_entropy(network(Node(images[:64], "x"), nodes), labels[:64])
    boxes, edges = boxes_of(topological_order(loss), given=["x"])
    title = f"64 digits, two layers: {len(boxes)} nodes, of which 4 hold the weights"
    return computation_graph(boxes, edges, title, order=range(len(boxes))[::-1], backward=True)


def as_torch() -> Figure:
    """How far gradients are from torch's, for networks of random depth and width."""
    rng = np.random.default_rng(2)
    depths = rng.integers(1, DEEPEST + 1, RANDOM_NETWORKS)
    errors = np.array([largest_difference(rng, int(depth)) for depth in depths])
    title = f"{RANDOM_NETWORKS} random networks: at most {errors.max():.0e} from torch, relative to the largest entry"
    picture, (ax,) = style.new_picture(title, heights=[2.6], left=0.85)
    shown = np.maximum(errors, 1e-18)
    ax.semilogy(depths + rng.uniform(-0.25, 0.25, len(depths)), shown, "o", color=style.CURVES[0], markersize=4)
    ax.axhline(1e-10, color=style.STUCK, linewidth=1.5)
    ax.text(0.6, 1.4e-10, "what the tests allow", color=style.STUCK, fontsize=style.TEXT)
    ax.set(ylim=(1e-18, 1e-8), xlim=(0.5, DEEPEST + 0.5), xticks=range(1, DEEPEST + 1))
    ax.set_xlabel("layers", fontsize=style.TEXT)
    ax.set_ylabel("difference", fontsize=style.TEXT)
    picture.alt_text = f"{title}. All dots lie far below the line at 1e-10."
    return picture


def largest_difference(rng: np.random.Generator, depth: int) -> float:
    """The largest difference from torch's gradients in a random network, relative to the largest gradient."""
    sides = rng.integers(2, 30, depth + 1)
    weights = [rng.normal(size=(a, b)) / np.sqrt(a) for a, b in zip(sides[:-1], sides[1:], strict=True)]
    x, labels = rng.normal(size=(8, sides[0])), rng.integers(sides[-1], size=8)
    nodes, tensors = [Node(w) for w in weights], [torch.tensor(w, requires_grad=True) for w in weights]
    ours, theirs = Node(x), torch.tensor(x)
    for node, tensor in zip(nodes, tensors, strict=True):
        ours, theirs = (ours @ node).tanh(), (theirs @ tensor).tanh()
    softmax_cross_entropy(ours, labels).backward()
    cross_entropy(theirs, torch.tensor(labels)).backward()
    apart = [np.abs(n.gradient - t.grad.numpy()).max() for n, t in zip(nodes, tensors, strict=True)]
    largest = max(np.abs(n.gradient).max() for n in nodes)
    return float(max(apart) / largest) if largest else 0.0


@cache
def vgg_times():
    """Backward passes of VGG-11 with 32 images, timed."""
    model = vgg11(seed=0)
    images, labels = torch.randn(32, 3, 32, 32), torch.randint(10, (32,))
    return measure_ready_order(model, lambda: cross_entropy(model(images), labels), repeats=9)


def price() -> Figure:
    """A forward and a backward pass, beside each other."""
    times = vgg_times()
    ratio = times.end / np.median(times.forwards)
    picture, (ax,) = style.new_picture(
        f"VGG-11, 32 images: a backward pass takes {ratio:.1f} times as long as a forward pass",
        f"medians of {len(times.ends)} passes; lines from the fastest to the slowest",
        heights=[1.3],
    )
    for row, (name, seconds) in enumerate({"forward": times.forwards, "backward": times.ends}.items()):
        middle, low, high = (1000 * f(seconds) for f in (np.median, np.min, np.max))
        ax.barh(row, middle, height=0.6, color=style.COLOURS[name])
        ax.plot([low, high], [row, row], color=style.INK, linewidth=1.5, marker="|", markersize=9)
    ax.set_yticks([0, 1], ["forward", "backward"], fontsize=style.TEXT)
    ax.set_ylim(1.5, -0.5)
    ax.set_xlabel("ms", fontsize=style.TEXT)
    picture.alt_text = f"Two bars. A backward pass takes {ratio:.1f} times as long as a forward pass."
    return picture


def ready() -> Figure:
    """When each layer's gradient is ready."""
    times = vgg_times()
    by_layer = layers(times, lambda layer: layer.replace("norm", "conv"))
    return ready_order(by_layer, times.end, "One backward pass of VGG-11", times.ends)


def learned() -> Figure:
    """The digits, learned with our own gradients by SGD and by Adam."""
    train_x, train_y, test_x, test_y = course.data.digits_arrays()
    start = new_network(np.random.default_rng(0))
    means, squares = ([np.zeros_like(array) for array in start] for _ in range(2))

    def sgd(parameters, gradients, step):
        sgd_step(parameters, gradients, rate=0.1)

    def adam(parameters, gradients, step):
        adam_step(parameters, gradients, means, squares, step, rate=0.005)

    curves, found = {}, {}
    for name, update in {"SGD, rate 0.1": sgd, "Adam, rate 0.005": adam}.items():
        nodes, losses, rng = [Node(array.copy()) for array in start], [], np.random.default_rng(1)
        for _ in range(8):
            for batch in minibatches(len(train_x), 32, rng):
                loss = softmax_cross_entropy(network(Node(train_x[batch]), nodes), train_y[batch])
                loss.backward()
                update([node.value for node in nodes], [node.gradient for node in nodes], len(losses) + 1)
                losses.append(float(loss.value))
        curves[name] = np.reshape(losses, (8, -1)).mean(axis=1)
        found[name] = (network(Node(test_x), nodes).value.argmax(axis=1) == test_y).mean()
    shares = " and ".join(f"{name.partition(',')[0]} {share:.1%}" for name, share in found.items())
    return course.draw.loss_curves(curves, f"Test images recognised: {shares}", x="epoch")


def kept() -> Figure:
    """Bytes per parameter, measured in torch's optimizers, and ZeRO's count for 16 bit."""
    model = vgg11(seed=0)
    makers = {
        "SGD": lambda weights: torch.optim.SGD(weights, lr=0.1),
        "momentum": lambda weights: torch.optim.SGD(weights, lr=0.1, momentum=0.9),
        "Adam": torch.optim.Adam,
    }
    measured = state_bytes_per_parameter(model, makers)
    parts = ("weights", "gradient", "optimizer's state")
    bars = {name: dict(zip(parts, (4, 4, state), strict=True)) for name, state in measured.items()}
    bars["Adam, 16 bit (ZeRO's count)"] = dict(zip(parts, (2, 2, 12), strict=True))
    total = bytes_text(parameter_count(model) * (8 + measured["Adam"]))
    return bytes_per_parameter(bars, f"VGG-11 with Adam: {total} before the first image")


FIGURES = {
    "02_forward_graph": forward_graph,
    "02_backward_graph": backward_graph,
    "02_wrong_order": wrong_order,
    "02_right_order": right_order,
    "02_network_graph": network_graph,
    "02_as_torch": as_torch,
    "02_price": price,
    "02_ready": ready,
    "02_learned": learned,
    "02_kept": kept,
}
