# The lesson on context parallelism. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What if the text does not fit?
#
# In a late stage of its pre-training, Llama 3 405B read texts of 131,072 tokens. In each of its 126 layers, a token is
# a vector of 16,384 numbers. At 2 bytes per number, one vector for each token of a single text takes 131,072 × 16,384 ×
# 2 bytes, or 4.3 GB. The activation checkpointing of lesson 9 keeps only the input of each layer, but that is still 126
# × 4.3 = 541 GB, and the GPUs had 80 GB each. Lesson 9's attention also needs a number for each *pair* of tokens. For a
# single head in a single layer, these numbers alone take 131,072² × 2 bytes, or 34 GB, while they exist.
#
# Data parallelism is no help, because it gives whole texts to the ranks, and here one text is too much. With the
# sequence parallelism of lesson 9, a tensor group of 8 GPUs divides the 541 GB by 8, but the remaining 68 GB leaves
# hardly any room for the model. A pipeline of $P$ stages (lesson 10) doesn't help its first stage either, which has
# only $\frac1P$ of the layers but keeps the activations of $P$ texts at a time, because it starts $P$ texts before the
# first one comes back. So this lesson cuts the text itself. After it you can compute attention without ever holding all
# its scores, share one text among several ranks in two ways, and explain what each rank computes, sends and keeps.
#
# *50 minutes · builds on [lesson 9](09_model_parallel.ipynb) · 4 ranks*

# %%
from functools import partial

import torch
import torch.distributed as dist

import course_utils as course
from course_utils.lessons.long_texts import pictures, sentences

ranks = course.start(4, link="100 Mbit/s")
ranks.load_torch()

# %% [markdown]
# If the ranks share one text, each of them has some of its tokens and, in this lesson, a copy of all the model's
# parameters. This is called **context parallelism**. Norms, MLPs and linear layers treat each token on its own, so no
# activations have to be sent for them. Only attention looks at other tokens, so this lesson is about attention.
#
# What these layers do need is a sum. The gradient of a linear layer $y_t = W x_t$ is a sum over the tokens $t$ of the
# text, and each rank has only the terms of its own tokens:
#
# $$\frac{\partial L}{\partial W} =
# \sum_{\text{ranks}}\ \sum_{t\ \text{of this rank}} \frac{\partial L}{\partial y_t}\, x_t^\top$$
#
# The outer sum is an all-reduce over the ranks, just as in data parallelism (lesson 6). We don't count it below,
# because its bytes don't depend on the length of the text.
#
# ## Twice the text, four times the scores
#
# In attention (lesson 9), the query of each token is multiplied with the key of every token up to its own position. The
# **causal mask** hides later keys, because a model that is learning to predict the next token mustn't see that token.
# Each pair of a query and a key gives a *score*, and a softmax turns the scores of a query into the *softmax weights*
# with which it adds up the values.
#
# Let's count for 1,000 tokens, 4 heads of 16 numbers, and 4 bytes per number. Queries, keys, values and the output have
# 64 numbers per token each, which makes 4 × 64 × 1,000 × 4 bytes, about 1 MB. The softmax weights of all pairs take 4 ×
# 1,000² × 4 bytes, which is 16 MB.
#
# **Predict.** The text becomes twice as long. Roughly by what factor do the bytes grow if attention keeps all the
# softmax weights for the backward pass (`all_scores`)? And by what factor if it keeps only numbers per token and none
# per pair?

# %%
course.predict("texts_memory", within=1.1, all_scores=..., in_blocks=...)

