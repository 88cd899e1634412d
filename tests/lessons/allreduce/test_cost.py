"""What all-reduces cost: the formulas against what the trace counts, predicted times by hand, and the fit."""

import itertools

import numpy as np
import pytest

import course_utils as course
from course_utils.errors import CourseError
from course_utils.lessons.allreduce import cost_model, shared_links
from course_utils.lessons.allreduce.algorithms import ALGORITHMS
from course_utils.lessons.allreduce.async_ring import segments_per_block
from course_utils.lessons.allreduce.cost_model import Network, bytes_per_rank
from course_utils.lessons.allreduce.network_fit import fit_network
from course_utils.lessons.allreduce.shared_links import predicted_seconds
from workshop.bench import allreduce as bench
from workshop.bench.allreduce_ranks import measure_gamma, ring_and_mpi, sweep

SMALL_SEGMENTS = 1000  # bytes
LINE = Network(alpha=1e-3, beta=1e-8, gamma=1e-9)


@pytest.fixture(scope="module")
def eight_ranks():
    ranks = course.start(8)
    yield ranks
    ranks.stop()


def in_small_segments(comm, vector):
    """The asynchronous ring, with segments that short vectors have several of."""
    from course_utils.lessons.allreduce.async_ring import async_ring_allreduce

    async_ring_allreduce(comm, vector, 1000)


@pytest.mark.parametrize("world_size", range(1, 9))
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_the_trace_counts_what_the_formulas_say(eight_ranks, algorithm, world_size):
    for length in (0, 1, 5, world_size, 103, 2001):
        run = eight_ranks.run(ALGORITHMS[algorithm], np.zeros(length, np.float32), ranks=world_size)
        counted = (run.rounds, run.messages, run.bytes_per_rank)
        assert counted == (
            cost_model.rounds(algorithm, world_size),
            cost_model.messages(algorithm, world_size),
            bytes_per_rank(algorithm, world_size, length),
        ), f"length {length}"


@pytest.mark.parametrize("world_size", range(1, 9))
@pytest.mark.parametrize("dtype", ["float64", "int16"])
def test_the_trace_counts_segments_too(eight_ranks, world_size, dtype):
    for length in (0, 1, 250, 1001, 3001):
        vector = np.zeros(length, dtype)
        run = eight_ranks.run(in_small_segments, vector, ranks=world_size)
        segments = segments_per_block(length, vector.itemsize, world_size, SMALL_SEGMENTS)
        name = "asynchronous ring"
        assert run.rounds == cost_model.rounds(name, world_size, segments)
        assert run.messages == cost_model.messages(name, world_size, segments)
        assert run.bytes_per_rank == bytes_per_rank(name, world_size, length, vector.itemsize)
        assert max((event.bytes for event in run.events), default=0) <= SMALL_SEGMENTS


def test_names_are_those_of_the_algorithms():
    assert tuple(ALGORITHMS) == cost_model.NAMES
    for function in (cost_model.rounds, cost_model.messages, cost_model.combined_bytes):
        with pytest.raises(CourseError, match="There is no algorithm 'butterfly'. Take one of gather-broadcast, tree"):
            function("butterfly", 4, *[1] * (function is cost_model.combined_bytes))
    for network in (LINE, Network(1e-3, 1e-8, shared=True)):
        with pytest.raises(CourseError, match="There is no algorithm"):
            predicted_seconds("butterfly", 4, 100, network)


@pytest.mark.parametrize(
    ("algorithm", "world_size", "latencies", "vectors", "combined"),
    [
        ("gather-broadcast", 4, 6, 6, 3),
        ("tree", 4, 4, 4, 2),
        ("tree", 5, 6, 6, 3),
        ("recursive doubling", 8, 3, 3, 3),
        ("recursive doubling", 6, 4, 4, 3),
        ("halving-doubling", 8, 6, 2 * 7 / 8, 7 / 8),
        ("halving-doubling", 5, 6, 2 + 2 * 3 / 4, 1 + 3 / 4),
        ("ring", 8, 14, 2 * 7 / 8, 7 / 8),
        ("ring", 3, 4, 2 * 2 / 3, 2 / 3),
        ("asynchronous ring", 4, 6, 2 * 3 / 4, 3 / 4),
    ],
)
def test_times_on_a_line_are_the_textbook_formulas(algorithm, world_size, latencies, vectors, combined):
    nbytes = 1e6
    wanted = latencies * LINE.alpha + vectors * nbytes * LINE.beta + combined * nbytes * LINE.gamma
    assert predicted_seconds(algorithm, world_size, nbytes, LINE) == pytest.approx(wanted)


