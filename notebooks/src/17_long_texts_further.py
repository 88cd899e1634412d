# The optional second notebook of lesson 17. Percent format: edit this file, then run `make notebooks`.

# %% [markdown]
# # Further: what if the text does not fit?
#
# The first page shared one long text. But training data are mostly short: a text of 131,072 tokens is often a pack of
# many documents, one after the other. The zig-zag that gives all ranks the same work in one long text gives the busiest
# of four ranks 1.45 times the mean in a small pack that you will see in section 2. This notebook shows what helps. It
# also has a third way to share a text, counts what that sends, and calculates how long a text may be.
#
# Everything here is optional, and nothing later depends on it. The first code cell prepares the notebook, and after
# that you can run any section. If a section complains that its ranks were stopped, run the first code cell again.
#
# 1. *Tokens for heads*: Ulysses, and what it sends if there are few KV heads
# 2. *Packed documents*: who works if a text consists of many
# 3. *A ring of groups*: Ulysses and a ring together
# 4. *What torch sends*: the ring and the all-gather of `context_parallel`
# 5. *How long a text?*: solve lesson 9's formula for the length
# 6. *All together*: texts, tokens and heads shared at the same time
#
# *50 minutes · optional, after [lesson 17](17_long_texts.ipynb) · 8 ranks, about 8 minutes for each section*

# %%
from functools import partial

import torch
import torch.distributed as dist
from torch.nn import functional

import course_utils as course
from course_utils.lessons.long_texts import Shape, attention_round_the_ring
from course_utils.lessons.long_texts import beside_one_process, bytes_in, difference_text
from course_utils.lessons.long_texts import drawn_text, heads_for_tokens, in_order
from course_utils.lessons.long_texts import imbalance, pairs_seen, pictures, ring_bytes
from course_utils.lessons.long_texts import sentences, tokens_for_heads
from course_utils.lessons.long_texts import ulysses_attention, ulysses_bytes, zigzag
from course_utils.words import bytes_text, percent

ranks = course.start(8, link="100 Mbit/s")
ranks.load_torch()
compare = partial(ranks.run, beside_one_process, ranks=4, backend="gloo")


def check(run):  # output and gradients are those of one process
    assert max(max(found.values()) for found in run.results) <= 1e-12
    print(difference_text(run.results))


# %% [markdown]
# ## Tokens for heads
#
# Lesson 9 divided attention by heads, because each head works on its own. **Ulysses** does this during attention only.
# Before attention, each rank has *all heads of some tokens*. In an all-to-all, every rank sends a part of its heads to
# every other rank, and afterwards each has *some heads of all tokens*. Now it can compute attention as in one process.
# A second all-to-all takes the output back. This is the whole method:

# %%
from course_utils.lessons.long_texts import attention_in_blocks


def ulysses(q, k, v, positions):
    q, k, v = (tokens_for_heads(tensor) for tensor in (q, k, v))
    out = attention_in_blocks(q, k, v, torch.cat(positions))
    return heads_for_tokens(out)


run = compare(ulysses, zigzag(64, 4))
check(run)
print(f"{run.collectives} all-to-alls, forward and backward")

# %% [markdown]
# Each of `tokens_for_heads` and `heads_for_tokens` is an all-to-all, and its backward pass is the other one.
#
# What does a rank send? Let's count in *heads of the whole text*: one is what a single head has for all tokens, a
# vector for each of them. Take a model with 64 heads of queries and 8 heads of keys and of values, as in Llama 3 70B.
# Ulysses moves the queries and the output with 64 heads each, and the keys and values with 8 heads each, which makes
# 144 heads in all. On 8 ranks, each rank has $\frac18$ of the tokens, so it has to move as many bytes as 18 heads of
# the whole text have, except for the eighth of them that stays where it is.
#
# In a ring only keys and values move, 8 + 8 = 16 heads, and every rank passes on all of them except its own eighth. So
# with 8 ranks the ring sends 16 and Ulysses sends 18, both times $\frac78$. With more ranks, the ring's share stays the
# same, and that of Ulysses shrinks.
#
# But what if there are 16 ranks? There are only 8 heads of keys, so not every rank can get one of its own. Then each of
# them is copied, and two ranks get the same keys. DeepSpeed's version does this. The copies are made before the
# all-to-all, so they travel as well, and Ulysses moves as many heads of keys as there are ranks.
#
# **Predict.** With 16 ranks, how many heads does a rank move in the ring, and how many with Ulysses? (Both times
# $\frac{15}{16}$, which you can leave out.)