# %% [markdown]
# Is the second kind of attention possible at all? We need the scores, but perhaps not all of them at once. Take a query
# with three keys. The softmax uses the exponentials of the scores $s$. Let them be $e^s = 1$, 3 and 6, and let the
# values be 10, 20 and 40. Then attention is one sum divided by another:
#
# $$\frac{1 \cdot 10 + 3 \cdot 20 + 6 \cdot 40}{1 + 3 + 6} = \frac{310}{10} = 31$$
#
# Now suppose one rank knows the first two keys and a second rank knows the third. The first rank gets $\frac{70}{4} =
# 17.5$, and the second gets $\frac{240}{6} = 40$. Their plain average, 28.75, is wrong. But if each rank also reports
# the sum that it divided by, 4 or 6, we can weight the two outputs with these sums: $\frac{4 \cdot 17.5 + 6 \cdot
# 40}{4 + 6} = 31$. So an output and a sum are all we need to **merge** two parts of an attention exactly.
#
# The sum can be too large for a floating-point number. For example, $e^{100}$ has 44 digits before the decimal point,
# but the largest float32 number has only 39. So programs keep its logarithm, $L = \log \sum_i e^{s_i}$, the
# **log-sum-exp**:
#
# $$\text{output} = \frac{e^{L_a}\,\text{output}_a + e^{L_b}\,\text{output}_b}{e^{L_a} + e^{L_b}}$$
#
# In your first exercise you write this as `merge_attention`, in a form that can't overflow because it needs only the
# difference of $L_a$ and $L_b$. Here is the course's version at work, on 64 queries and two unequal sets of keys. The
# tensors have the shape (texts, heads, tokens, numbers), so `k[:, :, first]` is a set of keys, and `block_attention`
# returns the output together with its log-sum-exp. Its last two arguments are the positions of the queries and of the
# keys, which decide what the causal mask hides:

# %%
from course_utils.lessons.long_texts import block_attention, drawn_text, merge_attention

q, k, v, _ = drawn_text(64)  # one text, 4 heads of 16 numbers, in float64
positions = torch.arange(64)  # where each token is in the text
first, second = slice(0, 20), slice(20, 64)
part_a = block_attention(q, k[:, :, first], v[:, :, first], positions, positions[first])
part_b = block_attention(
    q, k[:, :, second], v[:, :, second], positions, positions[second]
)
out, lse = merge_attention(*part_a, *part_b)
whole, _ = block_attention(q, k, v, positions, positions)
print(f"two sets of keys or one: {(out - whole).abs().max():.0e} apart")
assert torch.allclose(out, whole, atol=1e-12)

# %% [markdown]
# The difference is rounding error. The first 20 queries see no key of the second set. For them, that part has the
# output 0 and a log-sum-exp of $-\infty$, and hence a weight of 0.
#
# Now we can go through the keys block by block and merge as we go, so that only the scores of one block exist at any
# one time. The backward pass computes each block's scores $s$ again, and turns them into softmax weights right away as
# $e^{s-L}$, with the $L$ of all keys. This is the idea of **FlashAttention**, which also keeps the blocks in the fast
# memory on the GPU's chip. In the exercises you write the forward pass as `block_attention`; `attention_in_blocks` adds
# the backward pass. The next cell counts what it and lesson 9's attention keep for the backward pass:

# %% tags=["figure:17_memory"]
from course_utils.lessons.long_texts import attention_in_blocks, attention_memory
from course_utils.lessons.long_texts import growth_text, ordinary_attention
from course_utils.words import bytes_text


def in_blocks(q, k, v):
    return attention_in_blocks(q, k, v, torch.arange(q.shape[2]))


def kept_bytes(attend):
    return [attention_memory(attend, length)[0] for length in lengths]


lengths = [256, 512, 1024]
kept = {}
for name, attend in {"all scores": ordinary_attention, "in blocks": in_blocks}.items():
    kept[name] = ranks.run(kept_bytes, attend, ranks=1, backend="gloo").results[0]
all_scores, blocks = (numbers[-1] / numbers[-2] for numbers in kept.values())
course.measured("texts_memory", all_scores=all_scores, in_blocks=blocks)
axes = {"across": "tokens", "up": "kept for the backward pass", "unit": bytes_text}
course.draw.over_numbers(lengths, kept, growth_text(lengths, kept), log=True, **axes)

