"""Layers, matrices and sequences cut over ranks, equal to the serial model."""

import itertools
from functools import partial

import pytest
import torch
import torch.distributed as dist
from torch import nn

from course_utils.errors import CourseError
from course_utils.lessons.model_parallel import collective_counts
from course_utils.lessons.model_parallel import parallel_block as blocks
from course_utils.lessons.model_parallel.differentiable_collectives import all_gathered
from course_utils.lessons.model_parallel.experiments import (
    BATCH,
    LENGTH,
    WIDTH,
    beside_serial,
    small_batch,
    small_block,
    step_memory,
)
from course_utils.lessons.model_parallel.memory_parts import Parallelism
from course_utils.lessons.model_parallel.parallel_linear import ColumnParallelLinear, RowParallelLinear
from course_utils.lessons.model_parallel.split_layers import split_layers
from course_utils.lessons.model_parallel.training_memory import training_memory
from course_utils.lessons.model_parallel.transformer import Block, character_model


def test_layers_are_cut_as_well_as_by_trying_everything(seed) -> None:
    generator = torch.Generator().manual_seed(seed)
    for layers in range(1, 8):
        costs = [round(one, 2) for one in torch.rand(layers, generator=generator).tolist()]
        for ranks in range(1, layers + 1):
            sizes = split_layers(costs, ranks)
            assert len(sizes) == ranks and sum(sizes) == layers and min(sizes) >= 1
            cuts = itertools.combinations(range(1, layers), ranks - 1)
            best = min(max(pieces(costs, [0, *cut, layers])) for cut in cuts)
            starts = [0, *itertools.accumulate(sizes)]
            assert max(pieces(costs, starts)) == pytest.approx(best)


def pieces(costs, borders):
    """The cost of each piece between borders."""
    return [sum(costs[a:b]) for a, b in itertools.pairwise(borders)]


@pytest.mark.parametrize(("costs", "ranks"), [([1, 2], 3), ([1], 0), ([], 1), ([1, -1], 1)])
def test_cuts_that_are_none_are_rejected(costs, ranks) -> None:
    with pytest.raises(CourseError):
        split_layers(costs, ranks)


def cut(sequence: bool = False):
    """Our way to cut a block."""
    return partial(blocks.parallelise_block, sequence=sequence)


@pytest.mark.parametrize("world_size", [1, 2, 4])
@pytest.mark.parametrize("dropout", [0.0, 0.25])
@pytest.mark.parametrize("sequence", [False, True])
def test_a_block_cut_over_ranks_is_the_serial_block(four_ranks, world_size, dropout, sequence) -> None:
    run = four_ranks.run(beside_serial, cut(sequence), dropout, sequence, ranks=world_size, backend="gloo")
    for found in run.results:
        assert len(found) == 14
        assert {name: error for name, error in found.items() if not error <= 1e-10} == {}


def forward_and_backward(part: str) -> None:
    """One pass forward and backward through half a block."""
    block = small_block()
    blocks.parallelise_block(block)
    x, weights = small_batch()
    (getattr(block, part)(x) * weights).sum().backward()


def with_wrong_part(block: Block) -> None:
    """Every rank cuts out the part of rank 0, as one that forgets its own number does."""
    whole = block.mlp.up.weight.detach().clone()
    blocks.parallelise_block(block)
    block.mlp.up.weight.data = whole.chunk(dist.get_world_size())[0].clone()


def without_its_sum(block: Block) -> None:
    """The column-parallel layer of the perceptron forgets to add up the gradient of its input."""
    blocks.parallelise_block(block)
    layer = block.mlp.up
    layer.forward = lambda x: nn.functional.linear(x, layer.weight, layer.bias)


@pytest.mark.parametrize(("wrong", "seen"), [(with_wrong_part, "output"), (without_its_sum, "x")])
def test_a_block_that_is_cut_wrongly_is_found(four_ranks, wrong, seen) -> None:
    found = four_ranks.run(beside_serial, wrong, ranks=2, backend="gloo").results
    assert max(errors[seen] for errors in found) > 1e-3


@pytest.mark.parametrize("part", ["attention", "mlp"])
def test_half_a_block_needs_one_all_reduce_forward_and_one_backward(four_ranks, part) -> None:
    run = four_ranks.run(forward_and_backward, part, ranks=2, backend="gloo")
    for rank in range(2):
        sent = [event for event in run.events if event.kind == "collective" and event.rank == rank]
        assert [event.name for event in sent] == ["all_reduce", "all_reduce"]
        assert [event.bytes for event in sent] == [BATCH * LENGTH * WIDTH * 8] * 2


def sequence_pass() -> None:
    """A whole block, sequence-parallel."""
    block = small_block()
    blocks.parallelise_block(block, sequence=True)
    x, weights = small_batch()
    mine = x.detach().chunk(2, 1)[dist.get_rank()].requires_grad_()
    (block(mine) * weights.chunk(2, 1)[dist.get_rank()]).sum().backward()


def test_sequence_parallel_moves_the_same_in_other_words(four_ranks) -> None:
    """Two all-gathers and two reduce-scatters in each direction stand for the two all-reduces."""
    run = four_ranks.run(sequence_pass, ranks=2, backend="gloo")
    names = [event.name for event in run.events if event.kind == "collective" and event.rank == 0]
    forward, backward = names[:4], names[4:]
    assert forward == ["all_gather", "reduce_scatter_single"] * 2
    assert backward == ["all_gather", "reduce_scatter_single"] * 2


