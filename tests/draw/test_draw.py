"""Pictures: they say what happened, show themselves once, and no words collide or leave the picture."""

import itertools
import math
import pickle
import random
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from nbformat.v4 import new_code_cell, new_notebook

from course_utils import draw
from course_utils.draw import style
from course_utils.draw.curves import stacking
from course_utils.draw.lines import spread
from course_utils.draw.message_timeline.layout import lay_out
from course_utils.draw.message_timeline.timeline_text import finding
from course_utils.errors import CourseError
from course_utils.lessons.messages.pictures import alpha_beta
from course_utils.lessons.parameter_server.pictures import races, staleness, who_has_what
from course_utils.lessons.pipeline.interleaved import interleaved_schedule
from course_utils.lessons.pipeline.pictures import pipelines, plan_and_run
from course_utils.lessons.pipeline.schedules import one_f_one_b_schedule
from course_utils.lessons.pipeline.timing import simulate_schedule
from course_utils.lessons.pipeline.zero_bubble import zb_h1_schedule
from course_utils.trace.events import Event
from course_utils.words import bytes_text, days_text, seconds_text

NEVER = math.inf


def message(sender, receiver, start, end, size=1_000_000, posted=None, names=("Send", "Recv")):
    """The two events of one message; `posted` is when the receive began."""
    return [
        Event(sender, names[0], "send", receiver, 0, size, start, end),
        Event(receiver, names[1], "recv", sender, 0, size, start if posted is None else posted, end),
    ]


def flat(world_size, each=4e-4):
    """Rank 0 sends to each of the others in turn."""
    sent = [message(0, rank, (rank - 1) * each, rank * each - 1e-6, posted=0.0) for rank in range(1, world_size)]
    return list(itertools.chain(*sent))


def ring(world_size, steps, each=1e-3):
    """Every rank sends to the next and receives from the one before, at the same time."""
    jitter, events = random.Random(0), []
    for step, rank in itertools.product(range(steps), range(world_size)):
        start = step * each + jitter.random() * each / 10
        names = ("Sendrecv", "Sendrecv")
        events += message(rank, (rank + 1) % world_size, start, step * each + 0.8 * each, 250_000, step * each, names)
    return events


def together(name, starts, end, kind="collective"):
    """One collective, which each rank enters at its own time."""
    return [Event(rank, name, kind, None, None, 8, start, end) for rank, start in enumerate(starts)]


def training(world_size, steps, each=0.01):
    """Steps of forward, backward, communication with one all-reduce inside, and step."""
    events = []
    for number, rank in itertools.product(range(steps), range(world_size)):
        t = number * each
        borders = [t, t + each * 0.25, t + each * 0.6, t + each * 0.85, t + each * 0.95]
        for name, (start, end) in zip(
            ("forward", "backward", "communication", "step"), itertools.pairwise(borders), strict=True
        ):
            events.append(Event(rank, name, "phase", None, None, 0, start, end))
        events.append(Event(rank, "all_reduce", "collective", None, None, 8, t + each * 0.62, t + each * 0.84))
    return events


def deadlock():
    """Two ranks that each wait for the other's message."""
    return [
        Event(0, "recv", "recv", 1, None, 0, 1e-4, NEVER),
        Event(1, "recv", "recv", 0, None, 0, 2e-4, NEVER),
    ]