# %% [markdown]
# With all scores, the bytes grow almost with the square of the length. The factor is slightly below 4 because queries,
# keys and values, which are counted too, only double. In blocks, everything that is kept grows in proportion to the
# length. The multiplications still grow with the square.
#
# ## Keys and values go around a ring
#
# Now cut the text into four quarters, one for each rank. Each rank has the queries, keys and values of its own tokens.
# Together, the queries need the keys and values of *all* ranks (more on the mask later), but not at the same time,
# because parts can be merged in any order. So let the keys and values travel around the ring of lesson 5. In each
# round, every rank computes with the keys and values that it currently holds, and passes them to its right. This is
# **Ring Attention**, where `positions` now has a tensor for each rank:


# %%
from course_utils.lessons.long_texts import pass_on


def ring(q, k, v, positions, held=None):
    rank, P = dist.get_rank(), dist.get_world_size()
    kv, total = torch.stack([k, v]), None  # total: output and log-sum-exp so far
    for step in range(P):
        if held is not None:
            held.append(kv)  # only for the picture
        source = (rank - step) % P  # whose keys and values these are
        if step < P - 1:
            passing = pass_on(kv, kv.shape)  # starts to send, and doesn't wait
        part = block_attention(q, *kv, positions[rank], positions[source])
        total = merge_attention(*total, *part) if total else part
        if step < P - 1:
            kv = passing.wait()  # those of the left neighbour
    return total[0]  # the output, without the log-sum-exp


# %% [markdown]
# `pass_on` starts two transfers, one to the right and one from the left, and `wait()` returns what has arrived. We run
# the function on 64 tokens and compare its output with that of one process. In a second run, each rank notes the keys
# and values that it holds. We compare them with each rank's originals, and the picture shows where they came from:

# %% tags=["figure:17_ring_blocks"]
from course_utils.lessons.long_texts import in_order, output_beside_one_process


def held_in_each_round(positions):
    own = positions[dist.get_rank()]
    q, k, v, _ = drawn_text(64)
    held = []
    ring(q[:, :, own], k[:, :, own], v[:, :, own], positions, held)
    return held


quarters = in_order(64, 4)  # for each rank, the positions of its tokens
apart = ranks.run(output_beside_one_process, ring, quarters, backend="gloo").results
assert max(apart) <= 1e-12
held = ranks.run(held_in_each_round, quarters, backend="gloo").results
shares = [torch.stack([k, v])[:, :, :, own] for own in quarters]
pictures.ring_blocks(held, shares)

# %% [markdown]
# Follow rank 0 from left to right. In round 0 it computes with its own keys and values. Then it receives those of rank
# 3, its left neighbour, then those of ranks 2 and 1, which rank 3 has passed on. In addition to its own, a rank holds
# at most two sets of keys and values, the one it is computing with and the one that is arriving.
#
# What does a rank send? Call the size of a rank's own keys and values one *share*. With four ranks there are three
# transfers, so in the forward pass each rank sends 3 shares.
#
# In the backward pass, the keys and values must go around again, because the scores are computed again. This time,
# every rank also computes gradients for the keys and values that visit it, and the sum of these gradients has to reach
# the rank that owns the keys. So the gradients follow the keys and values around the ring. The sum for rank 0's keys,
# for example, starts at its right neighbour, rank 1. Ranks 2 and 3 add their contributions as it passes, and rank 0
# adds its own when the sum arrives, just as in the reduce-scatter of lesson 5. A set of gradients is as large as the
# keys and values themselves.
#
# **Predict.** How many shares does each of the four ranks send in the backward pass?

# %%
course.predict("texts_ring", backward=...)

# %% tags=["figure:17_ring"]
from course_utils.lessons.long_texts import Shape, attention_round_the_ring
from course_utils.lessons.long_texts import beside_one_process, bytes_in, difference_text
from course_utils.lessons.long_texts import ring_bytes

compare = partial(ranks.run, beside_one_process, backend="gloo")
for _ in range(2):  # the first run sets up the connections
    run = compare(attention_round_the_ring, quarters)
assert max(max(found.values()) for found in run.results) <= 1e-12
print(difference_text(run.results))
shape = Shape(64, heads=4, size=16, number_bytes=8)
sent = {name: bytes_in(run.events, name, rank=0) for name in ("forward", "backward")}
assert sent == ring_bytes(shape, 4)  # by the formula
share = 2 * 16 * 4 * 16 * 8  # keys and values: 16 tokens, 4 heads, 16 numbers, 8 bytes
course.measured("texts_ring", backward=sent["backward"] / share)
run.timeline(
    f"Forward and backward: {run.messages} messages, each to the right neighbour"
)

