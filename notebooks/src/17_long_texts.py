# The lesson on context parallelism. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What if the text does not fit?
#
# In the last stage of its training, Llama 3 405B read texts of 131,072 tokens. The model has 126 layers, and in each of
# them a token is a vector of 16,384 numbers. With 2 bytes for a number, that is 32 KB per token, or 4.3 GB for one
# vector per token of a single text. The activation checkpointing of lesson 9 keeps only the input of each layer. For
# 126 layers that still makes 541 GB, and a GPU has 80 GB. Lesson 9's attention also needs a number for each *pair* of
# tokens. For a single head in a single layer this is 131,072² × 2 bytes, another 34 GB.
#
# Data parallelism is no help, because it gives whole texts to the ranks, and here one text is too much. With the
# sequence parallelism of lesson 9, a tensor group of 8 GPUs divides the 541 GB by 8, but 68 GB leave hardly any room
# for the model. In a pipeline (lesson 10), the first stage has fewer layers but keeps more texts at a time. So this
# lesson cuts the text itself. After it you can compute attention without ever holding all its scores, share one text
# among several ranks in two ways, and say what each rank computes, sends and keeps.
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
# If the ranks share one text, each of them has some of its tokens and, in this lesson, a copy of all weights. This is
# called **context parallelism**. Norms, MLPs and linear layers look at each token on its own, so nothing has to be sent
# for them. Only attention looks at other tokens, which is why this lesson is about attention.
#
# ## Twice the text, four times the scores
#
# In attention (lesson 9), the query of each token meets the key of every token up to its own position. Keys that come
# later are hidden by the **causal mask**, because a model that is to predict the next token mustn't see it. Each query
# and key give a *score*, and a softmax turns the scores of a query into the weights with which it adds up the values.
#
# Let's count for 1,000 tokens, 4 heads of 16 numbers, and 4 bytes for a number. Queries, keys, values and the output
# have 64 numbers per token each, which makes 4 × 64 × 1,000 × 4 bytes, about 1 MB. The weights of all pairs take 4 ×
# 1,000² × 4 bytes, which is 16 MB.
#
# **Predict.** The text becomes twice as long. By what factor do the bytes grow if attention keeps all these weights for
# the backward pass? And by what factor if it keeps only the numbers per token?

# %%
course.predict("texts_memory", within=1.1, all_scores=..., in_blocks=...)

# %% [markdown]
# Is the second kind of attention possible at all? We need the scores, but we may not need all of them at the same time.
# Take a query with three keys, whose scores $s$ give $e^s = 1$, 3 and 4, and let the values be 10, 20 and 40. Attention
# divides two sums:
#
# $$\frac{1 \cdot 10 + 3 \cdot 20 + 4 \cdot 40}{1 + 3 + 4} = \frac{230}{8} = 28.75$$
#
# Now suppose one rank knows the first two keys and a second rank knows the third. The first rank gets $\frac{70}{4} =
# 17.5$, and the second gets $\frac{160}{4} = 40$. If each rank also reports the sum by which it has divided, which
# happens to be 4 in both cases, we can repair the result: $\frac{4 \cdot 17.5 + 4 \cdot 40}{4 + 4} = 28.75$. So an
# output and a sum are all we need to **merge** two parts of an attention, and it is exact.
#
# The sums can be too large for a floating-point number. For example, $e^{100}$ has 44 digits, and float32 has room for
# 39. So programs keep the logarithm of the sum, $L = \log \sum_i e^{s_i}$, which is called the **log-sum-exp**:
#
# $$\text{output} = \frac{e^{L_a}\,\text{output}_a + e^{L_b}\,\text{output}_b}{e^{L_a} + e^{L_b}}$$
#
# In your first exercise you write this as `merge_attention`, in a form in which no exponential can overflow. Here is
# the course's version at work, on 64 queries and two unequal sets of keys:

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
# The difference is rounding error. The positions decide which keys the causal mask hides. The first 20 queries see no
# key of the second set. For them that part has an output of 0 and a log-sum-exp of $-\infty$, so its weight in the
# merged result is 0.
#
# Now we can go through the keys block by block and merge as we go, so that only the scores of one block exist at any
# time. The backward pass computes each block's scores again, and with the log-sum-exp they become weights right away.
# This is the idea of **FlashAttention**, which also keeps the blocks in the GPU's fastest memory. You write it as
# `block_attention` in the exercises. The next cell counts what lesson 9's attention and attention in blocks keep for
# the backward pass:

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
# With all scores, the bytes grow with the square of the length. In blocks they grow only in proportion to it. The
# multiplications still grow with the square.
#
# ## Keys and values go around a ring
#
# Now cut the text into four quarters, one for each rank. Each rank has the queries, keys and values of its own tokens.
# Its queries need the keys and values of *all* ranks, but they don't need them at the same time, because parts can be
# merged in any order. So let the keys and values travel around the ring of lesson 5. In each round, every rank computes
# with the keys and values that it has at the moment, and passes them to its right. This is **Ring Attention**:


