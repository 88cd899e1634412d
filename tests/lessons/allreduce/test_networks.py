"""Networks of numbers: virtual ranks take as long on them as the formulas say, and queue where links are shared."""

from functools import partial

import numpy as np
import pytest

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.algorithms import ALGORITHMS
from course_utils.lessons.allreduce.allreduce_times import work_per_message
from course_utils.lessons.allreduce.cost_model import NAMES, Network, adding_switch_time, allreduce_time
from course_utils.lessons.allreduce.double_tree import double_tree_allreduce
from course_utils.lessons.allreduce.hierarchical import hierarchical_allreduce
from course_utils.lessons.allreduce.network_topology import (
    alpha_of,
    ring_seconds,
    switch,
    two_level,
)
from course_utils.ranks.virtual.virtual_ranks import VirtualRanks

ALPHA, BETA = 1e-3, 1e-6
ONE_LINK = {"between": (5e-6, 8e-11), "inside": (2e-6, 1e-11), "overhead": 5e-7}


def on_nodes(comm, vector, node_size):
    hierarchical_allreduce(comm, vector, node_size)


WAYS = {**ALGORITHMS, "double tree": double_tree_allreduce, "hierarchical": partial(on_nodes, node_size=8)}


def add_up(comm, allreduce, length):
    vector = np.ones(length, np.float32)
    allreduce(comm, vector)
    assert (vector == comm.size).all()


def seconds_of(name, topology, nbytes):
    """Virtual seconds of an all-reduce of this many bytes; of long vectors a thousandth is really added."""
    scale = 1000 if nbytes >= 1e6 else 1
    return VirtualRanks(topology.world_size, topology, scale).run(add_up, WAYS[name], int(nbytes / 4 / scale)).seconds


def swapped(comm, partner, nbytes=1000):
    other = partner(comm.rank)
    comm.Sendrecv(np.ones(nbytes, np.uint8), dest=other, recvbuf=np.empty(nbytes, np.uint8), source=other)


@pytest.mark.parametrize("world_size", [2, 4, 8])
@pytest.mark.parametrize("name", ["recursive doubling", "halving-doubling", "ring", "asynchronous ring"])
def test_behind_links_of_their_own_times_are_those_of_the_formulas(name, world_size) -> None:
    seconds = seconds_of(name, switch(world_size, ALPHA, BETA), 4000 * world_size)
    assert seconds == pytest.approx(allreduce_time(name, world_size, 4000 * world_size, Network(ALPHA, BETA)))


def test_messages_at_once_delay_each_other_where_one_computer_emulates_all_nodes() -> None:
    work = 1e-4
    for name, rounds_of_four in {"recursive doubling": 2, "ring": 6}.items():
        calm, busy = (seconds_of(name, switch(4, ALPHA, 0.0, work=w), 16) for w in (0.0, work))
        assert busy - calm == pytest.approx(rounds_of_four * 3 * work)  # three others in each round
    assert seconds_of("gather-broadcast", switch(2, ALPHA, 0.0, work=work), 4) == pytest.approx(2 * ALPHA)


def test_the_work_of_a_message_is_measured(four_ranks) -> None:
    measured = four_ranks.run(work_per_message, 2).results
    assert len(set(measured)) == 1 and 0 <= measured[0] < 1
    assert four_ranks.run(work_per_message, 2, ranks=2).results == [0.0, 0.0]


def test_a_root_takes_in_one_vector_after_the_other() -> None:
    seconds = seconds_of("gather-broadcast", switch(5, ALPHA, BETA), 4000)
    assert seconds == pytest.approx(2 * (ALPHA + 4 * 4000 * BETA))


def test_what_a_rank_sends_leaves_over_its_link_one_after_the_other() -> None:
    tree = seconds_of("tree", switch(4, ALPHA, BETA), 4000)
    assert tree == pytest.approx(4 * ALPHA + 4 * 4000 * BETA)  # first to rank 2, which passes the sum on


def test_ranks_of_a_node_queue_for_its_link() -> None:
    def seconds(distance):
        nodes = two_level(4, 2, (0.0, BETA), (0.0, 0.0))
        return VirtualRanks(4, nodes).run(swapped, lambda rank: rank ^ distance).seconds

    assert seconds(1) == 0
    assert seconds(2) == pytest.approx(2 * 1000 * BETA)


