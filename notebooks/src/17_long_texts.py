# The lesson on context parallelism. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # What if the text does not fit?
#
# After this lesson you can **compute** attention without ever holding all scores, **share** one text among several
# ranks, and **predict** what each of them computes, sends and keeps.
#
# *60 minutes · builds on [lesson 9](09_model_parallel.ipynb) · 8 ranks*

# %%
from functools import partial

import torch
import torch.distributed as dist

import course_utils as course

ranks = course.start(8, link="100 Mbit/s")
ranks.load_torch()

# %% [markdown]
# Lesson 9 cut the model. But texts grow, too: whole books, a repository of code, an hour of video. Data parallelism
# does not help, for it deals out *texts*. Today all ranks work on one text: **context parallelism**. Each rank has some
# of the text's **tokens** (pieces of text; in lesson 9 they were characters).
#
# Norms, perceptrons and linear layers work on each token by itself: nothing moves. Only attention looks at other
# tokens. So this lesson is about attention.

# %% [markdown]
# ## Why it does not fit
#
# The query of each token meets the keys of all tokens before it. $n$ tokens make $n^2$ **scores**, and lesson 9's
# attention keeps one weight for each, in each head, for its backward pass.
#
# **Predict.** The text becomes twice as long. How many times as many bytes does lesson 9's attention keep? And how many
# times as many would an attention keep that keeps something for each token, but no scores?

# %%
course.predict("texts_memory", within=1.1, all_scores=..., in_blocks=...)

# %% [markdown]
# Must all scores be there at once? For one query, attention is
#
# $$\text{output} = \frac{\sum_i e^{s_i} v_i}{\sum_i e^{s_i}}$$
#
# These are two sums, and a sum can be made piece by piece. Cut the keys into two sets, $a$ and $b$. Do attention to
# each set, and with each output keep the logarithm of its denominator: $L = \log \sum e^{s_i}$, the **log-sum-exp**.
# Then
#
# $$\text{output} = \frac{e^{L_a}\,\text{output}_a + e^{L_b}\,\text{output}_b}{e^{L_a} + e^{L_b}}$$
#
# That is exact. (The code must take care: $e^{L}$ may be too large for a number.) Exercise: `merge_attention`.

# %%
from course_utils.lessons.long_texts import block_attention, drawn_text, merge_attention

q, k, v, _ = drawn_text(64)  # one text, 4 heads of 16 numbers, in float64
places = torch.arange(64)  # where in the text a token stands
parts = []
for keys in (slice(0, 20), slice(20, 64)):
    some = k[:, :, keys], v[:, :, keys]
    parts.append(block_attention(q, *some, places, places[keys]))
out, lse = merge_attention(*parts[0], *parts[1])
whole, _ = block_attention(q, k, v, places, places)
print(f"two sets of keys or one: {(out - whole).abs().max():.0e} apart")

# %% [markdown]
# A query sees no key after its own place: that is the **causal mask**. So the first 20 queries see nothing of the
# second set. There the output is 0 and the log-sum-exp $-\infty$: a weight of 0.
#
# So: go through the keys block by block, and merge. Only the scores of *one* block exist at a time. The backward pass
# computes the scores again; the log-sum-exp that was kept makes weights of them. This is the idea of **FlashAttention**
# (Dao and others, 2022; before it Milakov and Gimelshein, 2018, and Rabe and Staats, 2021). Exercise:
# `block_attention`.

# %%
from course_utils.lessons.long_texts import attention_in_blocks, attention_memory
from course_utils.lessons.long_texts import growth_text, ordinary_attention
from course_utils.words import bytes_text


def in_blocks(q, k, v):
    return attention_in_blocks(q, k, v, torch.arange(q.shape[2]))


lengths = [256, 512, 1024]
ways = {"all scores": ordinary_attention, "in blocks": in_blocks}


def memory_of(attend):  # on a rank of its own
    return [attention_memory(attend, n) for n in lengths]


on_one = partial(ranks.run, ranks=1, backend="gloo")
found = {way: on_one(memory_of, attend).results[0] for way, attend in ways.items()}

