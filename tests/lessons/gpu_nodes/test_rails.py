"""The picture of two nodes, their network cards and their rails, and what it says of the paths of messages."""

import pytest

from course_utils.errors import CourseError
from course_utils.lessons.gpu_nodes.pictures import rails
from course_utils.lessons.gpu_nodes.rails import rails_finding

STRAIGHT = [("GPU", 0, 2), ("NIC", 0, 2), ("switch", None, 2), ("NIC", 1, 2), ("GPU", 1, 2)]
OVER_NVLINK = [("GPU", 0, 5), ("GPU", 0, 2), *STRAIGHT[1:]]
INSIDE = [("GPU", 1, 0), ("GPU", 1, 7)]


def test_the_title_says_which_message_changes_the_rail() -> None:
    found = rails_finding({"A": STRAIGHT, "B": OVER_NVLINK, "C": INSIDE})
    assert found == "A stays on rail 2; B takes NVLink to rail 2 first; C stays inside the node"


def test_each_path_is_a_line_and_each_hop_is_named() -> None:
    picture = rails({"A": STRAIGHT, "B": OVER_NVLINK, "C": INSIDE}, "Three messages")
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert "A: GPU 2 of node 0, NIC 2 of node 0, rail switch 2, NIC 2 of node 1, GPU 2 of node 1" in picture.alt_text
    [ax] = picture.axes
    thick = [line for line in ax.lines if line.get_linewidth() == 3 and len(line.get_xdata()) > 1]
    assert [len(line.get_xdata()) for line in thick] == [5, 8, 4]  # the bar of NVLink gives a line two corners more


@pytest.mark.parametrize("hop", [("GPU", 0, 8), ("NIC", 2, 0), ("CPU", 0, 0)])
def test_a_hop_that_is_not_there_is_rejected(hop) -> None:
    with pytest.raises(CourseError, match="there is no"):
        rails({"A": [STRAIGHT[0], hop]})


def test_more_paths_than_colours_are_rejected() -> None:
    with pytest.raises(CourseError, match="at most 4 paths"):
        rails({str(number): STRAIGHT for number in range(5)})
