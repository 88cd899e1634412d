"""The picture under a wrong all-reduce: what is where, with the wrong blocks marked; a right answer has none."""

import numpy as np
import pytest

from course_utils.checks.block_picture import block_picture
from course_utils.checks.exercise import Case, Outcome
from course_utils.checks.finding import Finding, Kind
from course_utils.checks.judge import verdict_on
from course_utils.checks.registry import find
from course_utils.lessons.allreduce import tree_allreduce
from course_utils.lessons.allreduce.blocks import blocks_of
from course_utils.ranks.run import Attempt


def ring_that_adds_to_the_end(comm, vector):
    left, right = (comm.rank - 1) % comm.size, (comm.rank + 1) % comm.size
    blocks = blocks_of(vector, comm.size)
    for step in range(2 * (comm.size - 1)):
        arriving = blocks[(comm.rank - step - 2) % comm.size]
        incoming = np.empty_like(arriving)
        comm.Sendrecv(blocks[(comm.rank - step - 1) % comm.size], dest=right, recvbuf=incoming, source=left)
        arriving += incoming


def tree_without_a_way_back(comm, vector):
    incoming, distance = np.empty_like(vector), 1
    while distance < comm.size:
        if comm.rank % (2 * distance) == distance:
            comm.Send(vector, dest=comm.rank - distance)
        elif comm.rank % (2 * distance) == 0 and comm.rank + distance < comm.size:
            comm.Recv(incoming, source=comm.rank + distance)
            vector += incoming
        distance *= 2


def ring_that_waits(comm, vector):
    incoming = np.empty_like(vector)
    comm.Recv(incoming, source=(comm.rank - 1) % comm.size)
    comm.Send(vector, dest=(comm.rank + 1) % comm.size)


WRONG = {
    ("ring_allreduce", ring_that_adds_to_the_end): "12 of 16 blocks are wrong after 6 rounds",
    ("tree_allreduce", tree_without_a_way_back): "12 of 16 blocks are wrong after 2 rounds",
    ("ring_allreduce", ring_that_waits): "16 of 16 blocks are wrong when nothing moves any more",
}


@pytest.mark.parametrize(("name", "function"), WRONG)
def test_the_wrong_blocks_of_a_wrong_answer_are_marked(name, function):
    verdict = verdict_on(find(name), function, None)
    picture = verdict.drawing()
    assert picture.alt_text.startswith(WRONG[name, function])
    assert "Wrong: block" in picture.alt_text


def test_a_right_answer_and_one_that_raises_have_no_such_picture():
    def raises(comm, vector):
        raise ValueError

    tree = find("tree_allreduce")
    assert verdict_on(tree, raises, None).drawing() is None
    from course_utils.checks.judge import Options
    from course_utils.lessons.allreduce import tree_allreduce

    assert verdict_on(tree, tree_allreduce, None, Options(hide=False)).drawing is None


def picture_of(name, function, arguments, kind=Kind.VALUE):
    """What is drawn of a wrong answer with these arguments, one tuple for each rank."""
    attempt = Attempt(replies=[], trouble="something")
    outcome = Outcome(Case("", arguments, None), attempt, [], [], None, Finding(kind))
    return block_picture(find(name), function, outcome)


def test_with_many_ranks_the_smallest_wrong_number_of_them_is_drawn():
    def wrong_beyond_four_ranks(comm, vector):
        if comm.size <= 4:
            tree_allreduce(comm, vector)

    picture = picture_of("tree_allreduce", wrong_beyond_four_ranks, [(np.ones(20),)] * 12)
    assert picture.alt_text.startswith("25 of 25 blocks are wrong")
    assert picture_of("tree_allreduce", tree_allreduce, [(np.ones(20),)] * 12) is None


def test_what_is_right_is_not_marked_though_the_case_is_wrong():
    """Of a maximum, of a root beyond the ranks that are drawn, and of vectors shorter than the ranks are many."""

    def maximum(comm, vector, op=None):
        others = comm.allgather(vector)
        vector[:] = np.max(others, axis=0)

    assert picture_of("tree_allreduce", maximum, [(np.ones(8), "MAX")] * 4) is None
    assert picture_of("tree_allreduce", maximum, [(np.ones(8),)] * 4) is not None
    assert picture_of("tree_allreduce", tree_allreduce, [(np.ones(1),)] * 4) is None

    def keeps_what_it_has(comm, vector, root):
        pass

    assert picture_of("tree_broadcast", keeps_what_it_has, [(np.ones(8), 11)] * 12) is None
    assert picture_of("tree_broadcast", keeps_what_it_has, [(np.ones(8), 1)] * 4).alt_text.startswith("12 of 16")


@pytest.mark.parametrize("kind", [Kind.RAISED, Kind.SIGNATURE, Kind.UNFINISHED, Kind.DTYPE])
def test_only_wrong_numbers_and_hangs_are_drawn(kind):
    assert picture_of("ring_allreduce", ring_that_adds_to_the_end, [(np.ones(8),)] * 4, kind) is None


def test_complex_numbers_are_drawn_as_others_are():
    vectors = [(np.ones(8, complex),)] * 4
    assert picture_of("ring_allreduce", ring_that_adds_to_the_end, vectors).alt_text.startswith("12 of 16")
