"""Find the rank whose weights are wrong, although nothing has crashed: replicas must be equal, bit by bit."""

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from course_utils.errors import CourseError

if TYPE_CHECKING:
    from mpi4py import MPI


def find_the_liar(comm: "MPI.Intracomm", weights: np.ndarray) -> list[int]:
    """Return the ranks whose weights differ from those of the majority, in ascending order.

    All ranks get the same list, which is empty if all weights are equal. Weights are equal if all
    their bits are, so 0.0 and -0.0 are different, and a NaN is equal to itself. The ranks exchange
    checksums, and none of them sends more than 1,000 bytes.

    Args:
        weights: this rank's, of any shape and dtype, the same on all ranks; not changed.

    Raises:
        CourseError: on all ranks, if no checksum belongs to more than half of them, because then it
            can't be known which are right.
    """
    # Python's hash() is no use here: it may differ from process to process.
    checksum = hashlib.sha256(weights.tobytes()).digest()
    checksums = comm.allgather(checksum)
    most_common, votes = Counter(checksums).most_common(1)[0]
    if 2 * votes <= comm.size:
        raise CourseError(f"No weights are shared by more than half of the {comm.size} ranks.")
    return [rank for rank, other in enumerate(checksums) if other != most_common]


def flip_bit(weights: np.ndarray, index: int, bit: int) -> None:
    """Flip a bit of one of the weights, in place.

    Args:
        weights: (n,), float64.
        bit: 0 for the last bit of the fraction, up to 51 for its first one; 52 to 62 are the exponent, 63 is the sign.
    """
    weights.view(np.uint64)[index] ^= np.uint64(1 << bit)
