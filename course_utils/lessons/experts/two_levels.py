"""All-to-all on two levels: first among the ranks of a node, then between nodes, in few and large messages."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import torch
import torch.distributed as dist

from course_utils.errors import CourseError
from course_utils.lessons.experts.all_to_all import all_to_all
from course_utils.lessons.hybrid_and_sharded.device_mesh import mesh_groups
from course_utils.trace.events import Event


class Levels(NamedTuple):
    """This rank's groups: the ranks of its node, and the ranks at the same position on all nodes."""

    node: dist.ProcessGroup
    across: dist.ProcessGroup


def levels(node_size: int) -> Levels:
    """Return the groups if rank r is on node r // node_size. Every rank has to call it, because all make all groups.

    Raises:
        CourseError: the ranks do not fill the nodes.
    """
    ranks, rank, own = dist.get_world_size(), dist.get_rank(), {}
    if node_size < 1 or ranks % node_size:
        raise CourseError(f"{ranks} ranks do not fill nodes of {node_size}. Choose a divisor of {ranks}.")
    for axis, groups in mesh_groups({"across": ranks // node_size, "node": node_size}).items():
        for members in groups:
            made = dist.new_group(members)
            if rank in members:
                own[axis] = made
    return Levels(**own)


def two_level_all_to_all(blocks: torch.Tensor, groups: Levels, exchange: Callable = all_to_all) -> torch.Tensor:
    """Send block s of every rank to rank s, with the same result as one all-to-all of all ranks.

    Inside a node, each rank gives the rank at position l whatever it has for the ranks at position l of any node. Then
    ranks at the same position of different nodes exchange what they have collected. The same bytes cross the link of a
    node as in one all-to-all. But each of the g ranks of a node sends N − 1 messages to the N − 1 other nodes, instead
    of g · (N − 1).

    Args:
        blocks: (P, …), all of the same size, such as those of experts with a capacity, filled or not.
        exchange: `all_to_all`, or `all_to_all_by_messages`, whose messages can be counted.

    Returns:
        (P, …), in the order of the ranks that they come from.

    Source: Hwang et al. 2022, "Tutel", two-dimensional hierarchical all-to-all; lesson 5 for all-reduce.
    """
    nodes, positions = dist.get_world_size(groups.across), dist.get_world_size(groups.node)
    by_position = blocks.view(nodes, positions, *blocks.shape[1:]).transpose(0, 1).contiguous()  # (position, node, …)
    inside = exchange(by_position, [1] * positions, [1] * positions, groups.node)
    by_node = inside.transpose(0, 1).contiguous()  # (node, neighbour that it comes from, …)
    return exchange(by_node, [1] * nodes, [1] * nodes, groups.across).view(blocks.shape)


def flat_all_to_all(blocks: torch.Tensor, exchange: Callable = all_to_all) -> torch.Tensor:
    """Do the same in one all-to-all of all ranks."""
    return exchange(blocks, [1] * len(blocks), [1] * len(blocks))


def crossing(events: Iterable[Event], node_size: int, rank: int = 0) -> tuple[int, int]:
    """Return the number of messages that a rank sent to other nodes, and their bytes, counted from the trace."""
    sends = [event for event in events if event.kind == "send" and event.rank == rank]
    away = [event.bytes for event in sends if event.peer // node_size != rank // node_size]
    return len(away), sum(away)
