"""The picture of a training that is started several times."""

from course_utils.lessons.gpu_nodes.pictures import StartRow, starts


def test_batches_that_were_not_due_are_marked_and_told() -> None:
    first = StartRow("first start", [(0, 0), (0, 1), (0, 2)], [(0, 0), (0, 1), (0, 2)], [2], "killed")
    second = StartRow("second start", [(0, 0), (0, 1)], [(0, 2), (1, 0)], [], "finished")
    third = StartRow("third start", [], [], [], "nothing to do")
    picture = starts([first, second, third], 3, "A start does other batches than were due")
    (ax,) = picture.axes
    faces = [patch.get_facecolor() for patch in ax.patches if patch.get_fill()]
    assert len(faces) == 5 and len(set(faces)) == 2, "three right, two wrong"
    assert [line.get_xdata()[0] for line in ax.lines] == [2], "one checkpoint, behind the second step"
    assert "second start: 2 steps, finished; third start: 0 steps, nothing to do" in picture.alt_text