RUNS = {
    "nothing": [],
    "1 rank": [Event(0, "Allreduce", "collective", None, None, 8, 0.0, 1e-5)],
    "2 ranks, µs": message(0, 1, 1e-6, 5e-6, 8),
    "2 ranks, s": message(0, 1, 1.0, 25.0, posted=0.2),
    "4 ranks": flat(4),
    "8 ranks": flat(8),
    "ring of 4": ring(4, 6),
    "ring of 8, hundreds": ring(8, 30),
    "collectives": together("Bcast", (0.0, 0.001, 0.003, 0.002), 0.004) + together("Gather", (0.005,) * 4, 0.006),
    "training": training(4, 1),
    "training, thousands": training(4, 200),
    "one kind of phase": flat(3) + [Event(rank, "gradient", "phase", None, None, 0, 0.0, 3e-4) for rank in (1, 2)],
    "deadlock": deadlock(),
    "some never ended": flat(4) + [Event(3, "Allreduce", "collective", None, None, 8, 0.0013, NEVER)],
    "a wait": flat(2) + [Event(1, "Isend", "wait", None, None, 0, 0.0, NEVER)],
    "far apart": message(0, 1, 0.0, 1e-4) + message(1, 0, 1.0, 1.0001),
    "all at once": message(0, 1, 0.5, 0.5),
    "receive from anybody": [Event(1, "recv", "recv", None, None, 0, 0.0, NEVER), *message(0, 2, 0.0, 1.0)],
    "nonblocking": [
        *message(0, 1, 1e-4, 5e-4, posted=0.0, names=("Isend", "Irecv")),
        *message(1, 0, 2e-4, 6e-4, posted=0.0, names=("Isend", "Irecv")),
    ],
    "16 ranks": flat(16),
}

COURSE = SimpleNamespace(epochs=[0.0, 1.0, 2.0], seconds=[0.0, 0.5, 1.0], accuracies=[0.1, 0.9, 0.97])
STEPS = np.exp(-np.arange(100) / 30)
SIZES = [8 * 4**k for k in range(11)]
TIMES = [3e-6 + size * 4e-10 for size in SIZES]
PARTS = {"forward": 0.012, "backward": 0.02, "communication": 0.03, "step": 0.004}


def draw_traffic(rates):
    """Everybody sends to node 0 for a second, at the rate of its link, and is sent back as much."""
    clock, others = np.arange(0, 2.01, 0.01), len(rates) - 1
    half = np.minimum(clock, 1) * rates[0] / 8
    rest = np.maximum(clock - 1, 0) * rates[0] / 8
    sent = [rest] + [half / others] * others
    received = [half] + [rest / others] * others
    return draw.traffic(clock, sent, received, [clock * 0.5] * len(rates), rates)


OTHERS = {
    "timelines": lambda: draw.timelines(flat(4), ring(4, 2), titles=["one after the other", "all at once"]),
    "timelines, three": lambda: draw.timelines(flat(2), deadlock(), [], titles=["sent", "stuck", "nothing"]),
    "timelines, side by side": lambda: draw.timelines(flat(4), ring(4, 1), titles=["flat", "ring"], side_by_side=True),
    "timelines, much to say": lambda: draw.timelines(
        flat(2), [Event(rank, "recv", "recv", (rank + 1) % 8, None, 0, 0.0, NEVER) for rank in range(8)]
    ),
    "titled": lambda: draw.timeline(
        flat(4), title="From one to all, with a title that is so long that it needs two lines"
    ),
    "only the ranks that took part": lambda: draw.timeline(message(3, 1, 0.5, 1.0), ranks=[1, 3]),
    "curves": lambda: draw.loss_curves({"serial": STEPS, "4 ranks": STEPS + 1e-15, "sum": STEPS * 3}),
    "curve, one value": lambda: draw.loss_curves({"serial": [0.5]}),
    "no curve": lambda: draw.loss_curves({}),
    "lost curve": lambda: draw.loss_curves({"good": STEPS, "too fast": [1.0, 9.0, math.inf, math.nan]}),
    "α–β": lambda: alpha_beta(SIZES, TIMES, 3e-6, 4e-10),
    "α–β with 0 bytes": lambda: alpha_beta([0, *SIZES], [3e-6, *TIMES], 3e-6, 4e-10, title="Ping-pong"),
    "α–β, bad fit": lambda: alpha_beta([1000, 2000], [1e-3, 1e-3], -1e-3, 1e-6),
    "bars": lambda: draw.stacked_bars({"serial": {"forward": 0.021, "backward": 0.04}, "all-reduce": PARTS}),
    "bars of ranks": lambda: draw.stacked_bars({f"rank {rank}": PARTS | {"wait": rank / 100} for rank in range(8)}),
    "no bars": lambda: draw.stacked_bars({}),
    "cores": lambda: draw.cores([(rank, [0, 1], 1) for rank in range(4)], [0, 1], 8.2e9),
    "cores of a node": lambda: draw.cores(
        [(rank, range(16 * rank, 16 * rank + 16), 16) for rank in range(8)], range(128), 512e9, ["NVIDIA H100"] * 4
    ),
    "no ranks": lambda: draw.cores([], range(2)),
    "traffic": lambda: draw_traffic([200e6] * 4),
    "traffic, 8 nodes, one slow": lambda: draw_traffic([2e9] * 7 + [20e6]),
}

