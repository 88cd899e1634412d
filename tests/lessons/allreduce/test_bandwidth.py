"""Bandwidths as nccl-tests counts them."""

import pytest

from course_utils.errors import CourseError
from course_utils.lessons.allreduce.bandwidth import algorithm_bandwidth, bus_bandwidth
from course_utils.lessons.allreduce.cost_model import Network, allreduce_time


@pytest.mark.parametrize(
    ("operation", "factor"),
    [
        ("all_reduce", 1.5),
        ("reduce_scatter", 0.75),
        ("all_gather", 0.75),
        ("all_to_all", 0.75),
        ("broadcast", 1),
        ("reduce", 1),
        ("send", 1),
    ],
)
def test_bus_bandwidth_is_that_of_nccl_tests(operation: str, factor: float) -> None:
    assert algorithm_bandwidth(1e9, 0.5) == 2e9
    assert bus_bandwidth(operation, 4, 1e9, 0.5) == pytest.approx(2e9 * factor)


def test_a_ring_that_keeps_its_links_busy_has_their_rate_as_bus_bandwidth() -> None:
    network = Network(0.0, 1e-9)
    for world_size in (2, 4, 8):
        seconds = allreduce_time("ring", world_size, 1e6, network)
        assert bus_bandwidth("all_reduce", world_size, 1e6, seconds) == pytest.approx(1e9)


def test_a_rank_alone_sends_nothing_round() -> None:
    assert bus_bandwidth("all_reduce", 1, 1e6, 0.1) == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("gather", 4, 1, 1), "There is no operation 'gather'. Take one of all_reduce, reduce_scatter"),
        (("all_reduce", 0, 1, 1), "all_reduce on 0 ranks: there is one at least"),
        (("all_reduce", 4, 1, 0.0), r"1 bytes in 0.0 s: a time is above zero"),
        (("all_reduce", 4, -1, 1), "bytes are at least 0"),
    ],
)
def test_what_cannot_be_meant_is_rejected(given: tuple, said: str) -> None:
    with pytest.raises(CourseError, match=said):
        bus_bandwidth(*given)