# %% [markdown]
# `attention_round_the_ring` is the same ring together with its backward pass. Its output and its three gradients match
# those of one process, up to rounding. With $P$ ranks, each rank sends $P-1$ shares in the forward pass and $2(P-1)$ in
# the backward pass. Each arrow in the timeline is one message, and its subtitle counts the 3 + 6 = 9 transfers as
# rounds.
#
# ## A transfer can hide behind the computing
#
# `ring` starts each transfer before it computes. If the transfer is finished by the time the rank has computed, it
# costs almost nothing. This is the overlap of lesson 7, and whatever isn't hidden is **exposed**.
#
# Suppose the computation in each of the four rounds takes 10 ms, and a transfer takes 4 ms. A program that computes
# first, then sends and waits, needs 4 × 10 + 3 × 4 = 52 ms. The ring needs 40 ms, because all three transfers are
# hidden. If a transfer takes 14 ms instead, each of the first three rounds lasts 14 ms and the last one 10 ms. The ring
# then needs 3 × 14 + 10 = 52 ms, of which 12 ms are exposed.
#
# **Predict.** Now a transfer takes 25 ms, and the computation still takes 10 ms per round. How many milliseconds are
# exposed in the ring?

# %%
course.predict("texts_exposed", ms=...)

# %%
computing, transfer, rounds = 10, 25, 4
total = (rounds - 1) * max(computing, transfer) + computing
course.answer("texts_exposed", ms=total - rounds * computing)

# %% [markdown]
# If each rank has twice as many tokens, a transfer takes twice as long, but a round has four times as many pairs to
# compute. So from some length on, the transfers are hidden. Let's time the ring on our emulated links and compare it
# with `in_turn`, which sends only after it has computed, and with `ring_without_messages`, which computes as many
# blocks in each round, but on a rank's own keys and values.
#
# We take 8,192 tokens, so each rank has 2,048. With 2 heads of 16 numbers, and 4 bytes, or 32 bits, per number, its
# keys and values are 2 × 2,048 × 2 × 16 × 32 bits, about 4.2 million. On a link of 100 Mbit/s they take 42 ms. The next
# section explains why we use `zigzag` instead of the quarters. The cell measures how long the computation of a round
# takes on your computer, and prints what the calculation above gives for your run:

# %% tags=["figure:17_exposed"]
from course_utils.lessons.long_texts import ring_without_messages, timed, zigzag
from course_utils.lessons.overlap import slowest


def in_turn(q, k, v, positions):
    rank, P = dist.get_rank(), dist.get_world_size()
    kv, total = torch.stack([k, v]), None
    for step in range(P):
        part = block_attention(q, *kv, positions[rank], positions[(rank - step) % P])
        total = merge_attention(*total, *part) if total else part
        if step < P - 1:
            kv = pass_on(kv, kv.shape).wait()
    return total[0]


versions = {"nothing sent": ring_without_messages, "in turn": in_turn, "ring": ring}
run = ranks.run(timed, versions, zigzag(8192, 4), 5, heads=2, size=16, backend="gloo")
seconds = slowest(run.results)
transfer = 2 * 2048 * 2 * 16 * 32 / 100e6  # seconds
computing = min(seconds["nothing sent"]) / rounds
print(sentences.transfer_text(transfer, computing))
expected = {
    "in turn": rounds * computing + (rounds - 1) * transfer,
    "ring": (rounds - 1) * max(computing, transfer) + computing,
}
for name, value in expected.items():
    measured = min(seconds[name])
    print(f"{name}: {1000 * value:.0f} ms expected, {1000 * measured:.0f} ms measured")
title = sentences.exposed_text(seconds, "ring", "in turn", "nothing sent")
bars = sentences.added_by_sending(seconds, "nothing sent")
course.draw.stacked_bars(bars, title, "The fastest of five runs of each")

