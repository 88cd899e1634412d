"""The simulator of lesson 5: tables say what the algorithms really send, times follow the formulas, links queue."""

import numpy as np
import pytest

from course_utils.errors import CourseError
from course_utils.lessons.allreduce import message_tables
from course_utils.lessons.allreduce.algorithms import ALGORITHMS
from course_utils.lessons.allreduce.allreduce_times import work_per_message
from course_utils.lessons.allreduce.cost_model import (
    NAMES,
    Network,
    adding_switch_time,
    allreduce_time,
    bytes_per_rank,
    rounds,
)
from course_utils.lessons.allreduce.double_tree import double_tree_allreduce
from course_utils.lessons.allreduce.message_simulator import play, simulate_allreduce
from course_utils.lessons.allreduce.message_tables import SCHEDULES, Schedule
from course_utils.lessons.allreduce.network_topology import alpha_of, fat_tree, ring, switch, two_level
from course_utils.lessons.allreduce.pictures import simulated_timeline

ALPHA, BETA = 1e-3, 1e-6
LENGTH = 840  # divides by 1 to 8


def summed(schedule: Schedule, world_size: int) -> np.ndarray:
    """Play a schedule with numbers for blocks: for each rank, how many ranks' vectors its own one holds at last.

    Only schedules of whole vectors can be played so.
    """
    held = np.eye(world_size, dtype=int)
    for dest, adds in zip(schedule.dest, schedule.adds[:, 0], strict=True):
        before = held.copy()
        for source in np.flatnonzero(dest >= 0):
            held[dest[source]] = held[dest[source]] + before[source] if adds else before[source]
    return held


@pytest.mark.parametrize("world_size", range(1, 9))
@pytest.mark.parametrize("name", ["gather-broadcast", "tree", "recursive doubling"])
def test_a_schedule_of_whole_vectors_adds_every_vector_once_everywhere(name, world_size) -> None:
    assert (summed(SCHEDULES[name](world_size, 1.0), world_size) == 1).all()


@pytest.mark.parametrize("world_size", range(2, 9))
@pytest.mark.parametrize("name", NAMES)
def test_schedules_send_what_the_formulas_say(name, world_size) -> None:
    schedule = SCHEDULES[name](world_size, 4 * LENGTH)
    assert len(schedule.dest) == rounds(name, world_size)
    assert np.allclose(schedule.nbytes.sum(axis=0), bytes_per_rank(name, world_size, LENGTH))


def messages_of(run) -> dict:
    """How many bytes each rank sent to each other rank, in all."""
    sent: dict = {}
    for event in run.events:
        if event.kind == "send":
            sent[event.rank, event.peer] = sent.get((event.rank, event.peer), 0) + event.bytes
    return sent


def add_up(comm, function):
    import numpy as np

    function(comm, np.zeros(840, np.float32))


def on_nodes_of_two(comm, vector):
    from course_utils.lessons.allreduce.hierarchical import hierarchical_allreduce

    hierarchical_allreduce(comm, vector, 2)


def test_schedules_are_those_of_the_functions_on_ranks(four_ranks) -> None:
    cases = [(name, function, SCHEDULES[name], size) for name, function in ALGORITHMS.items() for size in (3, 4)]
    cases += [("double tree", double_tree_allreduce, SCHEDULES["double tree"], size) for size in (3, 4)]
    cases.append(("hierarchical", on_nodes_of_two, lambda p, n: message_tables.hierarchical(p, n, 2), 4))
    for name, function, schedule, size in cases:
        table, expected = schedule(size, 4 * LENGTH), {}
        for number, source in zip(*np.nonzero(table.dest >= 0), strict=True):
            pair = (int(source), int(table.dest[number, source]))
            expected[pair] = expected.get(pair, 0) + table.nbytes[number, source]
        assert messages_of(four_ranks.run(add_up, function, ranks=size)) == pytest.approx(expected), (name, size)


def test_messages_at_once_delay_each_other_where_one_computer_emulates_all_nodes() -> None:
    work = 1e-4
    for name, rounds_of_four in {"recursive doubling": 2, "ring": 6}.items():
        calm, busy = (simulate_allreduce(name, 4, 4, switch(4, ALPHA, 0.0, work=w)).seconds for w in (0.0, work))
        assert busy - calm == pytest.approx(rounds_of_four * 3 * work)  # three others in each round
    alone = simulate_allreduce("gather-broadcast", 2, 4, switch(2, ALPHA, 0.0, work=work)).seconds
    assert alone == pytest.approx(2 * ALPHA)


def test_the_work_of_a_message_is_measured(four_ranks) -> None:
    measured = four_ranks.run(work_per_message, 2).results
    assert len(set(measured)) == 1 and 0 <= measured[0] < 1
    assert four_ranks.run(work_per_message, 2, ranks=2).results == [0.0, 0.0]


@pytest.mark.parametrize("world_size", [2, 4, 8])
@pytest.mark.parametrize("name", ["recursive doubling", "halving-doubling", "ring"])
def test_behind_links_of_their_own_times_are_those_of_the_formulas(name, world_size) -> None:
    gamma = 1e-7
    seconds = simulate_allreduce(name, world_size, 4000, switch(world_size, ALPHA, BETA, gamma=gamma)).seconds
    assert seconds == pytest.approx(allreduce_time(name, world_size, 4000, Network(ALPHA, BETA, gamma)))


def test_a_root_takes_in_one_vector_after_the_other() -> None:
    seconds = simulate_allreduce("gather-broadcast", 5, 4000, switch(5, ALPHA, BETA)).seconds
    assert seconds == pytest.approx(2 * (ALPHA + 4 * 4000 * BETA))


