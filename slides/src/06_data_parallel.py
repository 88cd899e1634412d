"""The pictures of deck 6: training runs on real ranks, and what each rank holds of one batch."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial

import numpy as np
import torch
import torch.distributed as dist
from matplotlib.figure import Figure
from torch.nn.functional import cross_entropy
from torch.utils.data import DistributedSampler

import course_utils as course
from course_utils.draw import style
from course_utils.lessons.data_parallel import gradients, report_figures, training
from course_utils.lessons.data_parallel.replicas import all_reduce_flat
from course_utils.lessons.data_parallel.shards import shard_indices
from course_utils.lessons.data_parallel.train_way import train_way
from course_utils.words import percent, seconds_text

RANKS = style.CURVES[:4]  # one colour for each rank
LATE = 0.05  # seconds that the straggler sleeps
IMAGES = None  # as many as there are
STEPS = 5  # of VGG-11
DRAFT = {"IMAGES": 512, "STEPS": 2}


def sum_gradients(model):
    """The trap: each gradient becomes the sum over the ranks."""
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)


def first_shard(data) -> torch.Tensor:
    """This rank's share of the first batch of 64."""
    mine = shard_indices(len(data.train_x), dist.get_rank(), dist.get_world_size())
    return mine[: 64 // dist.get_world_size()]


def gradient_of_a_shard(data, average):
    """Some entries of the gradient of this rank's share of the first batch."""
    model, mine = training.digits_mlp(seed=0).double(), first_shard(data)
    cross_entropy(model(data.train_x[mine]), data.train_y[mine]).backward()
    if average:
        gradients.average_gradients(model)
    return model[6].bias.grad.tolist()


def means_of_a_shard(data):
    """The mean of twelve features, over this rank's share of the first batch."""
    with torch.no_grad():
        return training.digits_mlp(seed=0).double()[0](data.train_x[first_shard(data)])[:, :12].mean(dim=0).tolist()


def weights_on_the_way(data, broadcast):
    """All weights of this rank before every step, and the share of test images that it recognises at the end."""
    weights = []

    def remember(model):
        weights.append(training.flat_parameters(model).clone())
        gradients.average_gradients(model)

    history = training.train_parallel(data, synchronise=remember, epochs=2, rate=0.2, broadcast=broadcast)
    return torch.stack(weights), history.test_accuracy


@cache
def four_ranks():
    """The ranks that all pictures of this deck run on."""
    return course.start(4, link="200 Mbit/s")


@cache
def digits():
    """The handwritten digits."""
    split = course.data.digits("float64")
    return split._replace(train_x=split.train_x[:IMAGES], train_y=split.train_y[:IMAGES])


def parallel(*args, **options):
    """A training run on the four ranks."""
    return four_ranks().run(training.train_parallel, *args, backend="gloo", **options)


def losses(run) -> list[float]:
    """The loss of the whole batch at each step."""
    return training.mean_losses(run.results)


def last_steps(run, count: int = 1) -> list:
    """The events of the last steps: on every rank, all from the beginning of a forward pass."""
    begins = {
        rank: sorted(e.start for e in run.events if e.rank == rank and e.name == "forward")[-count]
        for rank in range(run.world_size)
    }
    return [event for event in run.events if event.start >= begins[event.rank]]


def shards() -> Figure:
    """Ten examples on four ranks: who takes which, in which step."""
    dealt = [shard_indices(10, rank, 4).tolist() for rank in range(4)]
    order = shard_indices(10, 0, 1).tolist()
    picture, (ax,) = style.new_picture(
        "10 examples, 4 ranks: 3 each, so two are taken twice", heights=[2.3], left=0.1, right=0.1, below=0.1
    )
    ax.set(xlim=(0, 11.4), ylim=(4.6, -1.9))
    ax.axis("off")
    ax.text(0, -1.3, "one process", va="center", fontsize=style.TEXT)
    for place, example in enumerate([*order, *order[:2]]):
        _card(ax, 1.9 + 0.8 * place, -1.3, example, RANKS[place % 4], twice=place >= 10)
    for step in range(3):
        ax.text(3.1 + 3.2 * step, -0.45, f"step {step}", ha="center", va="center", fontsize=style.TEXT, color="#555555")
    for rank, examples in enumerate(dealt):
        ax.text(0, rank + 0.3, f"rank {rank}", va="center", fontsize=style.TEXT)
        for step, example in enumerate(examples):
            _card(ax, 1.9 + 3.2 * step + 0.8 * rank, rank + 0.3, example, RANKS[rank], twice=4 * step + rank >= 10)
    told = "; ".join(f"rank {rank} takes {', '.join(map(str, examples))}" for rank, examples in enumerate(dealt))
    picture.alt_text = f"The shuffled order {order}, dealt out like cards: {told}."
    return picture


def _card(ax, x: float, y: float, number: int, colour: str, twice: bool) -> None:
    box = {"boxstyle": "round,pad=0.35", "facecolor": "white" if twice else colour, "edgecolor": colour}
    ink = colour if twice else "white"
    ax.text(x, y, number, ha="center", va="center", color=ink, fontsize=style.TEXT, fontweight="bold", bbox=box)


def opinions() -> Figure:
    """The gradient of four shards, their mean, and that of one process with the whole batch."""
    run = partial(four_ranks().run, gradient_of_a_shard, digits(), backend="gloo")
    alone, own, mean = run(False, ranks=1).results[0], run(False).results, run(True).results[0]
    apart = np.abs(np.subtract(alone, mean)).max()
    found = f"{apart:.0e} apart" if apart else "equal in every digit"
    title = f"The mean of four gradients is that of the whole batch ({found})"
    return dots(own, alone, title, "entry of the gradient (last layer's bias)", "one process, 64 images")


def norm_statistics() -> Figure:
    """The mean of some features over each rank's 16 images, and over all 64."""
    own = four_ranks().run(means_of_a_shard, digits(), backend="gloo").results
    title = "Each rank's batch norm sees another mean"
    return dots(own, np.mean(own, axis=0), title, "feature of the first layer", "mean over all 64 images")


def dots(own: Sequence, whole: Sequence, title: str, x: str, name: str) -> Figure:
    """Four ranks' values as dots, the whole batch's as a line, beside each other."""
    picture, (ax,) = style.new_picture(title, heights=[2.7], left=0.75, above=0.3)
    places = np.arange(len(whole))
    ax.hlines(whole, places - 0.38, places + 0.38, color=style.INK, linewidth=2.2, label=name)
    for rank, values in enumerate(own):
        look = {"color": RANKS[rank], "markersize": 6, "marker": "osD^"[rank], "linestyle": "none"}
        ax.plot(places + 0.14 * (rank - 1.5), values, label=f"rank {rank}, 16 images", **look)
    ax.set_xticks(places)
    ax.set_xlabel(x, fontsize=style.TEXT)
    ax.grid(axis="y", color="#E8E8E8", linewidth=0.7)
    place = {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0), "ncols": 5, "frameon": False}
    ax.legend(fontsize=style.SMALL, columnspacing=0.9, handletextpad=0.3, handlelength=1.2, borderaxespad=0, **place)
    spread = float(np.ptp(own, axis=0).max())
    picture.alt_text = f"{title}. Four dots for each {x}, up to {spread:.2g} apart, and a line for the whole batch."
    return picture


