"""The cut through DTensor is ours, and what a pass moves is told as it was counted."""

import numpy as np
import pytest
import torch
from torch.nn.functional import linear

from course_utils.errors import CourseError
from course_utils.lessons.model_parallel import collective_counts, experiments
from course_utils.lessons.model_parallel.differentiable_collectives import sum_over_ranks
from course_utils.lessons.model_parallel.experiments import (
    OWN_SEEDS,
    beside_serial,
    ranks_apart,
    small_batch,
)
from course_utils.lessons.model_parallel.held_parts import find_part, held_matrices
from course_utils.lessons.model_parallel.parallel_block import parallelise_block
from course_utils.lessons.model_parallel.part_panels import what_is_where
from course_utils.lessons.model_parallel.pictures import matrix_cuts
from course_utils.lessons.model_parallel.transformer import Block
from course_utils.trace.events import Event


def with_dtensor(dropout: float) -> dict[str, float]:
    """The block that torch has cut, beside the serial one."""
    from course_utils.lessons.model_parallel.dtensor import parallelize_block, tensor_mesh

    return beside_serial(lambda block: parallelize_block(block, tensor_mesh()), dropout)


@pytest.mark.parametrize("world_size", [1, 2, 4])
@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_dtensor_is_the_serial_block(four_ranks, world_size, dropout) -> None:
    for found in four_ranks.run(with_dtensor, dropout, ranks=world_size, backend="gloo").results:
        assert len(found) == 14
        assert {name: error for name, error in found.items() if not error <= 1e-10} == {}


def beside_ours() -> tuple[float, dict[str, int], dict[str, int]]:
    """The two cut blocks' outputs, and what torch's moves forward and backward."""
    from course_utils.lessons.model_parallel.dtensor import counted, parallelize_block, tensor_mesh

    ours, theirs = experiments.small_block(), experiments.small_block()
    parallelise_block(ours)
    parallelize_block(theirs, tensor_mesh())
    x, weights = small_batch()
    y, forward = counted(lambda: theirs(x))
    _, backward = counted((y * weights).sum().backward)
    return (ours(x) - y).abs().max().item(), forward, backward


def test_dtensor_moves_what_ours_moves(four_ranks) -> None:
    for apart, forward, backward in four_ranks.run(beside_ours, ranks=2, backend="gloo").results:
        assert apart <= 1e-12
        assert forward == backward == {"all_reduce": 2}


def test_heads_that_dtensor_cannot_divide_are_rejected(four_ranks) -> None:
    def odd():
        from course_utils.lessons.model_parallel.dtensor import parallelize_block, tensor_mesh

        parallelize_block(Block(18, 3, 0.0, torch.Generator()), tensor_mesh())

    with pytest.raises(Exception, match="3 heads cannot be divided among 4 ranks"):
        four_ranks.run(odd, backend="gloo")


def test_seeds_of_their_own_behind_the_sum_drive_ranks_apart(four_ranks) -> None:
    for own_seeds in OWN_SEEDS:
        apart = four_ranks.run(ranks_apart, own_seeds, 3, ranks=2, backend="gloo").results[0]
        assert len(apart) == 3
        assert min(apart) > 1e-6 if own_seeds == "everywhere" else max(apart) == 0
    with pytest.raises(CourseError, match="'somewhere'"):
        ranks_apart("somewhere")


def event(name: str, kind: str, start: float, end: float, size: int = 0, rank: int = 0) -> Event:
    return Event(rank, name, kind, None, None, size, start, end)


EVENTS = [
    event("forward", "phase", 0, 2),
    event("backward", "phase", 2, 4),
    event("forward", "phase", 5, 8, rank=1),
    event("all_gather", "collective", 1, 2, 10),
    event("all_reduce", "collective", 2.5, 3, 40),
    event("all_reduce", "collective", 3, 3.5, 40),
    event("all_reduce", "collective", 6, 7, 40, rank=1),
    event("barrier", "collective", 9, 10),
]


def test_collectives_belong_to_the_phase_they_began_in() -> None:
    assert [one.start for one in collective_counts.collectives_in(EVENTS, "backward")] == [2.5, 3]
    assert collective_counts.moved_text(EVENTS, "forward") == "1 all-gather of 10 B"
    assert collective_counts.moved_text(EVENTS, "backward") == "2 all-reduces of 40 B"
    assert collective_counts.moved_text(EVENTS, "backward", rank=1) == "nothing"
    found = collective_counts.in_phase(EVENTS, "backward")
    assert [one.kind for one in found].count("collective") == 2 and {one.start for one in found} >= {2.5, 3}