# %%
course.predict("texts_heads", within=1.02, ring=..., ulysses=...)

# %%
shape = Shape(2**17, heads=64, size=128, kv_heads=8, number_bytes=2)
one_head = 2**17 * 128 * 2  # bytes
for P in (4, 8, 16, 32, 64):
    ring = ring_bytes(shape, P)["forward"]
    by_heads = ulysses_bytes(shape, P, copies=True)["forward"]
    print(sentences.sends_text(ring, by_heads, P))
    if P == 16:
        moved = [sent / one_head * P / (P - 1) for sent in (ring, by_heads)]
course.answer("texts_heads", ring=moved[0], ulysses=moved[1])

# %% [markdown]
# Let us check both formulas with a small text on four ranks, 4 heads of queries and 2 heads of keys, so that each of
# them is copied once:


# %%
def with_copies(q, k, v, positions):
    copies = dist.get_world_size() // k.shape[1]
    k, v = (tensor.repeat_interleave(copies, dim=1) for tensor in (k, v))
    return ulysses(q, k, v, positions)


small = Shape(64, heads=4, size=16, kv_heads=2, number_bytes=8)
run = compare(with_copies, zigzag(64, 4), kv_heads=2)
check(run)
others = 3 / 4  # the trace counts what a rank gives to itself, too
sent = {
    name: others * bytes_in(run.events, name, rank=0) for name in ("forward", "backward")
}
assert sent == ulysses_bytes(small, 4, copies=True)
run = compare(attention_round_the_ring, zigzag(64, 4), kv_heads=2)
check(run)
sent = {name: bytes_in(run.events, name, rank=0) for name in ("forward", "backward")}
assert sent == ring_bytes(small, 4)

# %% [markdown]
# In the backward pass, Ulysses sends as much as in the forward pass, and the ring twice as much. So why use a ring at
# all? Ulysses needs at least as many heads of queries as ranks, and attention can't begin before the first all-to-all
# has brought a head's tokens together. The ring has no such limit, and its transfers can hide behind the computing.
#
# ## Packed documents
#
# Most documents are much shorter than the texts that a model is trained with. To waste nothing, programs **pack**
# several of them into one text. The model shouldn't look from one document into the one before, so a **document mask**
# hides all keys of other documents.
#
# Does the zig-zag still give all ranks the same work? Take 64 tokens and four documents of 32, 16, 8 and 8 tokens, on 4
# ranks. The zig-zag cuts the text into 8 pieces of 8 tokens. We count as on the first page, where half a tile of 8 × 8
# pairs counts 1. In the first document, the four pieces see 1, 3, 5 and 7. In the second, the two pieces see 1 and 3,
# and the last two documents are one piece each, which sees 1:
#
# | piece | 0 | 1 | 2 | 3 | 4 | 5 | 6 | 7 |
# |---|---|---|---|---|---|---|---|---|
# | sees | 1 | 3 | 5 | 7 | 1 | 3 | 1 | 1 |
# | rank, zig-zag | 0 | 1 | 2 | 3 | 3 | 2 | 1 | 0 |
# | rank, in order | 0 | 0 | 1 | 1 | 2 | 2 | 3 | 3 |
#
# In a zig-zag, ranks 0 to 3 have 2, 4, 8 and 8. The mean is 5.5, so the busiest rank has 1.45 times the mean. The
# zig-zag pairs an early piece with a late one, and that is only right if late pieces see more.
#
# **Predict.** Turn the pack around, so that the documents have 8, 8, 16 and 32 tokens. How many half tiles does the
# busiest rank have in a zig-zag, and how many in order?

# %%
course.predict("texts_packed", within=1.05, zig_zag=..., in_order=...)

# %% [markdown]
# The remedy is to divide every *document* in a zig-zag. Then all ranks have the same work in each of them, and so in
# the whole pack:


# %%
def starts_of(lengths):  # for each token, where its document begins
    ends = torch.tensor(lengths).cumsum(0)
    return (ends - torch.tensor(lengths)).repeat_interleave(torch.tensor(lengths))


def per_document(lengths, P):
    shares, start = [[] for _ in range(P)], 0
    for length in lengths:
        for share, positions in zip(shares, zigzag(length, P)):
            share.append(start + positions)
        start += length
    return [torch.cat(share) for share in shares]


