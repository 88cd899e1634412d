"""The picture of deck 13 that its page does not have: the second of the page's logs."""

from types import SimpleNamespace

from matplotlib.figure import Figure

from course_utils.lessons.gpu_nodes.pictures import log_map

PAGE = {"patient": True}  # torch.compile too: its kernels take half a minute
DRAFT = {"PAGE": {}}


def files(page: SimpleNamespace) -> Figure:
    """The page's second log from above."""
    return log_map(page.second.log, "One rank went on, the other did not")


FIGURES = {"13_files": files}
