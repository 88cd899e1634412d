"""How long an all-reduce takes, as formulas in α, β, γ, P and n. `cost_model` does the same for measured networks."""


def allreduce_time(
    algorithm: str,
    P: int,
    n: float,
    alpha: float,
    beta: float,
    gamma: float,
) -> float:
    """Return how many seconds an all-reduce of n bytes takes on P ranks.

    A message of k bytes takes alpha + beta · k seconds, and adding k bytes takes gamma · k. The
    time of an all-reduce is the sum over its rounds, each of which begins when the one before
    has ended. P need not be a power of two.

    Args:
        algorithm: "through one rank", "tree", "recursive doubling", "halving-doubling" or "ring".
        P: number of ranks; a single rank needs no time.
        n: bytes of the vector. Its parts need not be whole numbers of bytes.
        alpha: latency, in seconds per message.
        beta: seconds per byte of a message.
        gamma: seconds per byte that is added.

    Source: Thakur, Rabenseifner, Gropp 2005, "Optimization of Collective Communication
    Operations in MPICH", §4.
    """
    message, adding = alpha + beta * n, gamma * n  # of a whole vector
    if algorithm == "through one rank":
        return (P - 1) * (2 * message + adding)
    if algorithm == "tree":
        levels = (P - 1).bit_length()  # log₂ P, rounded up
        return levels * (2 * message + adding)
    if algorithm == "ring":
        return (P - 1) * (2 * (alpha + beta * n / P) + gamma * n / P)
    doublings = P.bit_length() - 1  # log₂ P, rounded down
    active = 2**doublings
    # Surplus ranks send their vectors, which are added, and get the result at the end.
    folding = 2 * message + adding if active < P else 0.0
    if algorithm == "recursive doubling":
        return folding + doublings * (message + adding)
    # Halves, quarters, eighths, …: together (active − 1) / active of the vector on each way.
    share = (active - 1) / active
    return folding + 2 * doublings * alpha + share * (2 * beta * n + gamma * n)
