"""The sentences of lesson 9 are chosen by the numbers."""

from types import SimpleNamespace

from course_utils.lessons.model_parallel import sentences


def test_idle_time_is_told_beside_the_prediction() -> None:
    said = sentences.idle_text(0.76, ranks=4)
    assert said == "4 ranks, one at a time: 76\N{NO-BREAK SPACE}% of their time is idle; (4 − 1)/4 was predicted"
    assert "more than the predicted" in sentences.idle_text(0.9, ranks=4)
    assert "less than the predicted" in sentences.idle_text(0.5, ranks=4)


def test_the_cheapest_cut_is_named() -> None:
    said = sentences.cuts_text({"by batch": 720, "by column": 20, "by row": 10}, examples=16)
    assert said == "16 examples: by row moves least, 10 B; by batch 72 times as much"
    assert sentences.cuts_text({"by batch": 10, "by row": 10}, 16) == "16 examples: all cuts move 10 B"


def test_where_the_batch_becomes_the_cheapest_cut() -> None:
    def said(*batch: float) -> str:
        return sentences.sizes_text([8, 32, 128], {"by batch": batch, "by row": [4, 16, 64], "by column": [8, 32, 128]})

    assert said(20, 20, 20) == "Fewest bytes: cut the weights; from 128 examples on, the batch"
    assert said(99, 99, 99).startswith("Up to 128 examples")
    assert said(1, 1, 1).startswith("From 8 examples on")


def test_what_two_ways_move_is_told() -> None:
    runs = {
        "a": SimpleNamespace(collectives=2, bytes_per_rank=[8]),
        "b": SimpleNamespace(collectives=1, bytes_per_rank=[4]),
    }
    assert sentences.collectives_text(runs) == "Collectives: a 2 (8 B), b 1 (4 B)"


def test_copies_that_drift_are_told_from_those_that_do_not() -> None:
    apart = {"nowhere": [0.0, 0.0], "inside": [0.0, 0.0], "everywhere": [0.01, 0.02]}
    said = sentences.apart_text(apart)
    assert (
        said == "Own dropout seeds everywhere: copies are 0.02 apart after 2 steps; nowhere and inside: they are equal"
    )
    assert sentences.apart_text({"nowhere": [0.0]}) == "Own dropout seeds nowhere: they are equal"


def test_what_cutting_the_sequence_brings() -> None:
    nearly = "As many bytes sent, or nearly; 25\N{NO-BREAK SPACE}% less of activations kept"
    assert sentences.sequence_text((100, 4), (107, 3)) == nearly
    assert sentences.sequence_text((100, 4), (150, 4)) == "1.5 times the bytes sent; no less of activations kept"
