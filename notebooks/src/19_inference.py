# The lesson on inference over ranks. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What does one answer cost?
#
# An H100 GPU can do 989 trillion operations per second. A language model with 8 billion weights takes about 16
# billion operations for each token, so this GPU could read 62,000 tokens per second. When it *writes* an answer for
# one reader, however, it can't exceed 209 tokens per second, if each weight takes 2 bytes and each pass through the
# model gives one token. That is 0.3% of what it can compute.
#
# More computers don't always help. If four of them hold a quarter of every layer each, and a message between them
# takes 2 ms, a model of 32 layers writes fewer than four tokens per second, as you will see.
#
# Nothing is trained in this lesson. Models answer questions, and you will work out what limits them. After this page
# you can calculate what an answer costs in time, memory and messages, and explain four methods that make it cheaper:
# keeping keys and values, serving many readers in one pass, reading prompts on other ranks, and letting a small model
# guess ahead.
#
# *55 minutes · builds on lessons [3](03_hardware.ipynb) and [9](09_model_parallel.ipynb) · 4 ranks*

# %%
import math

import numpy as np
import torch
import torch.distributed as dist

import course_utils as course
from course_utils.lessons.inference import pictures, sentences
from course_utils.trace.recorder import phase

ranks = course.start(4, link="100 Mbit/s", latency="2 ms")
ranks.load_torch()

# %% [markdown]
# ## Reading computes, writing waits for memory
#
# Using a model without training it is called **inference**. A model answers in two stages. First it reads the whole
# **prompt**, the text it has to continue. All tokens of the prompt are known, so they pass through the model
# together, as in training. This is called **prefill**. Then it writes the answer, one token at a time, because each
# new token is an input for the next. This is called **decode**.
#
# Both stages do the same arithmetic for each token, a multiplication and an addition for each weight. But in one
# pass, the weights have to be moved from memory only once, whether it is a pass over a thousand tokens or over one.
# So a pass over $n$ tokens through $W$ weights of $b$ bytes each has an arithmetic intensity (lesson 3) of
#
# $$\frac{2 \cdot W \cdot n}{b \cdot W} = \frac{2n}{b}\ \text{FLOP per byte}.$$
#
# This counts only weights. We will come back to the rest, because long texts need memory of their own.
#
# Take the example machine of lesson 3, with 100 GFLOP/s and 20 GB/s. Its ridge is at 5 FLOP per byte. With numbers of
# 4 bytes, a pass over $n$ tokens has $\frac n2$ FLOP per byte, so it reaches the ridge with 10 tokens. A pass over 10
# tokens therefore takes as long as a pass over one, because both wait until the weights have been moved. A decode
# step for one reader, with its single token, uses a tenth of what the processor can do.
#
# **Predict.** With dense matrices of 2-byte numbers, an H100 (SXM) GPU does 989 · 10¹² operations per second, and it
# moves 3.35 · 10¹² bytes per second. How many tokens does a pass need until it reaches the ridge?

# %%
course.predict("infer_ridge", within=1.05, tokens=...)

# %%
from course_utils.lessons.hardware import data_sheets

H100 = data_sheets.H100
number_bytes = 2
course.answer("infer_ridge", tokens=H100.flops / H100.bandwidth * number_bytes / 2)

# %% [markdown]
# A prompt of 300 tokens keeps the GPU busy, but a decode step for one reader has to wait. With 8 billion weights, or
# 16 GB, it takes at least $16 \cdot 10^9 / (3.35 \cdot 10^{12})$ s, or 4.8 ms. That is where the 209 tokens per
# second come from.
#
# Let's see it on your computer, with a transformer of 19 million weights. It isn't trained, because the values of its
# weights don't influence how long a pass takes. As in lesson 3, the cell first measures your machine's two rates.
# Then it alternates between passes over 1, 4, 16 and 64 tokens:

# %% tags=["figure:19_roofline"]
from course_utils.lessons.hardware import machine_rates
from course_utils.lessons.hardware import pictures as hardware_pictures
from course_utils.lessons.inference import reading_seconds, weights_in_blocks
from course_utils.lessons.model_parallel import character_model
from course_utils.measuring import repeat
from course_utils.words import count

