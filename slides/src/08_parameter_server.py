"""The pictures of deck 8: a server among the ranks, gradients that are old, a straggler, local steps, and clinics."""

from functools import cache, partial

import numpy as np
from matplotlib.figure import Figure

import course_utils as course
from course_utils.lessons.allreduce.allreduce_times import message_seconds
from course_utils.lessons.allreduce.cost_model import Network
from course_utils.lessons.allreduce.shared_links import predicted_seconds
from course_utils.lessons.parameter_server import pictures
from course_utils.lessons.parameter_server.digits_trainings import (
    Pace,
    train_asynchronously,
    train_clinics,
    train_locally,
    train_synchronously,
)
from course_utils.lessons.parameter_server.experiments import link_seconds, race
from course_utils.lessons.parameter_server.local_sgd import skewed_shards
from course_utils.lessons.parameter_server.sentences import (
    clinics_text,
    link_text,
    local_text,
    races_text,
    rates_text,
    slower,
    staleness_text,
    straggler_text,
)
from course_utils.lessons.parameter_server.server import step_seconds
from course_utils.words import bytes_text, percent, seconds_text

MESSAGES = (1, 100_000, 300_000)
VECTOR = 100_000  # bytes
WORKERS = (1, 2, 4, 7)
RATES = (0.1, 0.3, 0.6)
LOCAL_STEPS = (1, 2, 4, 8, 16, 32, 64)
TARGET = 0.95
RUNS = 3  # of the link, and of every race
UPDATES = 200  # with fresh gradients and with old ones
AGES = 350  # updates whose staleness is counted
PACE = 0.005  # seconds of a gradient in the races
ROUNDS = 10  # means of the clinics
DRAFT = {"WORKERS": (1, 7), "RATES": (0.1, 0.6), "LOCAL_STEPS": (16, 64), "RUNS": 1, "UPDATES": 20, "AGES": 60}
DRAFT |= {"PACE": 0.0005, "ROUNDS": 2}


@cache
def nodes():
    """The ranks that all pictures of this deck run on."""
    return course.start(8, link="100 Mbit/s")


@cache
def images():
    """The handwritten digits."""
    return course.data.digits_arrays()


@cache
def shards() -> list[np.ndarray]:
    """Four clinics that have seen unlike digits."""
    return skewed_shards(images()[1], 4, 0.1, np.random.default_rng(3))


def waiting(train, updates: int, title: str, pace: Pace) -> Figure:
    """Four workers and a server, a few updates."""
    nodes().run(train, images(), updates, pace=pace, ranks=5)  # the first run finds the connections
    return nodes().run(train, images(), updates, pace=pace, ranks=5).timeline(title)


def link() -> Figure:
    """A step through the server and round a ring, over the workers."""
    times = nodes().run(message_seconds, MESSAGES).results[0]
    beta = (times[2] - times[1]) / (MESSAGES[2] - MESSAGES[1])
    network = Network(times[0], beta, shared=nodes().facts["network"] is not None)
    taken = link_seconds(nodes(), WORKERS, VECTOR, RUNS)
    predicted = {
        "server": [step_seconds(workers, VECTOR, 1 / beta, times[0]) for workers in WORKERS],
        "ring": [predicted_seconds("ring", workers, VECTOR, network) for workers in WORKERS],
    }
    found = link_text(WORKERS, taken["server"], taken["ring"], predicted["server"])
    look = {"across": "workers", "up": "time of one step", "unit": seconds_text, "predicted": predicted}
    return course.draw.over_numbers(WORKERS, taken, "100 KB, through a server and round a ring", found, **look)


def staleness() -> Figure:
    """How old gradients are that seven workers bring."""
    paces = {"7 equal workers": Pace(0.008), "one is 5 times slower": Pace(0.008, straggler=3)}
    ages = {
        setting: nodes().run(train_asynchronously, images(), AGES, pace=pace).results[0].staleness
        for setting, pace in paces.items()
    }
    return pictures.staleness(ages, 6, "How old is a gradient that 7 workers bring?", staleness_text(7, ages))


