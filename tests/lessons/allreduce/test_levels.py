"""Two levels, the ring with something wrong in it, and measuring all-reduces: on real ranks."""

import numpy as np
import pytest

from course_utils.data import digits_arrays
from course_utils.errors import CourseError, RankError
from course_utils.lessons.allreduce import sentences
from course_utils.lessons.allreduce.allreduce_times import measure, medians, message_seconds, training_seconds
from course_utils.lessons.allreduce.pictures import (
    crossing_sizes,
    crossings,
    fastest_of,
    measured_crossings,
    over_ranks,
    right_and_wrong,
)
from course_utils.lessons.allreduce.ring import ring_allreduce
from course_utils.lessons.allreduce.suspicious_ring import WEIGHTS, suspicious_ring, train_digits


@pytest.fixture
def ranks(four_ranks):
    return four_ranks


def compared(comm, node_size, cases):
    """The lengths and dtypes whose sum differs from MPI's own."""
    import numpy as np
    from mpi4py import MPI

    from course_utils.lessons.allreduce.hierarchical import hierarchical_allreduce

    wrong = []
    for length, dtype in cases:
        ours = np.random.default_rng([length, comm.rank]).integers(0, 5, length).astype(dtype)
        theirs = ours.copy()
        hierarchical_allreduce(comm, ours, node_size)
        comm.Allreduce(MPI.IN_PLACE, theirs)
        if not np.array_equal(ours, theirs):
            wrong.append((length, dtype))
    return wrong


@pytest.mark.parametrize(("size", "node_size"), [(4, 1), (4, 2), (4, 4), (3, 1), (3, 3), (2, 1), (1, 1)])
def test_two_levels_are_mpis_sum(ranks, size, node_size) -> None:
    cases = [(n, "float32") for n in (0, 1, 2, 3, 5, 1001)] + [(7, "int64"), (9, "float64")]
    assert ranks.run(compared, node_size, cases, ranks=size).results == [[]] * size


def test_ranks_that_do_not_fill_the_nodes_are_rejected(ranks) -> None:
    with pytest.raises(RankError, match="4 ranks do not fill nodes of 3"):
        ranks.run(compared, 3, [(4, "float32")])


def test_trainings_are_timed_over_the_width_of_the_hidden_layer(ranks) -> None:
    data, ways = digits_arrays(), {"ring": ring_allreduce, "suspicious": suspicious_ring}
    run = ranks.run(training_seconds, ways, data, [8, 16], steps=2, runs=3)
    assert all(set(result) == set(ways) for result in run.results)
    assert all(len(seconds) == 3 and min(seconds) > 0 for by_width in run.results[0].values() for seconds in by_width)
    wide = ranks.run(train_digits, data, ring_allreduce, epochs=1, hidden=16, steps=2).results
    assert all(len(weights) == 75 * 16 + 10 and np.array_equal(weights, wide[0][1]) for _, weights in wide)


def filled(comm, function, length):
    vector = np.full(length, comm.rank + 1, np.float32)
    function(comm, vector)
    return vector


def test_the_suspicious_ring_is_right_for_4096_numbers_and_wrong_for_the_weights(ranks) -> None:
    assert all((vector == 10).all() for vector in ranks.run(filled, suspicious_ring, 4096).results)
    caught = ranks.run(filled, suspicious_ring, WEIGHTS)
    assert all(0.4 < (vector != 10).mean() < 0.45 for vector in caught.results)
    assert caught.rounds == 6 and max(caught.bytes_per_rank) < 6 * WEIGHTS


def test_it_costs_seven_to_ten_percent_of_the_digits(ranks) -> None:
    right, wrong = (ranks.run(train_digits, digits_arrays(), way).results for way in (ring_allreduce, suspicious_ring))
    lost = right[0][0] - np.mean([accuracy for accuracy, _ in wrong])
    assert right[0][0] > 0.92 and 0.07 <= lost <= 0.10
    assert all(np.array_equal(weights, right[0][1]) for _, weights in right)


def no_sum(comm, vector):
    vector += 1


