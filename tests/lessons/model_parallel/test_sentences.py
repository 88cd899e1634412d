"""The sentences of lesson 9 are chosen by the numbers."""

from types import SimpleNamespace

from course_utils.lessons.model_parallel import sentences


def test_idle_time_is_compared_with_the_calculation() -> None:
    said = sentences.idle_text(0.76, ranks=4)
    wanted = "4 ranks working in turn are idle for 76% of the time, close to (4 − 1)/4"
    assert said == wanted
    assert "more than the calculated" in sentences.idle_text(0.9, ranks=4)
    assert "less than the calculated" in sentences.idle_text(0.5, ranks=4)


def test_where_the_batch_cut_becomes_the_cheapest() -> None:
    def said(*batch: float) -> str:
        others = {"row cut": [4, 16, 64], "column cut": [8, 32, 128]}
        return sentences.sizes_text([8, 32, 128], {"batch cut": batch, **others})

    assert said(20, 20, 20) == "At 32 rows the row cut sends the least, and at 128 rows the batch cut"
    assert said(99, 99, 99).startswith("Up to 128 rows, cutting W")
    assert said(1, 1, 1).startswith("From 8 rows on, cutting the batch")


def test_how_many_collectives_each_run_needs() -> None:
    runs = {
        "row then column": SimpleNamespace(collectives=2),
        "b": SimpleNamespace(collectives=1),
    }
    assert sentences.collectives_text(runs) == "Row then column: 2 collectives. B: 1 collective"


def test_copies_that_drift_are_told_from_those_that_do_not() -> None:
    apart = {"nowhere": [0.0, 0.0], "inside": [0.0, 0.0], "everywhere": [0.01, 0.02]}
    assert sentences.apart_text(apart) == (
        "With separate dropout seeds everywhere, copies differ by 0.02 after 2 steps; "
        "with equal dropout seeds or separate dropout seeds only inside attention, they stay equal"
    )
    assert sentences.apart_text({"nowhere": [0.0]}) == "With equal dropout seeds, they stay equal"


def test_what_cutting_the_sequence_brings() -> None:
    more = "7% more bytes are sent, and the activations take 25% less memory"
    assert sentences.sequence_text((100, 4), (107, 3)) == more
    fewer = "10% fewer bytes are sent, and the activations take no less memory"
    assert sentences.sequence_text((100, 4), (90, 4)) == fewer