def rates() -> Figure:
    """Accuracy over the rate, with fresh gradients, old ones, and old ones scaled."""
    ends: dict[str, list[float]] = {}
    for name, workers, scaled in (
        ("one worker", 1, False),
        ("seven", 7, False),
        ("seven, rate ÷ staleness", 7, True),
    ):
        train = partial(nodes().run, train_asynchronously, images(), UPDATES, pace=Pace(0.002), ranks=workers + 1)
        ends[name] = [train(rate=rate, scaled=scaled).results[0].accuracies[-1] for rate in RATES]
    look = {"across": "learning rate", "up": f"test images recognised after {UPDATES} updates", "unit": percent}
    title, found = "The same number of updates, fresh and stale", rates_text(RATES, *ends.values())
    return course.draw.over_numbers(RATES, ends, title, found, limits=(0, 1), **look)


def straggler() -> Figure:
    """Accuracy against epochs and seconds, with equal workers and with a straggler."""
    paces = {"equal workers": Pace(PACE), "a straggler": Pace(PACE, straggler=2)}
    curves = race(nodes(), images(), paces, RUNS)
    title = straggler_text(slower(curves))
    return pictures.races(curves, title, races_text(curves, TARGET), target=TARGET, wide=True)


def local() -> Figure:
    """Bytes over the number of local steps."""
    runs = [
        nodes().run(train_locally, images(), 64 // k, local_steps=k, rate=0.4, pace=Pace(0.002), ranks=4)
        for k in LOCAL_STEPS
    ]
    sent = [run.bytes_per_rank[0] for run in runs]
    found = local_text(LOCAL_STEPS, sent, [run.results[0].accuracies[-1] for run in runs])
    look = {"across": "local steps", "up": "bytes of one rank", "unit": bytes_text, "log": True}
    look["predicted"] = {"sent": [sent[0] * LOCAL_STEPS[0] / k for k in LOCAL_STEPS]}
    return course.draw.over_numbers(LOCAL_STEPS, {"sent": sent}, "64 steps, a mean now and then", found, **look)


def clinics() -> Figure:
    """Which clinic has seen which digits."""
    counts = np.array([np.bincount(images()[1][shard], minlength=10) for shard in shards()])
    return pictures.who_has_what(counts, "clinic", "digit", "Four clinics, and which digits each has seen")


def federated() -> Figure:
    """Accuracy over bytes for 1, 5 and 20 local epochs."""
    runs = {
        epochs: nodes().run(train_clinics, images(), shards(), ROUNDS, local_epochs=epochs, ranks=4)
        for epochs in (1, 5, 20)
    }
    nbytes = runs[1].bytes_per_rank[0] / ROUNDS
    accuracies = {epochs: run.results[0] for epochs, run in runs.items()}
    lines = {f"{epochs} local epoch{'s' * (epochs > 1)}": line for epochs, line in accuracies.items()}
    sent = [round(nbytes * number / 1000) for number in range(1, ROUNDS + 1)]
    title, found = "What the same bytes bring with 1, 5 and 20 local epochs", clinics_text(accuracies, 0.85, nbytes)
    look = {"across": "KB sent by each clinic", "up": "test images recognised", "unit": percent}
    return course.draw.over_numbers(sent, lines, title, found, limits=(0.3, 1), **look)


FIGURES = {
    "08_synchronous": partial(waiting, train_synchronously, 3, "Everybody waits", Pace(0.008)),
    "08_link": link,
    "08_asynchronous": partial(waiting, train_asynchronously, 14, "Nobody waits", Pace(0.008)),
    "08_staleness": staleness,
    "08_rates": rates,
    "08_late": partial(waiting, train_synchronously, 2, "Worker 2 is late", Pace(0.006, straggler=2)),
    "08_straggler": straggler,
    "08_local": local,
    "08_clinics": clinics,
    "08_federated": federated,
}
