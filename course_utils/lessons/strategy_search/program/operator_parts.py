"""One rank's part of an operator: its share of the weights, of the rows and of the examples.

A rank without a part runs the same lines as all others, with a part of no examples.
"""

import weakref
from collections.abc import Callable, Iterable

import torch
import torch.distributed as dist
from torch import nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from course_utils.lessons.strategy_search.graph.configurations import Config, replicas
from course_utils.lessons.strategy_search.program.batch_norm_over_ranks import BatchNormOverRanks
from course_utils.lessons.strategy_search.program.cut_layers import channels_of, inputs_of, rows_of
from course_utils.lessons.strategy_search.program.tensor_moves import Spread, all_to_all, own

Ranks = tuple[int, ...]
_groups: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()


class Part(nn.Module):
    """An operator, some layers one after the other, cut into parts: one for each of `ranks`.

    Ranks whose parts have the same weights sum the gradients of these in the backward pass: one all-reduce, in which
    all of them travel as one vector. A batch norm takes averages over all examples, wherever they are.

    Args:
        layers: of the whole operator, equal on all ranks. Several inputs are added before the first one, if it is not a
            function of several. What need not be cut is used as it is, not copied.
        sample, attribute, parameter: into how many parts examples, rows (or positions) and output channels are cut.
        ranks: as many as parts, the channels' parts varying fastest.
        row_cut: of one linear layer alone: each rank reads its part of the input channels, and the partial sums of the
            whole output are added up, each rank's part of the examples or rows on that rank.
        rows: of the whole input; needed where rows are cut and the first layer is a convolution or a pool.

    Raises:
        CourseError: a layer's weights cannot be cut by output channels.
    """

    def __init__(
        self,
        *layers: nn.Module | Callable,
        sample: int = 1,
        attribute: int = 1,
        parameter: int = 1,
        ranks: Ranks,
        row_cut: bool = False,
        rows: int = 0,
    ) -> None:
        super().__init__()
        config = Config(sample, attribute, parameter, tuple(ranks), row_cut)
        self.ranks, self.summed_along = tuple(ranks), int(attribute > 1) if row_cut else None
        groups = [_group(ranks) for ranks in replicas(config)]  # by all ranks, also those without a part
        self.layers, self.group, self.function = nn.Sequential(), None, None
        self.idle = dist.get_rank() not in ranks
        if self.idle:
            weights = [
                parameter for layer in layers if isinstance(layer, nn.Module) for parameter in layer.parameters()
            ]
            self.dtype = weights[0].dtype if weights else None
            return
        if layers and not isinstance(layers[0], nn.Module):
            self.function, *layers = layers
        index = ranks.index(dist.get_rank())
        _, row_part, channel_part = config.coordinates(index)
        if row_cut:
            self.layers = nn.Sequential(inputs_of(layers[0], len(ranks), index))
            return
        self.group = groups[channel_part]
        mine = [channels_of(layer, parameter, channel_part) for layer in layers]
        if attribute > 1 and mine and rows:
            mine[0] = rows_of(mine[0], attribute, row_part, rows)
        if self.group:
            mine = [BatchNormOverRanks.instead_of(layer, self.group) for layer in mine]
        self.layers = nn.Sequential(*mine)

    def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
        """This rank's part of the output, from what it needs of each input."""
        if self.idle:
            nothing = torch.zeros(0, dtype=self.dtype or inputs[0].dtype, requires_grad=True)
            return torch.cat([nothing, *(tensor.flatten()[:0] for tensor in inputs if tensor.is_floating_point())])
        x = self.function(*inputs) if self.function else sum(inputs[1:], start=inputs[0])
        weights = dict(self.layers.named_parameters())
        if self.summed_along is not None:
            sums = self.layers(x)[None]  # one rank's row of all partial sums
            shape = len(self.ranks), *sums.shape[1:]
            return all_to_all(sums, shape, dim=0, into=1 + self.summed_along, ranks=self.ranks).sum(0)
        if not (self.group and weights):
            return self.layers(x)
        shared = dict(zip(weights, summed_over_ranks(weights.values(), self.group), strict=True))
        return functional_call(self.layers, shared, (x,))


class _Summed(torch.autograd.Function):
    """Forward nothing; backward one all-reduce of all gradients, as one vector."""

    @staticmethod
    def forward(context, group: dist.ProcessGroup, *weights: torch.Tensor):
        context.group = group
        return tuple(weight.view_as(weight) for weight in weights)

    @staticmethod
    def backward(context, *gradients: torch.Tensor):
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        dist.all_reduce(flat, group=context.group)
        pieces = flat.split([gradient.numel() for gradient in gradients])
        return None, *(piece.view(gradient.shape) for piece, gradient in zip(pieces, gradients, strict=True))


def summed_over_ranks(weights: Iterable[torch.Tensor], group: dist.ProcessGroup) -> tuple[torch.Tensor, ...]:
    """The same weights; their gradients are summed over the group, in one all-reduce.

    `copy_to_ranks` of lesson 9 does it for one tensor.
    """
    return _Summed.apply(group, *weights)


def loss_share(logits: torch.Tensor, labels: torch.Tensor, ranks: Ranks) -> torch.Tensor:
    """This rank's share of the mean cross entropy over the whole batch; 0 on a rank without examples.

    Args:
        logits: (examples, classes) or (examples, positions, classes), this rank's; the batch is cut among `ranks`.
        labels: of the whole batch, (batch,) or (batch, positions).
    """
    mine = own(labels, Spread((len(ranks), *(1,) * (labels.dim() - 1)), ranks))
    if not len(mine):
        return logits.sum()
    classes = logits.shape[-1]
    return cross_entropy(logits.reshape(-1, classes), mine.reshape(-1), reduction="sum") / labels.numel()


def _group(ranks: Ranks) -> dist.ProcessGroup | None:
    """The group of these ranks, made by all ranks where there is none yet; None for a single rank."""
    if len(ranks) < 2:
        return None
    world = dist.group.WORLD
    made = _groups.setdefault(world, {tuple(range(dist.get_world_size())): world})
    if ranks not in made:
        made[ranks] = dist.new_group(ranks)
    return made[ranks]