# %% tags=["figure:17_memory"]
kept = {way: [saved for saved, _ in line] for way, line in found.items()}
grown = [line[-1] / line[-2] for line in kept.values()]
course.measured("texts_memory", all_scores=grown[0], in_blocks=grown[1])
for way, line in found.items():
    print(f"{way}: at most {bytes_text(line[-1][1])} at once")
look = {"across": "tokens", "up": "kept for the backward pass", "unit": bytes_text}
course.draw.over_numbers(lengths, kept, growth_text(lengths, kept), log=True, **look)

# %% [markdown]
# Lesson 9's counter counts what autograd keeps. (The lines above the picture say how many bytes all tensors had
# together at most, with 1,024 tokens.) Is attention in blocks right? We compare its output and gradients with those of
# lesson 9's attention, in float64:

# %%
q, k, v, gradient = drawn_text(200)
inputs = [tensor.requires_grad_() for tensor in (q, k, v)]
found = []
for attend in ways.values():
    out = attend(*inputs)
    found.append((out, *torch.autograd.grad(out, inputs, gradient)))
for name, ordinary, blocked in zip(("output", "q", "k", "v"), *found, strict=True):
    apart = (ordinary - blocked).abs().max().item()
    assert apart <= 1e-12
    print(f"{name}: {apart:.0e} apart")

# %% [markdown]
# It is no approximation. Numbers of 16 bits (float16, and lesson 13's bfloat16) are sent and kept as they are, but they
# are added up in float32.
#
# ## Four ranks, a quarter each
#
# Each rank has the queries, keys and values of its own tokens. Its queries must meet the keys of *all* ranks. Does it
# need all keys at once? No: parts can be merged, in any order. So let keys and values go round lesson 5's **ring**: in
# each step a rank computes with those that it has at the moment, and passes them to its right. This is **Ring
# Attention** (Liu and others, 2023).

# %% [markdown]
# Read the function below. Then **predict**, for 4 ranks: how many times its own bytes of keys and values does each rank
# send in the forward pass? And in the backward pass? There keys and values go round once more. A reduce-scatter (lesson
# 5) follows them round the ring: it adds up the *gradients* of each rank's keys and values, and brings them home.


# %%
def ring(q, k, v, places):
    from course_utils.lessons.long_texts import pass_on

    rank, P = dist.get_rank(), dist.get_world_size()
    kv, total = torch.stack([k, v]), None
    for step in range(P):
        source = (rank - step) % P  # whose keys are here now
        if step < P - 1:
            passing = pass_on(kv, kv.shape)  # to the right; does not wait
        part = block_attention(q, *kv, places[rank], places[source])
        total = merge_attention(*total, *part) if total else part
        if step < P - 1:
            kv = passing.wait()
    return total[0]


course.predict("texts_ring", forward=..., backward=...)

# %% tags=["figure:17_ring"]
from course_utils.lessons.long_texts import Shape, attention_round_the_ring
from course_utils.lessons.long_texts import beside_one_process, bytes_in, difference_text
from course_utils.lessons.long_texts import in_order, ring_bytes

compare = partial(ranks.run, beside_one_process, backend="gloo")
for _ in range(2):  # the first one finds connections
    run = compare(attention_round_the_ring, in_order(64, 4), ranks=4)
assert max(max(found.values()) for found in run.results) <= 1e-12
print(difference_text(run.results))
formula = ring_bytes(Shape(64, heads=4, size=16, number_bytes=8), 4)
sent = {name: bytes_in(run.events, name, rank=0) for name in formula}
assert sent == formula
own = 2 * 16 * 4 * 16 * 8  # keys and values: 16 tokens, 4 heads of 16 numbers
course.measured("texts_ring", **{name: sent[name] / own for name in sent})
run.timeline(f"Forward and backward: {run.messages} messages, only to the right")

# %% [markdown]
# Output and all gradients are those of one process, to the last digits. Forward each rank sends $P-1$ times its own
# share: that is lesson 5's all-gather, but nobody ever holds all of it. Backward comes the same again, and then the
# reduce-scatter, as much once more: each rank adds the gradient from *its* queries to the sum that comes by.
#
# Exercise: `ring_attention`.

# %% [markdown]
# ## Behind the computing
#
# `pass_on` does not wait: while keys travel, the rank computes with them. If a step's transfer is shorter than its
# computing, it costs nothing (lesson 7). Whatever is not hidden is **exposed**. Our links are emulated, of 100 Mbit/s.
# (Where your system forbids them, messages pass through memory, and there is little to hide.)
#
# **Predict.** The function `in_turn` below first computes, then sends and waits. How much of its waiting is left in
# `ring`?


