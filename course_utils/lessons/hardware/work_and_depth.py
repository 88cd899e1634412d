"""Work and depth: how many tasks there are, how many have to wait for each other, and what p workers can make of that.

Sources: Brent 1974, "The parallel evaluation of general arithmetic expressions"; Ben-Nun & Hoefler 2018, "Demystifying
parallel and distributed deep learning", for the layers.
"""

import math
import time
from collections.abc import Collection, Hashable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter


def brent_bounds(
    needs: Mapping[Hashable, Collection[Hashable]],
    processors: int,
) -> tuple[float, float]:
    """Return the two bounds for the time that p processors take for the tasks: max(W/p, D) and
    W/p + D.

    The work W is the number of tasks, and the depth D is the number of tasks on the longest path.
    Each task takes one unit of time. The upper bound holds for every schedule in which no processor
    is idle while a task is ready.

    Args:
        needs: for each task, the tasks that have to be done before it. Tasks are listed in any
            order, and there are no cycles. It may be empty, and it must not be changed. No path
            has more than a few hundred tasks, but there may be far too many paths to follow each.
        processors: p, at least 1.

    Source: Brent 1974, lemma 2; Graham 1969 for processors that are never idle without need.
    """
    done, depth = set(), 0
    while len(done) < len(needs):  # a round does all the tasks that are ready, on enough processors
        done |= {task for task, others in needs.items() if done.issuperset(others)}
        depth += 1
    share = len(needs) / processors
    return max(share, depth), share + depth


def chain_sum(n: int) -> dict[int, list[int]]:
    """Return the n − 1 additions of n numbers as a chain, in which each needs the one before."""
    return {task: [task - 1] if task else [] for task in range(n - 1)}


def tree_sum(n: int) -> dict[int, list[int]]:
    """Return the n − 1 additions of n numbers as a tree, ⌈log₂ n⌉ deep: first neighbours, then sums of neighbours."""
    needs: dict[int, list[int]] = {}
    row: list[int | None] = [None] * n  # the task that makes each number; None: it is given
    while len(row) > 1:
        pairs = list(zip(row[::2], row[1::2], strict=False))
        made = [len(needs) + index for index in range(len(pairs))]
        needs |= {
            task: [needed for needed in pair if needed is not None] for task, pair in zip(made, pairs, strict=True)
        }
        row = [*made, *row[2 * len(pairs) :]]
    return needs


def run_graph(needs: Mapping[Hashable, Collection[Hashable]], workers: int, unit: float) -> float:
    """Return the seconds that so many threads take for the tasks, each emulated by sleeping for `unit` seconds.

    No thread is idle while a task is ready. Sleeping needs no core, so there may be more workers than cores.
    """
    order = TopologicalSorter(needs)
    order.prepare()
    began, running = time.perf_counter(), {}
    with ThreadPoolExecutor(workers) as pool:
        while order.is_active():
            running |= {pool.submit(time.sleep, unit): task for task in order.get_ready()}
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            order.done(*(running.pop(future) for future in done))
    return time.perf_counter() - began


def layer_work_depth(kind: str, x_shape: Sequence[int], y_shape: Sequence[int], kernel: int = 1) -> tuple[float, int]:
    """Return work and depth of a layer's forward pass, in operations, as in the table of Ben-Nun & Hoefler.

    All products are computed at once, in one step. Then each output is a sum of k terms, in a tree ⌈log₂ k⌉ deep.

    Args:
        kind: "conv", "linear", "norm", "relu" or "pool".
        x_shape, y_shape: of the input and of the output, (N, C, H, W) or (N, C).
        kernel: side of the window of a convolution or of pooling.
    """
    outputs, inputs, n, c_in = math.prod(y_shape), math.prod(x_shape), x_shape[0], x_shape[1]
    if kind in ("conv", "linear"):
        terms = c_in * kernel**2
        return outputs * (2 * terms - 1), 1 + log2_up(terms)
    if kind == "norm":  # two sums over batch and pixels, then four operations on each number
        terms = n * math.prod(x_shape[2:])
        return 7 * inputs, 5 + log2_up(terms)
    if kind == "pool":
        return outputs * (kernel**2 - 1), log2_up(kernel**2)
    return inputs, 1


def backward_work_depth(
    kind: str, x_shape: Sequence[int], y_shape: Sequence[int], kernel: int = 1
) -> tuple[float, int]:
    """Return work and depth of a layer's backward pass, in operations: gradients of its inputs and of its weights.

    Both need only the gradient of the output, so the deeper of the two decides. In a convolution or a linear layer both
    are products, as in the forward pass. The gradient of a weight is a sum over examples and pixels, and that of an
    input is a sum over the outputs that it was used for (at the border there are fewer, but all are counted).

    Args:
        kind, x_shape, y_shape, kernel: as for `layer_work_depth`.

    Source: Ben-Nun & Hoefler 2018, table of operators.
    """
    inputs, c_in, c_out = math.prod(x_shape), x_shape[1], y_shape[1]
    if kind in ("conv", "linear"):
        weights, places = c_out * c_in * kernel**2, math.prod(y_shape) // c_out
        terms = c_out * kernel**2
        work = weights * (2 * places - 1) + inputs * (2 * terms - 1)
        return work, 1 + max(log2_up(places), log2_up(terms))
    if kind == "norm":  # a product, two sums over batch and pixels, a mean, then three operations on each number
        return 7 * inputs, 5 + log2_up(inputs // c_in)
    return inputs, 1


def log2_up(n: int) -> int:
    """Return ⌈log₂ n⌉, the depth of a tree over n leaves."""
    return (n - 1).bit_length()
