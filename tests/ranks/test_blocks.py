"""What is where: snapshots of blocks after each round, of taught functions and of a learner's own, right and wrong."""

import numpy as np
import pytest

import course_utils as course
from course_utils.draw.block_frames import BlockFrames
from course_utils.errors import CourseError
from course_utils.lessons.allreduce import ALGORITHMS, suspicious_ring
from course_utils.lessons.messages import flat_broadcast, tree_broadcast
from course_utils.ranks.virtual import block_snapshots
from course_utils.ranks.virtual.block_snapshots import Stretches

SIZES = range(2, 9)


@pytest.fixture(scope="module")
def virtual():
    return course.start(16, where="nowhere")


def all_reduce(comm, method, vector):
    method(comm, vector)
    return vector


def vectors(size, length=24):
    return course.per_rank([np.full(length, float(rank)) for rank in range(size)])


def counts(frames: BlockFrames, frame: int) -> np.ndarray:
    """How often each rank's numbers are in each block of each rank; blocks here have one piece."""
    held = frames.frames[frame].held
    assert all(len(block) == 1 for row in held for block in row)
    return np.array([[block[0].counts for block in row] for row in held])


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", ALGORITHMS)
def test_an_all_reduce_begins_with_own_numbers_and_ends_with_all(virtual, name, size):
    run = virtual.run(all_reduce, ALGORITHMS[name], vectors(size, 8 * size), ranks=size)
    frames = run.block_frames
    assert frames.rounds == run.rounds and not frames.incomplete()
    start = counts(frames, 0)
    assert (start == np.eye(size, dtype=int)[:, None, :]).all()
    assert (
        frames.finding() == f"After {run.rounds} rounds every rank holds the sum of all {size} vectors"
        or run.rounds == 1
    )


@pytest.mark.parametrize("name", ["tree", "recursive doubling", "ring", "halving-doubling"])
def test_a_round_never_adds_more_than_one_message_to_a_rank(virtual, name):
    """A rank's sum is its own and what one message brought: so no count exceeds 1, and finished blocks stay."""
    frames = virtual.run(all_reduce, ALGORITHMS[name], vectors(8, 64), ranks=8).block_frames
    for number in range(1, len(frames.frames)):
        before, after = counts(frames, number - 1), counts(frames, number)
        assert after.max() == 1
        complete = before.all(axis=2)
        assert after.all(axis=2)[complete].all()
        assert (after.sum(axis=2) <= 2 * before.sum(axis=2).max()).all()


def test_the_ring_finishes_block_r_on_rank_r_half_way(virtual):
    half = counts(virtual.run(all_reduce, ALGORITHMS["ring"], vectors(4), ranks=4).block_frames, 3)
    assert (half.all(axis=2) == np.eye(4, dtype=bool)).all()