OTHERS |= {
    "over numbers": lambda: draw.over_numbers(
        [1, 2, 4, 7],
        {"server": [[0.013, 0.014, 0.02], [0.03] * 3, [0.06] * 3, [0.114] * 3], "ring": [0.0, 0.007, 0.012, 0.018]},
        "100 KB, through a server and round a ring",
        across="workers",
        up="time of one step",
        unit=seconds_text,
        predicted={"server": [0.016, 0.033, 0.066, 0.116], "ring": [0.0, 0.008, 0.013, 0.015]},
    ),
    "over numbers, one line that falls": lambda: draw.over_numbers(
        [1, 2, 4, 8, 16], {"sent": [1e6 / k for k in (1, 2, 4, 8, 16)]}, "Bytes", across="k", up="bytes", log=True
    ),
    "over numbers, from 0": lambda: draw.over_numbers(
        [0, 1, 2, 14], {"longest": [1.99, 1.0, 0.6, 0.1]}, "Old news", across="staleness", up="longest step"
    ),
    "races": lambda: races(
        {row: {name: [COURSE] * 3 for name in ("synchronous", "asynchronous", "local")} for row in ("equal", "slow")},
        "One straggler: who waits takes 4.4 times as long",
        "Equal workers: nobody is first. A straggler: asynchronous is first at 95%",
        target=0.95,
    ),
    "staleness": lambda: staleness(
        {"7 equal workers": [6] * 90 + [5] * 5 + [0, 1, 2], "one is slow": [5] * 60 + [6] * 30 + [27] * 5},
        6,
        "How old?",
    ),
    "staleness of nobody else": lambda: staleness({"1 worker": [0] * 9}, 0, "How old?"),
    "pipelines": lambda: pipelines(
        {
            name: simulate_schedule(make(4, 8))
            for name, make in {"1F1B": one_f_one_b_schedule, "ZB-H1": zb_h1_schedule}.items()
        },
        "ZB-H1 idles less than half as long as 1F1B",
        "Simulated. Every half of a backward pass takes as long as a forward pass",
    ),
    "interleaved pipelines in units of the plan": lambda: pipelines(
        {"interleaved": simulate_schedule(interleaved_schedule(8, 8), 0.5, 0.5, 0.5)}, "As planned"
    ),
    "a plan above its run": lambda: plan_and_run(
        "1F1B",
        simulate_schedule(one_f_one_b_schedule(4, 16), 0.02, 0.02, 0.02),
        simulate_schedule(one_f_one_b_schedule(4, 16), 0.021, 0.022, 0.021, latency=0.002),
        "Plan above run",
    ),
    "three ranks that wait in a circle": lambda: draw.waits(
        {
            0: "recv(source=1), line 3 of your cell",
            1: "Wait for Irecv(source=2) of line 12, line 15 of exchange_without_deadlock.py",
            2: "Ssend(dest=0), line 7 of your cell",
            3: "was computing at line 9 of your cell",
        },
        {0: [1], 1: [2], 2: [0]},
        [0, 1, 2],
    ),
    "two ranks that wait for each other": lambda: draw.waits(
        dict.fromkeys(range(2), "Send(dest=1), line 3 of your cell"), {0: [1], 1: [0]}, [0, 1], "Two arrows"
    ),
    "three ranks in a circle": lambda: draw.waits(
        dict.fromkeys(range(3), "recv, line 3 of your cell"), {0: [1], 1: [2], 2: [0]}, [0, 1, 2]
    ),
    "seven ranks that wait for one": lambda: draw.waits(
        {rank: "Barrier, line 3 of your cell" if rank else "has returned" for rank in range(8)},
        {rank: [0] for rank in range(1, 8)},
        returned=[0],
    ),
    "who has what": lambda: who_has_what(
        np.array([[0, 140, 3], [99, 0, 0]]), "clinic", "digit", "Two clinics, and which digits each has seen"
    ),
}


