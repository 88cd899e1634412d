"""A device mesh: every rank at one place along each axis, and the groups of ranks that talk to each other."""

from collections.abc import Mapping
from itertools import product
from math import prod

from course_utils.errors import CourseError


def mesh_groups(sizes: Mapping[str, int]) -> dict[str, list[list[int]]]:
    """Return the groups of each axis of a mesh.

    Two ranks are in the same group along an axis if their coordinates on all other axes are equal.
    Ranks are numbered along the last axis first, as in `torch.distributed.init_device_mesh`.

    Args:
        sizes: ranks along each axis, by name, {"data": 2, "pipeline": 2, "tensor": 2}.

    Returns:
        For each axis a list of its groups. A group is a list of ranks in rising order, and the
        groups are ordered by their first rank. Every rank is in exactly one group of each axis.

    Raises:
        CourseError: the mesh has no axis, or an axis has fewer than one rank.

    Source: Narayanan et al. 2021, §3.1; Shazeer et al. 2018, "Mesh-TensorFlow", §2.
    """
    if not sizes or min(sizes.values()) < 1:
        raise CourseError(f"A mesh has at least one axis, each of at least one rank, not {dict(sizes)}.")
    groups: dict[str, list[list[int]]] = {}
    for axis in sizes:
        found: dict[tuple[int, ...], list[int]] = {}
        for rank, coordinates in enumerate(product(*map(range, sizes.values()))):
            # Ranks whose coordinates agree on all other axes are a group of this axis.
            # `product` counts along the last axis first, as the ranks are numbered.
            elsewhere = tuple(at for name, at in zip(sizes, coordinates, strict=True) if name != axis)
            found.setdefault(elsewhere, []).append(rank)
        groups[axis] = sorted(found.values())
    return groups


def place_of(rank: int, sizes: Mapping[str, int]) -> dict[str, int]:
    """Where a rank is on each axis.

    Raises:
        CourseError: the mesh has no such rank.
    """
    if not 0 <= rank < prod(sizes.values()):
        raise CourseError(f"Rank {rank} is not on a mesh of {prod(sizes.values())} ranks.")
    coordinates = {}
    for axis in reversed(sizes):
        rank, coordinates[axis] = divmod(rank, sizes[axis])
    return {axis: coordinates[axis] for axis in sizes}