def test_a_number_that_is_added_twice_is_counted_twice(virtual):
    def doubled(comm, vector):
        incoming = np.empty_like(vector)
        comm.Sendrecv(vector, dest=1 - comm.rank, recvbuf=incoming, source=1 - comm.rank)
        vector += incoming
        if comm.rank == 1:
            vector[: len(vector) // 2] += incoming[: len(vector) // 2]

    frames = virtual.run(doubled, vectors(2), ranks=2).block_frames
    assert frames.frames[-1].held[1][0][0].counts == (2, 1)
    assert frames.incomplete() == {(1, 0)}


def test_the_suspicious_ring_shows_where_segments_are_missing(virtual):
    run = virtual.run(all_reduce, suspicious_ring, vectors(4, 3610), ranks=4)
    last = run.block_frames.frames[-1].held
    for rank, row in enumerate(last):
        for block in row:
            done, left = block
            assert done.is_complete and left.counts == tuple(int(other == rank) for other in range(4))
            assert done.share == pytest.approx(512 / 902.5, rel=0.01)


def test_a_broadcast_moves_the_roots_numbers_and_adds_nothing(virtual):
    loop = virtual.run(flat_broadcast, vectors(4), 2, ranks=4).block_frames
    tree = virtual.run(tree_broadcast, vectors(4), 2, ranks=4).block_frames
    for frames, rounds in ((loop, 3), (tree, 2)):
        assert frames.rounds == rounds and not frames.adds and not frames.not_from(2)
        assert frames.not_from(1) == {(rank, block) for rank in range(4) for block in range(4)}
        assert frames.finding() == f"After {rounds} rounds all 4 ranks hold the data of rank 2"
    holders = [sum(row[0][0].counts[2] for row in frame.held) for frame in tree.frames]
    assert holders == [1, 2, 4]


COLLECTIVES = {
    "broadcast": (lambda comm, item: comm.bcast(item, root=0), "item", lambda r: {0: "0"}),
    "scatter": (lambda comm, items: comm.scatter(items, root=0), "items", lambda r: {r: f"0{'abcd'[r]}"}),
    "all-gather": (lambda comm, item: comm.allgather(item), "item", lambda r: {k: str(k) for k in range(4)}),
    "all-to-all": (
        lambda comm, items: comm.alltoall(items),
        "items",
        lambda r: {k: f"{k}{'abcd'[r]}" for k in range(4)},
    ),
}


@pytest.mark.parametrize("name", COLLECTIVES)
def test_collectives_move_items_where_they_belong(virtual, name):
    function, kind, expected = COLLECTIVES[name]
    given = [f"from {rank}" if kind == "item" else [f"{rank}{k}" for k in range(4)] for rank in range(4)]
    frames = virtual.run(function, course.per_rank(given), ranks=4).block_frames
    assert [frame.name for frame in frames.frames] == ["before", "after"]
    for rank, row in enumerate(frames.frames[-1].held):
        held = {at: block[0].label or str(block[0].counts.index(1)) for at, block in enumerate(row) if block}
        assert held == expected(rank)


def test_gather_fills_the_root_alone_and_reduce_scatter_one_block_each(virtual):
    def reduce_scatter(comm, vector):
        block = np.empty(len(vector) // comm.size)
        comm.Reduce_scatter_block(vector, block)
        return block

    def gather(comm, item):
        return comm.gather(item, root=3)

    gathered = virtual.run(gather, course.per_rank(list("abcd")), ranks=4).block_frames.frames[-1].held
    assert [sum(map(bool, row)) for row in gathered] == [0, 0, 0, 4]
    scattered = virtual.run(reduce_scatter, vectors(4), ranks=4).block_frames
    for rank, row in enumerate(scattered.frames[-1].held):
        assert [bool(block) for block in row] == [column == rank for column in range(4)] and row[rank][0].is_complete
    assert scattered.finding() == "Every rank holds one block of the sum of all"


SIZE_OF = {
    (scatter := lambda comm, vector, got: comm.Scatter(vector, got)): 1,
    (all_gather := lambda comm, vector, got: comm.Allgather(vector, got)): 16,
    (all_to_all := lambda comm, vector, got: comm.Alltoall(vector, got)): 4,
}
"""Collectives of arrays; for 4 ranks, how many quarters of the vector each rank receives."""


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (scatter, lambda r: {r: f"0{'abcd'[r]}"}),
        (all_gather, lambda r: {k: str(k) for k in range(4)}),
        (all_to_all, lambda r: {k: f"{k}{'abcd'[r]}" for k in range(4)}),
    ],
)
def test_collectives_of_arrays_are_drawn_as_those_of_items(virtual, function, expected):
    def run(comm, vector):
        received = np.empty(len(vector) * SIZE_OF[function] // 4)
        function(comm, vector, received)
        return received

    frames = virtual.run(run, vectors(4, 8), ranks=4).block_frames
    for rank, row in enumerate(frames.frames[-1].held):
        held = {at: block[0].label or str(block[0].counts.index(1)) for at, block in enumerate(row) if block}
        assert held == expected(rank)


def test_a_gather_of_arrays_shows_each_as_one_item(virtual):
    held = virtual.run(lambda comm, vector: comm.gather(vector), vectors(4), ranks=4).block_frames.frames[-1].held
    assert [[block[0].counts.index(1) for block in row if block] for row in held] == [[0, 1, 2, 3], [1], [2], [3]]


def test_rows_of_a_matrix_are_blocks(virtual):
    def scatter_rows(comm, matrix):
        row = np.empty(matrix.shape[1])
        comm.Scatter(matrix, row)
        return row

    held = virtual.run(scatter_rows, np.ones((4, 3)), ranks=4).block_frames.frames[-1].held
    assert [[block[0].label for block in row if block] for row in held] == [["0a"], ["0b"], ["0c"], ["0d"]]


def test_what_is_no_sum_is_not_read_as_one(virtual):
    def mean(comm, vector):
        return comm.allreduce(vector) / comm.size

    run = virtual.run(mean, vectors(4), ranks=4)
    frames = run.block_frames
    assert not any(piece.is_known for row in frames.frames[-1].held for block in row for piece in block)
    assert len(frames.incomplete()) == 16
    assert "rank 3: no sum, no sum, no sum, no sum" in run.blocks().alt_text


@pytest.mark.parametrize("length", [0, 1, 3])
def test_a_vector_shorter_than_the_ranks_has_no_wrong_blocks(virtual, length):
    frames = virtual.run(all_reduce, ALGORITHMS["tree"], vectors(4, length), ranks=4).block_frames
    assert not frames.incomplete()
    assert sum(map(bool, frames.frames[-1].held[0])) == length


def test_a_long_vector_is_kept_as_its_stretches():
    """A frame of a vector of any length takes as much memory as the vector has stretches of equal values."""
    vector = np.repeat([1.0, 2.0, 2.0, 4.0], 1000)
    stretches = Stretches.of(vector)
    assert len(stretches.values) == 3
    for begin, end in ((0, 4000), (500, 3500), (1000, 3000), (1500, 1600), (7, 7)):
        part, expected = stretches.cut(begin, end), Stretches.of(vector[begin:end])
        assert part.length == expected.length
        assert np.array_equal(part.starts, expected.starts) and np.array_equal(part.values, expected.values)


def test_no_more_is_kept_than_the_frames_show(virtual, monkeypatch):
    taken = []
    kept = Stretches.of.__func__
    monkeypatch.setattr(Stretches, "of", classmethod(lambda cls, vector: taken.append(1) or kept(cls, vector)))
    run = virtual.run(all_reduce, ALGORITHMS["asynchronous ring"], vectors(4, 400), ranks=4)
    assert run.block_frames.rounds == 6
    snapshots = run.messages  # at most one before each receive
    assert len(taken) <= snapshots + 2 * 4  # and each rank's vector at the beginning and at the end


def test_vectors_that_are_too_long_are_refused_in_a_line(virtual, monkeypatch):
    monkeypatch.setattr(block_snapshots, "MOST_NUMBERS", 30)
    with pytest.raises(CourseError, match="32 numbers are too many"):
        virtual.run(all_reduce, ALGORITHMS["tree"], vectors(4, 8), ranks=4).blocks()


def test_what_cannot_be_drawn_is_said_in_a_line(virtual):
    def makes_its_own(comm):
        return comm.allreduce(np.ones(4))

    with pytest.raises(CourseError, match="must take the vector as an argument"):
        virtual.run(makes_its_own, ranks=2).blocks()
    with pytest.raises(CourseError, match="up to 16 ranks"):
        many = course.start(17, where="nowhere")
        many.run(all_reduce, ALGORITHMS["tree"], np.ones(4)).blocks()

    def looks_at_its_numbers(comm, vector):
        if vector[0] > 3:
            raise ValueError("too large")

    with pytest.raises(CourseError, match="rank 1 raised ValueError: too large"):
        virtual.run(looks_at_its_numbers, np.ones(4), ranks=3).blocks()


def test_real_ranks_draw_the_same_blocks(four_ranks, virtual):
    run = four_ranks.run(all_reduce, ALGORITHMS["ring"], vectors(4))
    assert run.block_frames == virtual.run(all_reduce, ALGORITHMS["ring"], vectors(4), ranks=4).block_frames
    picture = run.blocks()
    assert "After 6 rounds every rank holds the sum of all 4 vectors" in picture.alt_text
    both = course.draw.blocks(run, run, titles=["once", "again"], wrong=[(1, 2)])
    assert "Wrong: block 2 of rank 1" in both.alt_text