# %%
from course_utils.lessons.long_texts import pass_on


def ring(q, k, v, positions, held=None):
    rank, P = dist.get_rank(), dist.get_world_size()
    kv, total = torch.stack([k, v]), None
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
# and values that it computes with, and by comparing the numbers we can tell whose they are:

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
# 3, its left neighbour, then those of rank 2, which rank 3 has passed on, and finally those of rank 1. Besides its own
# copy, a rank never holds more than two sets of keys and values, the one it is computing with and the one that is
# arriving.
#
# What does a rank send? Let us call the bytes of a rank's own keys and values its *share*. With four ranks there are
# three transfers, so in the forward pass each rank sends 3 shares.
#
# In the backward pass, the keys and values have to make the same journey once more, because the scores are computed
# again. Besides, every rank computes gradients for the keys and values that visit it, and the sum of these gradients
# has to reach the rank that owns the keys. So the gradients travel around the ring behind the keys and values, and each
# rank adds its contribution to the sum, just as in the reduce-scatter of lesson 5. They have as many numbers as the
# keys and values, and make as many transfers.
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
# `attention_round_the_ring` is the same ring together with its backward pass. Its output and its three gradients are
# those of one process up to rounding. With $P$ ranks, each rank sends $P-1$ shares in the forward pass and $2(P-1)$ in
# the backward pass. Each arrow in the timeline is one message. In the backward pass there are twice as many of them,
# because the gradients of the keys and values travel as well.
#
# ## A transfer can hide behind the computing
#
# `ring` starts each transfer before it computes. If the transfer is finished by the time the rank has computed, it
# costs nothing. This is the overlap of lesson 7, and whatever isn't hidden is **exposed**.
#
# Suppose each of the four rounds computes for 10 ms, and a transfer takes 4 ms. A program that computes first, then
# sends and waits, needs 4 × 10 + 3 × 4 = 52 ms. The ring needs 40 ms, because all three transfers are hidden. If a
# transfer takes 14 ms instead, each of the first three rounds lasts 14 ms and the last one 10 ms. That makes 52 ms, of
# which 12 ms are exposed.
#
# **Predict.** Now a transfer takes 25 ms, and a round still computes for 10 ms. How many milliseconds are exposed in
# the ring?

# %%
course.predict("texts_exposed", ms=...)

# %%
computing, transfer, rounds = 10, 25, 4
total = (rounds - 1) * max(computing, transfer) + computing
course.answer("texts_exposed", ms=total - rounds * computing)

# %% [markdown]
# How does a longer text change this? If each rank has twice as many tokens, a transfer takes twice as long, but a round
# has four times as many pairs to compute. So from some length on, the transfers are hidden. Let's time the ring on our
# emulated links, next to `in_turn`, which sends only after it has computed. Both are compared with the same computing
# without any messages:

