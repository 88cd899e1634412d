"""Memory of training: what is computed beforehand is what the tensors themselves take, on every rank."""

import itertools
import weakref

import pytest
import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from course_utils.errors import CourseError
from course_utils.lessons.model_parallel import pictures
from course_utils.lessons.model_parallel.activation_checkpointing import checkpointed
from course_utils.lessons.model_parallel.activation_memory import block_activations
from course_utils.lessons.model_parallel.memory_counter import counting_saved
from course_utils.lessons.model_parallel.memory_parts import Memory, Parallelism, bytes_for_each_parameter
from course_utils.lessons.model_parallel.pictures import memory_finding
from course_utils.lessons.model_parallel.training_memory import layer_parameters, training_memory
from course_utils.lessons.model_parallel.transformer import Block, character_model
from workshop.bench import memory
from workshop.bench.memory_ranks import (
    DTYPES,
    OPTIMIZERS,
    MixedPrecision,
    divided,
    loss_of,
    on_mesh,
    on_one_rank,
    pipelined,
    small_model,
    tensor_parallel,
    texts,
)


def near(computed: Memory, counted: Memory) -> None:
    """Within 5% in every part; an Adam's few counters of steps are all that is left out."""
    assert computed.parts() == pytest.approx(counted.parts(), rel=0.05)
    assert computed.total == pytest.approx(counted.total, rel=0.05)


EVERY_WAY = [*itertools.product(OPTIMIZERS, DTYPES, [False, True], [0.0]), ("adam", "float32", False, 0.1)]


@pytest.mark.parametrize(("optimizer", "precision", "checkpointing", "dropout"), EVERY_WAY)
def test_one_rank_keeps_what_was_computed(optimizer, precision, checkpointing, dropout) -> None:
    near(*on_one_rank(optimizer, precision, checkpointing, dropout))