# %%
def in_turn(q, k, v, places):
    from course_utils.lessons.long_texts import pass_on

    rank, P = dist.get_rank(), dist.get_world_size()
    kv, total = torch.stack([k, v]), None
    for step in range(P):
        part = block_attention(q, *kv, places[rank], places[(rank - step) % P])
        total = merge_attention(*total, *part) if total else part
        if step < P - 1:
            kv = pass_on(kv, kv.shape).wait()
    return total[0]


choices = {"a": "hardly any", "b": "a part", "c": "nearly all"}
course.predict("texts_exposed", answer=..., choices=choices)

# %% tags=["figure:17_exposed"]
from course_utils.lessons.long_texts import own_keys_only, sentences, timed, zigzag
from course_utils.lessons.overlap import slowest

ways = {"nothing sent": own_keys_only, "in turn": in_turn, "ring": ring}
text = {"heads": 2, "size": 32}
run = ranks.run(timed, ways, zigzag(2048, 4), 5, ranks=4, backend="gloo", **text)
seconds = slowest(run.results)
names = "ring", "in turn", "nothing sent"
share = sentences.exposed_share(seconds, *names)  # None: the machine was busy
letter = sentences.exposed_letter(share)
course.measured("texts_exposed", busy=share is None, answer=letter)
bars = sentences.waits_of(seconds, "nothing sent")
title = sentences.exposed_text(seconds, *names)
course.draw.stacked_bars(bars, title, "The fastest of five runs of each")

# %% [markdown]
# (Four ranks share this machine's cores, so what is hidden differs from run to run. Next to GPUs, a network card sends
# by itself.) A longer text hides its messages better: with twice the tokens on a rank, the transfer takes twice as
# long, and the computing four times.
#
# ## Who works?
#
# Under the causal mask the first quarter of the text sees little, and the last quarter sees nearly everything. All
# ranks wait for the slowest. **Predict**: 4 ranks have the quarters in order. How many times as many pairs of a query
# and a key does the last rank see as the first?

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
# Half of the first quarter's square is masked. Count in such halves: ranks 0 to 3 see 1, 3, 5 and 7. (And a little
# more, for a token sees itself as well.) The busiest rank has $\frac74$ of the mean.
#
# Better: cut the text into $2P$ pieces. Rank $r$ gets piece $r$ from the front, and its counterpart from the back,
# piece $2P-1-r$: a **zig-zag**. Little and much make the same for all. Exercise: `zigzag`.

# %% tags=["figure:17_zigzag"]
from course_utils.lessons.long_texts import pictures

dealt = {"in order": in_order(1024, 4), "zig-zag": zigzag(1024, 4)}
seen = {way: pairs_seen(places) for way, places in dealt.items()}
small = {"in order": in_order(64, 4), "zig-zag": zigzag(64, 4)}
pictures.masks(small, sentences.work_text(seen))

# %% [markdown]
# These pairs are computed from places alone. Now we count what the ranks really multiply: `computing` counts the
# operations of all matrix products. (Blocks that the mask cuts through are computed in full. So each rank computes a
# few pairs too many, and the ratio comes out a little smaller.)

# %%
from course_utils.lessons.long_texts import computing

for way, places in dealt.items():
    run = ranks.run(computing, ring, places, ranks=4, backend="gloo")
    formula, counted = pairs_computed(places, 128), run.results
    assert [n / counted[0] for n in counted] == [n / formula[0] for n in formula]
    found, wanted = imbalance(counted), imbalance(seen[way])
    print(f"{way}: busiest rank ÷ mean {found:.2f}, by pairs {wanted:.2f}")
assert found <= 1.05  # the zig-zag

# %% [markdown]
# The ring does not care who has which tokens: it only compares places. So the same function serves both orders, and
# texts that cannot be divided equally:

# %%
for length, P in ((64, 4), (37, 4), (5, 4), (24, 1)):
    run = compare(attention_round_the_ring, zigzag(length, P), ranks=P)
    assert max(max(found.values()) for found in run.results) <= 1e-12
    print(f"{length} tokens on", difference_text(run.results))
