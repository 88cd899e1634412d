# The optional second notebook of lesson 19. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: what does one answer cost?
#
# A server that reserves memory for the longest possible answer can waste most of it, and a fleet of a hundred servers
# can let readers wait although many of the servers are idle. This notebook shows what is done about both, and about
# long prompts that hold up everyone else.
#
# Everything here is optional, and nothing later depends on it. The first code cell prepares the notebook. After that
# you can go to any section, because each of them stands alone.
#
# 1. *Pages instead of reservations*: a cache without holes
# 2. *A prompt in pieces*: no one has to wait for it
# 3. *A hundred servers*: which of them takes the next request?
# 4. *Fewer heads, smaller caches*: and what if there are more ranks than KV heads
# 5. *Why a busy slot makes you wait*: the page's formula, derived
# 6. *Does a draft change the distribution?* A test by counting
#
# *30 minutes · optional, after [lesson 19](19_inference.ipynb) · no ranks but virtual ones*

# %%
import math

import numpy as np
import torch

import course_utils as course
from course_utils.lessons.inference import KVCache, double_model, drawn_tokens
from course_utils.lessons.inference import kv_cache_bytes, read_tokens
from course_utils.words import percent

# %% [markdown]
# ## Pages instead of reservations
#
# A server doesn't know in advance how long an answer will be. The simplest way is to reserve the memory for the longest
# text that the model can read. Most texts are much shorter, so most of this memory is never used, and there is room for
# fewer texts.
#
# **Paged attention** (Kwon and others, 2023) does what operating systems do. It cuts the memory of the cache into
# **pages** of, for example, 16 tokens. A text gets a page when it needs one, wherever it may be, and a table remembers
# which pages belong to which text. Only the last page of each text is partly empty. A text of 35 tokens needs 3 pages,
# which have room for 48 tokens, so 13 places stay empty.
#
# **Predict.** If all remainders are equally likely, how many places does a text leave empty on average with pages of 16
# tokens?

# %%
course.predict("further_pages", within=1.05, places=...)

