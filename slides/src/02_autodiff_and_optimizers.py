"""The pictures of deck 2 that its page does not have: the right order, our gradients and torch's, what they cost."""

from types import SimpleNamespace

import numpy as np
import torch
from matplotlib.figure import Figure
from torch.nn.functional import cross_entropy

import course_utils as course
from course_utils.draw import style
from course_utils.lessons.autodiff_and_optimizers import (
    Node,
    graph,
    softmax_cross_entropy,
)
from course_utils.measuring import Measured

RANDOM_NETWORKS, DEEPEST = 120, 12


def right_order() -> Figure:
    """Draw the page's graph that goes wrong level by level, walked in topological order."""
    x = Node(2.0, "x")
    a = x * x
    b = a * a
    y = a + b
    a.name, b.name, y.name = "a", "b", "y"
    y.backward()
    return graph(y, f"In topological order, x gets {x.gradient:g}", given=["x"], visited=[y, b, a, x])


def as_torch() -> Figure:
    """Draw how far our gradients are from torch's, for networks of random depth and width."""
    rng = np.random.default_rng(2)
    depths = rng.integers(1, DEEPEST + 1, RANDOM_NETWORKS)
    errors = np.array([largest_difference(rng, int(depth)) for depth in depths])
    title = f"In {RANDOM_NETWORKS} random networks, our gradients differ from PyTorch's by at most {errors.max():.0e}"
    picture, (ax,) = style.new_picture(title, heights=[2.6], left=0.85)
    shown = np.maximum(errors, 1e-18)
    ax.semilogy(depths + rng.uniform(-0.25, 0.25, len(depths)), shown, "o", color=style.CURVES[0], markersize=4)
    ax.axhline(1e-10, color=style.STUCK, linewidth=1.5)
    ax.text(0.6, 1.4e-10, "what the tests allow", color=style.STUCK, fontsize=style.TEXT)
    ax.set(ylim=(1e-18, 1e-8), xlim=(0.5, DEEPEST + 0.5), xticks=range(1, DEEPEST + 1))
    ax.set_xlabel("layers", fontsize=style.TEXT)
    ax.set_ylabel("difference ÷ largest gradient", fontsize=style.TEXT)
    picture.alt_text = f"{title}. All dots lie far below the line at 1e-10."
    return picture


def largest_difference(rng: np.random.Generator, depth: int) -> float:
    """Return the largest difference from torch's gradients in a random network, relative to the largest gradient."""
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


def price(page: SimpleNamespace) -> Figure:
    """Draw the times of a forward and a backward pass, as the page has measured them."""
    times = page.times
    passes = {"forward": Measured(tuple(times.forwards)), "backward": Measured(tuple(times.ends))}
    ratio = passes["backward"].median / passes["forward"].median
    title = f"VGG-11 with {len(page.photos)} images: a backward pass takes the time of {ratio:.1f} forward passes"
    which = f"medians of {len(times.ends)} passes"
    return course.draw.measured_bars({which: passes}, title)


FIGURES = {
    "02_right_order": right_order,
    "02_as_torch": as_torch,
    "02_price": price,
}