def test_one_rank_alone_needs_no_time():
    for algorithm, shared in itertools.product(ALGORITHMS, (False, True)):
        assert predicted_seconds(algorithm, 1, 1e6, Network(1e-3, 1e-8, 1e-9, shared=shared)) == 0


def test_short_vectors_want_few_rounds_and_long_ones_few_bytes():
    for world_size in (4, 8, 64):
        assert bench.fastest(world_size, 4, LINE) == "recursive doubling"
        assert bench.fastest(world_size, 1e8, LINE) in ("ring", "halving-doubling", "asynchronous ring")


def test_segments_are_taken_by_size():
    network = Network(1.0, 0.1, segments=((0, 1.0, 0.5), (100, 20.0, 0.1)))
    assert [network.message_seconds(size) for size in (0, 99.9, 100, 200)] == pytest.approx([1.0, 50.95, 30.0, 40.0])


# --- links that are shared ------------------------------------------------------------------------------------------


def test_a_root_that_sends_three_vectors_at_once_waits_for_their_latency_once():
    network = Network(1e-3, 1e-8, shared=True, overhead=1e-4)
    wanted = 2 * (1e-3 + 2 * 1e-4 + 3 * 1e6 * 1e-8)
    assert predicted_seconds("gather-broadcast", 4, 1e6, network) == pytest.approx(wanted)


def test_symmetric_algorithms_take_the_same_time_where_links_are_shared():
    shared = Network(1e-3, 1e-8, 1e-9, shared=True)
    for algorithm in ("recursive doubling", "halving-doubling", "ring", "asynchronous ring"):
        for world_size in (2, 4, 8):
            times = [predicted_seconds(algorithm, world_size, 1e6, network) for network in (LINE, shared)]
            assert times[0] == pytest.approx(times[1])


def test_what_a_rested_link_lets_through_at_once_it_does_not_give_twice():
    free = 50_000
    network = Network(1e-3, 1e-7, 0.0, ((0, 1e-3, 0.0), (free, 1e-3 - free * 1e-7, 1e-7)), shared=True)
    once = shared_links.chain_seconds([(1, 100_000)], network)
    assert once == pytest.approx(1e-3 + 50_000 * 1e-7)
    refilled = network.alpha / network.beta  # while the message's latency passes
    again = shared_links.chain_seconds([(1, 100_000)] * 2, network) - once
    assert again == pytest.approx(1e-3 + (100_000 - refilled) * 1e-7)


@pytest.mark.parametrize(
    ("world_size", "gathered", "handed_out"),
    [
        (2, [1], [1]),
        (3, [2], [2]),
        (4, [1, 1], [2, 1]),
        (5, [2, 1], [3, 1]),
        (6, [2, 1], [3, 1]),
        (8, [1] * 3, [3, 2, 1]),
    ],
)
def test_vectors_that_share_a_link_in_a_tree(world_size, gathered, handed_out):
    assert shared_links.gathering(world_size) == gathered
    assert shared_links.handing_out(world_size) == handed_out


# --- fit and bandwidth ----------------------------------------------------------------------------------------------

SIZES = [1, 100, 1000, 4000, 16_000, 60_000, 250_000, 1_000_000, 4_000_000, 16_000_000]


def test_three_protocols_are_found_again():
    true = Network(1e-6, 2e-10, segments=((0, 1e-6, 1e-9), (4000, 5e-6, 5e-10), (250_000, 5e-5, 2e-10)))
    seconds = [true.message_seconds(size) for size in SIZES]
    fitted = fit_network(SIZES, seconds)
    assert [start for start, *_ in fitted.segments] == [start for start, *_ in true.segments]
    assert np.allclose(fitted.segments, true.segments, rtol=1e-6)
    assert (fitted.alpha, fitted.beta) == pytest.approx((1e-6, 2e-10))
    assert bench.median_error(fitted, SIZES, seconds) < 1e-9
    assert bench.median_error(fit_network(SIZES, seconds, segments=1), SIZES, seconds) > 0.01


def test_one_segment_is_the_line_of_lesson_4():
    from course_utils.lessons.messages.ping_pong import fit_alpha_beta

    seconds = [1e-6 + 1e-9 * size * (1 + size % 3 / 10) for size in SIZES]
    fitted = fit_network(SIZES, seconds, segments=1)
    assert (fitted.alpha, fitted.beta) == fit_alpha_beta(SIZES, seconds)
    assert fitted.segments == ()


@pytest.mark.parametrize("sizes", [[1, 2, 3, 4, 5], [1, 2, 3, 3, 4, 5], [6, 5, 4, 3, 2, 1]])
def test_a_fit_needs_sizes_that_rise(sizes):
    with pytest.raises(CourseError, match="3 segments need at least 6 sizes, rising"):
        fit_network(sizes, [1.0] * len(sizes))


