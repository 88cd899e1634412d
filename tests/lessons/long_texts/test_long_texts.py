"""Attention in blocks, round a ring and by an exchange of heads equals ordinary attention; what it takes is counted."""

import itertools
import math
from functools import partial

import pytest
import torch
import torch.distributed as dist
from torch.nn import functional

from course_utils.errors import CourseError
from course_utils.lessons.long_texts.allocated import Allocated
from course_utils.lessons.long_texts.block_attention import block_attention, masked_scores, ordinary_attention
from course_utils.lessons.long_texts.bytes_sent import Shape, ring_bytes, ulysses_bytes
from course_utils.lessons.long_texts.experiments import (
    attention_memory,
    beside_one_process,
    bytes_in,
    computing,
    drawn_text,
    mesh_beside_one_process,
    output_beside_one_process,
    ring_without_messages,
    text_step_memory,
)
from course_utils.lessons.long_texts.long_attention import attention_in_blocks, attention_round_the_ring
from course_utils.lessons.long_texts.longest_text import longest_text
from course_utils.lessons.long_texts.merge import merge_attention
from course_utils.lessons.long_texts.mesh_model import in_one_process
from course_utils.lessons.long_texts.ring_attention import ring_attention
from course_utils.lessons.long_texts.text_memory import TextMemory, memory_in_blocks, ordinary_memory
from course_utils.lessons.long_texts.torch_tool import add_processor_kernel
from course_utils.lessons.long_texts.ulysses import check_heads, ulysses_attention
from course_utils.lessons.long_texts.work import imbalance, keys_needed, pairs_computed, pairs_seen
from course_utils.lessons.long_texts.zigzag import in_order, zigzag
from course_utils.lessons.model_parallel.transformer import character_model

RINGS = {"ring": attention_round_the_ring, "Ulysses": ulysses_attention}


def with_gradients(attend, q, k, v, gradient):
    """The output, and what comes back for q, k and v."""
    inputs = [one.clone().requires_grad_() for one in (q, k, v)]
    out = attend(*inputs)
    return out, *torch.autograd.grad(out, inputs, gradient)


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("block", [1, 5, 8, 37, 100])
def test_attention_in_blocks_is_ordinary_attention(block, kv_heads) -> None:
    text = drawn_text(37, kv_heads=kv_heads, batch=2)
    wanted = with_gradients(ordinary_attention, *text)
    got = with_gradients(partial(attention_in_blocks, positions=torch.arange(37), block=block), *text)
    for one, other in zip(got, wanted, strict=True):
        assert (one - other).abs().max() <= 1e-12


def test_numerical_differences_agree_with_the_gradients() -> None:
    q, k, v, _ = (one.requires_grad_() for one in drawn_text(7, heads=2, size=3, kv_heads=1))
    assert torch.autograd.gradcheck(partial(attention_in_blocks, positions=torch.arange(7), block=3), (q, k, v))


def test_the_log_sum_exp_is_that_of_the_scores() -> None:
    q, k, v, _ = drawn_text(20)
    positions = torch.arange(20)
    _, lse = block_attention(q, k, v, positions, positions, block=6)
    assert (lse - masked_scores(q, k, positions, positions).logsumexp(-1)).abs().max() <= 1e-12


@pytest.mark.parametrize(("dtype", "error"), [(torch.float16, 2e-3), (torch.bfloat16, 2e-2), (torch.float32, 2e-6)])
def test_sums_of_short_numbers_are_kept_in_float32(dtype, error) -> None:
    text = [one.to(dtype) for one in drawn_text(300)]
    positions = torch.arange(300)
    out, lse = block_attention(*text[:3], positions, positions, block=16)
    assert out.dtype == lse.dtype == torch.float32
    wanted = with_gradients(ordinary_attention, *(one.double() for one in text))
    assert (out - wanted[0]).abs().max() <= 2e-6
    got = with_gradients(partial(attention_in_blocks, positions=positions, block=16), *text)
    for one, other in zip(got, wanted, strict=True):
        assert one.dtype == dtype
        assert (one - other).abs().max() <= error * other.abs().max()