def pictures():
    """Every case, as a function that draws it."""
    drawn = {name: (lambda events=events: draw.timeline(events)) for name, events in RUNS.items()} | OTHERS
    return [pytest.param(make, id=name) for name, make in drawn.items()]


def words_of(figure):
    """All texts that show, with their boxes in pixels."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    renderer = canvas.get_renderer()
    texts = [text for text in figure.findobj(Text) if text.get_visible()]
    for axis in (axis for ax in figure.axes for axis in (ax.xaxis, ax.yaxis)):
        low, high = sorted(axis.get_view_interval())
        for tick in axis.get_major_ticks():
            if not low <= tick.get_loc() <= high:  # matplotlib keeps ticks outside the axes and does not draw them
                texts = [text for text in texts if text not in (tick.label1, tick.label2)]
    return [(text.get_text(), text.get_window_extent(renderer)) for text in texts if text.get_text().strip()]


@pytest.mark.parametrize("make", pictures())
def test_every_picture_is_described_and_no_words_collide_or_leave_it(make):
    figure = make()
    assert isinstance(figure, Figure)
    assert figure.alt_text.endswith(".") and "nan" not in figure.alt_text
    assert figure.get_size_inches()[0] in (7.0, 10.5)
    words = {(text, tuple(np.round(box.extents))): box for text, box in words_of(figure)}
    for (text, _), box in words.items():
        assert box.x0 >= 0 and box.y0 >= 0, f"{text!r} leaves the picture"
        assert box.x1 <= figure.bbox.x1 and box.y1 <= figure.bbox.y1, f"{text!r} leaves the picture"
    for ((one, _), box), ((other, _), second) in itertools.combinations(words.items(), 2):
        across = min(box.x1, second.x1) - max(box.x0, second.x0)
        down = min(box.y1, second.y1) - max(box.y0, second.y0)
        assert across < 2 or down < 2, f"{one!r} and {other!r} collide"


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("4 ranks", "3 messages in 3 rounds, 1.2 ms"),
        ("ring of 4", "24 messages in 6 rounds, 5.8 ms"),
        ("collectives", "Bcast and Gather, 6 ms"),
        ("one kind of phase", "2 messages in 2 rounds, 799 µs"),
        ("deadlock", "Stuck: rank 0 is waiting in recv from 1 and rank 1 is waiting in recv from 0"),
        ("nothing", "Nothing was sent and nothing was recorded"),
    ],
)
def test_the_title_states_the_finding(run, said):
    assert finding(RUNS[run]) == said
    assert any(text == said for text, _ in words_of(draw.timeline(RUNS[run])))


def test_a_message_that_nobody_received_is_told():
    events = message(0, 1, 0.0, 1e-3) + [Event(0, "Send", "send", 2, 0, 8, 1e-3, 2e-3)]
    assert finding(events) == "2 messages in 1 round (1 never received), 2 ms"


def test_phases_are_told_as_shares():
    assert "communication 26%" in finding(RUNS["training"])


def test_the_time_before_the_message_was_sent_is_waiting():
    (rows,), _ = lay_out([message(0, 1, 0.3, 1.0, posted=0.1)], [range(2)])
    receive = next(mark for mark in rows.marks if mark.event.kind == "recv")
    assert receive.waits and receive.start == 0 and receive.waits_until == pytest.approx(0.2)


def test_in_a_collective_everybody_waits_for_the_last():
    (rows,), _ = lay_out([together("Allreduce", (0.0, 0.4, 0.1), 0.5)], [range(3)])
    assert [mark.waits_until for mark in rows.groups[0]] == [0.4] * 3
    assert [mark.waits for mark in rows.groups[0]] == [True, False, True] or len(rows.groups[0]) == 3


def test_ranks_stand_in_order_with_rank_0_on_top():
    (ax,) = draw.timeline(flat(4)).axes
    assert [label.get_text() for label in ax.get_yticklabels()] == [f"rank {rank}" for rank in range(4)]
    bottom, top = ax.get_ylim()
    assert bottom > top


def test_a_run_says_how_many_ranks_it_had():
    class Run:
        events = flat(2)
        world_size = 4

    assert len(draw.timeline(Run()).axes[0].get_yticks()) == 4


@pytest.mark.parametrize(("scale", "unit"), [(1e-3, "µs"), (1.0, "ms"), (1e3, "s")])
def test_the_axis_has_the_unit_that_fits(scale, unit):
    figure = draw.timeline(flat(4, each=4e-4 * scale))
    assert figure.axes[0].get_xlabel() == f"time since the first operation, in {unit}"


def test_a_long_run_shows_its_beginning_and_says_so():
    texts = [text for text, _ in words_of(draw.timeline(RUNS["training, thousands"]))]
    assert any(text.startswith("Shown: the first 250 ms of") for text in texts)


def test_a_long_run_that_hangs_shows_its_end():
    events = ring(2, 300) + [Event(0, "recv", "recv", 1, None, 0, 0.3, NEVER)]
    texts = [text for text, _ in words_of(draw.timeline(events))]
    assert any(text.startswith("Shown: the last") for text in texts)
    assert "recv ← 1" in texts or "recv from 1: never ended" in texts


def test_curves_that_lie_on_each_other_are_said_to():
    assert "equal in every digit over 100 steps" in draw.loss_curves({"a": STEPS, "b": STEPS.copy()}).alt_text
    assert "coincide: at most" in draw.loss_curves({"a": STEPS, "b": STEPS + 1e-12}).alt_text
    assert "rate 9 from step 2 on" in draw.loss_curves({"rate 9": [1.0, math.nan]}).alt_text


def test_only_curves_that_lie_on_others_are_dashed():
    assert stacking([STEPS, STEPS * 2, STEPS + 1e-9]) == ([0, 0, 1], [1, 0, 0])
    assert stacking([]) == ([], [])


def test_names_at_the_ends_of_curves_are_moved_apart():
    moved = spread([0.0, 0.01, 0.02, 1.0], 0.1, 0.0, 1.0)
    assert all(b - a >= 0.1 - 1e-12 for a, b in itertools.pairwise(moved)) and moved[-1] <= 1.0


def test_alpha_and_beta_are_put_in_words():
    text = alpha_beta(SIZES, TIMES, 3e-6, 4e-10).alt_text
    assert "A message costs 3 µs (α) plus 400 µs for each MB (β): 2.5 GB/s" in text


def test_cores_say_whether_they_are_shared():
    assert "4 ranks share 2 cores" in OTHERS["cores"]().alt_text
    assert "each has one of its own" in draw.cores([(0, [0], 1), (1, [1], 1)], [0, 1]).alt_text
    assert "4 × NVIDIA H100" in OTHERS["cores of a node"]().alt_text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 B"), (8, "8 B"), (1500, "1.5 KB"), (4e6, "4 MB"), (999_600, "1 MB")]
)
def test_bytes_in_words(value, text):
    assert bytes_text(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0 µs"), (35e-6, "35 µs"), (0.9999e-3, "1 ms"), (0.12, "120 ms"), (2.5, "2.5 s")]
)
def test_seconds_in_words(value, text):
    assert seconds_text(value) == text


@pytest.mark.parametrize(
    ("days", "text"),
    [(0.375, "9 hours"), (1 / 24, "1 hour"), (1, "1 day"), (57.2, "57 days"), (365.25, "1 year"), (446, "1.2 years")],
)
def test_long_times_in_words(days: float, text: str) -> None:
    assert days_text(days * 86_400) == text


def test_a_picture_keeps_a_least_width_scrolls_and_is_dark_on_a_dark_page():
    page = draw.timeline(flat(2)).html
    assert page.startswith('<div style="overflow-x: auto"><img src="data:image/png;base64,')
    assert "width: 700px; min-width: 560px; max-width: 100%" in page
    assert "invert(calc(var(--jp-shadow-base-lightness, 0) * 0.93 / 32))" in page


def test_only_ranks_that_took_part_or_are_named_have_a_row():
    some = draw.timeline(message(3, 1, 0.5, 1.0), ranks=[1, 3])
    assert [tick.get_text() for tick in some.axes[0].get_yticklabels()] == ["rank 1", "rank 3"]
    assert some.alt_text.startswith("Timeline of ranks 1 and 3 over")
    assert "rank 3 to rank 1" in some.alt_text
    named = draw.timeline(message(0, 1, 0.5, 1.0), ranks=[1, 3])
    assert [tick.get_text() for tick in named.axes[0].get_yticklabels()] == ["rank 0", "rank 1", "rank 3"]
    assert draw.timeline([], ranks=[0, 1]).alt_text.startswith("Timeline of 2 ranks: nothing was sent")


def test_a_notebook_shows_a_picture_once_and_with_its_description():
    from IPython.core.interactiveshell import InteractiveShell

    figure = draw.timeline(flat(2), title='"Quoted" & <marked>')
    data, metadata = InteractiveShell().display_formatter.format(figure)
    assert set(data) == {"text/plain", "image/png", "text/html"}
    assert metadata["image/png"]["width"] == 700
    assert data["text/plain"] == figure.alt_text
    described = 'alt="&quot;Quoted&quot; &amp; &lt;marked&gt;. Timeline of 2 ranks'
    assert described in data["text/html"] and data["text/html"].count("<img") == 1


def test_pictures_can_be_pickled_and_saved(tmp_path):
    again = pickle.loads(pickle.dumps(draw.timeline(flat(3))))
    again.savefig(tmp_path / "picture.png")
    assert again.alt_text.startswith("Timeline of 3 ranks") and (tmp_path / "picture.png").stat().st_size > 5000


def test_matplotlib_is_imported_with_the_first_picture_and_pyplot_never():
    code = (
        "import sys, course_utils as course; draw = course.draw; assert 'matplotlib' not in sys.modules;"
        "draw.timeline([])._repr_png_(); assert 'matplotlib.pyplot' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: draw.timeline(3),
        lambda: draw.timeline("events"),
        lambda: draw.timelines(),
        lambda: draw.timelines([], [], titles=["one"]),
        lambda: draw.loss_curves({"a": ["x"]}),
        lambda: alpha_beta([1, 2], [1e-3], 1e-3, 1e-6),
        lambda: draw.stacked_bars({"serial": 3.0}),
        lambda: draw.stacked_bars({"serial": {"forward": -1.0}}),
    ],
)
def test_wrong_input_gets_a_plain_line(wrong):
    with pytest.raises(CourseError):
        wrong()


def test_a_container_may_grant_less_time_than_it_shows_cores():
    figure = draw.cores([(rank, range(8), 1) for rank in range(4)], 2)
    assert "4 ranks share 8 cores: enough for one each, with the time of 2" in figure.alt_text


def test_words_beside_short_operations_keep_out_of_each_others_way():
    for seed in range(12):
        chance, events = random.Random(seed), []
        for _ in range(8):
            sender, receiver = chance.sample(range(4), 2)
            start = chance.random()
            events += message(sender, receiver, start, start + 0.02 * chance.random(), 8)
        test_every_picture_is_described_and_no_words_collide_or_leave_it(lambda events=events: draw.timeline(events))


@pytest.mark.parametrize("bold", [False, True])
def test_lines_of_a_title_fit_on_the_png_that_is_shown(bold) -> None:
    text = "A step without messages took longer than one with them: the machine is busy. Run the cell again. " * 3
    picture, _ = style.new_picture(text if bold else "", "" if bold else text, heights=[1.0])
    picture.set_dpi(2 * style.DOTS)
    renderer = FigureCanvasAgg(picture).get_renderer()
    room = style.WIDTH * 2 * style.DOTS
    assert len(picture.texts) > 2
    assert all(line.get_window_extent(renderer).x1 <= room for line in picture.texts)


def test_a_picture_with_sliders_is_drawn_anew_and_its_first_one_stands_alone() -> None:
    from ipywidgets import IntSlider

    drawn = []

    def one(width: int) -> style.Picture:
        drawn.append(width)
        picture = style.Picture((width, 1))
        picture.alt_text = f"{width} inches"
        return picture

    shown = draw.with_sliders(one, width=IntSlider(value=2, min=1, max=5))
    slider, image = shown.children
    assert slider.description == "width" and 'alt="2 inches"' in image.value
    slider.value = 3
    assert drawn == [2, 3] and 'alt="3 inches"' in image.value
    bundle = shown._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle and bundle["text/plain"] == "2 inches"
    assert 'alt="2 inches"' in bundle["text/html"] and bundle["image/png"]


def test_a_page_with_sliders_ends_without_a_time_limit(tmp_path: Path) -> None:
    cells = """from ipywidgets import IntSlider
