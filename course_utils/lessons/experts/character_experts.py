"""The character model of lesson 9, with experts instead of each block's MLP.

Every rank makes the whole model first, with all experts, and then keeps its own. So it starts as one process does.
"""

from collections.abc import Callable

import torch
from torch import nn

from course_utils.lessons.data_parallel.differentiable import Group
from course_utils.lessons.experts.expert_capacity import capacity
from course_utils.lessons.experts.expert_layer import (
    combine,
    dispatch,
    experts_in_one_process,
    own_experts,
    run_experts,
)
from course_utils.lessons.experts.gate import route
from course_utils.lessons.model_parallel.text import CHARACTERS
from course_utils.lessons.model_parallel.transformer import Mlp, character_model
from course_utils.trace.recorder import phase


def expert_mlp(width: int, hidden: int) -> nn.Module:
    """An MLP with so many hidden units."""
    return nn.Sequential(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


class WholeExperts(nn.Module):
    """A gate and all its experts, in one process.

    Attributes:
        k: experts for each token.
        factor: of the capacity; None if no token is dropped.
        choose: (scores, k, bias) → experts and weights; `route`, or a different gate.
        bias: (experts,), added for the choice only.
        shared: an expert that every token goes through, or None.
        shares, chosen: of the last forward pass: (tokens, experts), with gradient; (tokens, k), −1 where dropped.
    """

    def __init__(
        self,
        width: int,
        number: int,
        k: int = 1,
        factor: float | None = None,
        hidden: int | None = None,
        shared: bool = False,
        choose: Callable = route,
    ) -> None:
        super().__init__()
        self.k, self.factor, self.number, self.choose = k, factor, number, choose
        self.gate = nn.Linear(width, number, bias=False)
        self.experts = nn.ModuleList(expert_mlp(width, hidden) if hidden else Mlp(width) for _ in range(number))
        self.shared = expert_mlp(width, hidden or 4 * width) if shared else None
        self.register_buffer("bias", torch.zeros(number))
        self.shares, self.chosen = torch.empty(0), torch.empty(0)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(…, width) → the same shape."""
        tokens = x.flatten(0, -2)
        scores = self.gate(tokens)
        experts, weights = self.choose(scores, self.k, self.bias)
        if self.factor is not None:
            experts = capacity(experts, self.number, self.factor)
        self.shares, self.chosen = scores.softmax(dim=-1), experts
        y = self.through_experts(tokens, experts, weights)
        return (y if self.shared is None else y + self.shared(tokens)).view(x.shape)

    def through_experts(self, tokens: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """(tokens, width) → the same shape."""
        return experts_in_one_process(tokens, experts, weights, self.experts)


class ParallelExperts(WholeExperts):
    """The same with the experts on different ranks: each keeps its own, the whole gate and the shared expert.

    Args:
        whole: equal on all ranks.
        group: the ranks that share one set of experts; None for all.
    """

    def __init__(self, whole: WholeExperts, group: Group = None) -> None:
        nn.Module.__init__(self)
        self.k, self.factor, self.number, self.choose = whole.k, whole.factor, whole.number, whole.choose
        self.group = group
        self.gate, self.experts, self.shared = whole.gate, own_experts(whole.experts, group), whole.shared
        self.register_buffer("bias", whole.bias)
        self.shares, self.chosen = torch.empty(0), torch.empty(0)

    def through_experts(self, tokens: torch.Tensor, experts: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
        """(tokens, width), of this rank, → the same shape."""
        with phase("dispatch"):
            dispatched = dispatch(tokens, experts, len(self.experts), self.group)
        with phase("experts"):
            made = run_experts(dispatched.rows, dispatched.expert, self.experts)
        with phase("combine"):
            return combine(made, weights, dispatched, self.group)


def character_experts(
    number: int,
    k: int = 1,
    factor: float | None = None,
    width: int = 32,
    depth: int = 2,
    context: int = 16,
    **layer: object,
) -> nn.Sequential:
    """A transformer that predicts the next character, in float64; in each block `number` experts, of which k are used.

    With number = 0 it is the dense model: one MLP, as large as an expert.

    Args:
        layer: `hidden`, `shared` and `choose` of `WholeExperts`.
    """
    model = character_model(len(CHARACTERS), width=width, depth=depth, context=context)
    if number:
        for block in list(model)[1:-1]:
            block.mlp = WholeExperts(width, number, k, factor, **layer)
    return model.double()


def expert_layers(model: nn.Module) -> list[WholeExperts]:
    """The layers of a model that have experts, in order."""
    return [layer for layer in model.modules() if isinstance(layer, WholeExperts)]


def spread_experts(model: nn.Sequential, group: Group = None) -> nn.Sequential:
    """Leave each rank of a group its own experts of every layer; the rest stays whole. Changes `model`.

    Raises:
        CourseError: the experts cannot be dealt out evenly.
    """
    for block in list(model)[1:-1]:
        if isinstance(block.mlp, WholeExperts):
            block.mlp = ParallelExperts(block.mlp, group)
    return model


def parameters_apart(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    """A model's parameters: those that every rank has, and those of this rank's experts."""
    own = {id(parameter) for layer in expert_layers(model) for parameter in layer.experts.parameters()}
    both: tuple[list, list] = [], []
    for parameter in model.parameters():
        both[id(parameter) in own].append(parameter)
    return both


def flops_per_token(model: nn.Sequential) -> int:
    """Floating-point operations of a forward pass per token, in linear layers: two for each weight that is used.

    Of a layer's experts k are used, and its gate. Attention's sums over the text are the same in all models here.
    """

    def weights_of(module: nn.Module) -> int:
        return sum(layer.weight.numel() for layer in module.modules() if isinstance(layer, nn.Linear))

    idle = [layer.experts[0] for layer in expert_layers(model) for _ in range(layer.number - layer.k)]
    return 2 * (weights_of(model) - sum(map(weights_of, idle)))