def three_orders(lengths, P):
    total = sum(lengths)
    return {
        "in order": in_order(total, P),
        "zig-zag": zigzag(total, P),
        "per document": per_document(lengths, P),
    }


# %% tags=["figure:17_packed"]
def pairs_in(pack):
    starts, orders = starts_of(pack), three_orders(pack, 4)
    return {name: pairs_seen(own, starts) for name, own in orders.items()}


half = 800**2 / 2
long_pack = pairs_in([800, 800, 1600, 3200])  # a hundred times longer than above
busiest = {name: max(numbers) / half for name, numbers in long_pack.items()}
course.answer("texts_packed", zig_zag=busiest["zig-zag"], in_order=busiest["in order"])
pack = [8, 8, 16, 32]  # so short that the pairs on the diagonal count a little
title = sentences.packed_text(pairs_in(pack))
pictures.masks(three_orders(pack, 4), title, starts_of(pack))

# %% [markdown]
# That was one small pack. Real packs have many documents of very different lengths. Here are 200 random packs of 8,192
# tokens for 8 ranks:

# %% tags=["nbval-check-output"]
from statistics import mean


def random_pack(generator, total=8192, shortest=16):
    lengths = []
    while (left := total - sum(lengths)) > 0:
        drawn = int(shortest * 2 ** (9 * torch.rand(1, generator=generator).item()))
        lengths.append(min(drawn, left) if left - drawn >= shortest else left)
    return lengths


generator = torch.Generator().manual_seed(0)
found = {"in order": [], "zig-zag": [], "per document": []}
for _ in range(200):
    lengths = random_pack(generator)
    starts = starts_of(lengths)
    for name, positions in three_orders(lengths, 8).items():
        found[name].append(imbalance(pairs_seen(positions, starts)))
for name, values in found.items():
    print(f"{name}: the busiest rank has {mean(values):.2f} times the mean")
assert mean(found["per document"]) < mean(found["zig-zag"])

# %% [markdown]
# Dividing each document isn't perfect either, because a length that 16 pieces can't divide leaves a token more for some
# ranks. torch has a private prototype of such a load balancer, which accepts only lengths that can be divided by twice
# the number of ranks. Short documents could also go to one rank as a whole, and then nothing would have to be sent for
# them. But a rank would have to find several that make the same work together, and a long document would still have to
# be shared.
#
# Now it becomes clear why Llama 3's authors name the document mask as a reason for their all-gather. Once a rank has
# all keys and values, it hands them to one attention kernel together with its rows of the mask:


# %%
class AllGather(torch.autograd.Function):  # as on the first page
    @staticmethod
    def forward(context, kv):
        parts = [torch.empty_like(kv) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, kv.contiguous())
        return torch.cat(parts, dim=3)

    @staticmethod
    def backward(context, gradient):
        parts = gradient.chunk(dist.get_world_size(), dim=3)
        parts = [part.contiguous() for part in parts]
        own = torch.empty_like(parts[0])
        dist.reduce_scatter(own, parts)
        return own


from course_utils.trace.recorder import phase


def packed_beside_one_process(lengths, positions):
    own, everyone = positions[dist.get_rank()], torch.cat(positions)
    starts = starts_of(lengths)
    whole = [tensor.requires_grad_() for tensor in drawn_text(sum(lengths))[:3]]
    documents = zip(*(tensor.split(lengths, dim=2) for tensor in whole))
    attend = partial(functional.scaled_dot_product_attention, is_causal=True)
    wanted = torch.cat([attend(*document) for document in documents], dim=2)

    inputs = [tensor.detach()[:, :, own].requires_grad_() for tensor in whole]
    q, k, v = inputs
    with phase("forward"):
        k, v = AllGather.apply(torch.stack([k, v]))
        mask = (everyone <= own[:, None]) & (everyone >= starts[own][:, None])
        out = functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    with phase("backward"):
        gradients = torch.autograd.grad(out.square().sum(), inputs)
    theirs = torch.autograd.grad(wanted.square().sum(), whole)
    pairs = zip((out, *gradients), (wanted, *theirs))
    return max((mine - other[:, :, own]).abs().max().item() for mine, other in pairs)


