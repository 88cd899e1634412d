"""Reverse-mode automatic differentiation of arrays: a graph of operations, which the chain rule walks backwards.

Source: Baydin et al. 2018, "Automatic differentiation in machine learning", §3.2.
"""

from collections.abc import Callable, Sequence

import numpy as np

from course_utils.errors import CourseError


class Node:
    """An array that knows its `parents`, and the `rule` that turns its `gradient` into a part for each of them."""

    def __init__(self, value, name: str = "", parents: Sequence["Node"] = (), rule: Callable | None = None):
        value = np.asarray(value)
        self.value = value if value.dtype.kind == "f" else value.astype(np.float64)
        self.name, self.parents, self.rule = name, tuple(parents), rule
        self.gradient: np.ndarray | None = None

    def backward(self) -> None:
        """Find the gradient of this single number with respect to every node that it was computed from."""
        if self.value.size != 1:
            raise CourseError(f"backward starts at a single number, not at shape {self.value.shape}. Take .sum().")
        order = topological_order(self)
        for node in order:
            node.gradient = np.full_like(node.value, 1 if node is self else 0)
        for node in reversed(order):
            parts = node.rule(node.gradient) if node.rule else ()
            for parent, part in zip(node.parents, parts, strict=True):
                parent.gradient = parent.gradient + part  # a node that was used twice gets two parts

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
        """Return the sum along `axis`, which the result no longer has, or the sum of all entries."""
        shape, kept = self.value.shape, self.value.sum(axis=axis, keepdims=True).shape
        return Node(self.value.sum(axis=axis), "sum", (self,), lambda g: (np.broadcast_to(g.reshape(kept), shape),))

    def mean(self, axis: int | tuple[int, ...] | None = None) -> "Node":
        """Return the mean along `axis`, computed as a sum and a product."""
        total = self.sum(axis)
        return total * (total.value.size / self.value.size)

    def relu(self) -> "Node":
        """Return the larger of each entry and 0. The slope at 0 is taken to be 0."""
        return self._each("relu", np.maximum(self.value, 0), slope=self.value > 0)

    def tanh(self) -> "Node":
        """Return the hyperbolic tangent of each entry."""
        return self._each("tanh", np.tanh(self.value), slope=1 - np.tanh(self.value) ** 2)

    def exp(self) -> "Node":
        """Return e to the power of each entry."""
        return self._each("exp", np.exp(self.value), slope=np.exp(self.value))

    def log(self) -> "Node":
        """Return the natural logarithm of each entry."""
        return self._each("log", np.log(self.value), slope=1 / self.value)

    def reshape(self, *shape: int) -> "Node":
        """Return the same numbers in a different shape."""
        return Node(self.value.reshape(shape), "reshape", (self,), lambda g: (g.reshape(self.value.shape),))

    def transpose(self, *axes: int) -> "Node":
        """Return the array with its axes in the given order, or reversed if no order is given."""
        order = axes or tuple(reversed(range(self.value.ndim)))
        return Node(self.value.transpose(order), "transpose", (self,), lambda g: (g.transpose(np.argsort(order)),))

    def _each(self, name: str, value: np.ndarray, slope: np.ndarray) -> "Node":
        return Node(value, name, (self,), lambda g: (g * slope,))

    def _node(self, other) -> "Node":
        return other if isinstance(other, Node) else Node(np.asarray(other, dtype=self.value.dtype), "number")


def topological_order(last: Node) -> list[Node]:
    """Return a list of `last` and all nodes that it was computed from, each of them once and after
    all of its parents.

    `last` itself is at the end. There may be several such orders, and any of them will do. The only
    thing you need to know about a node is `node.parents`. There may be far too many paths to follow
    each of them, but no path has more than a few hundred nodes. The nodes must not be changed.
    """
    # A node is put on the stack twice. The first time, its parents are put on top of it.
    # The second time, they have all been listed, and the node is listed, too.
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
    """Sum the gradient over the axes along which broadcasting repeated an array of this shape."""
    added = gradient.ndim - len(shape)
    repeated = [added + axis for axis, side in enumerate(shape) if side == 1]
    return gradient.sum(axis=(*range(added), *repeated)).reshape(shape)


def matmul_backward(
    gradient: np.ndarray,
    a: np.ndarray,
    b: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return the gradients of `a` and `b`, given the `gradient` of `a @ b`.

    The shape of `a` is (…, rows, inner) and that of `b` is (…, inner, columns). The dots are the
    axes of a stack of matrices, if there is one. They broadcast, so one array may have fewer of
    them, or length 1 where the other has more. `gradient` has the shape of `a @ b`. All three have
    the same dtype, and so have the two arrays that are returned. The given arrays are not changed.

    Source: Giles 2008, "Matrix derivative results", §2.2.1.
    """
    # Entry (i, j) of `a` was multiplied by row j of `b`, and the products went into row i of the
    # result. So its gradient is row i of `gradient` times row j of `b`, summed.
    to_a = gradient @ b.swapaxes(-1, -2)
    to_b = a.swapaxes(-1, -2) @ gradient
    # If broadcasting used a matrix for a whole stack, it gets a part from each use.
    return unbroadcast(to_a, a.shape), unbroadcast(to_b, b.shape)


def softmax_cross_entropy(logits: Node, labels: np.ndarray) -> Node:
    """Return the mean over the rows of −log softmax(logits)[label], for logits of shape (batch, classes)."""
    shifted = logits.value - logits.value.max(axis=1, keepdims=True)  # the same softmax without overflow
    loss = (np.log(np.exp(shifted).sum(axis=1)) - shifted[np.arange(len(labels)), labels]).mean()
    return Node(loss, "cross entropy", (logits,), lambda g: (softmax_cross_entropy_backward(g, logits.value, labels),))


def softmax_cross_entropy_backward(
    gradient: float,
    logits: np.ndarray,
    labels: np.ndarray,
) -> np.ndarray:
    """Return the gradient of `logits`, given the `gradient` of the cross entropy.

    The cross entropy is the mean over the rows of −log softmax(logits)[label]. If it is the loss
    itself, its `gradient` is 1.0. `logits` has the shape (batch, classes), and `labels`, of shape
    (batch,), holds the number of the right class of each row, in any integer type. There is at
    least one row. Logits can be in the thousands. They are not changed, and the result has their
    shape and dtype.

    Source: Goodfellow et al. 2016, "Deep Learning", §6.2.2.3.
    """
    # Subtracting the largest logit of a row leaves the quotients as they are and prevents overflow.
    exponentials = np.exp(logits - logits.max(axis=1, keepdims=True))
    to_logits = exponentials / exponentials.sum(axis=1, keepdims=True)
    # The derivative is the probability minus the truth, which is 1 for the label and otherwise 0.
    to_logits[np.arange(len(labels)), labels] -= 1
    return to_logits * (float(gradient) / len(labels))