model = character_model(96, width=512, heads=8, depth=6).eval()
weights = weights_in_blocks(model)
square = torch.rand(512, 512)
peak = 2 * 512**3 / repeat(lambda: torch.mm(square, square), repeats=50).low
left, right, total = torch.ones(3, machine_rates.array_bytes() // 4)
bandwidth = 3 * left.nbytes / repeat(lambda: torch.add(left, right, out=total)).low

counts = [1, 4, 16, 64]
seconds = reading_seconds(model, counts)  # of a pass over so many tokens
points = {
    count(n, "token"): (2 * n / 4, taken.rate(2 * weights * n))
    for n, taken in seconds.items()
}
title = sentences.reading_text(seconds)
hardware_pictures.roofline(points, peak, bandwidth, title)

# %% [markdown]
# The example machine needs 6.4 times as long for 64 tokens as for one, because its ridge is at 10 tokens. Unless your
# machine was busy, the title gives your own ratio, which should also be well below 64, and the dots lie under the
# roof only because a pass also does work without weights, such as attention and norms. In the rest of the lesson, we
# look for ways to let a pass do more than one token's work.
#
# ## Keys and values are kept
#
# To write the next token, attention needs the keys and values of *all* tokens before it. They don't change any more,
# because attention never lets a token see later ones. So a program computes them once, when a token is read, and
# keeps them. They are the **KV cache**. Without it, every step of the answer would read the whole text again.
#
# A `KVCache` has a list, `layers`, with the cache of each layer. A layer's cache, `kept`, holds two tensors,
# `kept.keys` and `kept.values`, for `kept.tokens` tokens. It grows when new keys and values are joined to the old
# ones:


# %%
def append(kept, k, v):  # k, v: heads × new × size
    """Add the keys and values of new tokens to a layer's cache; return all so far."""
    if kept.tokens:
        k = torch.cat([kept.keys, k], dim=1)
        v = torch.cat([kept.values, v], dim=1)
    kept.keys, kept.values = k, v
    return k, v


# %% [markdown]
# Attention with a cache computes queries, keys and values for the *new* tokens only, which are many in the prefill
# and one in a decode step. They come from the matrix `qkv` of lesson 9, which puts the query, the key and the value
# of the first head side by side, then those of the second head, and so on. Each new query is compared with all keys,
# old and new, except those of later tokens. Suppose that three tokens are in the cache and two are new. Then `scores`
# has two rows and five columns, and only one score has to be hidden (✗), because token 3 must not see token 4:
#
# ```
#                        key of token    0   1   2   3   4
# query of token 3, the first new one    ·   ·   ·   ·   ✗
# query of token 4, the second           ·   ·   ·   ·   ·
# ```
#
# The first new query may see `past + 1` keys, and each later one sees a key more. So the hidden scores lie on and
# above the diagonal that begins in column `past + 1`, here column 4. `triu` marks them:


# %%
def attend(attention, x, kept):  # x: new tokens × width
    past, new, size = kept.tokens, len(x), attention.size
    made = attention.qkv(x).view(new, -1, 3 * size).transpose(0, 1)
    q, k, v = made.chunk(3, dim=-1)  # each heads × new × size
    keys, values = append(kept, k, v)  # heads × (past + new) × size
    scores = q @ keys.mT / math.sqrt(size)
    later = torch.ones(new, past + new, dtype=torch.bool).triu(past + 1)
    weights = scores.masked_fill(later, -torch.inf).softmax(dim=-1)
    return attention.out((weights @ values).transpose(0, 1).flatten(1))


@torch.no_grad()
def read(model, tokens, cache):
    """Read new tokens; return the logits after each of them."""
    embedding, *blocks, head = model
    positions = torch.arange(cache.tokens, cache.tokens + len(tokens))
    x = embedding.character(tokens) + embedding.position(positions)
    for block, kept in zip(blocks, cache.layers):
        x = x + attend(block.attention, block.norm_1(x), kept)
        x = x + block.mlp(block.norm_2(x))
    return head(x)


# %% [markdown]
# How large is the cache? In our model, each head of queries has its own keys and values. In larger models, several
# heads of queries often use the same ones (grouped-query attention, lesson 17), which are kept only once. A head of
# keys and values is called a KV head. Each layer keeps a key and a value for each token and each KV head:
#
# $$\text{bytes} = 2 \cdot \text{layers} \cdot \text{KV heads} \cdot \text{head size} \cdot \text{bytes of a number}
# \cdot \text{tokens}$$
#
# The first factor stands for keys *and* values. Take Llama 3 8B, which has 32 layers and 8 KV heads of 128 numbers,
# with 2 bytes per number. A token needs 2 × 32 × 8 × 128 × 2 bytes, which is 131,072 bytes, or 128 KiB. A text of
# 8,192 tokens needs 1 GiB. In your first [exercise](../exercises/19_inference.ipynb) you write this as
# `kv_cache_bytes`, for several texts and several ranks.
#
# **Predict.** Llama 3 70B has 80 layers, and also 8 KV heads of 128 numbers. How many KiB does a token need, and how
# many GiB do sixteen texts of 8,192 tokens each need?

# %%
course.predict("infer_cache", within=1.02, kib_per_token=..., gib=...)

# %% [markdown]
# Before the answer, we check two things on a small model in float64. Does our code keep exactly the bytes of the
# formula? And does decoding with a cache give the same logits as reading the whole text again? The model reads a
# prompt of 12 tokens and then 8 single tokens:

# %% tags=["nbval-check-output"]
from course_utils.lessons.inference import KVCache, double_model, drawn_tokens
from course_utils.lessons.inference import kv_cache_bytes

text, prompt = drawn_tokens(20), 12
small = double_model()  # 2 layers, 4 heads of 16 numbers, float64
cache = KVCache.of(small)
logits = [read(small, text[:prompt], cache)]
logits += [read(small, token[None], cache) for token in text[prompt:]]
with torch.no_grad():
    again = small(text[None])[0]  # lesson 9's model, without any cache
assert (torch.cat(logits) - again).abs().max() <= 1e-12

formula = kv_cache_bytes([20], layers=2, kv_heads=4, head_size=16, itemsize=8)
print(f"{cache.nbytes:,} bytes counted, {formula:,} by the formula")

kib = kv_cache_bytes([1], layers=80, kv_heads=8, head_size=128) / 2**10
gib = kv_cache_bytes([8192] * 16, layers=80, kv_heads=8, head_size=128) / 2**30
course.answer("infer_cache", kib_per_token=kib, gib=gib)

# %% [markdown]
# The logits of all 20 tokens agree up to rounding, although each token went through the model only once.
#
# You pay for the cache twice: in memory and in time. Sixteen texts of 8,192 tokens take 16 GiB with Llama 3 8B, as
# much as its weights. That limits how many texts fit on a GPU. And because attention reads the whole cache of a text
# in every step, a decode step for these sixteen texts moves twice as many bytes as the weights alone.
#
# ## Over ranks, a token pays for every message
#
# Llama 3 70B takes about 140 GB with 2 bytes per weight, and an H100 has 80 GB. So its weights have to be divided
# among several GPUs. The tensor parallelism of lesson 9 divides every matrix. Four GPUs then read a quarter of the
# weights each, at the same time, and could be four times faster than one. In return, every layer needs two
# all-reduces, one after attention and one after the MLP. There are no others, because inference has no backward pass,
# and every rank of ours holds the whole embedding and the whole last layer.
#
# The cache is divided, too. Each rank computes the keys and values of its own heads, and no other rank needs them as
# long as there are at least as many KV heads as ranks.
#
# Our `read` runs unchanged on four ranks, because lesson 9's parallel layers contain the all-reduces.
# `cut_over_ranks` puts these layers into the model:

# %% tags=["figure:19_caches"]
from course_utils.lessons.inference import cut_over_ranks


def read_over_ranks(text, prompt):
    model = cut_over_ranks(double_model())  # a head on each rank
    cache, held = KVCache.of(model), []
    with phase("prefill"):
        logits = [read(model, text[:prompt], cache)]
    held.append(cache.tokens)
    for token in text[prompt:]:
        with phase("token"):
            logits.append(read(model, token[None], cache))
        held.append(cache.tokens)
    return torch.cat(logits), held, cache.nbytes


run = ranks.run(read_over_ranks, text[:6], 4, backend="gloo")
for own, _, nbytes in run.results:
    assert (own - again[:6]).abs().max() <= 1e-12  # as in one process
    assert nbytes == kv_cache_bytes([6], 2, 4, 16, itemsize=8, world_size=4)
tokens = list(zip(*(held for _, held, _ in run.results)))
moments = ["after the prompt", "after one token", "after two tokens"]
pictures.cached_tokens(tokens, moments, "Each rank caches every token, for its own head")

# %% [markdown]
# The first frame shows the caches after a prompt of 4 tokens. Each decode step adds a square on every rank, and no
# square ever moves. A timeline of the same run shows what does move. The first all-reduce includes waiting for the
# rank that starts last, and two blocks may look like one if the second all-reduce begins as soon as the first ends:

# %% tags=["figure:19_passes"]
passes = 1 + 2  # the prompt and two tokens
sums = run.collectives // passes
run.timeline(f"Each pass takes {sums} all-reduces, for four tokens or for one")

# %% [markdown]
# Two layers make four all-reduces in each pass. In the decode steps, each of them carries one token's vector, here
# 512 bytes. In Llama 3 8B it would be 8 KiB.
#
# In lesson 4, a message of $n$ bytes took $\alpha + \beta n$ seconds. On our link, 512 bytes take 41 µs of
# bandwidth, and the latency is 2 ms, so $\alpha$ is nearly everything. What counts is how many messages follow one
# another:
#
# - The ring of lesson 5 takes $2(P-1)$ rounds. With four ranks that is $6\alpha$, or 12 ms.
# - Recursive doubling takes $\log_2 P$ rounds of whole vectors. With four ranks that is $2\alpha$, or 4 ms. For such
#   short vectors it is the better choice.
#
# Each token of a model with 32 layers pays this 64 times, which makes 768 ms with the ring and 256 ms with recursive
# doubling.
#
# **Predict.** Eight computers in an office divide every matrix of a model with 80 layers among themselves. Each
# message takes 1 ms, and its bytes hardly count. For how many seconds does every token wait for messages if
# all-reduces use the ring? And with recursive doubling?

# %%
course.predict("infer_office", within=1.05, ring=..., doubling=...)

# %% [markdown]
# The cell then checks the idea against a real run. It fits lesson 4's line to all-reduces of four sizes. From the
# line it predicts a decode step of a model with 4 layers and a width of 128. Then it times this step, and alternates
# it with the same step without messages.
#
# The all-reduces are those of torch's library gloo, which uses the ring. In each of its six rounds, a rank first
# waits until its neighbour has announced that it is ready to receive, and this message takes $\alpha$, too. So expect
# about $12\alpha$, or 24 ms, for each all-reduce, and a little more for the work of four processes on one computer:

# %% tags=["figure:19_alpha"]
from course_utils.lessons.inference import allreduce_seconds, token_seconds
from course_utils.lessons.messages import fit_alpha_beta
from course_utils.lessons.overlap import slowest

layers, P, message = 80, 8, 1e-3
by_ring = 2 * layers * 2 * (P - 1) * message
by_doubling = 2 * layers * math.log2(P) * message
course.answer("infer_office", ring=by_ring, doubling=by_doubling)

lengths = [64, 1024, 16_384, 65_536]  # float32 numbers
found = slowest(ranks.run(allreduce_seconds, lengths, backend="gloo").results)
medians = [float(np.median(found[length])) for length in lengths]
alpha, beta = fit_alpha_beta([4 * length for length in lengths], medians)
size = {"width": 128, "heads": 4, "depth": 4}
predicted = 2 * size["depth"] * (alpha + beta * 4 * size["width"])
print(f"by the line, an all-reduce of few bytes takes {1e3 * alpha:.1f} ms")

taken = slowest(ranks.run(token_seconds, **size, backend="gloo").results)
whole, computing = (float(np.median(taken[name])) for name in ("with", "without"))
bars = {
    "one token": {"computing": computing, "communication": max(0.0, whole - computing)},
    "by the line": {"computing": computing, "communication": predicted},
}
course.draw.stacked_bars(bars, sentences.step_text(taken, predicted), "")

# %% [markdown]
# In the office, a token waits more than two seconds with the ring, and half a second with recursive doubling. A
# network with ten times the bandwidth would change almost nothing, because the cost is in $\alpha$, not in $\beta$.
# This is why tensor parallelism for decoding stays among GPUs with very fast links, where messages take microseconds.
#
# Over a slow network, it is better to divide the model *between* layers, as in lesson 10. If each of the eight
# computers holds ten layers, a token's vector crosses 7 links, and then the last rank sends the token that it has
# chosen to the first. These 8 messages take 8 ms. [Petals](https://arxiv.org/abs/2209.01188) (Borzunov and others,
# 2023) runs large models over the internet in this way. A single answer doesn't become faster than on one large
# computer, because only one rank works at a time, but the model fits.
#
# Whichever way the model is divided, a pass over the tokens of 16 readers has as many messages as a pass over one.
# With our small model, each message of the ring grows from 128 bytes to 2 KiB, and its time on our link from 2.01 to
# 2.16 ms. The weights are moved only once for all 16, too. So decoding wants a *batch*. It shares the weights and the
# messages, but not the caches, of which every text has its own.
#
# ## Finished requests leave the batch
#
# Answers have different lengths. Suppose that our batch has two **slots**, and that four requests are waiting, whose
# answers need 5, 1, 2 and 2 tokens. With **static batching**, the first two begin together. The second is done after
# one step, but its slot stays empty until the first is done, after 5 steps. Then the other two take 2 steps, which
# makes 7. With **continuous batching**, a finished request leaves its slot, and the next in the queue takes it in the
# next step. One slot works for 5 steps on the first request, and the other for 1 + 2 + 2 steps on the rest. All are
# done after 5 steps.
#
# **Predict.** Now there are three slots, and six requests that need 6, 2, 2, 5, 3 and 4 tokens, in this order. How
# many steps does it take in total, with each kind of batching?

# %%
course.predict("infer_slots", static=..., continuous=...)

# %% tags=["figure:19_slots"]
from course_utils.lessons.inference import continuous_batch, static_batch

lengths = [6, 2, 2, 5, 3, 4]
requests = [(0, length) for length in lengths]  # all arrive before step 0
schedules = {
    "static": static_batch(requests, slots=3),
    "continuous": continuous_batch(requests, slots=3),
}
steps = {name: max(ends for *_, ends in stays) for name, stays in schedules.items()}
course.answer("infer_slots", **steps)
pictures.slots(schedules, 3, sentences.batching_text(steps))

# %% [markdown]
# `continuous_batch` is one of your exercises. It only decides which request has which slot, and when. The work is
# done by a server, which we now run on our four ranks. All ranks know the requests, so they make the same decisions
# without a message.
#
# A request that has just got its slot brings its whole prompt, and every other request brings the token that it wrote
# last. `read_tokens` is our `read` for several texts at once. If a new prompt has 5 tokens and two other requests
# bring one token each, it puts them into one matrix of 7 rows, so the weights are read once for all of them. Only
# attention takes the matrix apart, into 5, 1 and 1 rows, because each text has its own cache.
#
# The requests arrive at random. In each step a new one arrives with a probability of 0.5, and its answer has 1, 4 or
# 10 tokens. The generator has a fixed seed, so every run gets the same requests:

# %% tags=["figure:19_server"]
from course_utils.lessons.inference import drawn_prompts, random_requests, read_tokens
from course_utils.lessons.inference import write_greedily


def server(prompts, requests, slots):
    model = cut_over_ranks(double_model())
    stays = continuous_batch(requests, slots)
    caches = [KVCache.of(model) for _ in requests]
    answers = [[] for _ in requests]
    for step in range(max(ends for *_, ends in stays)):
        batch = [i for i, (_, begins, ends) in enumerate(stays) if begins <= step < ends]
        if not batch:
            continue  # no request is there
        new = [answers[i][-1] if answers[i] else prompts[i] for i in batch]
        with phase(f"step {step}"):
            logits = read_tokens(model, new, [caches[i] for i in batch])
        after_each = logits.split([len(tokens) for tokens in new])
        for i, rows in zip(batch, after_each):
            answers[i].append(rows[-1:].argmax(dim=-1))  # the likeliest next token
    return [torch.cat(answer) for answer in answers]


requests = random_requests(np.random.default_rng(24), 12, 0.5, [1, 4, 10])
prompts = drawn_prompts(12)
run = ranks.run(server, prompts, requests, 3, backend="gloo")
for number, (prompt, (_, length)) in enumerate(zip(prompts, requests)):
    alone = write_greedily(small, prompt, length)  # in one process, without a batch
    assert all(torch.equal(answers[number], alone) for answers in run.results)
schedules = {
    "static": static_batch(requests, slots=3),
    "continuous": continuous_batch(requests, slots=3),
}
steps = {name: max(ends for *_, ends in stays) for name, stays in schedules.items()}
pictures.slots(schedules, 3, sentences.batching_text(steps))

# %% [markdown]
# Each reader gets exactly the answer that the model writes in one process without a batch. With numbers of 2 bytes,
# rounding depends on the size of the batch, so a token may now and then differ. The lower half of the picture shows
# the steps that the server made, and the upper half those of static batching. There, request 0 is alone in its batch,
# because no other had arrived when it began.
#
# ## A busy slot makes you wait
#
# A full batch is good for the owner of the GPU. Is it good for the readers, too? Let's calculate how long a request
# waits for its slot. Take a single slot, and answers of $D$ tokens, each of which takes $D$ steps. In each step a new
# request arrives with probability $p$. The slot is in use for a share $\rho = pD$ of the steps, its **utilisation**.
# On average, a request waits
#
# $$w = \frac{\rho}{1-\rho} \cdot \frac{D-1}{2}\ \text{steps}.$$
#
# The last factor is what is left, on average, of an answer in the slot. The denominator is the share of idle steps.
# The smaller it is, the longer it takes to clear a queue when several requests have arrived shortly after one
# another. [Further](19_inference_further.ipynb) derives the formula.
#
# With answers of 21 tokens and a slot that is used half of the time, this is $\frac{0.5}{0.5} \cdot 10$, or 10 steps.
#
# **Predict.** How many steps does a request wait on average if the slot is used 80% of the time? And 95% of the time?

# %%
course.predict("infer_queue", within=1.05, at_80=..., at_95=...)

# %% [markdown]
# For each of six utilisations, the cell lets 50,000 requests arrive at random, gives them to `continuous_batch` with
# one slot, and counts how long they wait. At the end, eight slots share eight times as many requests:

# %% tags=["figure:19_queue"]
from course_utils.lessons.inference import mean_waiting_steps, waiting_steps

waits = {rho: mean_waiting_steps(rho / 21, [21]) for rho in (0.8, 0.95)}
course.answer("infer_queue", at_80=waits[0.8], at_95=waits[0.95])

used, arriving, counted = [0.2, 0.4, 0.6, 0.8, 0.9, 0.95], 50_000, []
for rho in used:
    many = random_requests(np.random.default_rng(4), arriving, rho / 21, [21])
    counted.append(np.mean(waiting_steps(many, continuous_batch(many, slots=1))))
many = random_requests(np.random.default_rng(4), arriving, 8 * rho / 21, [21])
shared = np.mean(waiting_steps(many, continuous_batch(many, slots=8)))
print(f"{rho:.0%} use: {counted[-1]:.0f} steps with one slot, {shared:.0f} with eight")
course.draw.over_numbers(
    used,
    {"waiting": counted},
    f"At {used[-1]:.0%} use a request waits {counted[-1] / counted[1]:.0f} times as long"
    f" as at {used[1]:.0%}",
    predicted={"waiting": lambda rho: mean_waiting_steps(rho / 21, [21])},
    across="utilisation of the slot",
    up="steps of waiting, on average",
    dots="counted",
)

# %% [markdown]
# The dots follow the curve. From 80% to 95%, the slot does a fifth more work, and its readers wait almost five times
# as long. So one slot can't give both a high throughput and a short wait. Several slots do better. When eight of them
# share a queue, a request takes the first that becomes free, so it waits far less at the same utilisation.
#
# ## Prompts are read on a rank of their own
#
# Readers wait for one more thing. Suppose that an H100 writes answers with Llama 3 8B, and reaches half of its peak
# when it reads a prompt. A token of the prompt then takes $16 \cdot 10^9 / (494.5 \cdot 10^{12})$ s, or 32.4 µs. In
# our server, a new prompt goes through one pass together with the last tokens of the running answers. If it has 2,000
# tokens, this pass takes 65 ms instead of 5, and all running answers wait for it:
#
# ```
# one rank       decode │ decode │   decode and prefill of a new prompt   │ decode
#
# rank 0                    prefill of a new prompt        │ send its cache →
# rank 1         decode │ decode │ decode │ decode │ decode │ decode │ decode
# ```
#
# One remedy is to read it in pieces, one in each decode step (*chunked prefill*, in
# [Further](19_inference_further.ipynb)). The lower rows show a second remedy. Rank 0 reads the prompts, and rank 1
# only decodes. Then the prompt's KV cache has to travel from rank 0 to rank 1. This is called **disaggregation**.
# Here it is on two real ranks. `stacked` puts the whole cache into one tensor:


# %% tags=["figure:19_moved"]
def prefill_and_decode(prompt, answer, shape):
    model, rank = double_model(), dist.get_rank()
    if rank == 0:  # reads the prompt, and sends the cache and the first token
        cache = KVCache.of(model)
        with phase("prefill"):
            first = read(model, prompt, cache)[-1:].argmax(dim=-1)
        dist.send(cache.stacked(), dst=1)
        dist.send(first, dst=1)
        return None
    kept, token = (
        torch.empty(shape, dtype=torch.float64),
        torch.empty(1, dtype=torch.int64),
    )
    dist.recv(kept, src=0)
    dist.recv(token, src=0)
    cache, written = KVCache.unstacked(kept), [token]
    while len(written) < answer:
        with phase("decode"):
            written.append(read(model, written[-1], cache)[-1:].argmax(dim=-1))
    return torch.cat(written)


prompt, answer = drawn_tokens(24), 6
shape = (2, 2, 4, 24, 16)  # layers, keys and values, heads, tokens, numbers
run = ranks.run(prefill_and_decode, prompt, answer, shape, ranks=2, backend="gloo")
assert torch.equal(run.results[1], write_greedily(small, prompt, answer))
cache_bytes = kv_cache_bytes([24], layers=2, kv_heads=4, head_size=16, itemsize=8)
token_bytes = 8  # the number of the first token
assert run.bytes == cache_bytes + token_bytes
run.timeline(f"The cache of 24 tokens moves once: {cache_bytes:,} bytes")

# %% [markdown]
# The answer is the same as before, and the bytes are exactly those of the formula. Each message waits for the
# receiver's announcement again, so even the 8 bytes of the token take longer than one latency.
#
# When does it pay to move the cache? Let's count the waiting that a new prompt causes. If it is read on the decoding
# rank, every running answer waits while it is read. If it is read on the other rank, only its own answer waits, for
# the cache to arrive:
#
# - read on the decoding rank: (running answers) × (seconds to read the prompt);
# - moved: $\alpha + \beta \cdot$ (bytes of its cache).
#
# The prompt's own answer also has to wait until the prompt is read, but this takes equally long in both cases. We
# don't count what the second GPU costs. The second line is an upper bound, because a server can send the cache of
# each layer while it computes the next.
#
# On our H100, a token takes 32.4 µs. On a link of 10 Gbit/s, the 131,072 bytes of its cache take 104.9 µs. So the
# break-even is at 104.9 ÷ 32.4, or 3.24, running answers. With 3 of them it is better to read the prompt on the
# decoding rank, and with 4 it is better to move the cache.
#
# **Predict.** Where is the break-even if the prompt is four times as long? And where is it if the prompt keeps its
# length, and the link has 40 Gbit/s? Both links have a latency of 20 µs, which hardly counts.

# %%
course.predict("infer_apart", within=1.05, longer=..., faster=...)

# %% tags=["figure:19_apart"]
from course_utils.lessons.inference import Prefill, break_even

reading = 16e9 / (H100.flops / 2)  # seconds for a token
per_token = kv_cache_bytes([1], layers=32, kv_heads=8, head_size=128)


def running_answers(rate, tokens=200):  # Gbit/s, of the prompt
    costs = Prefill(reading, per_token, alpha=20e-6, beta=8 / (rate * 1e9))
    return break_even(costs, tokens)


course.answer("infer_apart", longer=running_answers(10, 800), faster=running_answers(40))
even = {rate: running_answers(rate) for rate in [1, 2, 4, 8, 16, 32, 64]}
course.draw.over_numbers(
    list(even),
    {"break-even": list(even.values())},
    sentences.apart_text(even),
    "Calculated for a prompt of 200 tokens, with Llama 3 8B on an H100",
    across="link, Gbit/s",
    up="running answers at the break-even",
    limits=(1, 40),
    log=True,
)

# %% [markdown]
# The length of the prompt doesn't matter, because it lengthens the reading and the move by the same factor. In the
# exercise `place_prefill`, prompts also queue on both ranks.
#
# ## A small model guesses ahead
#
# In a decode step, the processor waits for the weights, and an H100 could read almost 300 tokens in the same time.
# But which tokens? The answer isn't there yet. **Speculative decoding** lets a small, fast model, the *draft*, guess
# the next $k$ tokens. The large model, the *target*, then reads all guesses in a single pass, which takes barely more
# time than a pass over one token, and over ranks it needs no more all-reduces. From this pass, the target has its own
# distribution for every guessed token, and for the token after them. It goes through the guesses from left to right
# and stops at the first that it rejects. If it accepts all of them, it adds a token drawn from the last distribution:
#
# ```
# the text so far          the cat
# the draft guesses                  sat   on    a
# the target decides                 sat   on    ✗ → the       three tokens from one pass
# ```
#
# The keys and values of rejected guesses are removed from the cache, and the next round begins.
#
# The trick lies in how the target decides. Let the draft propose token $x$ with probability $q(x)$, and let $p(x)$ be
# its probability in the target. The rule is:
#
# 1. Accept $x$ with probability $\min(1, p(x)/q(x))$.
# 2. If it is rejected, draw from what the draft proposes too rarely: $\max(0, p - q)$, scaled to the sum 1.
#
# Here is a vocabulary of two tokens. The draft gives them 0.8 and 0.2, and the target 0.6 and 0.4. If the first is
# proposed, it is accepted with probability 0.6 / 0.8 = 0.75. The second is always accepted. So the first token appears
# with probability 0.8 · 0.75 = 0.6. All rejected proposals, 0.8 · 0.25 = 0.2 of them, become the second token, because
# only there is $p > q$. It appears with probability 0.2 + 0.2 = 0.4. That is exactly the target's distribution!
# This is no accident. For every token $x$,
#
# $$\begin{aligned}
# P(x) &= \underbrace{q(x) \min\left(1, \tfrac{p(x)}{q(x)}\right)}_{\text{proposed and accepted}}
# + P(\text{rejected}) \cdot \frac{\max(0, p(x) - q(x))}{\sum_y \max(0, p(y) - q(y))}\\
# &= \min(q(x), p(x)) + \max(0, p(x) - q(x))\\
# &= p(x).
# \end{aligned}$$
#
# The two sums cancel, because $P(\text{rejected}) = 1 - \sum_y \min(p(y), q(y)) = \sum_y \max(0, p(y) - q(y))$. So
# the draft may change which text is drawn, but not how likely each text is. A bad draft makes the answer slower, but
# no worse. [Further](19_inference_further.ipynb) tests this on a transformer. In code, the rule is the exercise
# `accept_or_resample`, and here is a round around it. To keep it short, it asks the target for one distribution at a
# time, but a server would get them all from one pass:

# %%
from course_utils.lessons.inference import accept_or_resample


def one_round(text, draft, target, k, generator):
    guessed, small = list(text), []
    for _ in range(k):  # the draft writes k tokens
        small.append(draft(guessed))
        guessed.append(int(generator.choice(len(small[-1]), p=small[-1])))
    added = []
    for guess, q in zip(guessed[len(text) :], small):
        p = target([*text, *added])  # in a server, from the one pass
        token, accepted = accept_or_resample(guess, q, p, generator)
        added.append(token)
        if not accepted:
            return added
    p = target([*text, *added])  # all accepted: that pass gives one more
    return [*added, int(generator.choice(len(p), p=p))]


# %% [markdown]
# How many tokens does a round yield? Suppose that each guess is accepted with probability $a$. There is always a
# first token. There is a second only if the first guess was accepted, which has the probability $a$, a third with
# probability $a^2$, and so on:
#
# $$1 + a + a^2 + \dots + a^k = \frac{1 - a^{k+1}}{1 - a}$$
#
# For a single guess, $a$ is what the two distributions have in common, $\sum_x \min(p(x), q(x))$. In the example
# above this is 0.6 + 0.2 = 0.8. With $k = 2$ guesses, a round yields 1 + 0.8 + 0.64 = 2.44 tokens. The next cell counts
# the tokens of 2,000 rounds in a different example:

# %% tags=["figure:19_tokens"]
from course_utils.lessons.inference import acceptance, expected_tokens

q, p = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3])
a = acceptance(q, p)
generator = np.random.default_rng(2)
guesses, repeats, counted = [1, 2, 3, 4, 6, 8], 2000, []
for k in guesses:
    rounds = [
        one_round([], lambda _: q, lambda _: p, k, generator) for _ in range(repeats)
    ]
    counted.append(np.mean([len(added) for added in rounds]))