# %% tags=["figure:17_exposed"]
from course_utils.lessons.long_texts import own_keys_only, timed, zigzag
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


versions = {"nothing sent": own_keys_only, "in turn": in_turn, "ring": ring}
run = ranks.run(timed, versions, zigzag(2048, 4), 5, heads=2, size=32, backend="gloo")
seconds = slowest(run.results)
title = sentences.exposed_text(seconds, "ring", "in turn", "nothing sent")
bars = sentences.waits_of(seconds, "nothing sent")
course.draw.stacked_bars(bars, title, "The fastest of five runs of each")

# %% [markdown]
# Here four ranks share the cores of one computer, and the system needs some of them for sending. In a cluster, the
# network card can read a GPU's memory by itself, so the computing is disturbed less. `zigzag` is a different way to
# give the tokens to the ranks, and the next section explains why we didn't use the quarters.
#
# ## The last rank works the most
#
# If the ranks have the four quarters of the text in order, do they all have the same work? Draw a square with a row for
# each query and a column for each key, and cut it into 4 × 4 tiles. Rank 0 has the first row of tiles. Because of the
# causal mask, its queries see only the lower half of the first tile. Rank 1's queries see all of the first tile and
# half of the second. If half a tile counts 1, rank 0 has 1 and rank 1 has 3.
#
# **Predict.** How many times more pairs does rank 3 see than rank 0?

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
# The four ranks have 1, 3, 5 and 7 halves, 4 on average. It is a little less than seven times, because a token also
# sees itself. Rank 3 has $\frac74$ of the mean, and all others wait for it.
#
# The remedy is to cut the text into $2P$ pieces. Rank $r$ gets piece $r$ from the front and piece $r$ from the back, so
# it has one piece that sees little and one that sees a lot. With four ranks, rank 0 has pieces 0 and 7, and rank 3 has
# pieces 3 and 4. This order is called **zig-zag**, and you write it in the exercises.

# %% tags=["figure:17_zigzag"]
small = {"in order": in_order(64, 4), "zig-zag": zigzag(64, 4)}
seen = {name: pairs_seen(positions) for name, positions in small.items()}
pictures.masks(small, sentences.work_text(seen))

# %% [markdown]
# The coloured part of each picture is what the mask lets through. With the zig-zag, all four colours have the same
# area. (The text in the picture has only 64 tokens, so the pairs of a token with itself matter more, and in order the
# quotient is 6.6.) The ring doesn't care which tokens a rank has, because it compares positions. The next cell checks
# this, and counts the multiplications that the ranks really do:

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
# In order, the count is a bit below $\frac74$, because `block_attention` computes a block of 128 × 128 pairs in full if
# the mask cuts through it. `pairs_computed` counts these blocks without computing anything, and the `assert` compares
# the two.
#
# ## Or gather all keys and values at once
#
# There is a simpler way. Let an all-gather bring the keys and values of all ranks to every rank, and then compute
# attention as in one process, but only for the rank's own queries. In the backward pass, each rank then has gradients
# for the keys and values of *all* tokens. A reduce-scatter adds them up and gives each rank those of its own tokens. An
# `autograd.Function` holds both directions:


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
# Does this send more than the ring? In lesson 5 you saw that a ring all-gather sends $P-1$ blocks per rank, and so does
# a reduce-scatter. Here a block is a share. So each rank sends $P-1$ shares in the forward pass, exactly as in Ring
# Attention, and another $P-1$ in the backward pass. That would be less than the $2(P-1)$ of the ring, but only because
# our function keeps the gathered keys and values until the backward pass. With many layers there is no room for that.
# If they are freed and gathered again, this takes another $P-1$ shares, and the two methods send the same. They differ
# in other respects:
#
# - *Memory.* Each rank holds all $P$ shares of one layer at a time, and not just two. In the backward pass, the same is
#   true for their gradients.
# - *Overlap.* Nothing can be computed with the keys of other ranks before the all-gather has brought them.
# - *Simplicity.* There is one collective, and then one ordinary call to an attention kernel, which may use any mask.
#
# How bad is the memory? In Llama 3, each token has 128 heads of queries but only 8 heads of keys and 8 of values, each
# with 128 numbers. Several heads of queries share the same keys and values, which is called **grouped-query
# attention**. With 131,072 tokens and 2 bytes per number, the keys and values of one layer take 131,072 × 2 × 8 × 128 ×
# 2 bytes, or 0.54 GB. The text was shared by 16 ranks, so a share is 0.034 GB, and the two shares in a ring would be
# 0.067 GB.
#
# **Predict.** Without grouped queries, there would be 128 heads of keys and 128 of values. How many GB would a rank
# then hold in the ring, and how many after the all-gather?