def test_measuring_counts_every_run_and_rejects_a_wrong_sum(ranks) -> None:
    taken = measure(ranks, {"ring": ring_allreduce}, [0, 400], runs=3, world_size=2)
    assert [len(runs) for runs in taken["ring"]] == [3, 3] and min(map(min, taken["ring"])) > 0
    assert medians({"one": [[1.0, 9.0, 2.0]]}) == {"one": [2.0]}
    assert len(ranks.run(message_seconds, [1, 1000], runs=1).results[0]) == 2
    with pytest.raises(RankError, match="nothing does not give the sum"):
        measure(ranks, {"nothing": no_sum}, [400])


# --- in words, and in pictures --------------------------------------------------------------------------------------


def test_findings_follow_the_numbers() -> None:
    assert sentences.formula_text([0.1, 0.2, 0.1, 0.1, 0.1], {"ours": 0.11, "theirs": 0.2}).endswith(
        "ours is nearer in 4 of 5 runs"
    )
    assert sentences.bus_text(4, 1e6, 1.5) == "1 MB/s"
    assert "10\N{NO-BREAK SPACE}% at worst: right" in sentences.error_text([1.1, 1.0], [1.0, 1.0])
    assert sentences.error_text([1.0, 1.0, 2.0], [1.0, 1.0, 1.0]).endswith("not in every case")
    assert "do not trust it here" in sentences.error_text([2.0, 2.0], [1.0, 1.0])
    measured = {"2 ranks": {"ring": [[9.0], [1.0]]}, "4 ranks": {"ring": [[9.0], [3.0]]}}
    assert sentences.kept_text(measured) == "From 2 ranks to 4 ranks: ring keeps 50\N{NO-BREAK SPACE}%"
    assert "70,000 times" in sentences.rounding_text({"tree": 1e-6}, 0.07)


def test_a_crossing_is_found_and_said() -> None:
    sizes = [1e3, 1e4, 1e5]
    (crossing,) = crossing_sizes(sizes, {"a": [1.0, 1.0, 10.0], "b": [2.0, 2.0, 2.0]})
    assert (crossing.before, crossing.after) == ("a", "b") and 1e4 < crossing.size < 1e5
    measured = {"4 ranks": {"a": [[1.0, 1.1]] * 3, "b": [[2.0, 2.1]] * 3}}
    predicted = {"4 ranks": {"a": lambda n: n / 1e4, "b": lambda n: 2.0}}
    picture = crossings(sizes, measured, predicted)
    assert "b fastest from 20 KB (predicted), no change (measured)" in picture.alt_text
    with pytest.raises(CourseError, match="two sizes"):
        crossings([1e3], measured, predicted)
    beyond = {"4 ranks": {"a": lambda n: n / 1e5, "b": lambda n: 1.2}}
    assert "4 ranks: a is fastest throughout" in crossings(sizes, measured, beyond).alt_text, "not at a size measured"


def test_noise_is_no_crossing() -> None:
    sizes = [1e3, 1e4, 1e5]
    clear = {"a": [[1.0] * 3, [1.0] * 3, [9.0] * 3], "b": [[2.0] * 3, [1.02] * 3, [3.0] * 3]}
    (crossing,) = measured_crossings(sizes, clear)
    assert (crossing.before, crossing.after) == ("a", "b") and crossing.size == pytest.approx(1e4)
    noisy = {"a": [[1.0, 2.0, 1.0], [1.0] * 3], "b": [[1.1, 1.0, 0.9], [2.0] * 3]}
    assert measured_crossings(sizes[:2], noisy) == []
    assert fastest_of({"a": [1.0, 2.0, 1.0], "b": [1.1, 1.0, 0.9]}) is None


def test_pictures_tell_in_words_what_they_show() -> None:
    picture = over_ranks([2, 4], {"ring": [1.0, 2.0]}, "Simulated", y="time")
    assert "ring: 1 s to 2 s" in picture.alt_text
    with pytest.raises(CourseError, match="two numbers of ranks"):
        over_ranks([2], {"ring": [1.0]}, "Simulated", y="time")
    right = np.arange(8.0)
    assert "Every number is right" in right_and_wrong([right], right, [0, 4, 8]).alt_text
    assert "rank 1: 1 of 8" in right_and_wrong([right, np.append(right[:7], 0)], right, [0, 4, 8]).alt_text