from course_utils.draw import Picture, with_sliders
with_sliders(lambda width: Picture((width, 1)), width=IntSlider(value=2, min=1, max=5))"""
    nbformat.write(new_notebook(cells=[new_code_cell(cells)] * 5), tmp_path / "sliders.ipynb")
    command = [sys.executable, "-m", "jupyter", "nbconvert", "--execute", "--to", "notebook", "--inplace"]
    subprocess.run([*command, tmp_path / "sliders.ipynb"], check=True, timeout=120, capture_output=True)
    ran = nbformat.read(tmp_path / "sliders.ipynb", as_version=4)
    assert all(cell.outputs[0]["data"]["image/png"] for cell in ran.cells)


def test_bars_without_exposed_communication_say_so() -> None:
    hidden = draw.stacked_bars({"alone": {"computing": 1.0}, "ours": {"computing": 0.9, "communication": 0.0}})
    assert "Communication takes no time of its own" in hidden.alt_text
    assert "Forward takes" in draw.stacked_bars({"serial": {"forward": 1.0}}).alt_text


def test_bars_begin_at_the_bound() -> None:
    cases = {"a": (1.0, {"data": 2.0, "walks": 1.0}), "b": (1.0, {"data": 4.0, "walks": 1.25})}
    picture = draw.above_bound(cases, "Gaps")
    assert [round(bar.get_width(), 6) for bar in picture.axes[0].patches] == [0.5, 0, 0.75, 0.2]
    told = picture.alt_text.replace("\N{NO-BREAK SPACE}", " ")
    assert "a, walks: 0, proved: 1 s" in told and "b, data: 75%: 4 s" in told
    for wrong in ({}, {"a": (0.0, {"data": 1.0})}, {"a": (1.0, {})}):
        with pytest.raises(CourseError):
            draw.above_bound(wrong, "Gaps")