pack = [16, 16, 32, 64]
options = {"ranks": 4, "backend": "gloo"}
run = ranks.run(packed_beside_one_process, pack, per_document(pack, 4), **options)
assert max(run.results) <= 1e-12
print(f"packed and shared, at most {max(run.results):.0e} from one document at a time")

# %% [markdown]
# In a ring, every round would need its own part of the mask, and rounds in which a rank's queries see none of the
# visiting keys would still have to pass them on.
#
# So both methods bring all keys and values to all ranks, whether they are needed or not. How many are needed? Take 128
# tokens, 32 on each of four ranks. If they are a single text in order, rank 1 needs the keys and values of rank 0's 32
# tokens, rank 2 needs those of 64 tokens and rank 3 those of 96. That makes 192. As an all-gather brings those of 96
# other tokens to each of four ranks, 192 of 384 are needed, which is half of them.
#
# **Predict.** Now the 128 tokens are a pack, with documents of 16, 16, 32 and 64 tokens, and the ranks have it in
# order. Over all ranks, how many tokens of other ranks are needed?

# %%
course.predict("texts_needed", tokens=...)

# %%
from course_utils.lessons.long_texts import keys_needed

orders, starts = three_orders(pack, 4), starts_of(pack)
needed = {name: keys_needed(positions, starts) for name, positions in orders.items()}
course.answer("texts_needed", tokens=sum(needed["in order"]))
for name, numbers in needed.items():
    print(f"{name}: ranks 0 to 3 need {numbers}, together {sum(numbers)} of 384")

one_share = (
    2 * 32 * 4 * 16 * 8
)  # keys and values: 32 tokens, 4 heads, 16 numbers, 8 bytes
gathered = 3 * bytes_in(run.events, "forward", rank=0)  # to three other ranks
scattered = 3 / 4 * bytes_in(run.events, "backward", rank=0)  # all but its own quarter
assert gathered == scattered == 3 * one_share
ring = ring_bytes(Shape(128, heads=4, size=16, number_bytes=8), 4)
print(f"all-gather: {gathered:,} bytes forward, {scattered:,.0f} backward")
print(f"ring: {ring['forward']:,.0f} bytes forward, {ring['backward']:,.0f} backward")

# %% [markdown]
# In order, only the longest document lies on two ranks, so rank 3 needs the 32 tokens of rank 2, and that is all. If
# every document is divided, nearly every rank needs something from every other rank. Neither method takes advantage of
# this. Each rank sends three shares forward in both, whatever the documents are. (Backward, our all-gather sends half
# of what the ring sends, because it has kept the keys and values.)
#
# Is the pack in order the better choice, then? Here are both numbers for the 200 random packs on 8 ranks:

# %%
generator = torch.Generator().manual_seed(0)  # the same packs as above
needed = {name: [] for name in found}
for _ in range(200):
    lengths = random_pack(generator)
    starts = starts_of(lengths)
    for name, positions in three_orders(lengths, 8).items():
        needed[name].append(sum(keys_needed(positions, starts)) / (7 * 8192))
work = {name: mean(values) for name, values in found.items()}
share = {name: mean(values) for name, values in needed.items()}


def as_bars(numbers):
    return {name: {"mean of 200 packs": number} for name, number in numbers.items()}


crowding = course.draw.SharesPanel(
    "busiest rank's work ÷ mean", as_bars(work), say="{:.2f}".format
)
keys = course.draw.SharesPanel("needed keys of other ranks", as_bars(share), say=percent)
course.draw.shares([crowding, keys], sentences.needed_text(work, share))

# %% [markdown]
# The two numbers pull in opposite directions. As long as a method sends everything anyway, only balance counts. A
# method that sends only what is needed would have to find a compromise between the two.
#
# ## A ring of groups
#
# Ulysses and the ring can be combined. Give the eight or so GPUs of a node one part of the text, and let them exchange
# tokens for heads with Ulysses over their fast links. The keys and values of whole nodes then go round a ring between
# the nodes. This is called **USP** (*unified sequence parallelism*). Here are two groups of two ranks:

# %%
from torch.distributed.device_mesh import init_device_mesh


def ring_of_groups(q, k, v, positions):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("ring", "ulysses"))
    group, ring = mesh["ulysses"].get_group(), mesh["ring"].get_group()
    q, k, v = (tokens_for_heads(tensor, group) for tensor in (q, k, v))
    of_groups = [torch.cat(positions[:2]), torch.cat(positions[2:])]
    out = attention_round_the_ring(q, k, v, of_groups, ring)
    return heads_for_tokens(out, group)