def test_parts_are_merged_in_any_order_and_where_nothing_was_seen() -> None:
    q, k, v, _ = drawn_text(12)
    positions = torch.arange(12)
    whole = block_attention(q, k, v, positions, positions)
    pieces = [slice(0, 3), slice(3, 4), slice(4, 12)]
    parts = [block_attention(q, k[:, :, keys], v[:, :, keys], positions, positions[keys]) for keys in pieces]
    for order in itertools.permutations(parts):
        merged = merge_attention(*merge_attention(*order[0], *order[1]), *order[2])
        for one, other in zip(merged, whole, strict=True):
            assert (one - other).abs().max() <= 1e-12
    nothing = torch.zeros(2, 3), torch.full((2,), -torch.inf)
    out, lse = merge_attention(*nothing, *nothing)
    assert (out == 0).all() and lse.isneginf().all()


def test_large_scores_do_not_overflow() -> None:
    out, lse = merge_attention(torch.ones(1, 2), torch.tensor([2000.0]), 3 * torch.ones(1, 2), torch.tensor([2000.0]))
    assert out.tolist() == [[2.0, 2.0]]
    assert lse.item() == pytest.approx(2000 + math.log(2))


def test_memory_is_linear_in_the_length() -> None:
    lengths = 256, 512, 1024
    blocks = partial(attention_memory, lambda q, k, v: attention_in_blocks(q, k, v, torch.arange(q.shape[2])))
    saved, most = zip(*map(blocks, lengths), strict=True)
    assert saved[2] == 2 * saved[1] == 4 * saved[0]
    assert most[2] < 2.2 * most[0]  # it is the block's scores that count
    saved, most = zip(*map(partial(attention_memory, ordinary_attention), lengths), strict=True)
    assert saved[2] > 3.7 * saved[1] and most[2] > 3.9 * most[1]
    assert saved[2] > 4 * 4 * 1024**2  # a weight for each pair and head


def test_allocated_counts_each_storage_until_it_is_gone() -> None:
    with Allocated() as counted:
        one = torch.zeros(100)
        two = one + 1
        two.view(10, 10).add_(1)
        del two
        three = torch.zeros(10)
    assert (counted.now, counted.most, counted.largest) == (440, 800, 400)
    assert three.numel() and counted.multiplied == 0


@pytest.mark.parametrize(("deal", "length"), [(in_order, 32), (zigzag, 32), (zigzag, 37), (zigzag, 5)])
@pytest.mark.parametrize("world_size", [1, 2, 3, 4])
def test_a_ring_is_one_process(world_size, deal, length, four_ranks) -> None:
    attend = attention_round_the_ring
    run = four_ranks.run(beside_one_process, attend, deal(length, world_size), ranks=world_size, backend="gloo")
    assert max(max(found.values()) for found in run.results) <= 1e-12