# %% [markdown]
# The link is emulated, but the computing is real, and here four ranks and the operating system share the cores of one
# computer. Sending needs them, too, so what it adds to a ring with hidden transfers is probably slower computing and
# not waiting. But if there are fewer cores than ranks, the others compute faster while one waits, so a measured time
# can also be shorter than expected. If the title reports a busy machine, only the expected times count.
#
# ## The last rank works the most
#
# If the ranks have the four quarters of the text in order, do they all have the same amount of work? Draw a square with
# a row for each query and a column for each key, and cut it into 4 × 4 tiles. Rank 0 has the first row of tiles.
# Because of the causal mask, its queries see only the triangle below the diagonal of the first tile. Rank 1's queries
# see all of the first tile and such a triangle of the second. If we count the triangle, which is half a tile, as 1,
# rank 0 has 1 and rank 1 has 3.
#
# **Predict.** Rank 3 sees more pairs than rank 0. By what factor?

# %%
course.predict("texts_work", within=1.03, times_as_many=...)

# %% tags=["nbval-check-output"]
from course_utils.lessons.long_texts import imbalance, pairs_computed, pairs_seen

pairs = pairs_seen(in_order(2048, 4))
for rank, number in enumerate(pairs):
    print(f"rank {rank} sees {number:,} pairs")

# %%
course.answer("texts_work", times_as_many=pairs[3] / pairs[0])

# %% [markdown]
# The four ranks have 1, 3, 5 and 7 halves of a tile, 4 on average. The ratio is slightly below seven because each token
# also sees itself. Rank 3 has $\frac74$ of the mean, and all others wait for it.
#
# The remedy is to cut the text into $2P$ pieces, numbered from 0. Rank $r$ gets piece $r$ and its counterpart from the
# end, piece $2P-1-r$. A piece sees more the later it is in the text, so whatever the first of the two lacks, the second
# makes up, and every rank has the same total. This order is called **zig-zag**, and you write it in the exercises. With
# four ranks, rank 0 has pieces 0 and 7, and rank 3 has pieces 3 and 4.

# %% tags=["figure:17_zigzag"]
small = {"in order": in_order(64, 4), "zig-zag": zigzag(64, 4)}
seen = {name: pairs_seen(positions) for name, positions in small.items()}
pictures.masks(small, sentences.work_text(seen))

# %% [markdown]
# The coloured part of each picture is what the mask lets through. With the zig-zag, all four colours have the same
# area. With only 64 tokens, a token's pair with itself carries more weight, so the ratio for the in-order split is 6.6.
# The ring doesn't care which tokens a rank has, because it compares positions. The next cell checks this, and compares
# the busiest rank's multiplications with the mean:

# %%
from course_utils.lessons.long_texts import computing as operations

for name, positions in {
    "in order": in_order(1024, 4),
    "zig-zag": zigzag(1024, 4),
}.items():
    found = compare(attention_round_the_ring, positions).results
    assert max(max(differences.values()) for differences in found) <= 1e-12
    work = ranks.run(operations, ring, positions, backend="gloo").results
    print(f"{name}: the busiest rank does {imbalance(work):.2f} times the mean")
    formula = imbalance(pairs_computed(positions, block=128))
    assert abs(imbalance(work) - formula) < 1e-12
assert imbalance(work) <= 1.05  # of the zig-zag

# %% [markdown]
# With the text in order, the busiest rank does slightly less than $\frac74$ of the mean, because `block_attention`
# computes a block of 128 × 128 pairs in full if the mask cuts through it.
#
# ## Or gather all keys and values at once
#
# There is a simpler way. Let an all-gather bring the keys and values of all ranks to every rank, and then compute
# attention as in one process, but only for the rank's own queries. In the backward pass, each rank then has gradients
# for the keys and values of *all* tokens. A reduce-scatter adds them up and gives each rank those of its own tokens. An
# `autograd.Function` implements both directions:


# %%
class AllGather(torch.autograd.Function):
    @staticmethod
    def forward(context, kv):
        parts = [torch.empty_like(kv) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, kv.contiguous())
        return torch.cat(parts, dim=3)  # along the tokens

    @staticmethod
    def backward(context, gradient):
        parts = gradient.chunk(dist.get_world_size(), dim=3)
        parts = [part.contiguous() for part in parts]
        own = torch.empty_like(parts[0])
        dist.reduce_scatter(own, parts)
        return own


