"""What a collective costs on virtual ranks: what a usual algorithm would take, alone on the network.

P ranks, α + βn for a message of n bytes between the communicator's first and last rank, γ a byte for an operation:

| | seconds | algorithm |
|---|---|---|
| Barrier | ⌈log₂ P⌉ α | dissemination |
| Bcast, Reduce | ⌈log₂ P⌉ (α + βn + γn) | binomial tree; γ for Reduce alone |
| Scatter, Gather | ⌈log₂ P⌉ α + (P − 1) βn | binomial tree; n bytes for each rank |
| Allgather, Reduce_scatter | ⌈log₂ P⌉ α + (P − 1) (β + γ) n | recursive doubling, halving; n bytes for each rank |
| Allreduce, Scan | ⌈log₂ P⌉ (α + βn + γn), or 2 ⌈log₂ P⌉ α + (P − 1)/P (2β + γ) n | doubling, or halving-doubling |
| Alltoall | (P − 1) (α + βn) | pairwise; n bytes for each pair |

Source: Thakur, Rabenseifner and Gropp 2005, "Optimization of Collective Communication Operations in MPICH", section 4.
"""

from collections.abc import Callable


def collective_seconds(algorithm: str, P: int, nbytes: float, message: Callable[[float], float], gamma: float) -> float:
    """Seconds from when the last rank has come until all are done.

    Args:
        algorithm: "barrier", "tree" (Bcast), "reduce", "parts" (Scatter, Gather, Allgather), "reduce_scatter",
            "allreduce", or "pairs" (Alltoall).
        P: ranks that take part.
        nbytes: n in the table of this module.
        message: seconds of a message of so many bytes, α + βn.
        gamma: seconds per byte of the operation.
    """
    levels = (P - 1).bit_length()
    alpha = message(0)

    def beta(size: float) -> float:
        return max(0.0, message(size) - alpha)

    if algorithm == "barrier":
        return levels * alpha
    if algorithm == "tree":
        return levels * message(nbytes)
    if algorithm == "reduce":
        return levels * (message(nbytes) + gamma * nbytes)
    if algorithm == "parts":
        return levels * alpha + beta((P - 1) * nbytes)
    if algorithm == "reduce_scatter":
        return levels * alpha + beta((P - 1) * nbytes) + gamma * (P - 1) * nbytes
    if algorithm == "pairs":
        return (P - 1) * message(nbytes)
    share = (P - 1) / P * nbytes
    doubling = levels * (message(nbytes) + gamma * nbytes)
    return min(doubling, 2 * levels * alpha + 2 * beta(share) + gamma * share)
