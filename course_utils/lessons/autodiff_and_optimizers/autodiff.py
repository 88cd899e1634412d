"""Reverse-mode automatic differentiation of arrays: a graph of operations, walked backwards by the chain rule.

Source: Baydin et al. 2018, "Automatic differentiation in machine learning", §3.2.
"""

from collections.abc import Callable, Sequence

import numpy as np

from course_utils.errors import CourseError


class Node:
    """An array that knows its `parents`, and the `rule` that makes of its `gradient` the gradients of theirs."""

    def __init__(self, value, name: str = "", parents: Sequence["Node"] = (), rule: Callable | None = None):
        value = np.asarray(value)
        self.value = value if value.dtype.kind == "f" else value.astype(np.float64)
        self.name, self.parents, self.rule = name, tuple(parents), rule
        self.gradient: np.ndarray | None = None

    def backward(self) -> None:
        """Find the gradient of this single number with respect to every node that it came from, anew."""
        if self.value.size != 1:
            raise CourseError(f"backward starts at a single number, not at shape {self.value.shape}. Take .sum().")
        order = topological_order(self)
        for node in order:
            node.gradient = np.full_like(node.value, 1 if node is self else 0)
        for node in reversed(order):
            parts = node.rule(node.gradient) if node.rule else ()
            for parent, part in zip(node.parents, parts, strict=True):
                parent.gradient = parent.gradient + part  # a node that is used twice gets two parts

    def __add__(self, other) -> "Node":
        a, b = self, self._node(other)
        sides = a.value.shape, b.value.shape
        return Node(a.value + b.value, "+", (a, b), lambda g: (unbroadcast(g, sides[0]), unbroadcast(g, sides[1])))

    def __mul__(self, other) -> "Node":
        a, b = self, self._node(other)
        x, y = a.value, b.value
        return Node(x * y, "*", (a, b), lambda g: (unbroadcast(g * y, x.shape), unbroadcast(g * x, y.shape)))

    def __matmul__(self, other: "Node") -> "Node":
        a, b = self, self._node(other)
        if min(a.value.ndim, b.value.ndim) < 2:
            raise CourseError("@ needs two matrices, or stacks of them. Reshape the vector to a row or a column.")
        return Node(a.value @ b.value, "@", (a, b), lambda g: matmul_backward(g, a.value, b.value))

    __radd__, __rmul__ = __add__, __mul__

    def __sub__(self, other) -> "Node":
        return self + self._node(other) * -1.0

    def sum(self, axis: int | tuple[int, ...] | None = None) -> "Node":
        """The sum along `axis`, which is gone then; None: of all entries."""
        shape, kept = self.value.shape, self.value.sum(axis=axis, keepdims=True).shape
        return Node(self.value.sum(axis=axis), "sum", (self,), lambda g: (np.broadcast_to(g.reshape(kept), shape),))

    def mean(self, axis: int | tuple[int, ...] | None = None) -> "Node":
        """The mean along `axis`: a sum and a product."""
        total = self.sum(axis)
        return total * (total.value.size / self.value.size)

    def relu(self) -> "Node":
        """The larger of each entry and 0; the slope at 0 is taken to be 0."""
        return self._each("relu", np.maximum(self.value, 0), slope=self.value > 0)

    def tanh(self) -> "Node":
        """The hyperbolic tangent of each entry."""
        return self._each("tanh", np.tanh(self.value), slope=1 - np.tanh(self.value) ** 2)

    def exp(self) -> "Node":
        """e to the power of each entry."""
        return self._each("exp", np.exp(self.value), slope=np.exp(self.value))

    def log(self) -> "Node":
        """The natural logarithm of each entry."""
        return self._each("log", np.log(self.value), slope=1 / self.value)

    def reshape(self, *shape: int) -> "Node":
        """The same numbers in another shape."""
        return Node(self.value.reshape(shape), "reshape", (self,), lambda g: (g.reshape(self.value.shape),))

    def transpose(self, *axes: int) -> "Node":
        """The axes in another order; without arguments, reversed."""
        order = axes or tuple(reversed(range(self.value.ndim)))
        return Node(self.value.transpose(order), "transpose", (self,), lambda g: (g.transpose(np.argsort(order)),))

    def _each(self, name: str, value: np.ndarray, slope: np.ndarray) -> "Node":
        return Node(value, name, (self,), lambda g: (g * slope,))

    def _node(self, other) -> "Node":
        return other if isinstance(other, Node) else Node(np.asarray(other, dtype=self.value.dtype), "number")


