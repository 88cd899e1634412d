"""The picture under a wrong all-reduce: what is where, with the wrong blocks marked; a right answer has none."""

import numpy as np
import pytest

from course_utils.checks.judge import verdict_on
from course_utils.checks.registry import find
from course_utils.lessons.allreduce.blocks import blocks_of


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
