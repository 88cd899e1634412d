# The lesson on inference over ranks. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What does one answer cost?
#
# An H100 GPU can do 989 million million operations per second. A language model with 8 billion weights needs about 16
# billion of them for each token, so the GPU could read 62,000 tokens per second. But when it *writes* an answer for one
# reader, it doesn't get beyond 209 tokens per second, however good the program is. That is 0.3% of what it can compute.
# And if you spread the model's 32 layers over four computers to make it faster, it gets slower. If a message takes 2
# ms, a token waits for 384 of them, one after the other, and the model writes hardly more than one token per second.
#
# Nothing is trained in this lesson. Models answer questions, and you will work out what limits them. After this page
# you can calculate what an answer takes in time, memory and messages, and explain the four tricks that make it
# bearable: keeping keys and values, mixing the answers of many readers, reading prompts on other ranks, and letting a
# small model guess ahead.
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
# To use a model without training it is called **inference**. A model answers in two stages. First it reads the whole
# **prompt**, the text that it is to continue. All tokens of the prompt are known, so they pass through the model
# together, as in training. This is called **prefill**. Then it writes the answer, one token at a time, because each new
# token is an input for the next. This is called **decode**.
#
# Both stages do the same arithmetic for each token, a multiplication and an addition for each weight. But in one pass,
# the weights have to be moved from memory only once, whether the pass is for a thousand tokens or for one. So a pass
# for $n$ tokens through $W$ weights of $b$ bytes each has an arithmetic intensity (lesson 3) of
#
# $$\frac{2 \cdot W \cdot n}{b \cdot W} = \frac{2n}{b}\ \text{FLOP per byte}.$$
#
# (We leave out the tokens' own vectors, which are small compared with the weights.) Take the example machine of lesson
# 3, with 100 GFLOP/s and 20 GB/s. Its ridge is at 5 FLOP per byte. With numbers of 4 bytes, a pass for $n$ tokens has
# $\frac n2$ FLOP per byte, so it reaches the ridge with 10 tokens. Up to there, a pass for 10 tokens takes as long as a
# pass for one, because both wait until the weights have been moved. A decode step, with its single token, uses a tenth
# of what the processor can do.
#
# **Predict.** An H100 GPU does 989 · 10¹² operations per second with numbers of 2 bytes, and moves 3.35 · 10¹² bytes
# per second. How many tokens does a pass need until it reaches the ridge?

# %%
course.predict("infer_ridge", within=1.05, tokens=...)

# %%
from course_utils.lessons.hardware import data_sheets

H100 = data_sheets.H100
number_bytes = 2
course.answer("infer_ridge", tokens=H100.flops / H100.bandwidth * number_bytes / 2)

# %% [markdown]
# A prompt of 300 tokens keeps the GPU busy, but a decode step for one reader has to wait. With 8 billion weights, or 16
# GB, it takes at least $16 \cdot 10^9 / (3.35 \cdot 10^{12})$ s, or 4.8 ms. That is where the 209 tokens per second
# come from.
#
# Let's see it on your computer, with a transformer of 19 million weights, or 76 MB. We don't train it, because the
# numbers in its weights have no influence on how long a pass takes. The cell measures passes for 1 to 64 tokens by
# turns, and the two rates of your machine as in lesson 3:

# %% tags=["figure:19_roofline"]
from course_utils.lessons.hardware import machine_rates
from course_utils.lessons.hardware import pictures as hardware_pictures
from course_utils.lessons.inference import reading_seconds, weights_in_blocks
from course_utils.lessons.model_parallel import character_model
from course_utils.measuring import repeat