def topological_order(last: Node) -> list[Node]:
    """All nodes that `last` came from, each once and each after all its parents; `last` itself
    stands at the end.

    Look at nothing but `node.parents`. However many ways lead to a node, it is visited once. Any
    such order will do.
    """
    # A node is on the stack twice:
    # once to put its parents above it, then, when they are done, to be listed.
    order, seen, stack = [], set(), [(last, False)]
    while stack:
        node, parents_listed = stack.pop()
        if parents_listed:
            order.append(node)
        elif node not in seen:
            seen.add(node)
            stack += [(node, True), *((parent, False) for parent in reversed(node.parents))]
    return order


def unbroadcast(gradient: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Sum the gradient over the axes along which an array of this shape was repeated by broadcasting."""
    added = gradient.ndim - len(shape)
    repeated = [added + axis for axis, side in enumerate(shape) if side == 1]
    return gradient.sum(axis=(*range(added), *repeated)).reshape(shape)


def matmul_backward(
    gradient: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The gradients of a loss with respect to `a` and `b`, given its `gradient` with respect to
    `a @ b`.

    `a` is (…, rows, inner), `b` is (…, inner, columns): matrices, or stacks of them whose leading
    axes broadcast (one may have fewer, or 1 where the other has more). `gradient` has the shape of
    `a @ b`; all three are of one dtype, and nothing is changed in place. Returns two arrays, of the
    shapes of `a` and `b` and of the same dtype. Source: Giles 2008, "Matrix derivative results",
    §2.2.1.
    """
    # Element (i, j) of `a` met row j of `b` and went into row i of the product:
    # so it collects gradient · bᵀ.
    to_a = gradient @ b.swapaxes(-1, -2)
    to_b = a.swapaxes(-1, -2) @ gradient
    # A matrix that broadcasting used for a whole stack has a gradient from each use:
    # they are summed.
    return unbroadcast(to_a, a.shape), unbroadcast(to_b, b.shape)


def softmax_cross_entropy(logits: Node, labels: np.ndarray) -> Node:
    """The mean over the rows of −log softmax(logits)[label]: (batch, classes) and (batch,) give a single number."""
    shifted = logits.value - logits.value.max(axis=1, keepdims=True)  # the same softmax, and no overflow
    loss = (np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(labels)), labels]).mean()
    return Node(loss, "cross entropy", (logits,), lambda g: (softmax_cross_entropy_backward(g, logits.value, labels),))


def softmax_cross_entropy_backward(
    gradient: float,
    logits: np.ndarray,
    labels: np.ndarray,
) -> np.ndarray:
    """The gradient with respect to `logits` of the mean over the batch of −log
    softmax(logits)[label].

    `gradient` is that of the final loss with respect to this mean (1.0 where the mean is the loss).
    `labels`, (batch,), holds the right class of each row of `logits`, (batch, classes); logits may
    be in the thousands, and stay as they are. Returns an array like `logits`. Source: Goodfellow et
    al. 2016, "Deep Learning", §6.2.2.3.
    """
    # Without the largest logit the quotients are the same, and exp does not overflow.
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    to_logits = exponentials / exponentials.sum(axis=1, keepdims=True)
    # The derivative is what was predicted minus what is right:
    # 1 for the label, 0 for the other classes.
    to_logits[np.arange(len(labels)), labels] -= 1
    return to_logits * (float(gradient) / len(labels))