def through_modules(bias: bool) -> float:
    """A column-parallel layer and a row-parallel one, against the two whole layers."""
    torch.manual_seed(0)
    up, down = nn.Linear(6, 8, bias=bias).double(), nn.Linear(8, 5, bias=bias).double()
    x = torch.randn(7, 6, dtype=torch.float64)
    wanted = down(up(x).tanh())
    return (RowParallelLinear(down)(ColumnParallelLinear(up)(x).tanh()) - wanted).abs().max().item()


@pytest.mark.parametrize("bias", [True, False])
def test_column_then_row_needs_no_message_between(four_ranks, bias) -> None:
    run = four_ranks.run(through_modules, bias, backend="gloo")
    assert max(run.results) <= 1e-12
    assert len([event for event in run.events if event.kind == "collective"]) == 4, "one all-reduce on each rank"


def test_what_cannot_be_divided_is_rejected(four_ranks) -> None:
    def odd():
        blocks.parallelise_block(Block(18, 3, 0.0, torch.Generator()))

    def narrow():
        ColumnParallelLinear(nn.Linear(4, 6))

    with pytest.raises(Exception, match="3 heads cannot be divided among 4 ranks"):
        four_ranks.run(odd, backend="gloo")
    with pytest.raises(Exception, match="6 along dimension 0 cannot be divided among 4 ranks"):
        four_ranks.run(narrow, backend="gloo")


def test_the_character_model_learns_to_repeat() -> None:
    model = character_model(3, width=16, heads=2, depth=1, context=12)
    text = torch.tensor([[0, 1, 2] * 4])
    first = None
    for _ in range(25):
        loss = nn.functional.cross_entropy(model(text[:, :-1]).flatten(0, 1), text[:, 1:].flatten())
        first = first or loss.item()
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for one in model.parameters():
                if one.grad is not None:
                    one -= 0.3 * one.grad
    assert loss.item() < 0.3 * first


def test_attention_does_not_look_ahead() -> None:
    model = character_model(5, width=16, heads=2, depth=2, context=10)
    text = torch.randint(5, (1, 10), generator=torch.Generator().manual_seed(1))
    changed = text.clone()
    changed[0, 6:] = (changed[0, 6:] + 1) % 5
    torch.testing.assert_close(model(text)[:, :6], model(changed)[:, :6])


def joined_weights() -> list[float]:
    """How far a cut block's matrices, put together again, are from the serial block's."""
    serial, parallel = small_block(), small_block()
    blocks.parallelise_block(parallel)
    pairs = {"attention.qkv": 0, "attention.out": 1, "mlp.up": 0, "mlp.down": 1}
    return [
        (all_gathered(parallel.get_submodule(name).weight.detach(), dim) - serial.get_submodule(name).weight)
        .abs()
        .max()
        .item()
        for name, dim in pairs.items()
    ]


def test_first_weights_are_those_of_one_process(four_ranks) -> None:
    assert four_ranks.run(joined_weights, backend="gloo").results == [[0.0] * 4] * 4


def whole_model(sequence: bool) -> float:
    """How far the loss of a cut model is from the serial one's, and the gradients of what every rank has whole."""
    text = torch.arange(24).view(2, 12) % 5

    def loss_of(model: nn.Module) -> torch.Tensor:
        return nn.functional.cross_entropy(model(text[:, :8]).flatten(0, 1), text[:, 1:9].flatten())

    serial, parallel = (character_model(5, 16, 4, depth=2, context=12, dropout=0.1).double() for _ in range(2))
    blocks_of = [one for one in parallel if isinstance(one, Block)]
    cut = blocks.parallelise_model(parallel, sequence=sequence)
    wanted, got = loss_of(serial), loss_of(cut)
    wanted.backward()
    got.backward()
    for one in blocks_of if sequence else []:
        blocks.sum_sequence_gradients(one)
    found = [(got - wanted).abs().item()]
    theirs = dict(serial.named_parameters())
    for name, one in parallel.named_parameters():
        if one.shape == theirs[name].shape:
            found.append((one.grad - theirs[name].grad).abs().max().item() if one.grad is not None else 0.0)
    assert len(found) >= 18
    return max(found)


@pytest.mark.parametrize("sequence", [False, True])
def test_a_whole_model_is_cut_block_by_block(four_ranks, sequence) -> None:
    assert max(four_ranks.run(whole_model, sequence, backend="gloo").results) <= 1e-10


@pytest.mark.parametrize(("sequence", "checkpointing"), [(False, False), (True, False), (False, True)])
def test_a_step_keeps_what_the_formula_says_on_every_rank(four_ranks, sequence, checkpointing) -> None:
    model = character_model(5, 16, 4, depth=2, context=12, dropout=0.1)
    batch = torch.arange(24).view(2, 12) % 5, torch.arange(1, 25).view(2, 12) % 5
    cut = Parallelism(tensor=2, sequence=sequence)
    computed = training_memory(model, 2, 12, parallelism=cut, checkpointing=checkpointing)
    run = four_ranks.run(step_memory, model, batch, sequence, checkpointing, ranks=2, backend="gloo")
    assert [one.total for one in run.results] == pytest.approx([computed.total] * 2, rel=0.05)
    again = 2 if checkpointing else 1
    names = [one.name for one in collective_counts.collectives_in(run.events, "backward")]
    reductions = [name for name in names if "reduce" in name]
    assert len(reductions) == 2 * 2 * again, names