# %% tags=["figure:19_pages"]
longest, page = 2048, 16
lengths = np.random.default_rng(3).geometric(1 / 300, 2000).clip(1, longest)  # of texts
pages = -(-lengths // page)  # rounded up
empty = page * pages - lengths
course.answer("further_pages", places=np.mean([-rest % page for rest in range(page)]))
print(f"counted: {empty.mean():.1f} empty places for a text")

used = {
    "reserved": lengths.sum() / (longest * len(lengths)),
    "in pages": lengths.sum() / (page * pages).sum(),
}
sizes = [1, 4, 16, 64, 256, 1024]
shares = [100 * lengths.sum() / (-(-lengths // size) * size).sum() for size in sizes]
course.draw.over_numbers(
    sizes,
    {"in use": shares},
    f"With pages of {page} tokens, {percent(used['in pages'])} of the cache is in use, "
    f"with reservations {percent(used['reserved'])}",
    f"{len(lengths):,} texts of {lengths.mean():.0f} tokens on average; a reservation is for {longest:,}",
    across="tokens of a page",
    up="% of the reserved places in use",
    limits=(0, 105),
)

# %% [markdown]
# Why not pages of a single token? The table would be as long as the text, and attention would have to collect every key
# from a place of its own. With 16 tokens, both are bearable. Pages have a second use. If many prompts begin alike, for
# example with the same instructions, their tables can point to the same pages, which are then read and kept only once.
#
# ## A prompt in pieces
#
# The page moved prompts to a rank of their own, so that no running answer has to wait. If there is no second rank, a
# prompt can be read in pieces instead. Each decode step then takes the next tokens of the running answers and a piece
# of the prompt. This is called **chunked prefill** (Agrawal and others, 2024). It changes nothing in the result,
# because the cache remembers everything that has been read:

# %% tags=["nbval-check-output"]
model, text = double_model(), drawn_tokens(40)
whole, pieces = KVCache.of(model), KVCache.of(model)
at_once = read_tokens(model, [text], [whole])
in_pieces = torch.cat([read_tokens(model, [piece], [pieces]) for piece in text.split(16)])
assert (at_once - in_pieces).abs().max() <= 1e-12
print(f"{pieces.tokens} tokens in {len(text.split(16))} pieces, the same logits")

# %% [markdown]
# How large should a piece be? The roofline of lesson 3 answers this, too. A pass takes as long as the weights need to
# arrive, or as long as the arithmetic, whichever is longer. With Llama 3 8B on an H100, the weights take 4.8 ms, and a
# token takes 16 µs of arithmetic at the peak. So up to about 295 tokens, a pass costs the same. With 16 running
# answers, a piece of 279 tokens travels for nothing.
#
# **Predict.** A prompt of 2,048 tokens arrives while 16 answers are running. How long does a running answer wait for
# its next token, in milliseconds, if the prompt is read at once? And if it is read in pieces of 256 tokens?

# %%
course.predict("further_pieces", within=1.05, at_once=..., in_pieces=...)

# %% tags=["figure:19_pieces"]
from course_utils.lessons.hardware import data_sheets

H100, weights, running, tokens = data_sheets.H100, 8e9, 16, 2048


def pass_seconds(new):
    """Return how long a pass for so many new tokens takes at least, by the roofline."""
    return max(2 * weights / H100.bandwidth, 2 * weights * new / H100.flops)


sizes = [32, 64, 128, 256, 512, 1024, 2048]
gaps = [1e3 * pass_seconds(size + running) for size in sizes]
first = [1e3 * math.ceil(tokens / size) * pass_seconds(size + running) for size in sizes]
course.answer("further_pieces", at_once=gaps[-1], in_pieces=gaps[sizes.index(256)])
course.draw.over_numbers(
    sizes,
    {"gap in the running answers": gaps, "until the prompt is read": first},
    f"In pieces of 256 tokens, no answer waits longer than {gaps[3]:.1f} ms",
    across="tokens of a piece",
    up="milliseconds, by the roofline",
    log=True,
)

# %% [markdown]
# At the ridge, both are good. With smaller pieces the prompt takes longer and the running answers gain nothing, because
# a pass takes 4.8 ms in any case. With larger ones the running answers wait longer. A server with a fast link can do
# better with a second rank, because there the running answers wait for nothing at all.
#
# ## A hundred servers
#
# Popular models run on many servers, and a **dispatcher** decides which of them takes the next request. Suppose it
# chooses one at random. Then each server has a queue of its own, and the formula of the page holds for each of them. At
# any moment some queues are long while other servers are idle.
#
# A simple trick is known as **the power of two choices** (Mitzenmacher, 2001). The dispatcher picks *two* servers at
# random, and takes the one with the shorter queue. Here is a fleet of 100 virtual ranks with a dispatcher as rank 0.
# Servers report every answer that they have finished, so the dispatcher knows all queues:


# %%
def fleet(comm, gaps, step, choices, seed):
    """Dispatch requests of 21 tokens; return how many steps each request has waited, on the server's rank."""
    from mpi4py import MPI

    if comm.rank > 0:
        waited = []
        while (sent := comm.recv(source=0)) is not None:
            waited.append((MPI.Wtime() - sent) / step)
            comm.compute(21 * step)
            comm.send(None, dest=0)
        return waited
    queues, generator = np.zeros(comm.size - 1, int), np.random.default_rng(seed)
    status = MPI.Status()

    def take_report():
        comm.recv(source=MPI.ANY_SOURCE, status=status)
        queues[status.Get_source() - 1] -= 1

    for gap in gaps:
        comm.compute(gap * step)
        while comm.iprobe(source=MPI.ANY_SOURCE):
            take_report()
        drawn = generator.integers(len(queues), size=choices)
        server = min(drawn, key=lambda one: queues[one])
        queues[server] += 1
        comm.send(MPI.Wtime(), dest=server + 1)
    while queues.any():
        take_report()
    for rank in range(1, comm.size):
        comm.send(None, dest=rank)
    return []


# %% [markdown]
# Each server is used for 80% of the time. On the page, the formula gave a mean of 40 steps of waiting in this case.
#
# **Predict.** How many steps does a request wait on average if the better of two servers takes it? A rough guess is
# enough, so anything within a factor of two is right.

# %%
course.predict("further_choices", within=2, steps=...)

# %% tags=["figure:19_choices"]
from course_utils.lessons.inference import mean_waiting_steps

servers, requests, step = 100, 4000, 5e-3
many = course.start(servers + 1, where="nowhere")
used, waits = [0.5, 0.6, 0.7, 0.8, 0.9], {1: [], 2: []}
for rho in used:
    gaps = np.random.default_rng(7).exponential(21 / (rho * servers), requests)
    for choices, line in waits.items():
        results = many.run(fleet, gaps, step, choices, seed=1).results
        line.append(np.mean([steps for waited in results for steps in waited]))
course.answer("further_choices", steps=waits[2][used.index(0.8)])
by_formula = [mean_waiting_steps(rho / 21, [21]) for rho in used]
print("formula for one at random:", ", ".join(f"{wait:.0f}" for wait in by_formula))
course.draw.over_numbers(
    used,
    {"one at random": waits[1], "better of two": waits[2]},
    f"At 80% use, the better of two servers has {waits[1][3] / waits[2][3]:.0f} times less waiting",
    f"{servers} servers, {requests:,} requests of 21 tokens each; the fleet is empty at the beginning",
    across="utilisation of the servers",
    up="steps of waiting, on average",
    dots="simulated",
)

# %% [markdown]
# A second choice takes away most of the waiting. At high use, the fleet with one server at random waits less than the
# formula, because it begins with empty queues and only 40 requests come to each server. Why isn't it best to look at
# *all* servers? In this program it would be, because the dispatcher knows all queues. In a large fleet with many
# dispatchers, what they know is always a little old, and if all of them saw the same shortest queue, all would send
# their requests there.
#
# ## Fewer heads, smaller caches
#
# The first transformers had as many KV heads as heads of queries. **Multi-query attention** (Shazeer, 2019) has a
# single KV head for all queries, and grouped-query attention (lesson 17) is in between. Llama 3 8B has 32 heads of
# queries and 8 KV heads. With tensor parallelism, the KV heads limit how far the cache can be divided, because a rank
# needs at least one whole head:

# %% tags=["nbval-check-output"]
for kv_heads in (32, 8, 1):
    held = [
        kv_cache_bytes([1], layers=32, kv_heads=kv_heads, head_size=128, world_size=P)
        // 1024
        for P in (1, 4, 8, 16)
    ]
    print(f"{kv_heads:2} KV heads: {held} KiB a token on each of 1, 4, 8 and 16 ranks")

# %% [markdown]
# With a single KV head, a second rank doesn't make the cache smaller. With 8 heads, the same is true from 8 ranks on.
# So large servers divide the *texts* among groups of ranks once the heads are used up.
#
# ## Why a busy slot makes you wait
#
# On the page, answers of $D$ tokens share one slot, and in each step a request arrives with probability $p$, whatever
# has happened before. Call its mean waiting time $w$ steps. A new request waits for two things:
#
# - the requests ahead of it. On average $p \cdot w$ of them are waiting. This is **Little's law**: the mean number of
#   those who wait is the rate at which they arrive, times the mean time that each waits. Each of these will take $D$
#   steps to answer;
# - the rest of the answer in the slot. In a share $\rho = pD$ of the steps, the slot has just written a token, and
#   0, 1, 2, … or $D-1$ tokens of its answer are left. All of these numbers are equally likely, because each answer goes
#   through every one of them once. So $\frac{D-1}2$ are left on average.
#
# Both are averages over all steps. They also hold for the steps in which a request arrives, because every step is
# equally likely to be one, whether the queue is long or short. Together,
#
# $$w = p\,w D + \rho\,\frac{D-1}2 = \rho\,w + \rho\,\frac{D-1}2, \qquad\text{so}\qquad
# w = \frac{\rho}{1-\rho} \cdot \frac{D-1}2 .$$
#
# ## Does a draft change the distribution?
#
# The page shows that the rule of speculative decoding changes no probability. Here we test it on a transformer with 3
# layers and 6 different tokens. Its draft is the same model without the last two layers. We let rounds continue the
# same text 2,000 times, and count which of the 36 pairs of tokens follow. From the target's probabilities we know how
# many of each pair to expect. The **chi-square test** adds up (counted − expected)² ÷ expected over all pairs. Its
# p-value is how often chance alone gives a sum at least as large, so a tiny p-value means that the distribution is
# wrong. The test needs at least about 5 expected cases of each kind, so we count all rarer pairs together.
#
# For comparison, here is a wrong rule that sounds sensible. It accepts a guess that the target finds at least half as
# likely as its likeliest token, and otherwise takes the likeliest token:


# %%
from course_utils.lessons.inference import accept_or_resample, chi_square
from course_utils.lessons.inference import distribution_of, first_layers
from course_utils.lessons.inference import pair_probabilities, speculative_round

target_model = double_model(characters=6, width=16, heads=2, depth=3, seed=1)
target = distribution_of(target_model, temperature=0.25)
draft = distribution_of(first_layers(target_model, 1), temperature=0.25)


def sounds_sensible(guess, q, p, generator):
    return (guess, True) if p[guess] >= 0.5 * p.max() else (int(p.argmax()), False)


start = [0, 3]
expected, texts = pair_probabilities(start, target), 2000
rare = expected * texts < 5


def grouped(table):
    return np.append(table[~rare], table[rare].sum())


p_values = {}
for rule in (accept_or_resample, sounds_sensible):
    generator, pairs = np.random.default_rng(5), np.zeros((6, 6))
    for _ in range(texts):
        added = []
        while len(added) < 2:
            before = start + added
            added += speculative_round(before, draft, target, 3, generator, rule)
        pairs[added[0], added[1]] += 1
    p_values[rule.__name__] = chi_square(grouped(pairs), grouped(expected))[1]
    print(f"{rule.__name__}: p-value {p_values[rule.__name__]:.1g}")
assert p_values["accept_or_resample"] > 0.01 > 1e-6 > p_values["sounds_sensible"]

# %% [markdown]
# The right rule passes, and the sensible one is caught. It takes the likeliest tokens too often.
#
# **To read**
#
# - Kwon and others, 2023, [*Efficient Memory Management for Large Language Model Serving with
#   PagedAttention*](https://arxiv.org/abs/2309.06180).
# - Agrawal and others, 2024, [*Taming Throughput-Latency Tradeoff in LLM Inference with
#   Sarathi-Serve*](https://arxiv.org/abs/2403.02310): prompts in pieces.
# - Mitzenmacher, 2001, [*The Power of Two Choices in Randomized Load
#   Balancing*](https://doi.org/10.1109/71.963420).
# - Shazeer, 2019, [*Fast Transformer Decoding: One Write-Head is All You Need*](https://arxiv.org/abs/1911.02150).