@pytest.mark.parametrize("kv_heads", [4, 2, 1])
@pytest.mark.parametrize("world_size", [1, 2, 4])
def test_a_ring_sends_what_the_formula_says(world_size, kv_heads, four_ranks) -> None:
    positions = zigzag(48, world_size)
    run = four_ranks.run(
        beside_one_process, attention_round_the_ring, positions, kv_heads=kv_heads, ranks=world_size, backend="gloo"
    )
    assert max(max(found.values()) for found in run.results) <= 1e-12
    formula = ring_bytes(Shape(48, 4, 16, kv_heads, number_bytes=8), world_size)
    for name, rank in itertools.product(formula, range(world_size)):
        assert bytes_in(run.events, name, rank) == formula[name]
    assert run.rounds == 3 * (world_size - 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_ring_carries_short_numbers(dtype, four_ranks) -> None:
    run = four_ranks.run(beside_one_process, attention_round_the_ring, zigzag(40, 4), dtype=dtype, backend="gloo")
    assert max(max(found.values()) for found in run.results) <= 0.05
    formula = ring_bytes(Shape(40, 4, 16, number_bytes=2, gradient_bytes=4), 4)
    assert [bytes_in(run.events, name, 2) for name in formula] == list(formula.values())


@pytest.mark.parametrize(("world_size", "kv_heads"), [(1, 1), (2, 4), (2, 2), (4, 4)])
def test_ulysses_is_one_process_and_sends_what_the_formula_says(world_size, kv_heads, four_ranks) -> None:
    positions = zigzag(48, world_size)
    run = four_ranks.run(
        beside_one_process, ulysses_attention, positions, kv_heads=kv_heads, ranks=world_size, backend="gloo"
    )
    assert max(max(found.values()) for found in run.results) <= 1e-12
    formula = ulysses_bytes(Shape(48, 4, 16, kv_heads, number_bytes=8), world_size)
    for name, rank in itertools.product(formula, range(world_size)):
        others = (world_size - 1) / world_size  # the trace counts a rank's own part too
        assert bytes_in(run.events, name, rank) * others == formula[name]
    assert run.collectives == (8 if world_size > 1 else 0)


def with_copied_heads(q, k, v, positions):
    """Ulysses, with each head of keys and values copied until there is one for every rank."""
    copies = dist.get_world_size() // k.shape[1]
    return ulysses_attention(q, *(one.repeat_interleave(copies, dim=1) for one in (k, v)), positions)


def test_ulysses_copies_heads_if_there_are_too_few(four_ranks) -> None:
    run = four_ranks.run(beside_one_process, with_copied_heads, zigzag(48, 4), kv_heads=2, backend="gloo")
    assert max(max(found.values()) for found in run.results) <= 1e-12
    shape = Shape(48, 4, 16, 2, number_bytes=8)
    formula = ulysses_bytes(shape, 4, copies=True)
    assert [bytes_in(run.events, name, 0) * 3 / 4 for name in formula] == list(formula.values())
    with pytest.raises(CourseError, match="4 and 2 heads cannot be divided among 4 ranks"):
        ulysses_bytes(shape, 4)
    with pytest.raises(CourseError, match="cannot be divided"):
        ulysses_bytes(Shape(48, 12, 16, 3), 4, copies=True)  # 4 is no multiple of 3
    assert ulysses_bytes(shape, 2, copies=True) == ulysses_bytes(shape, 2)


def own_part(q, k, v, positions):
    """Attention of this rank's queries to the keys of the whole text, which every rank can draw."""
    tokens = sum(map(len, positions))
    _, k, v, _ = drawn_text(tokens)
    return attention_in_blocks(q, k, v, positions[dist.get_rank()], k_positions=torch.arange(tokens))


def test_queries_and_keys_may_be_of_different_tokens(four_ranks) -> None:
    assert max(four_ranks.run(output_beside_one_process, own_part, zigzag(40, 4), backend="gloo").results) <= 1e-12
    q, k, v, _ = (one.requires_grad_() for one in drawn_text(7, heads=2, size=3))
    some = torch.tensor([1, 5])
    attend = partial(attention_in_blocks, positions=some, block=3, k_positions=torch.arange(7))
    assert torch.autograd.gradcheck(attend, (q[:, :, some].detach().requires_grad_(), k, v))


def test_in_a_pack_a_query_sees_its_own_document() -> None:
    starts = torch.tensor([0, 0, 0, 3, 3, 5])
    assert pairs_seen([torch.tensor([0, 2, 5]), torch.tensor([1, 3, 4])], starts) == [1 + 3 + 1, 2 + 1 + 2]


def test_a_rank_needs_keys_of_its_own_documents_only() -> None:
    assert keys_needed(in_order(128, 4)) == [0, 32, 64, 96]
    assert keys_needed(zigzag(128, 4)) == [96, 80, 64, 48]  # pieces of 16 tokens
    starts = torch.tensor([16, 16, 32, 64]).cumsum(0).sub(torch.tensor([16, 16, 32, 64]))
    starts = starts.repeat_interleave(torch.tensor([16, 16, 32, 64]))
    assert keys_needed(in_order(128, 4), starts) == [0, 0, 0, 32]
    mixed, starts = [torch.tensor([0, 2, 5]), torch.tensor([1, 3, 4])], torch.tensor([0, 0, 0, 3, 3, 5])
    seen = [  # by the mask itself
        {key for query in own.tolist() for key in range(int(starts[query]), query + 1)} - set(own.tolist())
        for own in mixed
    ]
    assert keys_needed(mixed, starts) == [len(keys) for keys in seen] == [1, 1]


def test_who_sends_less_is_known_beforehand() -> None:
    for heads, kv_heads in ((8, 8), (32, 8), (32, 32), (64, 8)):
        last = 1 + heads // kv_heads  # with so many ranks both send the same
        for world_size in (2, 4, 8):
            if kv_heads % world_size == 0:
                shape = Shape(64, heads, 4, kv_heads)
                ring, ulysses = ring_bytes(shape, world_size), ulysses_bytes(shape, world_size)
                for way in ring:
                    more = ring[way] if way == "forward" else ring[way] / 2
                    assert (more <= ulysses[way]) == (world_size <= last)


def test_zigzag_deals_out_every_token_once_and_the_same_work() -> None:
    for world_size, length in itertools.product(range(1, 9), range(1, 70)):
        if length < world_size:
            continue
        for deal in (in_order, zigzag):
            positions = deal(length, world_size)
            assert torch.cat(positions).sort().values.tolist() == list(range(length))
            assert min(map(len, positions)) >= 1
            assert all(one.tolist() == sorted(one.tolist()) for one in positions)
    pairs = pairs_seen(zigzag(64, 4))
    assert len(set(pairs)) == 1 and sum(pairs) == 64 * 65 // 2


def test_in_order_the_last_of_four_ranks_has_seven_times_as_much_to_do() -> None:
    for block in (16, 64, 1024):  # tokens on a rank
        first, *_, last = pairs_seen(in_order(4 * block, 4))
        assert (first, last) == (block * (block + 1) // 2, 3 * block**2 + block * (block + 1) // 2)
    assert last / first == pytest.approx(7, rel=0.01)
    assert imbalance(pairs_seen(in_order(4096, 4))) == pytest.approx(7 / 4, rel=0.001)
    assert imbalance(pairs_seen(zigzag(4096, 4))) == 1.0


@pytest.mark.parametrize("attend", [ring_attention, ring_without_messages])
@pytest.mark.parametrize("deal", [in_order, zigzag])
def test_a_ring_computes_what_was_counted_with_messages_and_without(deal, attend, four_ranks) -> None:
    positions = deal(2048, 4)
    run = four_ranks.run(computing, attend, positions, backend="gloo")
    assert run.results == [2 * 2 * 4 * 16 * pairs for pairs in pairs_computed(positions, 128)]
    assert imbalance(run.results) == 1.0 if deal is zigzag else imbalance(run.results) > 1.6


def test_what_cannot_be_dealt_out_is_rejected() -> None:
    for deal in (in_order, zigzag):
        with pytest.raises(CourseError, match="A text of 3 tokens has none for some of 4 ranks"):
            deal(3, 4)
        with pytest.raises(CourseError, match="at least one rank"):
            deal(3, 0)
    with pytest.raises(CourseError, match="6 heads cannot be divided among 4 ranks"):
        check_heads([6], zigzag(8, 4), 4)
    with pytest.raises(CourseError, match="equal shares on 4 ranks, not .3, 3, 2, 2. tokens"):
        check_heads([4], zigzag(10, 4), 4)
    with pytest.raises(CourseError, match="cannot share"):
        Shape(8, 8, 4, 3)
    with pytest.raises(CourseError, match="at least one token"):
        block_attention(*drawn_text(4)[:3], torch.arange(4), torch.arange(4), block=0)
    with pytest.raises(CourseError, match="no dropout"):
        in_one_process(character_model(9, dropout=0.1), 8)


def test_positions_of_other_ranks_are_rejected(four_ranks) -> None:
    for positions, told in ((zigzag(8, 3), "3 shares for 4 ranks"), (zigzag(12, 4), "2 tokens and 3 positions")):
        given = [one[:, :, :2] for one in drawn_text(8)[:3]]
        with pytest.raises(CourseError, match=told):
            four_ranks.run(ring_attention, *given, positions, backend="gloo")


def test_the_longest_text_fits_and_a_longer_one_does_not(seed) -> None:
    generator = torch.Generator().manual_seed(seed)
    scale = 10 ** torch.tensor([9, 6, 5, 2])
    for world_size, _ in itertools.product((1, 3, 8), range(100)):
        memory, fixed, per_token, pairs = (torch.rand(4, generator=generator) * scale).tolist()
        for per_pair in (0.0, pairs):
            takes = TextMemory(fixed, per_token, per_pair).on_each
            n = longest_text(memory, fixed, per_token, per_pair, world_size) if fixed <= memory else 0
            assert n % (2 * world_size) == 0
            assert n == 0 or takes(n, world_size) <= memory * (1 + 1e-12)
            assert takes(n + 2 * world_size, world_size) > memory * (1 - 1e-12)
    assert longest_text(100, 40, 5) == 12 and longest_text(100, 100, 5) == 0
    with pytest.raises(CourseError, match="Without any text"):
        longest_text(100, 101, 5)
    with pytest.raises(CourseError, match="at least one rank"):
        longest_text(100, 1, 5, world_size=0)


@pytest.mark.parametrize("length", [64, 256])
def test_a_step_keeps_what_was_computed(length) -> None:
    sizes = {"characters": 40, "width": 64, "heads": 4, "depth": 2}
    model = character_model(context=length, **sizes)
    for blocks, formula in ((False, ordinary_memory), (True, memory_in_blocks)):
        counted = text_step_memory(length, blocks, **sizes)
        assert formula(model).on_each(length) == pytest.approx(counted.total, rel=0.02)


@pytest.mark.parametrize(
    ("sizes", "tokens"), [({"data": 1, "context": 2, "tensor": 2}, 24), ({"data": 2, "context": 2, "tensor": 1}, 29)]
)
def test_a_mesh_is_one_process(sizes, tokens, four_ranks) -> None:
    run = four_ranks.run(mesh_beside_one_process, sizes, tokens, backend="gloo")
    assert max(max(found.values()) for found in run.results) <= 1e-12


def test_a_mesh_of_other_ranks_is_rejected(four_ranks) -> None:
    with pytest.raises(CourseError, match="8 ranks, and 4 take part"):
        four_ranks.run(mesh_beside_one_process, {"data": 2, "context": 2, "tensor": 2}, backend="gloo")


BACKENDS = ("FLASH_ATTENTION", "MATH")
"""The kernels of scaled_dot_product_attention that torch has for processors."""


def torch_context_parallel(backend: str) -> str:
    """Do causal attention over all ranks with torch's tool, and say what came of it.

    Args:
        backend: one of `BACKENDS`.

    Returns:
        "runs, … away from one process", or the error's name and text.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel  # experimental: it may have moved
    from torch.nn.attention import SDPBackend, sdpa_kernel

    torch.manual_seed(0)
    whole = torch.randn(3, 1, 4, 32, 8)
    wanted = functional.scaled_dot_product_attention(*whole, is_causal=True)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    q, k, v = (one.clone() for one in whole)
    positions = torch.arange(32)
    try:
        buffers = {"buffers": [q, k, v, positions], "buffer_seq_dims": [2, 2, 2, 0]}
        with sdpa_kernel(getattr(SDPBackend, backend)), context_parallel(mesh, **buffers):
            out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            apart = (out - wanted[:, :, positions]).abs().max().item()
    except (NotImplementedError, RuntimeError) as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"
    return f"runs, {apart:.0e} away from one process"


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("backend", BACKENDS)
def test_torchs_own_tool_says_why_it_does_not_run_on_processors(backend, four_ranks) -> None:
    told = four_ranks.run(torch_context_parallel, backend, ranks=2, backend="gloo").results
    assert all(one.startswith(("NotImplementedError: ", "RuntimeError: ")) for one in told)


def torch_on_processors() -> tuple[list[int], float]:
    """Do causal attention over all ranks with torch's tool and the kernel for processors.

    Returns:
        This rank's positions, and how far its output and gradients are from those of one process.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.experimental import context_parallel

    add_processor_kernel()
    *whole, gradient = drawn_text(32, dtype=torch.float32)
    wanted = with_gradients(partial(functional.scaled_dot_product_attention, is_causal=True), *whole, gradient)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    buffers = [*(one.clone() for one in whole), gradient.clone(), torch.arange(32)]
    with context_parallel(mesh, buffers=buffers, buffer_seq_dims=[2, 2, 2, 2, 0]):
        attend = partial(functional.scaled_dot_product_attention, is_causal=True)
        got = with_gradients(attend, *buffers[:4])
        own = buffers[4].clone()
    apart = max((one - other[:, :, own]).abs().max().item() for one, other in zip(got, wanted, strict=True))
    return own.tolist(), apart


def test_torchs_own_tool_runs_with_the_kernel_for_processors(four_ranks) -> None:
    for rank, (own, apart) in enumerate(four_ranks.run(torch_on_processors, backend="gloo").results):
        assert own == zigzag(32, 4)[rank].tolist()
        assert apart < 1e-5