def gathered(q, k, v, positions):
    kv = AllGather.apply(torch.stack([k, v]))
    own, everyone = positions[dist.get_rank()], torch.cat(positions)
    return attention_in_blocks(q, *kv, own, k_positions=everyone)


run = compare(gathered, zigzag(64, 4))
assert max(max(found.values()) for found in run.results) <= 1e-12
print(difference_text(run.results))
for name, call in {"forward": "all-gather", "backward": "reduce-scatter"}.items():
    shares_in = bytes_in(run.events, name, rank=0) / share
    print(f"each rank puts {shares_in:.0f} of its shares into the {call}")

# %% tags=["figure:17_gathered_blocks"]
run = ranks.run(AllGather.apply, course.per_rank(shares), backend="gloo")
pictures.gathered_blocks(run.results, shares)

# %% [markdown]
# Each rank puts its own share into the all-gather, and gradients for all 4 shares into the reduce-scatter. What it
# *sends* is a different number. In a ring, as in lesson 5, both send $P-1$ blocks per rank, and here a block is a
# share. So each rank sends $P-1$ shares in the forward pass, exactly as in Ring Attention, and another $P-1$ in the
# backward pass. That is less than the $2(P-1)$ of the ring, but only because our function keeps the gathered keys and
# values until the backward pass. If they are freed and gathered again, that costs another $P-1$ shares, and the two
# methods send the same amount. They differ in other respects:
#
# - *Memory.* A rank that keeps what it gathered holds all $P$ shares of *every* layer at the end of the forward pass.
#   If they are freed, it holds those of one layer at a time, and in the ring only two. In the backward pass, gradients
#   of the same size are added, for one layer at a time.
# - *Overlap.* Nothing can be computed with the keys of other ranks before the all-gather has brought them.
# - *Simplicity.* There is one collective in each direction. Apart from that, each rank computes attention by itself, so
#   a different mask is easy to support.
#
# How bad is the memory? In Llama 3, each token has 128 heads of queries but only 8 heads of keys and 8 of values (*KV
# heads*), each with 128 numbers. Several heads of queries share the same keys and values, which is called
# **grouped-query attention**. With 131,072 tokens and 2 bytes per number, the keys and values of one layer take 131,072
# × 2 × 8 × 128 × 2 bytes, or 0.54 GB. The text was split across 16 ranks, so a share is 0.034 GB. On top of its own
# share, a rank would hold two shares (0.067 GB) in the ring, or all 16 (0.54 GB) after the all-gather. If it keeps them
# for all 126 layers, that makes 126 × 0.54 = 68 GB.
#
# **Predict.** Without grouped queries, there would be 128 heads of keys and 128 of values. How many GB of one layer
# would a rank then hold on top of its own share in the ring (two shares), and how many after the all-gather?

# %%
course.predict("texts_gathered", within=1.05, ring=..., all_gather=...)  # GB

# %%
tokens, kv_heads, head_size, number_bytes, P = 131_072, 128, 128, 2, 16
keys_and_values = 2 * tokens * kv_heads * head_size * number_bytes / 1e9
course.answer(  # in addition to a rank's own share
    "texts_gathered", ring=2 * keys_and_values / P, all_gather=keys_and_values
)

# %% [markdown]
# With 8.6 GB for one layer, the ring would have a clear advantage. With 0.54 GB it hardly matters on a GPU with 80 GB,
# as long as a rank holds those of only one layer. Llama 3 also divided the heads among 8 ranks with tensor parallelism,
# which cuts all these numbers to an eighth. The authors chose the all-gather, and give two reasons in section 3.3.2 of
# [their report](https://arxiv.org/abs/2407.21783). It makes different masks easier to support, and with few KV heads it
# takes little time compared with the attention itself, which grows with the square of the length. They combined it with
# a zig-zag.
#
# ## torch does it inside a `with`
#
# PyTorch offers context parallelism as an experimental feature. Inside `with context_parallel(...)`, the tensors that
# you name are replaced by the rank's part of them, in a zig-zag order, and `functional.scaled_dot_product_attention`
# sees the keys and values of all ranks. Inside the `with`, torch swaps in its own version of that function, so you must
# look it up there by its full name; a name that you gave it before still means the old one. In torch 2.13 this works
# only with attention kernels for GPUs, so our helper `add_processor_kernel` registers the CPU kernel with it. We
# include a tensor with the positions, to see which tokens each rank gets:

# %%
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.experimental import context_parallel
from torch.nn import functional

from course_utils.lessons.long_texts import add_processor_kernel


def by_torch(length):
    add_processor_kernel()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    q, k, v, _ = drawn_text(length, dtype=torch.float32)
    attend = functional.scaled_dot_product_attention
    whole = attend(q, k, v, is_causal=True)  # in one process
    positions = torch.arange(length)
    buffers = [q, k, v, positions]
    with context_parallel(mesh, buffers=buffers, buffer_seq_dims=[2, 2, 2, 0]):
        with CommDebugMode() as counted:
            attend = functional.scaled_dot_product_attention  # a different one in here
            out = attend(q, k, v, is_causal=True)
        apart = (out - whole[:, :, positions]).abs().max().item()
        calls = {str(call): n for call, n in counted.get_comm_counts().items() if n}
        return positions.tolist(), apart, calls


run = ranks.run(by_torch, 32, backend="gloo")
for rank, (own, apart, _) in enumerate(run.results):
    assert own == zigzag(32, 4)[rank].tolist() and apart < 1e-5
    print(f"rank {rank} has {own}")
print(f"at most {max(apart for _, apart, _ in run.results):.0e} from one process")
print("calls in the forward pass:", run.results[0][2])

# %% [markdown]
# The positions are those of our `zigzag`, and the output agrees up to float32's rounding errors. The forward pass makes
# a single all-gather, which is torch's default. While it is running, a rank computes with its own keys. After
# `set_rotate_method("alltoall")`, the keys and values go around in a ring instead, in which each hop is an all-to-all
# that carries data only from each rank to its neighbour. Either way, the gradients of keys and values travel around a
# ring.
#
# A third way is **Ulysses**, where an all-to-all before attention gives each rank a few heads of *all* tokens, and a
# second one afterwards restores the original layout. [Further](17_long_texts_further.ipynb) compares it with the ring,
# packs many documents into one text, calculates how many GPUs a long text needs, and combines context parallelism with
# the other kinds.

# %%
ranks.stop()

# %% [markdown]
# ## What you take with you
#
# Attention is one sum divided by another. It can be computed part by part and merged exactly if each part comes with
# its log-sum-exp, so no program has to hold all scores, and ranks can share a text. In a ring, keys and values travel
# past all queries, and a transfer can hide behind a round of computing that takes longer. With an all-gather, every
# rank holds all keys and values of a layer, which costs little if there are few KV heads and they are freed after use
# and gathered again. Under a causal mask, a zig-zag gives all ranks the same amount of work. As in data parallelism,
# the ranks add up their gradients of the parameters.
#
# In the [exercises](../exercises/17_long_texts.ipynb) you write the merge, the blocks, the ring and the zig-zag
# yourself, and calculate the longest text that fits. [Lesson 18](18_failures.ipynb) asks what happens if a rank dies in
# the middle of such a run.
#
# **To read**
#
# - Liu and others, 2023, [*Ring Attention with Blockwise Transformers*](https://arxiv.org/abs/2310.01889): the paper on
#   the ring.
# - Dao and others, 2022, [*FlashAttention*](https://arxiv.org/abs/2205.14135): attention in blocks, and why it is
#   faster on a GPU.
# - Grattafiori and others, 2024, [*The Llama 3 Herd of Models*](https://arxiv.org/abs/2407.21783): section 3.3.2
#   describes all the kinds of parallelism together.
# - Milakov and Gimelshein, 2018, [*Online normalizer calculation for softmax*](https://arxiv.org/abs/1805.02867): the
#   short paper with the idea of merging.