def test_messages_sent_at_the_same_time_share_their_link() -> None:
    tree = simulate_allreduce("tree", 4, 4000, switch(4, ALPHA, BETA)).seconds
    assert tree == pytest.approx(4 * ALPHA + 5 * 4000 * BETA)  # rank 0's two messages end together


def test_ranks_of_a_node_queue_for_its_link() -> None:
    def swap(near):
        topology = two_level(4, 2, (0.0, BETA), (0.0, 0.0))
        partner = np.arange(4) ^ (1 if near else 2)
        return play(Schedule.of(4, [(np.arange(4), partner, 1000, True)]), topology)

    assert swap(near=True) == 0
    assert swap(near=False) == pytest.approx(2 * 1000 * BETA)


def test_far_messages_take_every_cable_of_a_ring() -> None:
    one = Schedule.of(8, [(np.arange(8), (np.arange(8) + 1) % 8, 1000, True)])
    across = Schedule.of(8, [(np.arange(8), (np.arange(8) + 4) % 8, 1000, True)])
    assert play(one, ring(8, ALPHA, BETA)) == pytest.approx(ALPHA + 1000 * BETA)
    assert play(across, ring(8, ALPHA, BETA)) == pytest.approx(ALPHA + 4 * 1000 * BETA)


def test_a_thin_fat_tree_is_a_bottleneck_only_between_leaves() -> None:
    def seconds(name, oversubscription):
        topology = fat_tree(32, 8, ALPHA, BETA, oversubscription=oversubscription)
        return simulate_allreduce(name, 32, 32_000, topology).seconds

    assert seconds("ring", 4) == pytest.approx(seconds("ring", 1))
    assert seconds("recursive doubling", 4) > 1.3 * seconds("recursive doubling", 1)


def test_alpha_can_depend_on_the_size() -> None:
    alpha = alpha_of([0, 1000, 2000], [0.001, 0.004, 0.005], 1e-6)
    assert alpha(np.array([0, 500, 1000, 9000])) == pytest.approx([0.001, 0.002, 0.003, 0.003])
    seconds = simulate_allreduce("recursive doubling", 2, 1000, switch(2, alpha, 1e-6)).seconds
    assert seconds == pytest.approx(0.004)


def test_overhead_is_a_part_of_alpha_and_one_rank_needs_no_time() -> None:
    with_overhead = switch(4, ALPHA, BETA, overhead=ALPHA / 4)
    seconds = simulate_allreduce("ring", 4, 4000, with_overhead).seconds
    assert seconds == pytest.approx(simulate_allreduce("ring", 4, 4000, switch(4, ALPHA, BETA)).seconds)
    assert all(simulate_allreduce(name, 1, 4000, switch(1, ALPHA, BETA)).seconds == 0 for name in NAMES)


@pytest.mark.parametrize("world_size", [2, 7, 16])
def test_a_double_tree_is_faster_than_a_tree_for_a_long_vector_only(world_size) -> None:
    def seconds(name, nbytes):
        return simulate_allreduce(name, world_size, nbytes, switch(world_size, 5e-6, 2e-11)).seconds

    assert seconds("double tree", 8e6) < seconds("tree", 8e6) * (1 if world_size == 2 else 0.7)
    assert seconds("double tree", 4) == pytest.approx(seconds("tree", 4), rel=0.6)


def test_a_switch_that_adds_takes_one_vectors_time_whatever_the_ranks() -> None:
    network = Network(ALPHA, BETA)
    assert adding_switch_time(4000, network) == pytest.approx(ALPHA + 4000 * BETA)
    least = min(simulate_allreduce(name, 64, 4000, switch(64, ALPHA, BETA)).seconds for name in NAMES)
    assert adding_switch_time(4000, network) < least / 2


def test_a_thousand_ranks_and_more_rounds_than_ranks() -> None:
    topology = two_level(1024, 8, (5e-6, 8e-11), (2e-6, 1e-11), overhead=5e-7)
    flat = simulate_allreduce("ring", 1024, 1e6, topology)
    levels = simulate_allreduce("hierarchical", 1024, 1e6, topology, node_size=8)
    assert flat.rounds == 2046 and levels.rounds == 2 * 7 + 2 * 127
    assert levels.seconds < flat.seconds / 2


def test_what_is_simulated_says_so() -> None:
    result = simulate_allreduce("ring", 4, 4000, switch(4, ALPHA, BETA))
    assert repr(result).startswith("<simulated, not run: ring, 4 KB, 4 ranks at one switch: ")
    picture = simulated_timeline(result)
    assert "24 messages in 6 rounds" in picture.alt_text
    assert any("Simulated, not run" in text.get_text() for text in picture.texts)
    with pytest.raises(CourseError, match="do not fit in a picture"):
        simulated_timeline(simulate_allreduce("tree", 64, 4000, switch(64, ALPHA, BETA)))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("bus", 4, 8, switch(4, 1, 1)), "No algorithm 'bus': \"gather-broadcast\""),
        (("hierarchical", 4, 8, switch(4, 1, 1)), "node_size="),
        (("ring", 4, 8, switch(8, 1, 1)), "on a network of 8"),
        (("hierarchical", 4, 8, switch(4, 1, 1), 3), "do not fill nodes of 3"),
    ],
)
def test_what_cannot_be_simulated_is_said(arguments, words) -> None:
    with pytest.raises(CourseError, match=words):
        simulate_allreduce(*arguments)


def test_networks_that_cannot_be_are_rejected() -> None:
    for make in (lambda: two_level(6, 4, (1, 1), (1, 1)), lambda: fat_tree(6, 4, 1, 1)):
        with pytest.raises(CourseError, match="do not fill"):
            make()