try:
    zigzag(3, 4)
except course.CourseError as error:
    print("3 tokens on 4 ranks:", error)

# %% [markdown]
# ## Another way: heads for tokens
#
# Lesson 9 cut attention by heads. **Ulysses** (Jacobs and others, 2023) does so during attention only. Before attention
# comes an **all-to-all**: each rank sends each other rank a part of what it has. A rank that had *all heads of some
# tokens* then has *some heads of all tokens*, and does attention as in one process. After it, an all-to-all goes back.
#
# Four tensors move: $q$, $k$, $v$, and the output. Let $S$ be a rank's share of one of them, in bytes. The rank keeps
# $\frac1P$ of $S$, and sends the rest.

# %%
from course_utils.lessons.long_texts import ulysses_attention, ulysses_bytes

run = compare(ulysses_attention, zigzag(64, 4), ranks=4)
assert max(max(found.values()) for found in run.results) <= 1e-12
print(difference_text(run.results))
others = 3 / 4  # the trace counts what a rank gives to itself, too
sent = others * bytes_in(run.events, "forward", rank=0)
assert sent == ulysses_bytes(Shape(64, heads=4, size=16, number_bytes=8), 4)["forward"]
print(f"{run.collectives} all-to-alls, forward and backward")
try:
    compare(ulysses_attention, zigzag(48, 3), ranks=3)  # 4 heads
except course.CourseError as error:
    print(error)

# %% [markdown]
# Forward the ring sends $2S(P-1)$, Ulysses $4S\frac{P-1}{P}$. With more ranks a rank's share gets smaller, and Ulysses'
# bytes with it; the ring always carries the whole text past everybody.
#
# But in many models several heads of queries share one head of keys and values (**grouped-query attention**). Then $k$
# and $v$ are smaller than $q$ and the output; and the ring sends $k$ and $v$ only. **Predict**, for 2, 4 and 8 ranks:
# up to how many of them does the ring send no more than Ulysses? First with as many heads of keys as of queries, then
# with an eighth as many.

# %%
course.predict("texts_heads", as_many=..., an_eighth=...)

# %%
kinds = {"as_many": 64, "an_eighth": 8}  # heads of keys; 64 of queries
until = {}
for name, kv_heads in kinds.items():
    shape = Shape(2**17, heads=64, size=128, kv_heads=kv_heads, number_bytes=2)
    print(f"{kv_heads} heads of keys:")
    for P in (2, 4, 8):
        both = [sends(shape, P)["forward"] for sends in (ring_bytes, ulysses_bytes)]
        print(" ", sentences.sends_text(*both, P))
        until[name] = P if both[0] <= both[1] else until[name]
course.answer("texts_heads", **until)

# %% [markdown]
# The ring sends less while $P < 1 + \frac{\text{heads of queries}}{\text{heads of keys}}$: below 9 ranks in the second
# case. Ours cannot go so far there, because 8 heads of keys cannot be divided among 9 ranks, or 16. DeepSpeed's Ulysses
# can: with more ranks than heads of keys it gives several ranks a copy of the same keys and values. Its limit is the
# number of heads of *queries*, and the copies cost bytes that our formula does not count. The ring has no limit of this
# kind, and it hides its messages. (Backward, the ring sends twice as much as forward; Ulysses sends as much as
# forward.) The two can be combined, with Ulysses among some ranks and rings between these groups ([USP, Fang and Zhao
# 2024](https://arxiv.org/abs/2405.07719)).

# %% [markdown]
# ## How long a text?
#
# Lesson 9's formula for memory has three parts: what is fixed (parameters, gradients, Adam), bytes for each token, and
# bytes for each pair of tokens. With attention in blocks the pairs are gone. Each of $P$ ranks keeps $\frac1P$ of the
# tokens. First we compare the formula with what a real step keeps; then we solve it for the length. Exercise:
# `longest_text`.

# %%
from course_utils.lessons.long_texts import memory_in_blocks, ordinary_memory
from course_utils.lessons.long_texts import text_step_memory
from course_utils.lessons.model_parallel import character_model