# %%
course.predict("texts_gathered", within=1.05, ring=..., all_gather=...)  # GB

# %%
tokens, kv_heads, head_size, number_bytes, P = 131_072, 128, 128, 2, 16
keys_and_values = 2 * tokens * kv_heads * head_size * number_bytes / 1e9
course.answer("texts_gathered", ring=2 * keys_and_values / P, all_gather=keys_and_values)

# %% [markdown]
# With 8.6 GB for one layer, the ring would have a clear advantage. With 0.54 GB it hardly matters on an 80 GB GPU.
# Llama 3 also divided the heads among 8 ranks with tensor parallelism, which leaves an eighth of all these numbers. The
# authors chose the all-gather, and give two reasons in section 3.3.2 of [their
# report](https://arxiv.org/abs/2407.21783). It makes different masks easier to support, and because of the few KV heads
# the all-gather takes little time compared with the attention itself, which grows with the square of the length. They
# combined it with a zig-zag.
#
# ## torch does it inside a `with`
#
# PyTorch has context parallelism as an experiment. Inside `with context_parallel(...)`, the tensors that you name are
# replaced by the rank's part of them, in a zig-zag order, and `functional.scaled_dot_product_attention` sees the keys
# and values of all ranks. torch exchanges that function inside the `with`, so you have to look it up there under its
# full name. In torch 2.13 this works only with attention kernels for GPUs, and `add_processor_kernel` registers the
# kernel for ordinary processors. On GPUs you can leave that line out. We include a tensor with the positions, to see
# who gets what:

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
# The positions are those of our `zigzag`, and the output agrees with one process up to the rounding errors of float32.
# The forward pass makes a single all-gather, which is torch's default. While it is under way, a rank computes with its
# own keys. If you call `set_rotate_method("alltoall")` first, the keys and values go around in a ring instead. In both
# cases, torch's backward pass sends the gradients of keys and values around a ring.
#
# There is a third way to share a text. In **Ulysses**, an all-to-all before attention gives each rank a few heads of
# *all* tokens, and a second one goes back afterwards. [Further](17_long_texts_further.ipynb) runs it and compares its
# bytes with those of the ring. It also shows what happens to the zig-zag when many documents are packed into one text,
# how long a text fits on how many GPUs, and how context parallelism combines with the other kinds.

# %%
ranks.stop()

# %% [markdown]
# ## What you take with you
#
# Attention is a quotient of two sums, so it can be computed part by part and merged exactly, if each part comes with
# its log-sum-exp. So no program has to hold all scores, and ranks can share a text. In a ring, keys and values travel
# past all queries, and the transfers can hide behind the computing. With an all-gather, every rank holds all keys and
# values of one layer, which costs little if there are few KV heads. Under a causal mask, a zig-zag gives all ranks the
# same work.
#
# In the [exercises](../exercises/17_long_texts.ipynb) you write the merge, the blocks, the ring and the zig-zag
# yourself, and calculate the longest text that fits. This is the last lesson with a new subject.
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
