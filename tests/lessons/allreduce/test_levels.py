"""Two levels, the ring with something wrong in it, and measuring all-reduces: on real ranks."""

import numpy as np
import pytest

from course_utils.data import digits_arrays
from course_utils.errors import CourseError, RankError
from course_utils.lessons.allreduce import sentences
from course_utils.lessons.allreduce.allreduce_times import measure, medians, message_seconds, training_seconds
from course_utils.lessons.allreduce.double_tree import two_trees
from course_utils.lessons.allreduce.pictures import (
    LinkUse,
    busy_links,
    crossing_sizes,
    crossings,
    fastest_of,
    idle_share,
    link_uses,
    over_ranks,
    right_and_wrong,
    trees_side_by_side,
)
from course_utils.lessons.allreduce.ring import ring_allreduce
from course_utils.lessons.allreduce.suspicious_ring import WEIGHTS, suspicious_ring, train_digits
from course_utils.measuring import BUSY, Compared
from course_utils.trace.events import Event


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


def test_a_formula_that_counts_refute_never_wins() -> None:
    assert sentences.nearer([0.1, 0.11, 0.1], 0.11, 0.2) is sentences.Nearer.OURS
    assert sentences.nearer([0.2, 0.2, 0.19], 0.11, 0.2) is sentences.Nearer.UNCLEAR
    assert sentences.nearer([0.1, 0.2, 0.4], 0.11, 0.2) is sentences.Nearer.BUSY
    right = sentences.formula_text([0.1, 0.11, 0.1], ours=0.11, theirs=0.2)
    assert right.endswith("We measured 100 ms, which is nearer to our formula.")
    assert sentences.formula_text([0.2, 0.2, 0.19], ours=0.11, theirs=0.2).endswith("The counts do.")
    assert sentences.formula_text([0.1, 0.2, 0.4], ours=0.11, theirs=0.2) == f"{BUSY}."


def test_calculated_times_are_trusted_as_far_as_they_are_near() -> None:
    one = [1.0, 1.0, 1.0]
    assert sentences.trust([1.1, 1.0], [one, one]) is sentences.Trust.CLOSE
    assert sentences.trust([1.0, 1.0, 2.0], [one, one, one]) is sentences.Trust.ROUGH
    assert sentences.trust([2.0, 2.0], [one, one]) is sentences.Trust.FAR
    assert sentences.trust([1.0, 1.0], [[1.0, 2.0, 3.0]] * 2) is sentences.Trust.BUSY
    assert "by 10%" in sentences.error_text([1.1, 1.0], [one, one])
    assert sentences.error_text([1.0, 1.0], [[1.0, 2.0, 3.0]] * 2) == f"{BUSY}."


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1.0, 1.0, 1.0], [2.0, 2.1, 2.0], "AGREES"),
        ([1.0, 1.0, 1.0], [1.01, 1.02, 1.0], "NO_DIFFERENCE"),
        ([2.0, 2.1, 2.0], [1.0, 1.0, 1.0], "CONTRADICTS"),
        ([1.0, 3.0, 1.0], [3.0, 1.0, 1.1], "BUSY"),
    ],
)
def test_the_run_chooses_what_is_said_of_two_methods(first, second, expected) -> None:
    pair = Compared(first, second, ("the ring", "the tree"))
    assert sentences.against_model(pair).name == expected
    text = sentences.comparison_text(pair)
    assert (str(pair) in text) == (expected != "NO_DIFFERENCE") and text.endswith(".")
    assert (text == f"{BUSY}.") == (expected == "BUSY")


def test_bandwidth_and_rounding_in_words() -> None:
    assert sentences.bus_text(4, 1e6, 1.5) == "1 MB/s"
    measured = {"2 ranks": {"ring": [[9.0], [1.0]]}, "4 ranks": {"ring": [[9.0], [3.0]]}}
    assert sentences.kept_shares(measured) == {"ring": pytest.approx(0.5)}
    kept = "Of the bus bandwidth on 2 ranks, 4 ranks still have 50% with ring."
    assert sentences.kept_text(measured) == kept
    assert sentences.kept_text({"2 ranks": {"ring": [[1.0, 2.0, 3.0]]}}) == f"{BUSY}."
    assert "70,000 times" in sentences.rounding_text({"tree": 1e-6}, 0.07)