model = character_model(96, width=512, heads=8, depth=6).eval()
weights = weights_in_blocks(model)
square = torch.rand(512, 512)
peak = 2 * 512**3 / repeat(lambda: torch.mm(square, square), repeats=50).low
left, right, total = torch.ones(3, machine_rates.array_bytes() // 4)
bandwidth = 3 * left.nbytes / repeat(lambda: torch.add(left, right, out=total)).low

counts = [1, 4, 16, 64]
seconds = reading_seconds(model, counts)  # a pass for so many tokens
points = {
    f"{n} tokens": (2 * n / 4, taken.rate(2 * weights * n))
    for n, taken in seconds.items()
}
title = sentences.reading_text(seconds)
hardware_pictures.roofline(points, peak, bandwidth, title)

# %% [markdown]
# If your machine wasn't busy with other work, the first dots lie on or below the slope, and the title tells you how
# little more a pass for 64 tokens costs. In the rest of the lesson, we look for ways to let a pass do more than one
# token's work.
#
# ## Keys and values are kept
#
# To write the next token, attention needs the keys and values of *all* tokens before it. They don't change any more,
# because attention never lets a token see later ones. So a program computes them once, when a token is read,
# and keeps them. They are the **KV cache**. Without it, every step of the answer would read the whole text again.
#
# Here is attention with a cache. `x` holds only the *new* tokens, many in the prefill and one in a decode step. Their
# queries, keys and values come from the matrix `qkv` of lesson 9, and `kept.append` adds the new keys and values to the
# cache and returns all of them:


# %%
def attend(attention, x, kept):  # x: new tokens × width
    past, new, size = kept.tokens, len(x), attention.size
    made = attention.qkv(x).view(new, -1, 3 * size).transpose(0, 1)
    q, k, v = made.chunk(3, dim=-1)  # each heads × new × size
    keys, values = kept.append(k, v)  # heads × (past + new) × size
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
# How large is the cache? Each layer keeps a key and a value for each token, for every head that has its own:
#
# $$\text{bytes} = 2 \cdot \text{layers} \cdot \text{KV heads} \cdot \text{head size} \cdot \text{bytes of a number}
# \cdot \text{tokens}$$
#
# The first factor stands for keys *and* values. Take Llama 3 8B, which has 32 layers and 8 KV heads of 128 numbers,
# with 2 bytes per number. A token needs 2 × 32 × 8 × 128 × 2 bytes, which is 131,072 bytes, or 128 KiB. A text of 8,192
# tokens needs 1 GiB. In your first [exercise](../exercises/19_inference.ipynb) you write this as `kv_cache_bytes`, for
# several texts and several ranks.
#
# **Predict.** Llama 3 70B has 80 layers, and also 8 KV heads of 128 numbers. How many KiB does a token need, and how
# many GiB do sixteen texts of 8,192 tokens each need?

# %%
course.predict("infer_cache", within=1.02, kib_per_token=..., gib=...)

# %% [markdown]
# Before the answer, we check two things on a small model in float64. Does our code keep exactly the bytes of the
# formula? And does decoding with a cache give the same logits as reading the whole text again? The model reads a prompt
# of 12 tokens and then 8 single tokens:

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
# The logits of all 20 tokens agree up to rounding, although each token went through the model only once. And the 40 GiB
# of sixteen long texts would take half of an H100's memory of 80 GB. So on a GPU it is often the cache that limits how
# many texts can be answered at the same time.
#
# ## Over ranks, a token pays for every message
#
# If one GPU moves the weights too slowly, four GPUs with a quarter of the weights each should be four times faster.
# This is the tensor parallelism of lesson 9, and it needs two all-reduces in each layer. Inference has no backward
# pass, so these are all. The cache is divided, too, because each rank computes the keys and values of its own heads and
# nobody else ever needs them.
#
# Our `read` runs unchanged on four ranks, because lesson 9's parallel layers contain the all-reduces. `cut_over_ranks`
# puts these layers into the model:

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
# square ever moves. Now here is the same run in time:

# %% tags=["figure:19_passes"]
passes = 1 + 2  # the prompt and two tokens
sums = run.collectives // passes
run.timeline(f"Each pass takes {sums} all-reduces, for four tokens or for one")

# %% [markdown]
# Two layers make four all-reduces in each pass. In the decode steps, each of them carries one token's vector, here 64
# numbers of 8 bytes. That is half a kilobyte. In Llama 3 8B it would be 4,096 numbers of 2 bytes, or 8 KiB.
#
# In lesson 4, a message of $n$ bytes took $\alpha + \beta n$ seconds. The ring of lesson 5 sends $2(P-1)$ messages one
# after the other in each all-reduce, so with four ranks an all-reduce pays at least $6\alpha$. Half a kilobyte takes 41
# µs on our link of 100 Mbit/s, and its latency is 2 ms, so six messages take at least 12 ms, of which the bytes are
# next to nothing. Tokens come one after the other, and so do layers, so a model with 4 layers pays this $2 \cdot 4 = 8$
# times for each token.
#
# **Predict.** Eight computers in an office share a model with 80 layers. Each message takes 1 ms, and its bytes hardly
# count. For how many seconds does every token wait for messages? And if the network gets ten times the bandwidth, with
# the same latency, how many seconds is it then?

# %%
course.predict("infer_office", within=1.05, seconds=..., ten_times_bandwidth=...)

# %% [markdown]
# Have you calculated it? The cell prints the answer, and then it holds the line against a real run. It times
# all-reduces of four sizes, and fits lesson 4's line to them. With it, it predicts a decode step of a model with 4
# layers and a width of 128, whose all-reduces are not among the four. Then it times this step, by turns with the same
# step without messages:

# %% tags=["figure:19_alpha"]
from course_utils.lessons.inference import allreduce_seconds, token_seconds
from course_utils.lessons.messages import fit_alpha_beta
from course_utils.lessons.overlap import slowest

layers, P, message = 80, 8, 1e-3
office = 2 * layers * 2 * (P - 1) * message
course.answer("infer_office", seconds=office, ten_times_bandwidth=office)

lengths = [64, 1024, 16_384, 65_536]  # float32 numbers
found = slowest(ranks.run(allreduce_seconds, lengths, backend="gloo").results)
medians = [float(np.median(found[length])) for length in lengths]
alpha, beta = fit_alpha_beta([4 * length for length in lengths], medians)
size = {"width": 128, "heads": 4, "depth": 4}
predicted = 2 * size["depth"] * (alpha + beta * 4 * size["width"])
print(f"an all-reduce takes {1e3 * alpha:.1f} ms and {1e9 * beta:.0f} ns per byte")

taken = slowest(ranks.run(token_seconds, **size, backend="gloo").results)
whole, computing = (float(np.median(taken[name])) for name in ("with", "without"))
bars = {
    "one token": {"computing": computing, "communication": max(0.0, whole - computing)},
    "by the line": {"computing": computing, "communication": predicted},
}
course.draw.stacked_bars(bars, sentences.step_text(taken, predicted), "")

# %% [markdown]
# In the office, a token takes more than two seconds, and a faster line changes nothing, because what is paid is
# $\alpha$ and not $\beta$. The run shows the same on a small scale. Without messages, a step takes only a small part of
# the time, so four computers are far slower than one. This is why tensor parallelism for decoding stays inside a node,
# where messages take microseconds.
#
# There is one comfort. If a step writes a token for each of 16 readers, every all-reduce carries 16 rows instead of
# one, and still takes hardly more than $6\alpha$. The weights are moved only once for all 16, too. So decoding wants a
# *batch*.
#
# ## Whoever is done leaves the batch
#
# The requests of different readers arrive when they like, and their answers are of different lengths. Suppose that our
# batch has two **slots**, and that four requests wait whose answers need 5, 1, 2 and 2 tokens. With **static
# batching**, the first two begin together. The second is done after one step, but its slot stays empty until the first
# is done, after 5 steps. Then come the other two, for 2 steps. That makes 7 steps. With **continuous batching**,
# whoever is done leaves its slot, and the next in the queue takes it in the next step. One slot works for 5 steps on
# the first request, and the other one for 1 + 2 + 2 steps on the rest. All are done after 5 steps.
#
# **Predict.** Now there are three slots, and six requests that need 6, 2, 2, 5, 3 and 4 tokens, in this order. How many
# steps does it take in total, with each kind of batching?

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
# `continuous_batch` is one of your exercises. It only decides who has which slot and when. The work is done by a
# server, which we now run on our four ranks. All ranks know the requests, so they make the same decisions without a
# message. A request that has just got its slot brings its whole prompt, and every other request brings the token that
# it wrote last. `read_tokens` is `read` for several texts at once. It puts all their new tokens into one matrix, so the
# weights are read once for all of them, and only attention treats each text separately, with its own cache.
#
# The requests arrive at random. In each step a new one arrives with a probability of 0.5, and its answer has 1, 4 or 10
# tokens. The generator has a fixed seed, so every run gets the same requests:

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
# Each reader gets the very answer that the model writes for them alone in one process. The picture shows the steps that
# the server made, and above them those of static batching.
#
# ## A busy server makes you wait
#
# A full batch is good for the owner of the GPU. Is it good for the readers, too? The tool for this question is
# **Little's law**. It concerns the mean number of requests in the system, $L$, the rate $\lambda$ at which they arrive,
# and the mean time $T$ that a request spends there, and states that
#
# $$L = \lambda\, T .$$
#
# To see why, let every request put a coin on the table in each step that it is there. Counted step by step, the coins
# are the number of steps times $L$. Counted request by request, they are the number of requests times $T$. Both counts
# must agree:

# %% tags=["nbval-check-output"]
from course_utils.lessons.inference import in_system, latency_steps

for name, stays in schedules.items():
    step_by_step = sum(in_system(requests, stays))
    by_request = sum(latency_steps(requests, stays))
    assert step_by_step == by_request
    mean = by_request / len(requests)
    print(
        f"{name:10}: {step_by_step} = {by_request} coins, {mean:.1f} steps for a request"
    )

# %% [markdown]
# Now let's calculate how long a request waits for its slot. Take a single slot, answers of $D$ tokens, and a request
# that arrives in each step with probability $p$. The slot is in use for a share $\rho = pD$ of the steps, its
# **utilisation**. A request that arrives waits for two things:
#
# - for those that wait before it. By Little's law there are $p \cdot w$ of them on average, if $w$ is the mean waiting
#   time, and each takes $D$ steps;
# - for the rest of the answer in the slot. With probability $\rho$ there is one, and on average $\frac{D-1}2$ steps of
#   it are left.
#
# Together, $w = p\,w D + \rho\,\frac{D-1}2 = \rho\,w + \rho\,\frac{D-1}2$, so
#
# $$w = \frac{\rho}{1-\rho} \cdot \frac{D-1}2 .$$
#
# With answers of 21 tokens and a slot that is used half of the time, this is $\frac{0.5}{0.5} \cdot 10$, or 10 steps.
#
# **Predict.** How many steps does a request wait on average if the slot is used 80% of the time? And 95% of the time?

# %%
course.predict("infer_queue", within=1.05, at_80=..., at_95=...)

# %% [markdown]
# Does the formula hold? The cell prints the answer. Then it lets 50,000 requests arrive at random for each of five
# utilisations, gives them to `continuous_batch` with one slot, and counts how long they wait:

# %% tags=["figure:19_queue"]
from course_utils.lessons.inference import mean_waiting_steps, waiting_steps

waits = {rho: mean_waiting_steps(rho / 21, [21]) for rho in (0.8, 0.95)}
course.answer("infer_queue", at_80=waits[0.8], at_95=waits[0.95])

used = [0.2, 0.4, 0.6, 0.8, 0.9]
arriving = 50_000
counted, by_formula = [], []
for rho in used:
    many = random_requests(np.random.default_rng(4), arriving, rho / 21, [21])
    counted.append(np.mean(waiting_steps(many, continuous_batch(many, slots=1))))
    by_formula.append(mean_waiting_steps(rho / 21, [21]))
course.draw.over_numbers(
    used,
    {"waiting": counted},
    f"At {used[-1]:.0%} use a request waits {counted[-1] / counted[1]:.0f} times longer"
    f" than at {used[1]:.0%}",
    predicted={"waiting": by_formula},
    across="utilisation of the slot",
    up="steps of waiting, on average",
    dots="counted",
)

# %% [markdown]
# The dots follow the line. They scatter more when the slot is nearly always in use, because then a single crowd takes
# long to go away. From 80% to 95%, a server does a fifth more work, and its readers wait almost five times longer. So
# throughput and latency are at odds, and a server that is to answer quickly has to be idle for part of its time.
#
# ## Prompts are read on a rank of their own
#
# There is one more thing that readers wait for. If a server reads a new prompt of 2,000 tokens between two decode
# steps, all running answers stop until it is done. A second rank could read the prompts instead, while the first one
# only decodes. Then the prompt's KV cache has to travel from the rank that made it to the rank that uses it. This is
# called **disaggregation**. Here it is on two real ranks. `stacked` puts the whole cache into one tensor:


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
# The answer is the same as before, and the bytes are exactly those of the formula. When does the move pay? Let's count
# the waiting that a new prompt causes. If it is read on the decoding rank, every running answer waits while it is read.
# If it is read elsewhere, only its own answer waits, for the cache to arrive:
#
# - read here: (running answers) × (seconds to read the prompt);
# - read elsewhere: $\alpha + \beta \cdot$ (bytes of its cache).
#
# The prompt's own answer also has to wait until it is read, but that is so in both cases.
#
# Take Llama 3 8B, and suppose that a GPU reaches half of its peak in the prefill. A token takes $16 \cdot 10^9 / (495
# \cdot 10^{12})$ s, or 32 µs. On a link of 10 Gbit/s, its 131,072 bytes take 105 µs. So with 3 running answers, reading
# it here costs 97 µs of waiting, and the move 105 µs. With 4 it costs 129 µs, and the move pays. The break-even is at
# 105 ÷ 32, or 3.2 answers. The cell lets **virtual ranks** (lesson 5) act it out on links of six rates. Their
# computations take the given time and do nothing, and their messages take $\alpha + \beta n$:

# %% tags=["figure:19_apart"]
from course_utils.lessons.allreduce import Network
from course_utils.lessons.inference import Prefill, break_even, played_serving

tokens, reading, step = 200, 16e9 / (H100.flops / 2), 5e-3  # seconds a token, a step
per_token = kv_cache_bytes([1], layers=32, kv_heads=8, head_size=128)
two = course.start(2, where="nowhere")
rates, moved, here, even = [12.5, 25, 50, 100, 200, 400], [], [], {}  # Gbit/s
for rate in rates:
    costs = Prefill(reading, per_token, alpha=20e-6, beta=8 / (rate * 1e9))
    network = Network(costs.alpha, costs.beta)
    together, apart = (
        two.run(played_serving, apart, tokens, costs, step, network=network).results[1]
        for apart in (False, True)
    )
    exact = costs.seconds(tokens) + costs.moving_seconds(tokens)
    assert exact <= apart.first_token + 1e-9 <= exact + step + 2e-9  # seen after a step
    moved.append(1e3 * costs.moving_seconds(tokens))
    here.append(1e3 * together.running)
    even[rate] = break_even(costs, tokens)
lines = {f"read here, {n} running": [n * ms for ms in here] for n in (1, 4, 16)}
course.draw.over_numbers(
    rates,
    {"moved": moved} | lines,
    sentences.apart_text(even),
    "A prompt of 200 tokens on virtual ranks, with the numbers of Llama 3 8B on an H100",
    across="link, Gbit/s",
    up="waiting caused, milliseconds",
    log=True,
)

# %% [markdown]
# The virtual ranks take exactly as long as the formula. On a fast link, the move pays even for a single running answer.
# In the exercise `place_prefill`, the prompts also queue up in both places.
#
# ## A small model guesses ahead
#
# In a decode step, the processor waits for the weights and could read a dozen tokens in the same time. But which
# tokens? The answer isn't there yet. **Speculative decoding** lets a small, fast model, the *draft*, guess the next $k$
# tokens. The large model, the *target*, then reads all of them in a single pass, which costs hardly more than one
# token, and over ranks it needs no more all-reduces than one token. This gives it its own distribution at each of these
# places. Then it accepts the guesses from left to right until the first that it rejects.
#
# The trick is in how it decides. Let the draft propose token $x$ with probability $q(x)$, and let $p(x)$ be its
# probability in the target. The rule is:
#
# 1. Accept $x$ with probability $\min(1, p(x)/q(x))$.
# 2. If it is rejected, draw from what the draft proposes too seldom: $\max(0, p - q)$, scaled to the sum 1.
#
# Here is a vocabulary of two tokens. The draft gives them 0.8 and 0.2, and the target 0.6 and 0.4. If the first is
# proposed, it is accepted with probability 0.6 / 0.8 = 0.75. The second is always accepted. So the first token appears
# with probability 0.8 · 0.75 = 0.6. All rejected proposals, 0.8 · 0.25 = 0.2 of them, become the second token, because
# only there is $p > q$. It appears with probability 0.2 + 0.2 = 0.4. That is exactly the target's distribution! This is
# no accident. For every token $x$,
#
# $$\begin{aligned}
# P(x) &= \underbrace{q(x) \min\left(1, \tfrac{p(x)}{q(x)}\right)}_{\text{proposed and accepted}}
# + P(\text{rejected}) \cdot \frac{\max(0, p(x) - q(x))}{\sum_y \max(0, p(y) - q(y))}\\
# &= \min(q(x), p(x)) + \max(0, p(x) - q(x))\\
# &= p(x).
# \end{aligned}$$
#
# The two sums cancel, because $P(\text{rejected}) = 1 - \sum_y \min(p(y), q(y)) = \sum_y \max(0, p(y) - q(y))$. So the
# draft decides only how *fast* the answer comes, and never what is in it. In code, this is the exercise
# `accept_or_resample`, and here is a round around it:

# %%
from course_utils.lessons.inference import accept_or_resample


def one_round(text, draft, target, k, generator, rule=accept_or_resample):
    guessed, small = list(text), []
    for _ in range(k):  # the draft writes k tokens
        small.append(draft(guessed))
        guessed.append(int(generator.choice(len(small[-1]), p=small[-1])))
    added = []
    for guess, q in zip(guessed[len(text) :], small):
        p = target([*text, *added])  # all of these come from one pass
        token, accepted = rule(guess, q, p, generator)
        added.append(token)
        if not accepted:
            return added
    p = target([*text, *added])  # all accepted: the same pass gives one more
    return [*added, int(generator.choice(len(p), p=p))]


# %% [markdown]
# Is it really the same distribution? We test it on a transformer with 3 layers and 6 different tokens. Its draft is the
# same model without the last two layers. We let rounds continue the same text 2,000 times, and count which *two* tokens
# follow. There are 36 pairs, and we know the probability of each under the target. The **chi-square test** adds up
# (counted − expected)² / expected over all pairs, and tells us how often chance alone would give a sum as large as that
# one. This share is called the p-value. A tiny p-value means that the distribution is wrong.
#
# For comparison, a wrong rule that sounds sensible accepts a guess whenever it is at least half as likely as the
# target's likeliest token:

# %%
from course_utils.lessons.inference import chi_square, distribution_of, first_layers
from course_utils.lessons.inference import pair_probabilities

target_model = double_model(characters=6, width=16, heads=2, depth=3, seed=1)
target = distribution_of(target_model, temperature=0.25)
draft = distribution_of(first_layers(target_model, 1), temperature=0.25)


def sounds_sensible(guess, q, p, generator):
    return (guess, True) if p[guess] >= 0.5 * p.max() else (int(p.argmax()), False)


start = [0, 3]
expected = pair_probabilities(start, target)
p_values = {}
for rule in (accept_or_resample, sounds_sensible):
    generator, counts = np.random.default_rng(5), np.zeros((6, 6))
    for _ in range(2000):
        added = []
        while len(added) < 2:
            added += one_round(start + added, draft, target, 3, generator, rule)
        counts[added[0], added[1]] += 1
    p_values[rule.__name__] = chi_square(counts, expected)[1]
    print(f"{rule.__name__}: p-value {p_values[rule.__name__]:.1g}")
assert p_values["accept_or_resample"] > 0.01 > 1e-6 > p_values["sounds_sensible"]

# %% [markdown]
# The right rule passes, and the sensible one is caught. Its text would look fine, but it is not what the target would
# have written.
#
# How many tokens does a round bring? If each guess is accepted with probability $a$, the first token always comes, the
# second only if the first guess was accepted, which has the probability $a$, the third with probability $a^2$, and so
# on:
#
# $$1 + a + a^2 + \dots + a^k = \frac{1 - a^{k+1}}{1 - a}$$
#
# For a single place, $a$ is what the two distributions have in common, $\sum_x \min(p(x), q(x))$. In the example above
# this is 0.6 + 0.2 = 0.8. With $k = 2$ guesses, a round brings 1 + 0.8 + 0.64 = 2.44 tokens.
#
# **Predict.** The draft gives three tokens 0.5, 0.3 and 0.2, and the target 0.2, 0.5 and 0.3. How many tokens does a
# round with $k = 3$ guesses bring on average?

# %%
course.predict("infer_tokens", within=1.03, tokens=...)

# %% tags=["figure:19_tokens"]
from course_utils.lessons.inference import acceptance, expected_tokens

q, p = np.array([0.5, 0.3, 0.2]), np.array([0.2, 0.5, 0.3])
a = acceptance(q, p)
generator = np.random.default_rng(2)
guesses = [1, 2, 3, 4, 6, 8]
repeats = 2000
counted = []
for k in guesses:
    rounds = [
        one_round([], lambda _: q, lambda _: p, k, generator) for _ in range(repeats)
    ]
    counted.append(np.mean([len(added) for added in rounds]))
by_formula = [expected_tokens(a, k) for k in guesses]
course.answer("infer_tokens", tokens=by_formula[guesses.index(3)])
course.draw.over_numbers(
    guesses,
    {"a round": counted},
    f"{guesses[-1]} guesses bring {counted[-1]:.1f} tokens a round, {guesses[3]} bring"
    f" {counted[3]:.1f}",
    predicted={"a round": by_formula},
    across="guesses of the draft, k",
    up="tokens a round, on average",
    dots="counted",
)

# %% [markdown]
# The curve flattens, because a late guess counts only if all earlier ones were accepted, and can never exceed
# $1/(1-a)$. Each guess also costs the draft a step of its own. So in practice $k$ is small. Between computers the gain
# is the same in messages: if a round brings three tokens, each token pays for a third of the all-reduces.

# %%
ranks.stop()

# %% [markdown]
# ## What you take with you
#
# A pass through the model costs almost the same for one token as for many, until there are enough of them to keep the
# processor busy. The prefill has many tokens by itself, and decoding has only one. The KV cache lets each token pass
# through the model just once, and takes more and more memory. Over ranks, a token pays $\alpha$ in two all-reduces per
# layer. Continuous batching shares the pass among many readers, and speculative decoding fills it with guesses, without
# changing a single probability. A prompt that is read elsewhere leaves the running answers alone, if its cache arrives
# quickly enough. And a server that is always busy makes everyone wait.
#
# [Further](19_inference_further.ipynb) keeps caches in pages, reads prompts in pieces, and lets a hundred servers share
# the work. In the [exercises](../exercises/19_inference.ipynb) you count a cache, decode over ranks, fill the slots,
# accept or replace guesses, and decide where prompts are read.
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
