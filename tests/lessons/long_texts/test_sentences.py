"""What lesson 17 says of a run, chosen by the numbers, and its picture of the mask."""

import pytest
import torch

from course_utils.errors import CourseError
from course_utils.lessons.long_texts import pictures
from course_utils.lessons.long_texts.sentences import (
    BUSY,
    added_by_sending,
    difference_text,
    exposed_share,
    exposed_text,
    growth_text,
    longest_title,
    needed_text,
    packed_text,
    sends_text,
    transfer_text,
    work_text,
)
from course_utils.lessons.long_texts.zigzag import in_order, zigzag
from course_utils.words import percent

TOLD = "ring", "in turn", "alone"


def test_growth_is_that_of_the_last_two_lengths() -> None:
    kept = {"all scores": [1, 5, 20], "in blocks": [1, 2, 4]}
    told = growth_text([256, 512, 1024], kept)
    assert told == "From 512 to 1,024 tokens, the bytes grow by a factor of 4 (all scores) and 2 (in blocks)"


def test_work_is_that_of_the_busiest_rank() -> None:
    assert work_text({"in order": [1, 3, 5, 7], "zig-zag": [4, 4, 4, 4]}).endswith("7 (in order) and 1 (zig-zag)")


@pytest.mark.parametrize(("ring", "share"), [(1.0, 0.0), (0.95, 0.0), (1.5, 0.5), (2.0, 1.0), (2.05, 1.0)])
def test_what_the_ring_adds_is_a_share_of_what_sending_in_turn_adds(ring, share) -> None:
    seconds = {"alone": [1.0, 1.1], "in turn": [2.0, 2.1], "ring": [ring, ring + 0.1]}
    assert exposed_share(seconds, *TOLD) == share
    found = exposed_text(seconds, *TOLD)
    assert found == f"Sending during the computation adds {percent(1 - share)} less time than sending after it"
    assert min(bar["added by sending"] for bar in added_by_sending(seconds, "alone").values()) >= 0


@pytest.mark.parametrize("ring", [0.7, 2.3])
def test_a_share_that_cannot_be_is_not_judged(ring) -> None:
    """The ring can't wait longer than a program that hides nothing, nor be faster than the computing alone."""
    seconds = {"alone": [1.0, 1.1], "in turn": [2.0, 2.1], "ring": [ring, ring + 0.1]}
    assert exposed_share(seconds, *TOLD) is None
    assert exposed_text(seconds, *TOLD) == BUSY


def test_where_nobody_waits_nothing_is_said_of_hiding() -> None:
    seconds = {"alone": [1.0], "in turn": [1.0], "ring": [1.0]}
    assert exposed_share(seconds, *TOLD) is None
    assert exposed_text(seconds, *TOLD) == BUSY


def test_nothing_is_said_where_most_runs_scatter() -> None:
    seconds = {"alone": [1.0, 1.0, 1.0], "in turn": [2.0, 5.0, 9.0], "ring": [1.5, 4.0, 8.0]}
    assert exposed_share(seconds, *TOLD) is None and exposed_text(seconds, *TOLD) == BUSY


def test_a_transfer_is_compared_with_a_round() -> None:
    assert transfer_text(0.042, 0.119).endswith("so every transfer can be hidden.")
    assert transfer_text(0.025, 0.01).endswith("so 15 ms of every transfer stay exposed.")


def test_who_sends_less_is_named() -> None:
    assert sends_text(100, 100, 2) == "2 ranks: ring 100 B, Ulysses 100 B; both send the same"
    assert sends_text(50, 100, 4).endswith("the ring sends 50% of what Ulysses sends")
    assert sends_text(100, 50, 4).endswith("Ulysses sends 50% of what the ring sends")


def test_the_worst_rank_counts() -> None:
    told = difference_text([{"output": 1e-16, "q": 2e-15}, {"output": 3e-14, "q": 0.0}])
    assert told == "2 ranks: the output and the gradients of q differ from those of one process by at most 3e-14"


def test_a_mask_says_what_it_shows() -> None:
    picture = pictures.masks({"in order": in_order(64, 4), "zig-zag": zigzag(64, 4)}, "A title")
    assert "A title" in picture.alt_text
    assert "zig-zag: ranks 0 to 3 have 25%, 25%, 25%, 25% of the pairs" in picture.alt_text
    with pytest.raises(CourseError, match="one text"):
        pictures.masks({"one": in_order(8, 2), "other": [torch.arange(9)]}, "A title")


def test_a_pack_says_how_busy_the_busiest_rank_is() -> None:
    assert packed_text({"in order": [1, 3], "per document": [2, 2]}).endswith("1.5 (in order) and 1 (per document)")


def test_balance_costs_keys_of_other_ranks() -> None:
    needed = needed_text({"in order": 1.4, "per document": 1.1}, {"in order": 0.25, "per document": 0.8})
    assert needed == "“per document” has the best balance and needs 80% of the keys of other ranks, “in order” only 25%"
    both = needed_text({"in order": 1.4, "zig-zag": 1.1}, {"in order": 0.25, "zig-zag": 0.2})
    assert both == "“zig-zag” has the best balance and needs the fewest keys of other ranks"


def test_the_longest_texts_are_compared_with_one_rank() -> None:
    told = longest_title({"all scores": 2.83, "in blocks": 8.0}, 8)
    assert (
        told
        == "On 8 ranks instead of one, a text may be 2.8 times as long (all scores) and 8 times as long (in blocks)"
    )


def shares_of(ranks: int, tokens: int = 2) -> list[torch.Tensor]:
    """Keys and values of each rank, all different."""
    return list(torch.arange(2 * ranks * tokens).reshape(2, 1, 1, ranks * tokens, 1).chunk(ranks, dim=3))


def test_a_ring_is_drawn_as_it_went_and_a_wrong_one_is_named() -> None:
    shares = shares_of(3)
    held = [[shares[(rank - step) % 3] for step in range(3)] for rank in range(3)]
    picture = pictures.ring_blocks(held, shares)
    assert "In 3 rounds, the keys and values of all 3 ranks visit each rank" in picture.alt_text
    assert "round 2: rank 0: k1, v1; rank 1: k2, v2; rank 2: k0, v0" in picture.alt_text
    held[1][2] = held[1][1]
    assert "Not every rank" in pictures.ring_blocks(held, shares).alt_text
    held[1][2] = -shares[0] - 1  # nobody's
    assert pictures.owner_of(held[1][2], shares) == -1
    assert "Not every rank" in pictures.ring_blocks(held, shares).alt_text


def test_an_all_gather_is_drawn_as_it_went() -> None:
    shares = shares_of(3)
    everything = torch.cat(shares, dim=3)
    assert "After one all-gather, each rank holds" in pictures.gathered_blocks([everything] * 3, shares).alt_text
    lacking = torch.cat([shares[0], shares[0], shares[2]], dim=3)
    told = pictures.gathered_blocks([everything, lacking, everything], shares).alt_text
    assert told.startswith("Not every rank holds")


def test_a_mask_of_a_pack_shows_its_documents() -> None:
    starts = torch.tensor([0] * 4 + [4] * 12)
    ways = {"in order": in_order(16, 2), "zig-zag": zigzag(16, 2), "again": in_order(16, 2)}
    picture = pictures.masks(ways, "A pack", starts)
    assert "in order: ranks 0 to 1 have 23%, 77% of the pairs" in picture.alt_text  # 20 and 68 of 88
