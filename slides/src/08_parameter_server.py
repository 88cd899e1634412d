"""The pictures of deck 8 that its page does not have like this: a late worker's steps, and the races, wide."""

from types import SimpleNamespace

from matplotlib.figure import Figure

from course_utils.lessons.parameter_server import is_busy_race, pictures, races_text, straggler_text

DRAFT = {"PAGE": {"updates": 20, "runs": 1}}
TARGET = 0.95


def late(page: SimpleNamespace) -> Figure:
    """Four workers and a server, two synchronous steps, and one worker is slow."""
    slow = page.Pace(0.006, straggler=2)
    return page.ranks.run(page.train_synchronously, page.images, 2, pace=slow, ranks=5).timeline("Worker 2 is late")


def straggler(page: SimpleNamespace) -> Figure:
    """The page's races: accuracy against epochs and seconds, with equal workers and with a straggler."""
    busy = is_busy_race(page.races)
    title, found = straggler_text(page.times, busy), "" if busy else races_text(page.races, TARGET)
    return pictures.races(page.races, title, found, target=TARGET, wide=True)


FIGURES = {
    "08_late": late,
    "08_straggler": straggler,
}