def same_loss() -> Figure:
    """The loss of one process and of four ranks, step by step."""
    serial = training.train_serial(digits(), rate=0.2).losses
    return course.draw.loss_curves({"serial": serial, "4 ranks": losses(parallel(digits(), rate=0.2))})


def one_step() -> Figure:
    """The four phases of one step: with six all-reduces, and with one for all gradients."""
    few = [part[: 64 * 4] for part in digits()]
    six, one = parallel(few), parallel(few, replicate=all_reduce_flat)
    titles = ["six all-reduces", "one"]
    return course.draw.timelines(
        *[replace(run, events=last_steps(run)) for run in (six, one)], titles=titles, side_by_side=True
    )


@cache
def ways() -> list:
    """VGG-11 in one process, through rank 0, and with all-reduces."""
    names = ("one process", "gather-scatter", "all-reduce, each")
    return [train_way(four_ranks(), name, images=96, steps=STEPS, keep=False) for name in names]


def two_ways() -> Figure:
    """A step in one process, through rank 0, and with all-reduces: where the time goes."""
    return report_figures.stages(ways())


def sum_or_mean() -> Figure:
    """The mean and the sum, each with the rate of one rank and with four times that rate."""
    ways = {"mean": gradients.average_gradients, "sum": sum_gradients}
    curves = {
        f"{name}, {'4 · ' if factor == 4 else ''}0.1": losses(
            parallel(digits(), synchronise=way, rate=0.1 * factor, epochs=2)
        )
        for name, way in ways.items()
        for factor in (1, 4)
    }
    return course.draw.loss_curves(curves, "Mean or sum, rate times 1 or times 4")


def rates() -> Figure:
    """The rate over the first steps by three rules, for four ranks."""
    rules = {"linear": {}, "square root": {"rule": "sqrt"}, "linear, warm-up": {"warm_up_steps": 20}}
    curves = {
        name: [gradients.scaled_learning_rate(0.1, step, 4, **options) for step in range(40)]
        for name, options in rules.items()
    }
    return course.draw.loss_curves({"one rank": [0.1] * 40, **curves}, "Three rules for four ranks", y="learning rate")