class Alive(TorchDispatchMode):
    """Bytes of all tensors that operations have made and that are still there: another way to count."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes: dict[int, int] = {}

    def __torch_dispatch__(self, operation, types, arguments=(), named=None):
        made = operation(*arguments, **(named or {}))
        for tensor in tree_leaves(made):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                if storage._cdata not in self.bytes:
                    self.bytes[storage._cdata] = storage.nbytes()
                    weakref.finalize(storage, self.bytes.pop, storage._cdata)
        return made


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_what_is_alive_after_the_forward_pass_is_what_hooks_count(checkpointing, dropout) -> None:
    model = small_model(dropout)
    layers = checkpointed(model) if checkpointing else model
    x, target = texts()
    with counting_saved(model) as saved:
        hooked = loss_of(layers(x), target)
        counted = saved.now
    del hooked
    parameters = {one.untyped_storage()._cdata for one in model.parameters()}
    with Alive() as alive:
        loss = loss_of(layers(x), target)
    known = [size for storage, size in alive.bytes.items() if storage not in parameters]
    assert sum(known) == pytest.approx(counted, rel=0.02) and loss.item() > 0


@pytest.mark.parametrize(("batch", "length", "heads"), [(1, 16, 4), (2, 1, 4), (1, 5, 1), (5, 7, 2)])
def test_any_size_is_computed(batch, length, heads) -> None:
    model = character_model(11, 24, heads, 1, 16, 0.2)
    x = torch.randint(11, (batch, length))
    with counting_saved(model) as saved:
        loss_of(model(x), x.clone()).backward()
    assert training_memory(model, batch, length).activations == pytest.approx(saved.most, rel=0.01)
    assert saved.now == 0, "all is free after the backward pass"


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("sequence", [False, True])
@pytest.mark.parametrize(("dropout", "ranks"), [(0.0, 4), (0.1, 2)])
def test_tensor_parallel_ranks_keep_what_was_computed(four_ranks, ranks, dropout, sequence, checkpointing) -> None:
    for computed, counted in four_ranks.run(
        tensor_parallel, dropout, sequence, checkpointing, ranks=ranks, backend="gloo"
    ).results:
        near(computed, counted)


@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize(
    ("way", "ranks", "micro_batches", "dropout"), [("gpipe", 2, 4, 0.1), ("1f1b", 3, 5, 0.0), ("1f1b", 3, 2, 0.1)]
)
def test_stages_keep_what_was_computed(four_ranks, way, ranks, micro_batches, checkpointing, dropout) -> None:
    run = four_ranks.run(pipelined, way, micro_batches, checkpointing, dropout, ranks=ranks)
    for computed, counted in run.results:
        near(computed, counted)


@pytest.mark.parametrize("sizes", [{"pipeline": 2, "tensor": 2}, {"data": 2, "pipeline": 2}, {"data": 2, "tensor": 2}])
def test_ranks_of_a_mesh_keep_what_was_computed(four_ranks, sizes) -> None:
    for computed, counted in four_ranks.run(on_mesh, sizes, backend="gloo").results:
        near(computed, counted)


@pytest.mark.parametrize("ranks", [2, 4])
@pytest.mark.parametrize("stage", [0, 1, 2, 3])
def test_stages_of_zero_keep_what_was_computed(four_ranks, stage, ranks) -> None:
    for computed, counted in four_ranks.run(divided, stage, ranks=ranks, backend="gloo").results:
        near(computed, counted)


def test_a_block_saves_what_the_paper_counts() -> None:
    """Equations 1, 2 and 4, with 16 bits and dropout; where ours differ, by what the module says."""
    b, s, h, a, t = 2, 64, 48, 6, 3
    block = Block(h, a, 0.1, torch.Generator())
    small = 2 * 4 * b * s + s * s  # means and deviations; the mask of the future
    assert block_activations(block, b, s, 2) == s * b * h * (34 + 5 * a * s / h) + small
    masks = a * s * s * b * (1 - 1 / t)  # of the attention's dropout, which our ranks keep whole
    wanted = s * b * h * (10 + 24 / t + 5 * a * s / (h * t)) + masks + small
    assert block_activations(block, b, s, 2, t) == pytest.approx(wanted)
    whole = (1 - 1 / t) * s * b * h * (2 * 2 + 2)  # two gathered inputs, two masks
    wanted = s * b * h / t * (34 + 5 * a * s / h) + whole + masks + small - 8 * b * s * (1 - 1 / t)
    assert block_activations(block, b, s, 2, t, sequence=True) == pytest.approx(wanted)


def test_mixed_precision_counts_two_two_and_twelve() -> None:
    assert bytes_for_each_parameter("adam", "mixed") == (2, 2, 12)
    assert bytes_for_each_parameter("momentum", "float32") == (4, 4, 4)
    assert bytes_for_each_parameter("sgd", "float64") == (8, 8, 0)


@pytest.mark.parametrize(("optimizer", "precision"), [("adagrad", "float32"), ("adam", "float8")])
def test_what_is_not_known_is_rejected(optimizer, precision) -> None:
    with pytest.raises(CourseError, match="not known here"):
        training_memory(small_model(), 1, 4, optimizer, precision)
    with pytest.raises(CourseError, match="at least one rank"):
        Parallelism(tensor=0)
    with pytest.raises(CourseError, match="not a layer of the character model"):
        training_memory(nn.Sequential(nn.Linear(2, 2)), 1, 4)


def test_parameters_of_all_ranks_are_the_models() -> None:
    model = small_model()
    assert layer_parameters(model[1]) == sum(one.numel() for one in model[1].parameters())
    assert layer_parameters(model[1], 4) == 12 * 32**2 / 4 + 7 * 32 / 4 + 6 * 32


def test_a_block_that_is_computed_again_has_the_same_gradients() -> None:
    """With dropout, whose masks must be the same; and the generator goes on where it would be without."""
    x, target = texts()
    gradients = []
    for wrap in (lambda model: model, checkpointed):
        layers = wrap(small_model(0.3, "float64"))
        for _ in range(2):
            layers.zero_grad()
            loss_of(layers(x), target).backward()
        gradients.append([one.grad for one in layers.parameters()])
    for plain, again in zip(*gradients, strict=True):
        assert torch.equal(plain, again)


def test_small_steps_are_not_lost_in_mixed_precision() -> None:
    one = nn.Parameter(torch.ones(3, dtype=torch.bfloat16))
    optimizer = MixedPrecision([one], lambda copies: torch.optim.SGD(copies, 1e-3))
    for _ in range(20):
        optimizer.zero_grad()
        one.sum().backward()
        optimizer.step()
    assert one.tolist() == pytest.approx([0.98] * 3, abs=0.004)
    alone = torch.ones(3, dtype=torch.bfloat16)
    for _ in range(20):
        alone -= 1e-3
    assert alone.tolist() == [1.0] * 3, "each step is less than half of the last digit"


def test_the_picture_says_how_far_the_formula_is() -> None:
    counted = Memory(100, 100, 200, 50)
    computed = {"plain": counted, "cut": Memory(99, 100, 200, 52)}
    picture = pictures.memory(computed, {"plain": counted, "cut": counted})
    assert "within 4% of what was counted" in picture.alt_text
    assert "cut: computed parameters 99 B" in picture.alt_text
    assert memory_finding({"a": (counted, counted)}) == "Computed and counted bytes agree in every part"
    wrong = memory_finding({"a": (counted, counted), "b": (Memory(100, 100, 200, 75), counted)})
    assert wrong == "Activations of b: 50% more was computed than counted"
    with pytest.raises(CourseError, match="the same names"):
        pictures.memory(computed, {"plain": counted})


def test_the_bench_gives_the_largest_difference_and_published_runs() -> None:
    counted = Memory(100, 100, 0, 50)
    row = memory.farthest("a", [(counted, counted), (Memory(100, 98, 0, 50), counted)])
    assert row.value == pytest.approx(2) and row.ok
    assert not memory.farthest("a", [(Memory(100, 98, 0, 53), counted)]).ok
    assert [row.target for row in memory.published()] == [None] * 14
