"""The pictures of deck 6 that its pages do not have: cards, dots for ranks, steps side by side, rates, replicas."""

from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace

import numpy as np
import torch
import torch.distributed as dist
from matplotlib.figure import Figure

import course_utils as course
from course_utils.draw import style
from course_utils.lessons.data_parallel import gradients, shard_indices, training
from course_utils.lessons.sgd import parts_and_whole
from course_utils.words import percent

DRAFT = {"PAGE": {"epochs": 1}}
RANKS = style.CURVES[:4]  # one colour for each rank


def shards() -> Figure:
    """Ten examples on four ranks, and which rank takes which of them in which step."""
    dealt = [shard_indices(10, rank, 4).tolist() for rank in range(4)]
    order = shard_indices(10, 0, 1).tolist()
    picture, (ax,) = style.new_picture(
        "10 examples on 4 ranks: each takes 3, so two of them are taken twice",
        heights=[2.3],
        left=0.1,
        right=0.1,
        below=0.1,
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
    takes = "; ".join(f"rank {rank} takes {', '.join(map(str, examples))}" for rank, examples in enumerate(dealt))
    picture.alt_text = f"The shuffled order {order}, dealt out like cards: {takes}."
    return picture


def _card(ax, x: float, y: float, number: int, colour: str, twice: bool) -> None:
    box = {"boxstyle": "round,pad=0.35", "facecolor": "white" if twice else colour, "edgecolor": colour}
    ink = colour if twice else "white"
    ax.text(x, y, number, ha="center", va="center", color=ink, fontsize=style.TEXT, fontweight="bold", bbox=box)


def opinions(page: SimpleNamespace) -> Figure:
    """The gradient of the page's four shards, their mean, and that of one process with the whole batch."""
    apart = np.abs(page.alone - page.mean).max()
    found = f"{apart:.0e} apart" if apart else "equal in every digit"
    title = f"The mean of four gradients is the gradient of the whole batch ({found})"
    x, name = "entry of the gradient (last layer's bias)", "one process, 64 images"
    return parts_and_whole(of_each_rank(page.own), page.alone[0], title, x, name)


def one_step(page: SimpleNamespace) -> Figure:
    """The page's two steps side by side, with six all-reduces and with one for all gradients."""
    return course.draw.timelines(page.six, page.single, titles=page.titles, side_by_side=True)


def means_of_a_shard(data):
    """The mean of twelve features, over this rank's share of the first batch."""
    mine = shard_indices(len(data.train_x), dist.get_rank(), dist.get_world_size())[: 64 // dist.get_world_size()]
    with torch.no_grad():
        return training.digits_mlp(seed=0).double()[0](data.train_x[mine])[:, :12].mean(dim=0).tolist()


def norm_statistics(page: SimpleNamespace) -> Figure:
    """The mean of some features over each rank's 16 images, and over all 64."""
    own = page.ranks.run(means_of_a_shard, page.data, backend="gloo").results
    title = "Each rank's batch norm sees a different mean"
    whole, x = np.mean(own, axis=0), "feature of the first layer"
    return parts_and_whole(of_each_rank(own), whole, title, x, "mean over all 64 images")


def of_each_rank(values: Sequence) -> dict[str, Sequence]:
    """Each rank's values by the name of its curve."""
    return {f"rank {rank}, 16 images": own for rank, own in enumerate(values)}


def rates() -> Figure:
    """The rate over the first steps by three rules, for four ranks."""
    rules = {"linear": {}, "square root": {"rule": "sqrt"}, "linear, warm-up": {"warm_up_steps": 20}}
    curves = {
        name: [gradients.scaled_learning_rate(0.1, step, 4, **options) for step in range(40)]
        for name, options in rules.items()
    }
    return course.draw.loss_curves({"one rank": [0.1] * 40, **curves}, "Three rules for four ranks", y="learning rate")


def no_message(model):
    """Leave this rank's model as it is."""


def weights_on_the_way(data, synchronise, broadcast):
    """All weights of this rank before every step, and the share of test images that it recognises at the end."""
    weights = []

    def remember(model):
        weights.append(training.flat_parameters(model).clone())
        synchronise(model)

    options = {"epochs": 2, "rate": 0.2, "broadcast": gradients.broadcast_parameters if broadcast else no_message}
    history = training.train_parallel(data, training.own_weights, remember, **options)
    return torch.stack(weights), history.test_accuracy


def replicas_apart(page: SimpleNamespace) -> Figure:
    """The distance of the replicas from rank 0's when nobody has broadcast the first weights."""
    run = partial(page.ranks.run, weights_on_the_way, page.data, page.in_one_vector, backend="gloo")
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


FIGURES = {
    "06_shards": shards,
    "06_opinions": opinions,
    "06_one_step": one_step,
    "06_rates": rates,
    "06_norm_statistics": norm_statistics,
    "06_no_broadcast": replicas_apart,
}