by_formula = [expected_tokens(a, k) for k in guesses]
course.draw.over_numbers(
    guesses,
    {"a round": counted},
    f"{guesses[-1]} guesses yield {counted[-1]:.1f} tokens a round, {guesses[3]} yield"
    f" {counted[3]:.1f}",
    predicted={"a round": by_formula},
    across="guesses of the draft, k",
    up="tokens a round, on average",
    dots="counted",
)

# %% [markdown]
# The curve flattens, because a late guess counts only if all earlier ones were accepted, and it can't exceed
# $1/(1-a)$. Each guess also costs the draft a step of its own, so in practice $k$ is small. Over ranks, the
# all-reduces of a round are shared by all its tokens. If a round yields three tokens, each pays for a third of them.
#
# Guesses use the operations that a decode step leaves unused, and so does a batch. A batch near the ridge leaves
# none, so speculation helps most if there are few readers, or if the texts are long. With Llama 3 8B, an H100 of 80
# GB has memory for at most 59 texts of 8,192 tokens, far fewer than the 295 of its ridge.

# %%
ranks.stop()

# %% [markdown]
# ## What you take with you
#
# A pass takes almost the same time for one token as for several, until they keep the processor busy or their caches
# become as large as the weights. With the KV cache, each token passes through the model just once. With tensor
# parallelism, it pays $\alpha$ in two all-reduces per layer. Continuous batching shares the pass among many readers,
# and speculative decoding fills it with guesses, without changing a single probability. A prompt that is read on a
# different rank doesn't hold up the running answers. And if requests share a single slot that is nearly always in
# use, they wait long for it.
#
# [Further](19_inference_further.ipynb) keeps caches in pages, and lets a hundred servers share the work. In the
# [exercises](../exercises/19_inference.ipynb) you count a cache, decode over ranks, fill the slots, accept or replace
# guesses, and decide where prompts are read.
#
# This is the last page of the course. When you meet a new system, ask of it what we asked of every one here: what is
# computed where, what has to move, and who waits for it? Thank you for reading, and good luck with your own ranks!
#
# **To read**
#
# - Pope and others, 2023, [*Efficiently Scaling Transformer Inference*](https://arxiv.org/abs/2211.05102): what each
#   way to cut a model costs in prefill and decode.
# - Yu and others, 2022, [*Orca: A Distributed Serving System for Transformer-Based Generative
#   Models*](https://www.usenix.org/conference/osdi22/presentation/yu): continuous batching.
# - Zhong and others, 2024, [*DistServe*](https://arxiv.org/abs/2401.09670): prefill and decode on different GPUs.
# - Leviathan, Kalman and Matias, 2023, [*Fast Inference from Transformers via Speculative
#   Decoding*](https://arxiv.org/abs/2211.17192): the rule, and why it is exact.