def test_titles_name_the_fastest() -> None:
    assert sentences.ranking_text({"a": [9.0, 1.0], "b": [1.0, 2.0]}, 1024) == "the fastest method on 1,024 ranks is b"
    assert sentences.ranking_text({"a": [2.0], "b": [2.01]}, 8) == "the fastest methods on 8 ranks are a and b"
    alike = {"4 ranks": (("a",), ("b",)), "8 ranks": (("a",), ("b",))}
    both = "On 4 ranks and 8 ranks, a is the fastest for 4 KB and b for 400 KB"
    assert sentences.fastest_text(alike, 4e3, 4e5) == both
    differ = {"4 ranks": (("a",), ("a",)), "8 ranks": (("a", "b"), ("b",)), "2 ranks": (("a", "b"), ("a", "b"))}
    assert sentences.fastest_text(differ, 4e3, 4e5) == (
        "On 4 ranks, a is the fastest at both ends; on 8 ranks, a and b tie for 4 KB, and b is the fastest for "
        "400 KB; on 2 ranks, a and b tie at both ends"
    )
    changes = "According to the formula, the fastest algorithm changes on 4 ranks at 20 KB"
    assert sentences.circles_text({"4 ranks": [2e4], "8 ranks": []}) == changes
    assert "the same algorithm is the fastest" in sentences.circles_text({"4 ranks": []})


def test_a_crossing_is_found_and_named() -> None:
    sizes = [1e3, 1e4, 1e5]
    (crossing,) = crossing_sizes(sizes, {"a": [1.0, 1.0, 10.0], "b": [2.0, 2.0, 2.0]})
    assert (crossing.before, crossing.after) == ("a", "b") and 1e4 < crossing.size < 1e5
    measured = {"4 ranks": {"a": [[1.0, 1.1]] * 3, "b": [[2.0, 2.1]] * 3}}
    predicted = {"4 ranks": {"a": lambda n: n / 1e4, "b": lambda n: 2.0}}
    picture = crossings(sizes, measured, predicted)
    assert picture.alt_text.startswith("On 4 ranks, a is the fastest at both ends. According to the formula")
    assert "changes on 4 ranks at 20 KB" in picture.alt_text
    with pytest.raises(CourseError, match="two sizes"):
        crossings([1e3], measured, predicted)
    beyond = {"4 ranks": {"a": lambda n: n / 1e5, "b": lambda n: 1.2}}
    assert "the same algorithm" in crossings(sizes, measured, beyond).alt_text, "not at a size measured"


def test_noise_makes_nothing_the_fastest() -> None:
    assert fastest_of({"a": [1.0, 2.0, 1.0], "b": [1.1, 1.0, 0.9]}) == ("a", "b")
    assert fastest_of({"a": [1.0, 1.1, 1.0], "b": [2.1, 2.0, 1.9]}) == ("a",)


def test_pictures_tell_in_words_what_they_show() -> None:
    picture = over_ranks([2, 4], {"ring": [1.0, 2.0]}, "Simulated", y="time")
    assert "ring: 1 s to 2 s" in picture.alt_text
    with pytest.raises(CourseError, match="two numbers of ranks"):
        over_ranks([2], {"ring": [1.0]}, "Simulated", y="time")
    right = np.arange(8.0)
    assert "ring gets none of the numbers wrong" in right_and_wrong([right], right, [0, 4, 8], "ring").alt_text
    one_wrong = right_and_wrong([right, np.append(right[:7], 0)], right, [0, 4, 8]).alt_text
    assert "The all-reduce gets 6% of the numbers wrong" in one_wrong
    assert "rank 1: 1 of 8" in one_wrong


def test_a_link_is_idle_while_its_rank_waits() -> None:
    def message(source, dest, start, nbytes, arrival):
        sent = Event(source, "Send", "send", dest, 0, nbytes, start, start)
        return [sent, Event(dest, "Recv", "recv", source, 0, nbytes, 0.0, arrival)]

    # Rank 0 sends two messages at once, so the second waits for the link; rank 1 sends one late.
    events = message(0, 1, 0.0, 10, 11.0) + message(0, 1, 1.0, 10, 21.0) + message(1, 0, 10.0, 10, 21.0)
    uses = link_uses(events, beta=1.0)
    assert uses == [LinkUse(0, 0.0, 10.0), LinkUse(0, 10.0, 20.0), LinkUse(1, 10.0, 20.0)]
    assert idle_share(uses) == pytest.approx(0.25)
    described = busy_links({"whole blocks": uses, "segments": uses[:2]}).alt_text
    assert "The links are idle for 25% of the time with whole blocks" in described


def test_two_trees_are_drawn_with_their_leaves_apart() -> None:
    parents = [[two_trees(rank, 8)[tree][0] for rank in range(8)] for tree in (0, 1)]
    picture = trees_side_by_side(parents)
    assert picture.alt_text.startswith("No rank has to pass sums on in both trees.") and "4 under 0" in picture.alt_text
    assert trees_side_by_side([parents[0]] * 2).alt_text.startswith("Ranks 0, 2, 4 and 6 have to pass sums on in both")
    assert sentences.inner_text([1], 2) == "Rank 1 has to pass sums on in both trees"