def scaling() -> Figure:
    """The same images seen by one rank in batches of 32, and by four in batches of 128 with three rates."""
    alone = np.reshape(training.train_serial(digits(), epochs=4, batch_size=32).losses, (-1, 4)).mean(axis=1)
    curves = {"1 rank, batch 32": alone}
    for name, rate in {"4 ranks, rate 0.1": 0.1, "√4 · 0.1": 0.2, "4 · 0.1": 0.4}.items():
        curves[name] = losses(parallel(digits(), epochs=4, batch_size=128, rate=rate))
    return course.draw.loss_curves(curves, "The same images, 32 at a time and 128 at a time", x="128 images")


def warm_up() -> Figure:
    """A large rate at once, and climbing to it."""

    def climb(step: int, warm_up_steps: int) -> float:
        return gradients.scaled_learning_rate(0.2, step, 4, warm_up_steps=warm_up_steps)

    curves = {
        name: losses(parallel(digits(), epochs=4, batch_size=128, rate=partial(climb, warm_up_steps=steps)))
        for name, steps in {"at once": 0, "warm-up, 20 steps": 20}.items()
    }
    return course.draw.loss_curves(curves, "A rate of 4 · 0.2, at once or climbing to it")


def norm_distance() -> Figure:
    """How far four ranks with batch norm are from one process with batch norm."""
    whole = training.train_serial(digits(), training.local_norm_mlp).losses
    builds = {"own statistics": training.local_norm_mlp, "everybody's": training.sync_norm_mlp}
    curves = {name: np.abs(np.subtract(losses(parallel(digits(), build)), whole)) for name, build in builds.items()}
    title = "How far the loss is from one process with batch norm"
    return course.draw.loss_curves(curves, title, y="difference of the loss")


def no_broadcast() -> Figure:
    """The distance of the replicas from rank 0's when nobody has broadcast the first weights."""
    run = partial(four_ranks().run, weights_on_the_way, digits(), backend="gloo")
    apart, together = run(False).results, run(True).results
    curves = {f"rank {rank}": (apart[rank][0] - apart[0][0]).norm(dim=1).tolist() for rank in range(1, 4)}
    change, steps = max(np.ptp(curve) for curve in curves.values()), len(curves["rank 1"])
    shares = sorted(accuracy for _, accuracy in apart)
    title = (
        f"In {steps} steps the distance from rank 0's weights changes by {change:.0e}. Recognised at the end: "
        f"{percent(shares[0])} to {percent(shares[-1])}, after a broadcast {percent(together[0][1])}"
    )
    curves["after a broadcast"] = (together[3][0] - together[0][0]).norm(dim=1).tolist()
    return course.draw.loss_curves(curves, title, y="distance")


def forgotten_epoch() -> Figure:
    """The first images of rank 0 in three epochs, the sampler told which epoch it is, and not told."""
    shown, images = 7, digits().train_x.reshape(-1, 8, 8)
    picture, axes = style.new_picture(
        "Rank 0's first batch: always the same, unless the sampler is told the epoch",
        heights=[2.1, 2.1],
        left=0.75,
        below=0.1,
        side_by_side=True,
    )
    for ax, told in zip(axes, (False, True), strict=True):
        sampler = DistributedSampler(range(len(images)), num_replicas=4, rank=0)
        ax.axis("off")
        ax.set(xlim=(0, shown), ylim=(3, -0.4))
        ax.text(0, -0.2, "with set_epoch" if told else "without set_epoch", fontsize=style.TEXT, fontweight="bold")
        for epoch in range(3):
            if told:
                sampler.set_epoch(epoch)
            ax.text(-0.15, epoch + 0.5, f"epoch {epoch}", ha="right", va="center", fontsize=style.TEXT)
            for place, index in enumerate(list(sampler)[:shown]):
                extent = (place + 0.05, place + 0.95, epoch + 0.95, epoch + 0.05)
                ax.imshow(images[index], cmap="gray_r", extent=extent, aspect="auto")
        ax.set(xlim=(0, shown), ylim=(3, -0.4))
    picture.alt_text = (
        "The first images of rank 0 in three epochs. Without set_epoch they are the same in each; with it, others."
    )
    return picture


def straggler() -> Figure:
    """Rank 3 sleeps in its forward pass; the others wait in the all-reduce."""
    few = [part[: 64 * 4] for part in digits()]
    run = parallel(few, replicate=all_reduce_flat, delay=course.per_rank([0, 0, 0, LATE]))
    return course.draw.timeline(last_steps(run), f"Rank 3 sleeps {seconds_text(LATE)} in its forward pass", ranks=4)


FIGURES = {
    "06_shards": shards,
    "06_opinions": opinions,
    "06_same_loss": same_loss,
    "06_one_step": one_step,
    "06_two_ways": two_ways,
    "06_sum_or_mean": sum_or_mean,
    "06_rates": rates,
    "06_scaling": scaling,
    "06_warm_up": warm_up,
    "06_norm_statistics": norm_statistics,
    "06_norm_distance": norm_distance,
    "06_no_broadcast": no_broadcast,
    "06_forgotten_epoch": forgotten_epoch,
    "06_straggler": straggler,
}