run = compare(ring_of_groups, zigzag(64, 4))
check(run)
print(f"{run.messages} messages, {run.collectives} collectives")

# %% [markdown]
# The ranks of a group have the same tokens after their all-to-all, but different heads, so each of them takes part in a
# ring of its own. Let $S$ be the bytes of a rank's queries. If there are as many heads of keys as of queries, $U$ ranks
# in a group and $R$ groups, then a rank sends $4S\,\frac{U-1}{U}$ for the all-to-alls and $2S(R-1)$ in its ring, in the
# forward pass. On 8 ranks this gives:
#
# | groups × ranks in a group | 8 × 1 (ring) | 4 × 2 | 2 × 4 | 1 × 8 (Ulysses) |
# |---|---|---|---|---|
# | all-to-alls | 0 | 2 $S$ | 3 $S$ | 3.5 $S$ |
# | ring | 14 $S$ | 6 $S$ | 2 $S$ | 0 |
#
# So larger groups send less, but a group can't have more ranks than there are heads, and the all-to-alls should stay on
# the fast links.
#
# ## What torch sends
#
# On the first page, torch's `context_parallel` made one all-gather in the forward pass. You can also ask it for a ring.
# The next cell counts the collectives of both methods in both directions:

# %%
from torch.distributed.tensor.debug import CommDebugMode
from torch.distributed.tensor.experimental import context_parallel
from torch.distributed.tensor.experimental._attention import set_rotate_method

from course_utils.lessons.long_texts import add_processor_kernel


def calls(counted):
    return {str(call).split(".")[-1]: n for call, n in counted.get_comm_counts().items()}


def by_torch(method):
    add_processor_kernel()  # not needed on GPUs
    set_rotate_method(method)
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    *whole, gradient = drawn_text(32, dtype=torch.float32)
    whole = [tensor.requires_grad_() for tensor in whole]
    wanted = functional.scaled_dot_product_attention(*whole, is_causal=True)
    theirs = torch.autograd.grad(wanted, whole, gradient)

    positions = torch.arange(32)
    buffers = [*(tensor.detach().clone() for tensor in whole), gradient, positions]
    dimensions = [2, 2, 2, 2, 0]  # that of the tokens, in each of them
    with context_parallel(mesh, buffers=buffers, buffer_seq_dims=dimensions):
        inputs = [tensor.clone().requires_grad_() for tensor in buffers[:3]]
        with CommDebugMode() as forward:
            out = functional.scaled_dot_product_attention(*inputs, is_causal=True)
        with CommDebugMode() as backward:
            gradients = torch.autograd.grad(out, inputs, gradient)
        pairs = zip((out, *gradients), (wanted, *theirs))
        apart = max((a - b[:, :, positions]).abs().max().item() for a, b in pairs)
    return apart, calls(forward), calls(backward)


for method in ("allgather", "alltoall"):
    run = ranks.run(by_torch, method, ranks=4, backend="gloo")
    assert max(apart for apart, _, _ in run.results) < 1e-5
    _, forward, backward = run.results[0]
    print(f"{method}: forward {forward}, backward {backward}")

# %% [markdown]
# With `"alltoall"`, each of the three steps of the ring is an all-to-all in which every rank has something for its
# neighbour only. In the backward pass there are seven: keys and values make three steps again, and their gradients make
# four, because torch also sends a rank's own contribution once around. The gradients do so with both methods. There is
# a second variant in torch, for *FlexAttention*, where you write the mask as a function. It makes two all-gathers
# forward and two reduce-scatters backward, for keys and for values; the function on our first page sends both together.
#
# ## How long a text?
#
# Lesson 9's formula for memory has three parts. Some bytes are there whatever the length (weights, gradients, Adam's
# averages; we assume that positions take no more weights in a longer text, as with RoPE), some are kept for each token,
# and some for each pair of tokens. With attention in blocks the last part is zero. If $P$ ranks share a text, each
# keeps $\frac1P$ of the tokens. First we compare the formula with what a real step keeps, for a small model of width 64
# with 4 blocks and a text of 512 tokens:

# %%
from course_utils.lessons.long_texts import memory_in_blocks, ordinary_memory
from course_utils.lessons.long_texts import text_step_memory
from course_utils.lessons.model_parallel import character_model