sizes = {"characters": 96, "width": 64, "heads": 4, "depth": 4}
model = character_model(context=512, **sizes)
formulas = {"all scores": ordinary_memory(model), "in blocks": memory_in_blocks(model)}
for way, formula in formulas.items():
    step = partial(text_step_memory, 512, way == "in blocks", **sizes)
    counted = on_one(step).results[0].total
    assert abs(formula.on_each(512) / counted - 1) <= 0.05
    token, pair = formula.per_token, formula.per_pair
    print(f"{way}: {bytes_text(counted)} counted")
    print(f"  {bytes_text(formula.fixed)} + {token:,.0f} B · n + {pair:,.0f} B · n²")

# %% [markdown]
# **Predict.** With 8 ranks in place of 1, how many times as long a text fits: where all scores are kept, and in blocks?

# %%
course.predict("texts_longest", within=1.15, all_scores=..., in_blocks=...)

# %% tags=["figure:17_longest"]
memory, many = 80e9, [1, 2, 4, 8, 16]  # bytes on a rank; ranks
fits = {way: [kept.longest(memory, P) for P in many] for way, kept in formulas.items()}
times = [fits[way][3] / fits[way][0] for way in formulas]
course.answer("texts_longest", all_scores=times[0], in_blocks=times[1])
title = (
    f"8 ranks: {times[0]:.1f} times the text with all scores, {times[1]:.1f} in blocks"
)
look = {"across": "ranks", "up": "tokens of the longest text", "unit": "{:,.0f}".format}
course.draw.over_numbers(many, fits, title, "80 GB on each rank", log=True, **look)

# %% [markdown]
# Pairs grow with the square of the length, so eight times the memory is good for $\sqrt 8$ times the length. In blocks,
# eight ranks are good for eight times the length. The *computing* still grows with the square; nothing here changes
# that.
#
# ## All together
#
# Context parallelism is one more axis of lesson 11's mesh. Texts are dealt out along `data`, tokens along `context`,
# heads and matrices along `tensor`. Along `context` and `data` all ranks have the same weights; so gradients are summed
# over these two axes, as in lesson 6.

# %%
from course_utils.lessons.long_texts import mesh_beside_one_process

mesh = {"data": 2, "context": 2, "tensor": 2}
run = ranks.run(mesh_beside_one_process, mesh, backend="gloo")
assert max(max(found.values()) for found in run.results) <= 1e-12
print(difference_text(run.results))

# %% [markdown]
# A whole transformer, on eight ranks: its loss and all its gradients are those of one process.
#
# ## torch's own tool
#
# torch has context parallelism as an experiment, `torch.distributed.tensor.experimental.context_parallel`. Inside its
# `with`, tokens are dealt out in a zig-zag order, and `scaled_dot_product_attention` gathers the keys and values of all
# ranks with an all-gather. (Llama 3 was trained with an all-gather, too.) If you want them to go from rank to rank
# instead, call `set_rotate_method("alltoall")` first. It knows only attention on GPUs. On processors torch 2.13 raises
# `Operator aten._scaled_dot_product_flash_attention_for_cpu.default does not have a sharding strategy registered`.
# Where you have GPUs:
#
# ```
# with context_parallel(mesh, buffers=[q, k, v], buffer_seq_dims=[2, 2, 2]):
#     out = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
# ```

# %% [markdown]
# ## What you take with you
#
# - You can **compute** attention block by block: from an output and a log-sum-exp of each, two parts become one.
# - You can **share** a text, dealt out in a zig-zag: keys and values go round a ring, or ranks exchange tokens for
#   heads.
# - You can **predict**: pairs for the work, $2S(P-1)$ or $4S\frac{P-1}{P}$ for the bytes, and a length that grows with
#   the ranks.
#
# Next: [the exercises](../exercises/17_long_texts.ipynb). After that: your own long text.
#
# **To read**
#
# - Liu and others (2023), [*Ring Attention with Blockwise Transformers*](https://arxiv.org/abs/2310.01889), is the
#   paper on the ring.
# - Jacobs and others (2023), [*DeepSpeed Ulysses*](https://arxiv.org/abs/2309.14509), exchanges tokens for heads.
# - Milakov and Gimelshein (2018), [*Online normalizer calculation for softmax*](https://arxiv.org/abs/1805.02867),
#   shows why attention can be computed block by block.

# %%
ranks.stop()
