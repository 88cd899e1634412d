"""The picture of deck 8 that its pages do not have: two synchronous steps with a late worker."""

from types import SimpleNamespace

from matplotlib.figure import Figure

DRAFT = {"PAGE": {"rates": [0.1, 0.8], "repeats": 1}}


def late(page: SimpleNamespace) -> Figure:
    """Draw four workers and a server in two synchronous steps, in which one worker is slow."""
    slow = page.Pace(0.006, straggler=2)
    run = page.ranks.run(page.train_synchronously, page.images, 2, pace=slow, ranks=5)
    return run.timeline("Worker 2 is late, and all others wait for it")


FIGURES = {"08_late": late}