sizes = {"characters": 96, "width": 64, "heads": 4, "depth": 4}
model = character_model(context=512, **sizes)
formulas = {"all scores": ordinary_memory(model), "in blocks": memory_in_blocks(model)}
for name, formula in formulas.items():
    step = partial(text_step_memory, 512, name == "in blocks", **sizes)
    counted = ranks.run(step, ranks=1, backend="gloo").results[0].total
    assert abs(formula.on_each(512) / counted - 1) <= 0.05
    print(
        f"{name}: {bytes_text(counted)} counted, {bytes_text(formula.on_each(512))} by the formula"
    )

# %% [markdown]
# Now we solve the formula for the length (you write this function, `longest_text`, in the exercises), and take a model
# of the size of GPT-2 medium: 24 blocks of width 1,024, with 16 heads. One rank has 80 GB. If eight ranks have room for
# eight times the activations, how much longer can the text be? With attention in blocks, the bytes grow in proportion
# to the length. If all scores are kept, it is mostly the pairs that take room. A text of twice the length has four
# times as many, and one of three times the length nine times as many.
#
# **Predict.** By what factor does the longest text grow from 1 rank to 8, with all scores and in blocks?

# %%
course.predict("texts_longest", within=1.15, all_scores=..., in_blocks=...)

# %% tags=["figure:17_longest"]
with torch.device("meta"):  # shapes without numbers
    medium = character_model(
        characters=50_257, context=1024, width=1024, heads=16, depth=24
    )
formulas = {"all scores": ordinary_memory(medium), "in blocks": memory_in_blocks(medium)}
memory, numbers = 80e9, [1, 2, 4, 8, 16]  # bytes on a rank; ranks
fits = {
    name: [formula.longest(memory, P) for P in numbers]
    for name, formula in formulas.items()
}
grown = {name: lengths[3] / lengths[0] for name, lengths in fits.items()}
course.answer(
    "texts_longest", all_scores=grown["all scores"], in_blocks=grown["in blocks"]
)
title = sentences.longest_title(grown, 8)
axes = {"across": "ranks", "up": "tokens of the longest text", "unit": "{:,.0f}".format}
under = (
    "A model of 24 blocks, width 1,024 and 16 heads, in float32, with 80 GB on each rank"
)
course.draw.over_numbers(numbers, fits, title, under, log=True, **axes)

# %% [markdown]
# If all scores are kept, eight times the memory buys only a little more than $\sqrt 8$, or 2.8, times the length,
# because a part of the bytes grows only with the tokens. In blocks it buys eight times the length. But the *computing*
# of attention still grows with the square of the length. Eight times the text on eight ranks has 64 times as many
# pairs, so each rank computes attention for eight times as long, while its work in MLPs and other linear layers stays
# the same.
#
# ## All together
#
# Context parallelism is one more axis of lesson 11's mesh. Texts are distributed along `data`, tokens along `context`,
# and heads and matrices along `tensor`. All ranks along `data` and `context` have the same weights, and each has
# computed the gradients of its own tokens, so the gradients are summed over these two axes, as in lesson 6. The next
# cell does this with a small transformer on 2 × 2 × 2 ranks, and compares its loss and all its gradients with those of
# one process:

# %%
from course_utils.lessons.long_texts import mesh_beside_one_process

mesh = {"data": 2, "context": 2, "tensor": 2}
run = ranks.run(mesh_beside_one_process, mesh, backend="gloo")
check(run)

# %%
ranks.stop()

# %% [markdown]
# ## What you know now
#
# You can say when Ulysses sends less than a ring and when more, also if there are fewer KV heads than ranks, and how
# the two are combined. You know why a zig-zag doesn't balance a pack of documents, and what does. You can calculate how
# long a text may be, and place context parallelism in a mesh.
#
# **To read**
#
# - Jacobs and others, 2023, [*DeepSpeed Ulysses*](https://arxiv.org/abs/2309.14509): tokens for heads.
# - Fang and Zhao, 2024, [*USP*](https://arxiv.org/abs/2405.07719): Ulysses and a ring together, with measurements.
# - Brandon and others, 2023, [*Striped Attention*](https://arxiv.org/abs/2311.09431): a different remedy for the causal
#   mask, which deals out single tokens.
#
# Go back to [lesson 17](17_long_texts.ipynb), or on to the [exercises](../exercises/17_long_texts.ipynb).