def test_alpha_can_depend_on_the_size() -> None:
    alpha = alpha_of([0, 1000, 2000], [0.001, 0.004, 0.005], 1e-6)
    assert alpha(np.array([0, 500, 1000, 9000])) == pytest.approx([0.001, 0.002, 0.003, 0.003])
    assert seconds_of("recursive doubling", switch(2, alpha, 1e-6), 1000) == pytest.approx(0.004)


def test_overhead_is_a_part_of_alpha_and_one_rank_needs_no_time() -> None:
    with_overhead = switch(4, ALPHA, BETA, overhead=ALPHA / 4)
    plain = seconds_of("ring", switch(4, ALPHA, BETA), 4000)
    assert seconds_of("ring", with_overhead, 4000) == pytest.approx(plain)
    assert all(seconds_of(name, switch(1, ALPHA, BETA), 4000) == 0 for name in NAMES)


@pytest.mark.parametrize("world_size", [7, 16])
def test_a_double_tree_is_faster_than_a_tree_for_a_long_vector_only(world_size) -> None:
    def seconds(name, nbytes):
        network = switch(world_size, 5e-6, 2e-11)
        length = nbytes // 4
        return VirtualRanks(world_size, network).run(add_up, WAYS[name], length).seconds

    assert seconds("double tree", 8_000_000) < seconds("tree", 8_000_000)
    assert seconds("double tree", 4) > seconds("tree", 4)


def test_a_switch_that_adds_takes_one_vectors_time_whatever_the_ranks() -> None:
    network = Network(ALPHA, BETA)
    assert adding_switch_time(4000, network) == pytest.approx(ALPHA + 4000 * BETA)
    least = min(seconds_of(name, switch(64, ALPHA, BETA), 4000) for name in NAMES)
    assert adding_switch_time(4000, network) < least / 2


@pytest.mark.parametrize("world_size", [16, 64, 128])
@pytest.mark.parametrize(
    "make",
    [
        lambda size: two_level(size, 8, **ONE_LINK),
        lambda size: two_level(size, 8, **ONE_LINK, cards=8),
        lambda size: switch(size, 5e-6, 2e-11, overhead=5e-7),
    ],
    ids=["one link", "a card each", "a switch"],
)
def test_the_rings_formula_holds_on_any_network(make, world_size) -> None:
    topology = make(world_size)
    length = 1000 * world_size  # blocks that are equal
    run = VirtualRanks(world_size, topology, 1e6 / length).run(add_up, ALGORITHMS["ring"], length)
    assert run.seconds == pytest.approx(ring_seconds(topology, 4e6), rel=0.1)


def test_two_levels_beat_a_flat_ring_on_many_nodes() -> None:
    nodes = two_level(128, 8, **ONE_LINK)
    assert seconds_of("hierarchical", nodes, 51_200) < seconds_of("ring", nodes, 51_200) / 1.5


def test_cards_are_shared_by_neighbours() -> None:
    """Two ranks of a node that send out at once wait for each other only if they share a card."""

    def seconds(cards, pairs):
        nodes = two_level(8, 4, (0.0, BETA), (0.0, 0.0), cards=cards)
        return VirtualRanks(8, nodes).run(send_in_pairs, dict(pairs)).seconds

    for cards, together in ((1, 2), (2, 1), (4, 1)):
        assert seconds(cards, [(0, 4), (3, 7)]) == pytest.approx(together * 1000 * BETA)
    for cards, together in ((1, 2), (2, 2), (4, 1)):
        assert seconds(cards, [(0, 4), (1, 5)]) == pytest.approx(together * 1000 * BETA)


def send_in_pairs(comm, receivers):
    message = np.zeros(1000, np.uint8)
    if comm.rank in receivers:
        comm.Send(message, dest=receivers[comm.rank])
    for sender, receiver in receivers.items():
        if comm.rank == receiver:
            comm.Recv(message, source=sender)


def test_networks_that_cannot_be_are_rejected() -> None:
    with pytest.raises(CourseError, match="cannot share 3 network cards"):
        two_level(8, 4, (1, 1), (1, 1), cards=3)
    with pytest.raises(CourseError, match="do not fill"):
        two_level(6, 4, (1, 1), (1, 1))
    with pytest.raises(CourseError, match="on a network of 8"):
        VirtualRanks(4, switch(8, 1, 1))