def test_an_all_reduce_sends_as_much_as_the_two_that_it_is_made_of() -> None:
    def sent(name: str, size: int) -> float:
        return collective_counts.ring_bytes(event(name, "collective", 0, 1, size), ranks=4)

    assert sent("all_reduce", 40) == 60 == sent("reduce_scatter_single", 40) + sent("all_gather", 10)
    assert collective_counts.pass_bytes(EVENTS[:-1], ranks=4) == 30 + 60 + 60
    with pytest.raises(CourseError, match="barrier"):
        collective_counts.pass_bytes(EVENTS, ranks=4)


def test_who_is_not_in_a_phase_is_idle() -> None:
    assert collective_counts.idle_share(EVENTS, ranks=2) == pytest.approx(1 - 7 / 16)
    with pytest.raises(CourseError, match="no phase"):
        collective_counts.idle_share(EVENTS[3:], ranks=2)


def held_after(cut: str) -> tuple[list[dict[str, torch.Tensor]], dict[str, torch.Tensor]]:
    """What four ranks hold of y = x W after a cut, and the whole matrices."""
    torch.manual_seed(0)
    x, weight = torch.randn(8, 12), torch.randn(4, 12)
    y = linear(x, weight)
    whole = {"x": x, "W": weight.T, "y": y}
    if cut == "column cut":
        return [{"x": x, "W": w.T, "y": linear(x, w)} for w in weight.chunk(4)], whole
    parts = zip(x.chunk(4, dim=1), weight.chunk(4, dim=1), strict=True)
    return [{"x": part, "W": w.T, "y": linear(part, w)} for part, w in parts], whole


def test_cuts_are_drawn_on_paper_and_as_torch_stores_them() -> None:
    results, whole = held_after("row cut")
    picture = matrix_cuts({"row cut": results}, whole, "A layer")
    assert "row cut: a rank has x 8 by 3, weight 4 by 3, y 8 by 4" in picture.alt_text
    texts = {text.get_text() for text in picture.axes[0].texts}
    assert {"0", "3", "0 + 1 + 2 + 3", "W: 3 × 4", "weight: 4 × 3", "dimension 0"} <= texts
    assert picture.axes[0].get_title(loc="left").startswith("row cut: rows of W, columns of torch's weight")
    with pytest.raises(CourseError, match="2 to 8 ranks"):
        matrix_cuts({"row cut": results[:1]}, whole, "A layer")


def test_parts_are_found_in_the_whole_and_terms_are_not() -> None:
    columns, whole = held_after("column cut")
    x, w, y = held_matrices(columns, whole)
    assert x.is_everywhere and not w.is_everywhere
    assert [part.columns for part in w.parts] == [(0, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1)]
    assert y.parts[1].columns == (0.25, 0.5) and y.parts[1].rows == (0, 1) and not y.parts[1].is_term
    rows, whole = held_after("row cut")
    _, w, y = held_matrices(rows, whole)
    assert w.parts[3].rows == (0.75, 1) and w.parts[3].columns == (0, 1)
    assert all(part.is_term for part in y.parts)
    with pytest.raises(CourseError, match="nowhere"):
        find_part(np.ones((2, 2)), np.zeros((4, 4)))
    with pytest.raises(CourseError, match="two matrices"):
        find_part(np.ones(2), np.zeros((4, 4)))


def test_what_is_where_is_drawn_for_every_rank() -> None:
    panels = {cut: held_matrices(*held_after(cut)) for cut in ("column cut", "row cut")}
    picture = what_is_where(panels, "Two cuts")
    assert "column cut: x, the same on every rank; W, rank 0 columns from 0% to 25%" in picture.alt_text
    assert "y, rank 0 a term, rank 1 a term" in picture.alt_text
    texts = [text.get_text() for text in picture.axes[0].texts]
    assert texts.count("rank 3") == 2 and {"column cut", "row cut", "12 × 1", "3 × 4"} <= set(texts)
    hatched = [patch for patch in picture.axes[0].patches if patch.get_hatch()]
    assert len(hatched) == 4
    with pytest.raises(CourseError, match="one panel at least"):
        what_is_where({}, "Nothing")


def test_a_sum_over_ranks_has_one_gradient_for_all(four_ranks) -> None:
    def term() -> float:
        x = torch.ones(2, requires_grad=True)
        sum_over_ranks(x).sum().backward()
        return x.grad[0].item()

    assert four_ranks.run(term, backend="gloo").results == [1.0] * 4