def test_adding_takes_time():
    assert measure_gamma(1 << 16, 3) > 0


# --- the bench ------------------------------------------------------------------------------------------------------


def test_the_bench_measures_everything_by_turns(eight_ranks):
    taken = eight_ranks.run(sweep, ALGORITHMS, (4, 1024), 2, (1, 1000), ranks=3).results[0]
    measured = {(name, size) for name in (*ALGORITHMS, "memcpy") for size in (4, 1024)}
    assert set(taken) == measured | {("message", 1), ("message", 1000), ("further message", 1)}
    assert all(len(seconds) == 2 and min(seconds) >= 0 for seconds in taken.values())
    names = [row.metric for row in bench.sweep_rows(taken, "here")]
    assert names[0] == "gather-broadcast, 4 B, here" and len(names) == len(measured)


def test_the_bench_knows_what_was_predicted_rightly():
    network = Network(1e-3, 1e-8, 0.0, ((0, 1e-3, 1e-8),), shared=True)
    taken = {
        (name, size): [predicted_seconds(name, 4, size, network)] for name in ALGORITHMS for size in bench.LINK_SIZES
    }
    error, simulated, strictly, share = bench.prediction_rows({4: taken}, network, "here")
    assert error.value == pytest.approx(0, abs=1e-6) and error.ok and simulated.ok
    assert (share.value, share.runs, share.ok) == (100, len(bench.LINK_SIZES), True)
    assert strictly.value == 100 and strictly.metric == "named: strictly the fastest, here"
    assert share.metric == "named: the fastest or tied with it, here"
    taken["recursive doubling", 4] = [1.01 * taken["recursive doubling", 4][0]]
    _, _, strictly, share = bench.prediction_rows({4: taken}, network, "here")
    assert share.value == 100 and strictly.value < 100
    taken["recursive doubling", 4] = [1.0]
    assert not bench.prediction_rows({4: taken}, network, "here")[3].ok


def test_links_are_found_again_from_messages_of_two_nodes_and_empty_ones_of_all():
    burst, work = 40_000, 5e-5
    lines = ((0.0, 1.3e-3, 0.0), (burst, 1.3e-3 - burst * 4e-8, 4e-8))
    turns = [bench.turns_of(size) for size in bench.MESSAGES]
    true = Network(1.3e-3, 4e-8, segments=lines, shared=True)
    pair = [shared_links.chain_seconds([(1, n)] * t, true) / t for n, t in zip(bench.MESSAGES, turns, strict=True)]
    taken = {("message", n): [seconds + 2 * work] for n, seconds in zip(bench.MESSAGES, pair, strict=True)}
    busy = {("message", n): [1.3e-3 + 8 * work] for n in bench.SHORTEST}
    found = bench.fitted({**taken, ("further message", 1): [1e-4]}, 8, busy, 1e-10)
    assert (found.alpha, found.beta, found.work) == pytest.approx((1.3e-3, 4e-8, work), rel=0.02)
    assert found.segments[1][0] == pytest.approx(burst, rel=0.1)
    assert (found.gamma, found.overhead, found.shared) == (1e-10, 1e-4, True)


def test_links_need_three_sizes_that_rise():
    with pytest.raises(CourseError, match="at least 3 sizes, rising"):
        bench.fit_links([1, 1, 2], [1.0] * 3, [2] * 3)


def test_a_computer_that_emulates_all_nodes_works_for_every_message():
    calm, busy = (Network(1e-3, 1e-8, shared=True, work=work) for work in (0.0, 1e-5))
    for algorithm in ALGORITHMS:
        more = predicted_seconds(algorithm, 8, 1e4, busy) - predicted_seconds(algorithm, 8, 1e4, calm)
        assert more == pytest.approx(1e-5 * cost_model.messages(algorithm, 8))


def test_rings_are_compared_with_mpi_in_pairs_of_ranks(eight_ranks):
    for pair in (0, 1):
        results = eight_ranks.run(ring_and_mpi, 4000, 2, pair, ranks=4).results
        assert [result is not None for result in results] == [rank // 2 == pair for rank in range(4)]
        assert {name: len(seconds) for name, seconds in results[2 * pair].items()} == {"ring": 2, "MPI": 2}


@pytest.mark.parametrize(("nbytes", "text"), [(4, "4 B"), (1024, "1 KB"), (1 << 18, "256 KB"), (3 << 19, "1.5 MB")])
def test_sizes_in_words(nbytes, text):
    assert bench.size_text(nbytes) == text
